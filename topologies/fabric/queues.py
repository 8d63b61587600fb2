"""Strict-priority queues in front of a link: where a switch's packets wait between its two steps.

A switch with several queues a port runs ingress when a packet arrives and egress when its turn has
come. Between them the packet waits in the queue of its port that ingress chose; whenever the wire
is free, the first packet of the highest queue that is not empty goes on it. A packet on the wire
is not interrupted. The wire is the link's: its rate, delay and chance are those of any link.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from topologies.fabric.clock import Call, Clock
from topologies.fabric.errors import FabricError
from topologies.fabric.link import Direction
from topologies.fabric.nodes import PacketDevice, SwitchNode

_NS_PER_US = 1_000


class QueuedPacket(Protocol):
    """A copy that has left ingress for a queue."""

    @property
    def port(self) -> int:
        """The port that it is to leave by."""

    @property
    def priority(self) -> int:
        """The queue of that port, the largest number is served first."""


class Departure(Protocol):
    """What egress made of a packet."""

    @property
    def frame(self) -> bytes | None:
        """What leaves by its port, if anything does."""

    @property
    def queued(self) -> Sequence[QueuedPacket]:
        """Copies that belong into queues."""


@runtime_checkable
class QueuedDevice(Protocol):
    """A switch that runs packets in one step or two, such as `softswitch.device.Device`."""

    def process(self, port: int, data: bytes, /) -> list[tuple[int, bytes]]:
        """Both steps: what leaves, as (port, frame), in order."""

    def enqueue(self, port: int, data: bytes, now_us: int = 0, /) -> Sequence[QueuedPacket]:
        """Ingress and replication: the copies to be queued, in order."""

    def dequeue(
        self, packet: Any, now_us: int = 0, enq_qdepth: int = 0, deq_qdepth: int = 0, /
    ) -> Departure:
        """Egress of what the same device queued: what leaves, and copies to be queued."""


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """Packets of one queue: offered = served + dropped + those that wait."""

    offered: int = 0
    served: int = 0
    dropped: int = 0
    longest: int = 0


class _Queue:
    __slots__ = ("dropped", "longest", "offered", "packets", "served")

    def __init__(self) -> None:
        # (packet, how many waited when it came, when it came)
        self.packets: deque[tuple[QueuedPacket, int, int]] = deque()
        self.offered = self.served = self.dropped = self.longest = 0


class PortQueues:
    """The queues of one port, the largest number served first.

    `depth`: packets that each queue holds, the one on the wire not counted; None for any number.
    `again` takes copies that egress makes.
    """

    __slots__ = ("_again", "_clock", "_device", "_due", "_queues", "depth", "link")

    def __init__(
        self,
        clock: Clock,
        device: QueuedDevice,
        link: Direction,
        count: int,
        depth: int | None,
        again: Callable[[QueuedPacket, int], None],
    ) -> None:
        self._clock = clock
        self._device = device
        self._again = again
        self._queues = tuple(_Queue() for _ in range(count))
        self._due = False
        self.link = link
        self.depth = depth

    def counters(self, priority: int) -> QueueCounters:
        """The packets of one queue so far."""
        queue = self._queues[priority]
        return QueueCounters(queue.offered, queue.served, queue.dropped, queue.longest)

    def waiting(self, priority: int) -> int:
        """How many packets are in a queue."""
        return len(self._queues[priority].packets)

    def offer(self, packet: QueuedPacket, now: int) -> None:
        """Queue a packet, or drop it if its queue is full; an idle wire takes it at once."""
        queue = self._queues[packet.priority]
        queue.offered += 1
        depth = len(queue.packets)
        if not self._due and self.link.free_at <= now:
            queue.served += 1
            self._run(packet, now, 0, 0)
            self._wait()
        elif self.depth is not None and depth >= self.depth:
            queue.dropped += 1
            self.link.refuse_full()
        else:
            queue.packets.append((packet, depth, now))
            queue.longest = max(queue.longest, depth + 1)
            if not self._due:
                self._wait()

    def fire(self, now: int, frame: bytes) -> None:
        """The wire is free: the next packet, and others while egress drops them."""
        self._due = False
        while self.link.free_at <= now:
            queue = next((queue for queue in reversed(self._queues) if queue.packets), None)
            if queue is None:
                return
            packet, depth, since = queue.packets.popleft()
            queue.served += 1
            self.link.waited(now - since)
            self._run(packet, now, depth, len(queue.packets))
        self._wait()

    def clear(self) -> int:
        """Drop all that wait; how many they were."""
        dropped = 0
        for queue in self._queues:
            dropped += len(queue.packets)
            queue.dropped += len(queue.packets)
            queue.packets.clear()
        return dropped

    def _run(self, packet: QueuedPacket, now: int, enq_qdepth: int, deq_qdepth: int) -> None:
        departure = self._device.dequeue(packet, now // _NS_PER_US, enq_qdepth, deq_qdepth)
        if departure.frame is not None:
            self.link.send(departure.frame, now)
        for copy in departure.queued:
            self._again(copy, now)

    def _wait(self) -> None:
        """Wake up when the wire is free, if anything waits for it."""
        if not self._due and any(queue.packets for queue in self._queues):
            self._due = True
            self._clock.at(max(self.link.free_at, self._clock.now), self)


class QueuedSwitchNode(SwitchNode):
    """A switch at its place, with queues at every port that has a link."""

    __slots__ = ("_clock", "_count", "queued", "queues")

    def __init__(
        self,
        clock: Clock,
        name: str,
        device: QueuedDevice,
        latency: int,
        on_unconnected: Callable[[int, bytes], None] | None,
        count: int,
    ) -> None:
        super().__init__(name, device, latency, on_unconnected)
        self._clock = clock
        self._count = count
        self.queued = device
        self.queues: dict[int, PortQueues] = {}

    def attach(self, port: int, link: Direction) -> None:
        """Put queues in front of a link; its `queue_frames` is the depth of each."""
        if link.spec.queue_bytes is not None:
            raise FabricError(
                f"{link.name}: priority queues are counted in frames; give queue_frames instead of "
                "queue_bytes"
            )
        self.queues[port] = link.queues = PortQueues(
            self._clock, self.queued, link, self._count, link.spec.queue_frames, self._offer
        )

    def replace(self, device: PacketDevice) -> None:
        """Put another device in its place; what waits in the queues leaves by the old one."""
        if not isinstance(device, QueuedDevice):
            raise FabricError(f"{self.name} has queues: its device must run packets in two steps")
        super().replace(device)
        self.queued = device

    def arrive(self, port: int, frame: bytes, now: int) -> None:
        """A frame comes in at a port: ingress, then the queues."""
        packets = self.queued.enqueue(port, frame, now // _NS_PER_US)
        if not self.latency:
            for packet in packets:
                self._offer(packet, now)
        elif packets:
            later = now + self.latency

            def offer_all() -> None:
                for packet in packets:
                    self._offer(packet, later)

            self._clock.at(later, Call(offer_all))

    def _offer(self, packet: QueuedPacket, now: int) -> None:
        queues = self.queues.get(packet.port)
        if queues is not None:
            queues.offer(packet, now)
            return
        departure = self.queued.dequeue(packet, now // _NS_PER_US)
        if departure.frame is not None:
            self.emit([(packet.port, departure.frame)], now)
        for copy in departure.queued:
            self._offer(copy, now)
