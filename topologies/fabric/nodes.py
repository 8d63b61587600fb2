"""What sits at the ends of links: switches that answer at once, hosts that also keep time."""

from collections.abc import Callable
from typing import Protocol

from topologies.fabric.clock import Clock
from topologies.fabric.errors import FabricError
from topologies.fabric.link import Direction

HOST_PORT = 0
"""The only port of a host."""

NEVER = 1 << 62
"""Later than anything."""


class PacketDevice(Protocol):
    """A switch: a frame in at a port, frames out at ports."""

    def process(self, port: int, data: bytes, /) -> list[tuple[int, bytes]]:
        """What leaves, as (port, frame), in order."""


class HostAgent(Protocol):
    """What runs at a host. Times are integer nanoseconds."""

    @property
    def finished(self) -> bool:
        """Whether it waits for nothing any more."""

    @property
    def next_deadline(self) -> int | None:
        """When `tick` is due, if ever; read again after every call."""

    def start(self, now: int) -> list[bytes]:
        """The first frames to send."""

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a frame in; the frames to send."""

    def tick(self, now: int) -> list[bytes]:
        """The deadline has come; the frames to send."""


class SwitchNode:
    """A switch at its place. Frames for ports without a link go to `on_unconnected`, if given."""

    __slots__ = ("alive", "device", "latency", "links", "name", "on_unconnected", "unconnected")

    def __init__(
        self,
        name: str,
        device: PacketDevice,
        latency: int,
        on_unconnected: Callable[[int, bytes], None] | None,
    ) -> None:
        self.name = name
        self.device = device
        self.latency = latency
        self.on_unconnected = on_unconnected
        self.alive = True
        self.links: dict[int, Direction] = {}
        # Frames that left at a port without a link.
        self.unconnected = 0

    def replace(self, device: PacketDevice) -> None:
        """Put another device in its place."""
        self.device = device

    def arrive(self, port: int, frame: bytes, now: int) -> None:
        """A frame comes in at a port."""
        self.emit(self.device.process(port, frame), now + self.latency)

    def emit(self, frames: list[tuple[int, bytes]], now: int) -> None:
        """Send frames out at their ports."""
        links = self.links
        for port, frame in frames:
            link = links.get(port)
            if link is not None:
                link.send(frame, now)
            else:
                self.unconnected += 1
                if self.on_unconnected is not None:
                    self.on_unconnected(port, frame)


class HostNode:
    """A host at its place: one port, and a wake-up at its agent's next deadline."""

    __slots__ = ("_clock", "_finished", "_wake_at", "agent", "alive", "link", "name", "started")

    def __init__(self, clock: Clock, name: str, agent: HostAgent) -> None:
        self.name = name
        self.agent = agent
        self.alive = True
        self.started = False
        self.link: Direction | None = None
        self._clock = clock
        self._finished = False
        self._wake_at = NEVER
        clock.unfinished += 1

    def start(self) -> None:
        """Let the agent begin, unless the host is dead or was revived before its time."""
        if self.alive and not self.started:
            self.started = True
            self.send(self.agent.start(self._clock.now), self._clock.now)

    def arrive(self, port: int, frame: bytes, now: int) -> None:
        """A frame comes in; before its start a host hears nothing."""
        if self.started:
            self.send(self.agent.receive(frame, now), now)

    def send(self, frames: list[bytes], now: int) -> None:
        """Send frames and see when the agent must be woken; also after any change to the agent."""
        if frames:
            if self.link is None:
                raise FabricError(f"host {self.name} is not connected: connect it before it starts")
            for frame in frames:
                self.link.send(frame, now)
        agent = self.agent
        deadline = agent.next_deadline
        if deadline is not None and deadline < self._wake_at:
            self._wake_at = max(deadline, now)
            self._clock.at(self._wake_at, self)
        if agent.finished is not self._finished:
            self._finished = not self._finished
            self._clock.unfinished += -1 if self._finished else 1

    def fire(self, now: int, frame: bytes) -> None:
        """The wake-up: only the latest one asked for counts, and the deadline may have moved."""
        if now != self._wake_at or not self.alive:
            return
        self._wake_at = NEVER
        deadline = self.agent.next_deadline
        is_due = deadline is not None and deadline <= now
        self.send(self.agent.tick(now) if is_due else [], now)

    def revive(self, agent: HostAgent | None) -> None:
        """Be alive again: the old agent goes on, a new one starts."""
        self.alive = True
        self._wake_at = NEVER
        if agent is not None:
            self.agent = agent
            self.started = False
        if self.started:
            self.send([], self._clock.now)
        else:
            self.start()
