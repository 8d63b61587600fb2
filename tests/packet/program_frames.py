"""Frames for the shipped program, and what the switch must make of them.

Both are worked out with scapy: checksums and lengths are not computed by code of the product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scapy.layers.inet import IP, UDP, IPOption
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from p4src.constants import AGG_UDP_PORT, LANES, Kind
from tests.packet.program import (
    CHILD_PORT,
    OWN_SOURCE,
    PARENT_MAC,
    PARENT_PORT,
    WORKER_UDP_PORT,
    Job,
    Source,
)
from topologies.network import mac_text
from traffic.message import DESTINATION_SOURCE, group_ip, group_mac
from traffic.wire import Aggregation, Lanes

SWITCH_MAC = 0x02_01_00_00_00_01
DESTINATION_MAC = 0x02_00_00_00_FF_FF
DESTINATION_IP = "10.255.255.1"
LANE_MIN, LANE_MAX = -(2**31), 2**31 - 1


def lanes(seed: int, factor: int = 1) -> tuple[int, ...]:
    """Values that differ in every lane and seed, of both signs; times `factor`."""
    return tuple(((seed * 7919 + i * 104_729) % 20_011 - 10_000) * factor for i in range(LANES))


def summed(*vectors: Sequence[int]) -> tuple[int, ...]:
    """The lane-wise sum in int32: modulo 2^32."""
    return tuple(
        (sum(column) - LANE_MIN) % 2**32 + LANE_MIN for column in zip(*vectors, strict=True)
    )


def contribution(
    source: Source,
    chunk: int,
    values: Sequence[int],
    *,
    job: int = 1,
    epoch: int = 1,
    flags: int = 0,
    weight: int | None = None,
    exponent: int = 0,
) -> bytes:
    """A source's contribution as it arrives at the switch, with the right UDP checksum."""
    message = Aggregation(
        job=job,
        source=source.source,
        epoch=epoch,
        chunk=chunk,
        flags=flags,
        weight=source.weight if weight is None else weight,
        exponent=exponent,
    ) / Lanes(values=list(values))
    return bytes(
        Ether(src=mac_text(source.mac), dst=mac_text(SWITCH_MAC))
        / IP(src=source.ip, dst=DESTINATION_IP, ttl=255, flags="DF")
        / UDP(sport=40_000 + source.source % 10_000, dport=AGG_UDP_PORT)
        / message
    )


def answer(
    chunk: int,
    values: Sequence[int] | None,
    *,
    job: int = 1,
    dst: str = "",
    udp_port: int = AGG_UDP_PORT,
    flags: int = 0,
    exponent: int = 0,
) -> bytes:
    """The destination's result, or its acknowledgement where `values` is None, to the group."""
    address = dst or group_ip(job)
    header = Aggregation(
        kind=Kind.ACK if values is None else Kind.RESULT,
        job=job,
        source=DESTINATION_SOURCE,
        chunk=chunk,
        flags=flags,
        weight=5,
        exponent=exponent,
    )
    return bytes(
        Ether(
            src=mac_text(DESTINATION_MAC), dst=mac_text(SWITCH_MAC) if dst else group_mac(address)
        )
        / IP(src=DESTINATION_IP, dst=address, ttl=255, flags="DF")
        / UDP(sport=AGG_UDP_PORT, dport=udp_port)
        / (header if values is None else header / Lanes(values=list(values)))
    )


def requesting(chunk: int, wanted: int, flags: int = 0, job: int = 1) -> bytes:
    """The destination's request for the sources of a set."""
    group = group_ip(job)
    message = Aggregation(
        kind=Kind.REQUEST, job=job, source=DESTINATION_SOURCE, chunk=chunk, flags=flags, weight=6
    )
    return bytes(
        Ether(src=mac_text(DESTINATION_MAC), dst=group_mac(group))
        / IP(src=DESTINATION_IP, dst=group, ttl=255, flags="DF")
        / UDP(sport=AGG_UDP_PORT, dport=AGG_UDP_PORT)
        / message
        / Lanes(values=source_set(wanted))
    )


def source_set(wanted: int) -> list[int]:
    """A set of sources as the lanes of a message."""
    words = wanted.to_bytes(4 * LANES, "big")
    return [int.from_bytes(words[at : at + 4], "big", signed=True) for at in range(0, 4 * LANES, 4)]


def to_parent(frame: bytes, **changes: int) -> tuple[int, bytes]:
    """The frame on its way to the parent, unchanged but for the hop and `changes` of its header.

    A message with changes carries no UDP checksum any more.
    """
    packet = Ether(frame)
    packet.dst = mac_text(PARENT_MAC)
    if changes:
        packet[UDP].chksum = 0
    for name, value in changes.items():
        packet[Aggregation].setfieldval(name, value)
    return (PARENT_PORT, _hop(packet))


def sum_to_parent(
    frame: bytes, job: Job, values: Sequence[int], flags: int = 0, exponent: int = 0
) -> tuple[int, bytes]:
    """The sum that leaves when `frame` arrives: the switch's own source, the whole weight.

    `exponent` is the largest of the summed messages.
    """
    packet = Ether(frame)
    packet[Lanes].values = list(values)
    own = {"source": OWN_SOURCE, "weight": job.weight}
    return to_parent(bytes(packet), **own, flags=flags, exponent=exponent)


def fanned_out(frame: bytes, sources: Iterable[Source]) -> list[tuple[int, bytes]]:
    """The copies of a result: rewritten for each worker, as it came for a child switch."""
    copies = []
    for source in sources:
        packet = Ether(frame)
        if source.port != CHILD_PORT:
            packet.dst = mac_text(source.mac)
            packet[IP].dst = source.ip
            packet[UDP].dport = WORKER_UDP_PORT
            packet[UDP].chksum = 0
        copies.append((source.port, _hop(packet)))
    return copies


def routed(frame: bytes, port: int, mac: int) -> tuple[int, bytes]:
    """An ordinary packet as a router sends it on."""
    packet = Ether(frame)
    packet.dst = mac_text(mac)
    return (port, _hop(packet))


def with_options(frame: bytes, words: int) -> bytes:
    """The frame with 1 to 10 words of IPv4 options: a record of the route, the rest no-ops."""
    packet = Ether(frame)
    record = IPOption(b"\x07\x07\x04\x01\x02\x03\x04")
    no_op = IPOption(b"\x01")
    packet[IP].options = [no_op] * 4 if words == 1 else [record] + [no_op] * (4 * words - 7)
    return remade(packet, ("ihl", "len"))


def remade(packet: Packet, fields: Iterable[str] = ()) -> bytes:
    """The bytes of a packet with the right IPv4 checksum; `fields` of IPv4 are computed as well."""
    for name in ("chksum", *fields):
        packet[IP].delfieldval(name)
    return bytes(packet)


def is_sound(frame: bytes) -> bool:
    """Whether a host would take the frame: right IPv4 checksum, UDP checksum right or absent."""
    packet = Ether(frame)
    again = packet.copy()
    del again[IP].chksum
    udp_right = True
    if UDP in packet and packet[UDP].chksum:
        del again[UDP].chksum
        udp_right = Ether(bytes(again))[UDP].chksum == packet[UDP].chksum
    return Ether(bytes(again))[IP].chksum == packet[IP].chksum and udp_right


def _hop(packet: Packet) -> bytes:
    packet[IP].ttl -= 1
    return remade(packet)
