"""What a packet test runs on: one switch, driven over P4Runtime and by frames at its ports.

A test is written once, against `Target`, and runs on every target that is there: the software
switch in this process and bmv2's simple_switch_grpc. Both are programmed by the product's own
P4Runtime client.

    target.push(artefacts, sentinel)             an empty switch that runs the program
    target.insert(TableEntry.of(...), ...)
    target.send(1, frame)
    assert target.collect() == [(2, frame)]      all that came out, by port, in order of leaving

How `collect` knows that all has come out: per port a switch keeps the order of packets, so after
the test's frames it sends sentinels, frames that the program forwards unicast, from every port
used so far to every port, and waits for those. They are filtered out of the result. So a wait
ends by an event; the deadline only says when to give up.
"""

from __future__ import annotations

import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from controller.p4rt import BlockingFleet, CounterValue, SwitchAddress, connect_blocking
from controller.p4rt.schema import Artefacts
from controller.program import Entity, Op, TableEntry, Update
from p4src.constants import QUEUES
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer, ServerThread

PORTS = tuple(range(1, 9))
"""The ports of every target."""

CPU_PORT = 510
"""Packet-ins and packet-outs; bmv2's own default would be the drop port."""

ELECTION_ID = 10
"""Of the client that drives the target; tests may go above and below it."""

DEADLINE_S = 20.0

SENTINEL_MARK = b"bluetree sentinel"
"""Every sentinel carries this, and behind it its tag of 8 bytes, wherever the program leaves it."""

IN_FLIGHT = 32
"""Frames sent before the switch is given time to forward them: bmv2 drops what its queues, of 64
packets a port, do not hold."""

_COOKIES = itertools.count(0x7E57_0000_0000)


@dataclass(frozen=True, slots=True)
class Sentinel:
    """How to get a frame through a program, to a port of choice.

    `entries` are the table entries it needs; they are part of what the switch holds.
    `frame(port, tag)` is a frame that then leaves by `port` alone and still contains `tag`.
    """

    entries: tuple[TableEntry, ...]
    frame: Callable[[int, bytes], bytes]


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program under a cookie of its own: pushing it always empties the switch."""

    json: bytes
    p4info: str
    cookie: int

    @classmethod
    def fresh(cls, artefacts: Artefacts) -> Program:
        """Return `artefacts` under a cookie that no switch has seen."""
        return cls(artefacts.json, artefacts.p4info, next(_COOKIES))


class SilentError(AssertionError):
    """A sentinel did not arrive: the switch is stuck, or its program does not forward it."""


class Target(ABC):
    """One switch under test; see the module's text."""

    kind: str

    def __init__(self, address: SwitchAddress) -> None:
        self.address = address
        self._connection = ExitStack()
        self._fleet: BlockingFleet | None = None
        self._sentinel: Sentinel | None = None
        self._used_ports: set[int] = set()
        self._in_flight = 0
        self._held: dict[int, list[bytes]] = {port: [] for port in PORTS}
        self._tags = itertools.count(1)

    # Driving it

    def push(self, artefacts: Artefacts, sentinel: Sentinel) -> None:
        """Run a program, with nothing in its tables but the sentinel's entries."""
        self.disconnect()
        fleet = self._connection.enter_context(
            connect_blocking([self.address], Program.fresh(artefacts), election_id=ELECTION_ID)
        )
        fleet.push()
        self._fleet = fleet
        self._sentinel = sentinel
        self._used_ports.clear()
        self.insert(*sentinel.entries)
        self._drain_stale()

    def write(self, updates: Sequence[Update]) -> None:
        """Carry out updates in their order; raises what the client raises."""
        self.fleet.write(self.address.name, updates)

    def insert(self, *entities: Entity) -> None:
        """Insert entries, groups and clone sessions."""
        self.write([Update(Op.INSERT, entity) for entity in entities])

    def send(self, port: int, frame: bytes) -> None:
        """Let a frame arrive at a port."""
        if self._in_flight == IN_FLIGHT:
            self._settle(time.monotonic() + DEADLINE_S)
        self._used_ports.add(port)
        self._in_flight += 1
        self._inject(port, frame)

    def collect(self, at_least: int = 0) -> list[tuple[int, bytes]]:
        """Return every frame that has left since the last call, (port, frame), by port.

        `at_least` frames are waited for before the sentinels go: for frames whose cause is not one
        that this target sent (a packet-out). Raises SilentError after DEADLINE_S.
        """
        deadline = time.monotonic() + DEADLINE_S
        while sum(map(len, self._held.values())) < at_least:
            port, frame = self._next_frame(deadline, f"frame, {at_least} were to come")
            self._held[port].append(frame)
        self._settle(deadline)
        self._used_ports.clear()
        held, self._held = self._held, {port: [] for port in PORTS}
        return [(port, frame) for port in PORTS for frame in held[port]]

    def exchange(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Send one frame and return all that came out."""
        self.send(port, frame)
        return self.collect()

    # Reading it

    def counter(self, name: str) -> tuple[CounterValue, ...]:
        """Return all cells of an indirect counter."""
        return self.fleet.counter(self.address.name, name)

    def direct_counters(self, table: str) -> Mapping[TableEntry, CounterValue]:
        """Return the direct counter of every entry of a table."""
        return self.fleet.direct_counters(self.address.name, table)

    def entries(self) -> frozenset[TableEntry]:
        """Return the entries of all tables, without the sentinel's."""
        held = self.fleet.read(self.address.name).entries
        own = self._sentinel.entries if self._sentinel else ()
        return frozenset(held) - {self.fleet.schema.canonical(entry) for entry in own}

    @property
    def fleet(self) -> BlockingFleet:
        """The product's client, connected to this one switch."""
        if self._fleet is None:
            raise AssertionError("push a program first")
        return self._fleet

    def disconnect(self) -> None:
        """Give up the role of primary."""
        self._fleet = None
        self._connection.close()

    @abstractmethod
    def close(self) -> None:
        """Take the target down, and all it created."""

    @abstractmethod
    def evidence(self) -> str:
        """Return what helps to understand a failure: the tail of the switch's log."""

    @abstractmethod
    def _inject(self, port: int, frame: bytes) -> None: ...

    @abstractmethod
    def _receive(self, seconds: float) -> tuple[int, bytes] | None:
        """Return the next frame out of any port, or None when none comes in `seconds`."""

    # How collect works

    def _settle(self, deadline: float) -> None:
        """Wait until everything sent so far has left, or been dropped."""
        for used in sorted(self._used_ports):
            self._flush(used, deadline)
        self._in_flight = 0

    def _flush(self, used: int, deadline: float) -> None:
        """Send a sentinel from `used` to every port and take all frames up to them."""
        if self._sentinel is None:
            raise AssertionError("push a program first")
        awaited = {}
        for port in PORTS:
            tag = SENTINEL_MARK + next(self._tags).to_bytes(8, "big")
            awaited[tag] = port
            self._inject(used, self._sentinel.frame(port, tag))
        while awaited:
            missing = f"sentinel from port {used} to ports {sorted(awaited.values())}"
            port, frame = self._next_frame(deadline, missing)
            found = _tag(frame)
            if found is None:
                self._held[port].append(frame)
            else:
                awaited.pop(found, None)

    def _drain_stale(self) -> None:
        """Throw away what a test before this one left behind."""
        self._used_ports.add(PORTS[0])
        self.collect()

    def _next_frame(self, deadline: float, missing: str) -> tuple[int, bytes]:
        received = self._receive(max(0.0, deadline - time.monotonic()))
        if received is None:
            raise SilentError(
                f"{self.kind}: no {missing} within {DEADLINE_S:g} s\n{self.evidence()}"
            )
        return received


class SoftswitchTarget(Target):
    """The software switch in this process, behind its own P4Runtime server."""

    kind = "softswitch"

    def __init__(self) -> None:
        self._device = Device(device_id=1, cpu_port=CPU_PORT, queues=QUEUES)
        self._server = ServerThread(P4RuntimeServer([self._device], packet_out=self._packet_out))
        self._frames: list[tuple[int, bytes]] = []
        self._changed = threading.Condition()
        super().__init__(SwitchAddress("softswitch", self._server.start(), 1))

    def close(self) -> None:
        self.disconnect()
        self._server.stop()

    def evidence(self) -> str:
        return "(the software switch writes no log)"

    def _inject(self, port: int, frame: bytes) -> None:
        # One thread at a time may run packets: this one, or the server's with a packet-out.
        with self._changed:
            for out_port, out in self._device.process(port, frame):
                if out_port == CPU_PORT:
                    self._server.packet_in(self._device.device_id, out)
                else:
                    self._frames.append((out_port, out))
            self._changed.notify_all()

    def _packet_out(self, device: Device, packet: bytes) -> None:
        self._inject(CPU_PORT, packet)

    def _receive(self, seconds: float) -> tuple[int, bytes] | None:
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._frames), seconds):
                return None
            return self._frames.pop(0)


def _tag(frame: bytes) -> bytes | None:
    start = frame.find(SENTINEL_MARK)
    return None if start < 0 else frame[start : start + len(SENTINEL_MARK) + 8]


def by_port(frames: Iterable[tuple[int, bytes]]) -> dict[int, list[bytes]]:
    """Group frames by port, for assertions that leave the order across ports open."""
    grouped: dict[int, list[bytes]] = {}
    for port, frame in frames:
        grouped.setdefault(port, []).append(frame)
    return grouped
