"""Random frames of every kind for the shipped program, from any `random.Random`.

Half of them are sound messages of the job, so that slots fill, complete and move on; the others are
refused for one reason each, or harmed at random.
"""

from __future__ import annotations

import functools
import random

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw
from scapy.utils import checksum

from p4src.constants import LANES, Flag, Kind
from tests.packet.program import IDLE_PORT, PARENT_PORT, WORKERS, Job
from tests.packet.program_frames import (
    DESTINATION_IP,
    LANE_MAX,
    LANE_MIN,
    SWITCH_MAC,
    with_options,
)
from topologies.network import mac_text
from traffic.message import Flow, Message, encode_frame, group_ip, group_mac, pack_lanes

JOB = Job(sources=WORKERS[:4])
"""The job of the mixture; its frames come in by the ports of its sources and PORTS' others."""

ROUTED_NET = "192.0.2"
"""Addresses of the ordinary packets."""

PORTS = (*(source.port for source in JOB.sources), IDLE_PORT, PARENT_PORT)

_EDGES = (0, 1, -1, 3, LANE_MAX, LANE_MIN)
_ETHERNET = 14
_IPV4_END = 34


def random_frame(rng: random.Random, shortest: int) -> tuple[int, bytes]:
    """A port and a frame of at least `shortest` bytes."""
    kind = rng.choices(
        (_contribution, _stranger, _answer, _ordinary, _harmed, _cut, _padded, _optional, _noise),
        weights=(50, 8, 8, 8, 10, 5, 4, 4, 3),
    )[0]
    port, frame = kind(rng)
    return port, frame.ljust(shortest, b"\0")


def _contribution(rng: random.Random) -> tuple[int, bytes]:
    source = rng.choice(JOB.sources)
    message = _message(
        rng,
        Kind.CONTRIBUTE,
        source=source.source,
        flags=rng.choice((0, 0, 0, 0, Flag.RESENT, Flag.RESENT, Flag.DIRECT, rng.randrange(256))),
        epoch=rng.choice((1,) * 9 + (2,)),
        chunk=rng.randrange(8),
        weight=rng.choice((1,) * 15 + (2,)),
        exponent=rng.choice((0, 1, 255, 256, 65_535)),
    )
    return source.port, _frame(message, source.ip, DESTINATION_IP)


def _stranger(rng: random.Random) -> tuple[int, bytes]:
    message = _message(
        rng,
        Kind.CONTRIBUTE,
        job=rng.choice((0, 1, 1, 1, 3, 65_535)),
        source=rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 65_535)),
    )
    return rng.choice(PORTS), _frame(message, "10.0.0.99", DESTINATION_IP)


def _answer(rng: random.Random) -> tuple[int, bytes]:
    kind = rng.choice((Kind.RESULT, Kind.ACK, Kind.REQUEST, rng.choice((0, 5, 255))))
    job = rng.choice((1, 1, 1, 4))
    dst = rng.choice((group_ip(job), group_ip(job), f"{ROUTED_NET}.{rng.randrange(256)}"))
    message = _message(rng, kind, job=job, source=65_535)
    port = rng.choice((*PORTS, PARENT_PORT, PARENT_PORT, PARENT_PORT))
    return port, _frame(message, DESTINATION_IP, dst)


def _message(rng: random.Random, kind: int, **fields: int) -> Message:
    values = [rng.choice(_EDGES) if rng.random() < 0.2 else rng.randint(-99, 99)] * LANES
    values[rng.randrange(LANES)] = rng.choice(_EDGES)
    defaults = {"flags": 0, "job": 1, "source": 1, "epoch": 1, "chunk": 0, "weight": 1}
    with_lanes = kind in (Kind.CONTRIBUTE, Kind.RESULT, Kind.REQUEST)
    return Message(
        kind=kind, lanes=pack_lanes(values) if with_lanes else b"", **(defaults | fields)
    )


def _frame(message: Message, src_ip: str, dst_ip: str) -> bytes:
    multicast = dst_ip.startswith("239.")
    dst_mac = group_mac(dst_ip) if multicast else mac_text(SWITCH_MAC)
    return encode_frame(Flow("02:00:00:00:00:02", dst_mac, src_ip, dst_ip, 40_000), message)


@functools.cache
def _ordinary_packets() -> tuple[Packet, ...]:
    ether = Ether(src="02:00:00:00:00:02", dst=mac_text(SWITCH_MAC))
    ip = IP(src="10.0.0.2", dst=f"{ROUTED_NET}.1")
    return (
        ether / ip / ICMP() / Raw(b"ping" * 10),
        ether / ip / TCP(dport=22),
        ether / ip / UDP(dport=53) / Raw(b"query"),
        ether / IP(src="10.0.0.2", dst="203.0.113.1") / UDP(dport=53),
        ether / IP(src="10.0.0.2", dst=f"{ROUTED_NET}.1", ttl=1) / ICMP(),
        ether / IP(src="10.0.0.2", dst=f"{ROUTED_NET}.1", chksum=0xBAD) / ICMP(),
        ether / IP(src="10.0.0.2", dst=f"{ROUTED_NET}.1", flags="MF") / UDP(dport=9590) / Raw(b"x"),
        ether / ARP(),
    )


def _ordinary(rng: random.Random) -> tuple[int, bytes]:
    return rng.choice(PORTS), bytes(rng.choice(_ordinary_packets()))


def _sound(rng: random.Random) -> tuple[int, bytes]:
    return rng.choice((_contribution, _contribution, _answer, _ordinary))(rng)


def _harmed(rng: random.Random) -> tuple[int, bytes]:
    """One to three bytes behind the Ethernet header are others; the checksum is often mended."""
    port, frame = _sound(rng)
    harmed = bytearray(frame)
    for _ in range(rng.randint(1, 3)):
        harmed[rng.randrange(_ETHERNET, min(len(harmed), 62))] = rng.randrange(256)
    if rng.random() < 0.7:
        harmed[24:26] = bytes(2)
        harmed[24:26] = checksum(bytes(harmed[_ETHERNET:_IPV4_END])).to_bytes(2, "big")
    return port, bytes(harmed)


def _cut(rng: random.Random) -> tuple[int, bytes]:
    port, frame = _sound(rng)
    return port, frame[: rng.randrange(len(frame))]


def _padded(rng: random.Random) -> tuple[int, bytes]:
    port, frame = _sound(rng)
    return port, frame + bytes(rng.randrange(1, 64))


def _optional(rng: random.Random) -> tuple[int, bytes]:
    port, frame = _contribution(rng)
    return port, with_options(frame, rng.randint(1, 10))


def _noise(rng: random.Random) -> tuple[int, bytes]:
    length = rng.choice((0, 1, 20, 28, 48, 176))
    return rng.choice(PORTS), bytes(12) + b"\x08\x00" + bytes(
        rng.randrange(256) for _ in range(length)
    )
