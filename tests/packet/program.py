"""The shipped program on a target: a small job, its frames, and what must become of them.

    switch = BluetreeSwitch(target, Job(sources=WORKERS[:2]))
    switch.check(WORKERS[0].port, contribution(WORKERS[0], 0, lanes(1)), Outcome.ABSORBED)

The switch of these tests has five workers on ports 1 to 5, a child switch on port 6, nothing on
port 7, and its parent on port 8. Frames are built, and what the switch made of them is worked out,
with scapy: checksums and lengths are not computed by code of the product.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from controller.program import MulticastGroup, TableEntry
from p4src import artefacts
from p4src.constants import AGG_UDP_PORT, LANES, Kind, Outcome
from tests.packet.targets import Sentinel, Target
from tests.packet.targets_sentinels import bluetree_sentinel
from topologies.network import mac_text
from traffic.message import DESTINATION_SOURCE, group_ip, group_mac
from traffic.wire import Aggregation, Lanes

CHILD_PORT = 6
IDLE_PORT = 7
"""Wired, but registered for nothing."""
PARENT_PORT = 8

OWN_SOURCE = 1
SWITCH_MAC = 0x02_01_00_00_00_01
PARENT_MAC = 0x02_01_00_00_00_02
DESTINATION_MAC = 0x02_00_00_00_FF_FF
DESTINATION_IP = "10.255.255.1"
WORKER_UDP_PORT = 9591

SHORTEST_FRAME = {"softswitch": 0, "bmv2": 14}
"""By kind of target: the kernel sends no frame without a whole Ethernet header, so bmv2 gets none."""

LANE_MIN, LANE_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True, slots=True)
class Source:
    """A source below the switch: its id, its port, and the workers that it stands for."""

    source: int
    port: int
    weight: int = 1

    @property
    def mac(self) -> int:
        """MAC address of what is on the port."""
        return 0x02_00_00_00_00_00 + self.source

    @property
    def ip(self) -> str:
        """IPv4 address that the source sends from."""
        return f"10.0.0.{self.source}"


WORKERS = tuple(Source(source=port + 1, port=port) for port in range(1, 6))
CHILD = Source(source=7, port=CHILD_PORT, weight=3)
"""A blue child switch, whose subtree is the sources 7 to 10: itself and three workers."""
CHILD_INTERVAL = (7, 10)


@dataclass(frozen=True, slots=True)
class Job:
    """A job at the switch under test: who is below it, and which of them it sums."""

    job: int = 1
    epoch: int = 1
    sources: tuple[Source, ...] = WORKERS[:2]
    slot_base: int = 0
    window: int = 4

    @property
    def weight(self) -> int:
        """Workers in the whole sum."""
        return sum(source.weight for source in self.sources)

    def membership(self) -> tuple[TableEntry, ...]:
        """Admission, the ways up and down, delivery: what a red switch holds."""
        return (
            *(self._admission(source) for source in self.sources),
            *self.upstream(),
            TableEntry.of(
                "downstream",
                {"job": self.job, "ingress_port": PARENT_PORT},
                "fan_out",
                {"group": self.job},
            ),
            *(self._host(source) for source in self.sources if source.port != CHILD_PORT),
        )

    def upstream(self) -> tuple[TableEntry, ...]:
        """The way up, for first transmissions and for repetitions."""
        return tuple(
            TableEntry.of(
                "upstream",
                {"job": self.job, "resent": resent},
                "to_parent",
                {"port": PARENT_PORT, "mac": PARENT_MAC},
            )
            for resent in (0, 1)
        )

    def blue(self) -> tuple[TableEntry, ...]:
        """What makes the switch blue for the sources of this job in this epoch."""
        return tuple(
            TableEntry.of(
                "blue_sources",
                {
                    "ingress_port": source.port,
                    "job": self.job,
                    "epoch": self.epoch,
                    "source": source.source,
                },
                "join",
                {
                    "source_bit": 1 << i,
                    "all_sources": (1 << len(self.sources)) - 1,
                    "weight": source.weight,
                    "slot_base": self.slot_base,
                    "slot_mask": self.window - 1,
                    "own_source": OWN_SOURCE,
                },
            )
            for i, source in enumerate(self.sources)
        )

    def group(self) -> MulticastGroup:
        """The copies of a result: one to each child."""
        return MulticastGroup(self.job, tuple((source.port, 1) for source in self.sources))

    def _admission(self, source: Source) -> TableEntry:
        lowest, highest = (source.source, source.source)
        if source.port == CHILD_PORT:
            lowest, highest = CHILD_INTERVAL
        return TableEntry.of(
            "registered_sources",
            {"job": self.job, "ingress_port": source.port},
            "admit",
            {"lowest": lowest, "highest": highest},
        )

    def _host(self, source: Source) -> TableEntry:
        address = int.from_bytes(bytes(map(int, source.ip.split("."))), "big")
        return TableEntry.of(
            "hosts",
            {"job": self.job, "egress_port": source.port},
            "to_host",
            {"mac": source.mac, "addr": address, "udp_port": WORKER_UDP_PORT},
        )


class BluetreeSwitch:
    """A target that runs the shipped program and holds the given jobs, blue."""

    def __init__(
        self, target: Target, *jobs: Job, program: artefacts.Artefacts | None = None
    ) -> None:
        self.target = target
        self._sentinels = 0
        sentinel = bluetree_sentinel()

        def counted(port: int, tag: bytes) -> bytes:
            self._sentinels += 1
            return sentinel.frame(port, tag)

        target.push(program or _shipped(), Sentinel(sentinel.entries, counted))
        for job in jobs:
            target.insert(*job.membership(), *job.blue(), job.group())
        self._counted: Counter[Outcome] = Counter()
        self.outcomes()

    def outcomes(self) -> dict[Outcome, int]:
        """Outcomes of the packets since the last call; the harness's own are left out.

        Only what was collected is sure to be in it.
        """
        now = Counter(dict(zip(Outcome, self._cells(), strict=True)))
        now[Outcome.ROUTED] -= self._sentinels
        since, self._counted = now - self._counted, now
        return dict(since)

    def check(self, port: int, frame: bytes, outcome: Outcome, *leaving: tuple[int, bytes]) -> None:
        """Send one frame; it must end in `outcome` and nothing but `leaving` come out."""
        self.check_all([(port, frame)], {outcome: 1}, leaving)

    def check_all(
        self,
        arriving: Iterable[tuple[int, bytes]],
        outcomes: dict[Outcome, int],
        leaving: Iterable[tuple[int, bytes]] = (),
    ) -> None:
        """Send frames in order; exactly `outcomes` must be counted and `leaving` come out.

        Order holds across ports as well, which a switch alone does not promise: before a frame
        goes to another port than the last, all that was sent is waited for.
        """
        left: list[tuple[int, bytes]] = []
        last = None
        for port, frame in arriving:
            if last not in (None, port):
                left += self.target.collect()
            self.target.send(port, frame)
            last = port
        left += self.target.collect()
        left.sort(key=_port)
        expected = sorted(leaving, key=_port)
        counted = self.outcomes()
        if left != expected or counted != outcomes:
            raise AssertionError(
                f"outcomes {_named(counted)}, not {_named(outcomes)}\n"
                f"came out:\n{_shown(left)}was to come out:\n{_shown(expected)}"
            )

    def messages(self, job: int = 1) -> tuple[int, int]:
        """Messages on the link to the parent so far: first transmissions, repetitions."""
        counted = {
            dict(entry.match)["resent"]: value.packets
            for entry, value in self.target.direct_counters("upstream").items()
            if dict(entry.match)["job"] == job
        }
        return counted[0], counted[1]

    def _cells(self) -> Iterator[int]:
        return (cell.packets for cell in self.target.counter("outcomes"))


@functools.cache
def _shipped() -> artefacts.Artefacts:
    return artefacts.load()


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
) -> bytes:
    """A source's contribution as it arrives at the switch, with the right UDP checksum."""
    message = Aggregation(
        job=job,
        source=source.source,
        epoch=epoch,
        chunk=chunk,
        flags=flags,
        weight=source.weight if weight is None else weight,
    ) / Lanes(values=list(values))
    return bytes(
        Ether(src=mac_text(source.mac), dst=mac_text(SWITCH_MAC))
        / IP(src=source.ip, dst=DESTINATION_IP, ttl=255, flags="DF")
        / UDP(sport=40_000 + source.source, dport=AGG_UDP_PORT)
        / message
    )


def answer(
    chunk: int, values: Sequence[int] | None, *, job: int = 1, dst: str = "", flags: int = 0
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
    )
    return bytes(
        Ether(
            src=mac_text(DESTINATION_MAC), dst=mac_text(SWITCH_MAC) if dst else group_mac(address)
        )
        / IP(src=DESTINATION_IP, dst=address, ttl=255, flags="DF")
        / UDP(sport=AGG_UDP_PORT, dport=AGG_UDP_PORT)
        / (header if values is None else header / Lanes(values=list(values)))
    )


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
    frame: bytes, job: Job, values: Sequence[int], flags: int = 0
) -> tuple[int, bytes]:
    """The sum that leaves when `frame` arrives: the switch's own source, the whole weight."""
    packet = Ether(frame)
    packet[Lanes].values = list(values)
    return to_parent(bytes(packet), source=OWN_SOURCE, weight=job.weight, flags=flags)


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


def route(address: int, prefix_length: int, port: int, mac: int) -> TableEntry:
    """An entry of the ordinary routes."""
    return TableEntry.of(
        "ipv4_routes", {"dst_addr": (address, prefix_length)}, "route", {"port": port, "mac": mac}
    )


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
    del packet[IP].chksum
    return bytes(packet)


def _port(frame: tuple[int, bytes]) -> int:
    return frame[0]


def _named(outcomes: dict[Outcome, int]) -> str:
    return ", ".join(f"{outcome.name} {n}" for outcome, n in sorted(outcomes.items())) or "none"


def _shown(frames: Sequence[tuple[int, bytes]]) -> str:
    return "".join(
        f"  port {port}: {frame.hex()}\n    {Ether(frame)!r}\n" for port, frame in frames
    )
