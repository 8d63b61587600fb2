"""The shipped program on a target: a small job, and what must become of a frame.

    switch = BluetreeSwitch(target, Job(sources=WORKERS[:2]))
    switch.check(WORKERS[0].port, contribution(WORKERS[0], 0, lanes(1)), Outcome.ABSORBED)

The switch of these tests has five workers on ports 1 to 5, a child switch on port 6, nothing on
port 7, and its parent on port 8. The frames are in `program_frames`.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from scapy.layers.l2 import Ether

from controller.program import MulticastGroup, TableEntry
from p4src import artefacts
from p4src.constants import Outcome
from tests.packet.targets import Sentinel, Target
from tests.packet.targets_sentinels import bluetree_sentinel
from topologies.network import ip_text

CHILD_PORT = 6
IDLE_PORT = 7
"""Wired, but registered for nothing."""
PARENT_PORT = 8

OWN_SOURCE = 1
PARENT_MAC = 0x02_01_00_00_00_02
WORKER_UDP_PORT = 9591

SHORTEST_FRAME = {"softswitch": 0, "softswitch-process": 14, "bmv2": 14}
"""By kind of target: the kernel sends no frame shorter than an Ethernet header."""


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
        return ip_text(self.address)

    @property
    def address(self) -> int:
        """The same as a number."""
        return 0x0A_00_00_00 + self.source


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
        """The way up, in both phases, for first transmissions and for repetitions."""
        return tuple(
            TableEntry.of(
                "upstream",
                {"job": self.job, "phase": phase, "resent": resent},
                "to_parent",
                {"port": PARENT_PORT, "mac": PARENT_MAC},
            )
            for phase, resent in product((0, 1), (0, 1))
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

    def repair(self) -> tuple[TableEntry, ...]:
        """What makes a blue switch store answers and serve requests, and part these by branch."""
        serve = TableEntry.of(
            "blue_jobs",
            {"job": self.job, "epoch": self.epoch},
            "serve",
            {
                "all_sources": (1 << len(self.sources)) - 1,
                "slot_base": self.slot_base,
                "slot_mask": self.window - 1,
                "own_source": OWN_SOURCE,
            },
        )
        branches = (
            TableEntry.of(
                "branches",
                {"egress_port": source.port, "job": self.job, "epoch": self.epoch},
                "lead_to",
                {"sources": 1 << i},
            )
            for i, source in enumerate(self.sources)
        )
        return (serve, *branches)

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
        return TableEntry.of(
            "hosts",
            {"job": self.job, "egress_port": source.port},
            "to_host",
            {"mac": source.mac, "addr": source.address, "udp_port": WORKER_UDP_PORT},
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

    @property
    def sentinels(self) -> int:
        """Packets that the harness itself has sent through the program so far."""
        return self._sentinels

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
        outcomes: Mapping[Outcome, int],
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
        if left != expected or counted != +Counter(outcomes):
            raise AssertionError(
                f"outcomes {_named(counted)}, not {_named(outcomes)}\n"
                f"came out:\n{_shown(left)}was to come out:\n{_shown(expected)}"
            )

    def messages(self, job: int = 1) -> tuple[int, int]:
        """Messages on the link to the parent so far: first transmissions, repetitions."""
        counted = [0, 0]
        for (_, resent), packets in self.messages_by_phase(job).items():
            counted[resent] += packets
        return counted[0], counted[1]

    def messages_by_phase(self, job: int = 1) -> dict[tuple[int, int], int]:
        """The same by (phase, whether a repetition)."""
        counted = {}
        for entry, value in self.target.direct_counters("upstream").items():
            match = dict(entry.match)
            if match["job"] == job:
                counted[int(match["phase"] == 1), int(match["resent"] == 1)] = value.packets
        return counted

    def _cells(self) -> Iterator[int]:
        return (cell.packets for cell in self.target.counter("outcomes"))


@functools.cache
def _shipped() -> artefacts.Artefacts:
    return artefacts.load()


def route(address: int, prefix_length: int, port: int, mac: int) -> TableEntry:
    """An entry of the ordinary routes."""
    return TableEntry.of(
        "ipv4_routes", {"dst_addr": (address, prefix_length)}, "route", {"port": port, "mac": mac}
    )


def _port(frame: tuple[int, bytes]) -> int:
    return frame[0]


def _named(outcomes: Mapping[Outcome, int]) -> str:
    return ", ".join(f"{outcome.name} {n}" for outcome, n in sorted(outcomes.items())) or "none"


def _shown(frames: Sequence[tuple[int, bytes]]) -> str:
    return "".join(
        f"  port {port}: {frame.hex()}\n    {Ether(frame)!r}\n" for port, frame in frames
    )
