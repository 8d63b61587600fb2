"""A network in one process: switches, hosts and links on a virtual clock.

    fabric = Fabric(seed=1)
    fabric.add_switch("s", device)            # anything with process(port, bytes)
    fabric.add_host("a", agent)               # start, receive, tick, next_deadline, finished
    fabric.connect(("a", HOST_PORT), ("s", 1), LinkSpec(rate=10**9))
    result = fabric.run(until=fabric.all_finished, deadline=10**10)

Everything that happens is an event in one heap, ordered by time and then by making, and every
random draw comes from a stream of its link: a seed reproduces a run frame by frame.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from heapq import heappop
from pathlib import Path

from topologies.fabric.clock import Call, Clock
from topologies.fabric.errors import FabricError
from topologies.fabric.link import Direction, LinkSpec, Tap, TraceHook
from topologies.fabric.nodes import (
    HOST_PORT,
    NEVER,
    HostAgent,
    HostNode,
    PacketDevice,
    SwitchNode,
)
from topologies.fabric.pcapng import PcapngWriter
from topologies.fabric.queues import PortQueues, QueuedDevice, QueuedSwitchNode


class StopReason(Enum):
    """Why a run ended."""

    DONE = "done"
    """The condition holds."""
    DEADLINE = "deadline"
    """The time is up; the condition does not hold."""
    IDLE = "idle"
    """Nothing is left to happen: without a condition the normal end, else a deadlock."""
    EVENTS = "events"
    """As many events as allowed have happened."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended: why, when (nanoseconds), after how many events."""

    reason: StopReason
    now: int
    events: int


End = tuple[str, int]
"""Name of a node and its port."""


class Fabric:
    """The network. Nodes and links may be added at any time, also between runs."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._clock = Clock()
        self._switches: dict[str, SwitchNode] = {}
        self._hosts: dict[str, HostNode] = {}
        self._directions: dict[tuple[str, int], Direction] = {}
        self._between: dict[tuple[str, str], list[Direction]] = {}

    @property
    def now(self) -> int:
        """The virtual time in nanoseconds."""
        return self._clock.now

    @property
    def next_event(self) -> int | None:
        """When the next event happens, None if nothing is left to happen."""
        heap = self._clock.heap
        return heap[0][0] if heap else None

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Every direction of every link, in order of connection."""
        return tuple(self._directions.values())

    def all_finished(self) -> bool:
        """Whether every host's agent is finished."""
        return self._clock.unfinished == 0

    def unfinished(self) -> tuple[str, ...]:
        """Hosts whose agents are not finished, in order of their adding."""
        return tuple(name for name, host in self._hosts.items() if not host.agent.finished)

    def add_switch(
        self,
        name: str,
        device: PacketDevice,
        *,
        latency: int = 0,
        on_unconnected: Callable[[int, bytes], None] | None = None,
    ) -> None:
        """Add a switch that takes `latency` nanoseconds for each frame."""
        self._check_new(name)
        self._switches[name] = SwitchNode(name, device, latency, on_unconnected)

    def add_queued_switch(
        self,
        name: str,
        device: QueuedDevice,
        queues: int,
        *,
        latency: int = 0,
        on_unconnected: Callable[[int, bytes], None] | None = None,
    ) -> None:
        """Add a switch with strict-priority queues at each port, as many as the device has.

        The rate of a port is that of its link; `queue_frames` of the link is the depth of a queue.
        """
        self._check_new(name)
        self._switches[name] = QueuedSwitchNode(
            self._clock, name, device, latency, on_unconnected, queues
        )

    def queues(self, name: str, port: int) -> PortQueues:
        """The queues of a port; raises FabricError where the switch or port has none."""
        switch = self._switch(name)
        if not isinstance(switch, QueuedSwitchNode) or port not in switch.queues:
            raise FabricError(f"port {port} of {name} has no priority queues")
        return switch.queues[port]

    def add_host(self, name: str, agent: HostAgent, *, start_at: int = 0) -> None:
        """Add a host; its agent starts at a time, or now if that has passed."""
        self._check_new(name)
        host = self._hosts[name] = HostNode(self._clock, name, agent)
        self._clock.at(max(start_at, self._clock.now), Call(host.start))

    def connect(
        self, first: End, second: End, spec: LinkSpec, reverse: LinkSpec | None = None
    ) -> None:
        """Join two ports; `reverse` describes the way back where it differs."""
        for source, target, one_way in ((first, second, spec), (second, first, reverse or spec)):
            if source in self._directions:
                raise FabricError(
                    f"port {source[1]} of {source[0]} is connected already to "
                    f"{self._directions[source].target.name}"
                )
            self._connect_one_way(source, target, one_way)

    def direction(self, source: str, target: str) -> Direction:
        """The direction from one node to a neighbour; raises FabricError unless there is one."""
        found = self._between.get((source, target), [])
        if len(found) != 1:
            raise FabricError(f"{len(found)} links go from {source} to {target}")
        return found[0]

    def watch(self, predicate: Callable[[bytes], bool]) -> dict[tuple[str, str], Tap]:
        """Count frames by predicate in every direction, by (source, target), from now on.

        Parallel links of one pair share a counter.
        """
        taps = {}
        for pair, directions in self._between.items():
            tap = taps[pair] = directions[0].watch(predicate)
            for direction in directions[1:]:
                direction.share(tap)
        return taps

    def trace(self, hook: TraceHook | None) -> None:
        """Tell a function about every frame on every link, or stop telling."""
        for direction in self._directions.values():
            direction.trace = hook

    @contextmanager
    def capture(self, path: Path) -> Iterator[PcapngWriter]:
        """Write every delivered frame to a pcapng file, an interface for each direction."""
        with path.open("wb") as stream:
            writer = PcapngWriter(stream)

            def record(now: int, what: str, direction: Direction, frame: bytes) -> None:
                if what == "delivered":
                    writer.write(now, direction.name, frame)

            self.trace(record)
            try:
                yield writer
            finally:
                self.trace(None)

    def call_at(self, time: int, function: Callable[[], None]) -> None:
        """Call a function at a time, which must not have passed."""
        if time < self._clock.now:
            raise FabricError(f"time {time} has passed: it is {self._clock.now}")
        self._clock.at(time, Call(function))

    def inject(self, name: str, port: int, frame: bytes) -> None:
        """Let a switch take a frame in at a port, linked or not (packet-outs, tests)."""
        switch = self._switch(name)
        if switch.alive:
            switch.arrive(port, frame, self._clock.now)

    def send(self, name: str, frames: list[bytes]) -> None:
        """Let a host send frames, and notice what was done to its agent from outside."""
        host = self._host(name)
        if host.alive:
            host.send(frames, self._clock.now)

    def fail(self, name: str) -> None:
        """Kill a node: it hears nothing, does nothing, and loses what waits in its queues."""
        node = self._node(name)
        node.alive = False
        for direction in self._directions.values():
            if direction.source is node:
                direction.cut(self._clock.now, under_way_too=False)

    def restart(
        self, name: str, device: PacketDevice | None = None, agent: HostAgent | None = None
    ) -> None:
        """Revive a node as it was, or with a fresh device (a switch) or a fresh agent (a host)."""
        if name in self._hosts:
            self._hosts[name].revive(agent)
            return
        switch = self._switch(name)
        switch.alive = True
        if device is not None:
            switch.replace(device)

    def set_link(self, first: str, second: str, *, up: bool, both: bool = True) -> None:
        """Take all links between two nodes down, losing what is on them, or up again.

        Without `both` it is the way from the first to the second alone.
        """
        pairs = [(first, second), (second, first)][: 1 + both]
        if not any(pair in self._between for pair in pairs):
            raise FabricError(f"no link joins {first} and {second}")
        for direction in (d for pair in pairs for d in self._between.get(pair, [])):
            direction.up = up
            if not up:
                direction.cut(self._clock.now, under_way_too=True)

    def run(
        self,
        until: Callable[[], bool] | None = None,
        *,
        deadline: int | None = None,
        max_events: int | None = None,
        progress: Callable[[], None] | None = None,
        progress_every: int = 4096,
    ) -> RunResult:
        """Let events happen until a condition holds, a time comes, or nothing is left to happen.

        The condition is asked before each event. `progress` is called after every so many.
        """
        clock = self._clock
        heap = clock.heap
        last = NEVER if deadline is None else deadline
        most = NEVER if max_events is None else max_events
        every = NEVER if progress is None else progress_every
        # Asked for so often that a call each time would show.
        counts_hosts = until == self.all_finished
        events = 0
        while heap:
            if (clock.unfinished == 0) if counts_hosts else (until is not None and until()):
                return RunResult(StopReason.DONE, clock.now, events)
            if heap[0][0] > last:
                clock.now = max(clock.now, last)
                return RunResult(StopReason.DEADLINE, clock.now, events)
            if events >= most:
                return RunResult(StopReason.EVENTS, clock.now, events)
            now, _, target, frame = heappop(heap)
            clock.now = now
            target.fire(now, frame)
            events += 1
            if events % every == 0 and progress is not None:
                progress()
        is_done = until is not None and until()
        return RunResult(StopReason.DONE if is_done else StopReason.IDLE, clock.now, events)

    def _connect_one_way(self, source: End, target: End, spec: LinkSpec) -> None:
        source_node, target_node = self._node(source[0]), self._node(target[0])
        is_host = isinstance(source_node, HostNode)
        if is_host and source[1] != HOST_PORT:
            raise FabricError(f"host {source[0]} has no port {source[1]}, only {HOST_PORT}")
        direction = Direction(
            self._clock, self._seed, source_node, source[1], target_node, target[1], spec,
            strict=is_host,
        )  # fmt: skip
        self._directions[source] = direction
        self._between.setdefault((source[0], target[0]), []).append(direction)
        if isinstance(source_node, HostNode):
            source_node.link = direction
        else:
            source_node.links[source[1]] = direction
            if isinstance(source_node, QueuedSwitchNode):
                source_node.attach(source[1], direction)

    def _check_new(self, name: str) -> None:
        if name in self._switches or name in self._hosts:
            raise FabricError(f"{name} exists already: names of nodes must differ")

    def _node(self, name: str) -> SwitchNode | HostNode:
        node = self._switches.get(name) or self._hosts.get(name)
        if node is None:
            raise FabricError(f"there is no node {name}")
        return node

    def _switch(self, name: str) -> SwitchNode:
        node = self._node(name)
        if not isinstance(node, SwitchNode):
            raise FabricError(f"{name} is a host, not a switch")
        return node

    def _host(self, name: str) -> HostNode:
        node = self._node(name)
        if not isinstance(node, HostNode):
            raise FabricError(f"{name} is a switch, not a host")
        return node
