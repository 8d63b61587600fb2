"""The egress queues of one port, as bmv2's simple_switch has them: strict priority, rate, depth.

Times are integer nanoseconds of any clock that does not run backwards: a process gives the wall
clock, a simulation its own.
"""

from collections import deque
from dataclasses import dataclass

from softswitch.errors import InvalidArgument
from softswitch.queued import QueuedPacket

DEFAULT_DEPTH = 64
"""Packets that a queue holds, as in bmv2."""

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class QueueCounters:
    """Packets of one queue so far; offered = served + dropped + those that wait."""

    offered: int
    served: int
    dropped: int


@dataclass(frozen=True, slots=True)
class Served:
    """A packet whose turn has come, and the depths that its egress is told."""

    packet: QueuedPacket
    enq_qdepth: int
    deq_qdepth: int


class _Queue:
    __slots__ = ("depth", "dropped", "gap", "items", "last", "offered", "rate", "served")

    def __init__(self) -> None:
        self.depth = DEFAULT_DEPTH
        self.rate = 0
        # nanoseconds from one packet's turn to the next's
        self.gap = 0
        # the turn that was given last
        self.last: int | None = None
        # (turn, depth at enqueue, packet)
        self.items: deque[tuple[int, int, QueuedPacket]] = deque()
        self.offered = self.served = self.dropped = 0


class PortQueues:
    """Queues 0 .. `count` - 1 of a port; the largest number is served first.

    A queue of rate r packets/s gives every packet, as it comes, a turn 1/r after the last one's
    (bmv2's way: a rate set later holds for packets that come later). Rate 0 is unlimited. While
    the queues of higher priority wait for their turns, lower ones are served.
    """

    __slots__ = ("_queues", "_waiting")

    def __init__(self, count: int = 1) -> None:
        if count < 1:
            raise InvalidArgument(f"{count} queues: a port has at least one")
        self._queues = tuple(_Queue() for _ in range(count))
        self._waiting = 0

    def __len__(self) -> int:
        """Packets that wait, in all queues."""
        return self._waiting

    @property
    def count(self) -> int:
        """How many queues there are."""
        return len(self._queues)

    def set_rate(self, packets_per_second: int, priority: int | None = None) -> None:
        """Limit one queue, or each; 0: unlimited. InvalidArgument."""
        if packets_per_second < 0:
            raise InvalidArgument(f"queue rate {packets_per_second}: packets/s, 0 for no limit")
        for queue in self._chosen(priority):
            queue.rate = packets_per_second
            queue.gap = _SECOND // packets_per_second if packets_per_second else 0

    def set_depth(self, packets: int, priority: int | None = None) -> None:
        """Set how many packets one queue, or each, holds; 0 drops all. InvalidArgument."""
        if packets < 0:
            raise InvalidArgument(f"queue depth {packets}: packets, at least 0")
        for queue in self._chosen(priority):
            queue.depth = packets

    def reset(self) -> None:
        """Give every queue the default rate and depth; what waits stays."""
        self.set_rate(0)
        self.set_depth(DEFAULT_DEPTH)

    def rate(self, priority: int) -> int:
        """Packets/s of a queue; 0: unlimited."""
        return self._chosen(priority)[0].rate

    def depth(self, priority: int) -> int:
        """How many packets a queue holds."""
        return self._chosen(priority)[0].depth

    def waiting(self, priority: int) -> int:
        """How many packets wait in a queue."""
        return len(self._chosen(priority)[0].items)

    def counters(self, priority: int) -> QueueCounters:
        """The packets of a queue so far."""
        queue = self._chosen(priority)[0]
        return QueueCounters(queue.offered, queue.served, queue.dropped)

    def offer(self, packet: QueuedPacket, now_ns: int) -> bool:
        """Queue a packet by its priority; False if its queue is full, and it is dropped."""
        queue = self._queues[packet.priority]
        queue.offered += 1
        depth = len(queue.items)
        if depth >= queue.depth:
            queue.dropped += 1
            return False
        turn = now_ns if queue.last is None else max(now_ns, queue.last + queue.gap)
        queue.last = turn
        queue.items.append((turn, depth, packet))
        self._waiting += 1
        return True

    def take(self, now_ns: int) -> Served | None:
        """The packet to serve now: the first of the highest priority whose turn has come."""
        if self._waiting:
            for queue in reversed(self._queues):
                items = queue.items
                if items and items[0][0] <= now_ns:
                    _, depth, packet = items.popleft()
                    self._waiting -= 1
                    queue.served += 1
                    return Served(packet, depth, len(items))
        return None

    def next_turn(self) -> int | None:
        """When the next packet may be served; None if none waits. It may be in the past."""
        if not self._waiting:
            return None
        return min(queue.items[0][0] for queue in self._queues if queue.items)

    def clear(self) -> int:
        """Drop all that wait; how many they were."""
        dropped = self._waiting
        for queue in self._queues:
            queue.dropped += len(queue.items)
            queue.items.clear()
        self._waiting = 0
        return dropped

    def _chosen(self, priority: int | None) -> tuple[_Queue, ...]:
        if priority is None:
            return self._queues
        if not 0 <= priority < len(self._queues):
            raise InvalidArgument(
                f"there is no queue {priority}: a port has queues 0..{len(self._queues) - 1}"
            )
        return (self._queues[priority],)
