"""Links: two independent directions, each a FIFO queue, a wire with a rate, and what can go wrong.

A frame that is offered while the wire is busy waits in the queue, or is dropped if that is full.
On the wire it takes (bytes + overhead) * 8 / rate, then `delay`. Loss, duplication and reordering
happen on the wire, after the frame has taken its time: a lost frame costs what any frame costs.
Rounding does not accumulate: the fraction of a nanosecond that a frame leaves over is kept.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappush
from typing import Protocol

from topologies.fabric.clock import Clock
from topologies.fabric.errors import FabricError, FrameTooLargeError
from topologies.faults import ON_TIME, Faults, direction_name

ETHERNET_BYTES = 14
_BIT_NANOSECONDS_IN_BYTE = 8 * 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSpec:
    """One direction of a link.

    rate: bits a second, None for infinite. delay: nanoseconds. queue_frames, queue_bytes: how much
    may wait, the frame on the wire not counted, None for any amount. loss, duplicate, reorder:
    probabilities of each frame. A reordered frame arrives up to `reorder_delay` nanoseconds later
    than it should, so that others overtake it; the second copy of a duplicated one as well.
    mtu: bytes of the IP packet. overhead_bytes: what each frame occupies on the wire besides
    itself (24 on real Ethernet: preamble, checksum, gap).
    """

    rate: int | None = None
    delay: int = 1_000
    queue_frames: int | None = None
    queue_bytes: int | None = None
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    reorder_delay: int = 20_000
    mtu: int = 1500
    overhead_bytes: int = 0

    def __post_init__(self) -> None:
        if self.rate is not None and self.rate < 1:
            raise FabricError(f"rate is {self.rate}: at least 1 bit/s, or None for infinite")
        for name in ("delay", "reorder_delay", "overhead_bytes"):
            if getattr(self, name) < 0:
                raise FabricError(f"{name} is {getattr(self, name)}: at least 0")
        for name in ("queue_frames", "queue_bytes"):
            depth = getattr(self, name)
            if depth is not None and depth < 0:
                raise FabricError(f"{name} is {depth}: at least 0, or None for any amount")
        for name in ("loss", "duplicate", "reorder"):
            if not 0 <= getattr(self, name) <= 1:
                raise FabricError(f"{name} is {getattr(self, name)}: a probability is 0 to 1")
        if self.mtu < 1:
            raise FabricError(f"mtu is {self.mtu}: at least 1 byte")


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """Frames of one direction.

    offered = sent + queue_full + oversized + refused_down
    sent + duplicated = delivered + lost + cut + to_dead + those still under way

    longest_wait is in nanoseconds. What waits in priority queues in front of a link is not offered
    yet.
    """

    offered: int = 0
    sent: int = 0
    sent_bytes: int = 0
    delivered: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    queue_full: int = 0
    oversized: int = 0
    refused_down: int = 0
    cut: int = 0
    to_dead: int = 0
    longest_wait: int = 0


class Receiver(Protocol):
    """The node at the end of a direction."""

    name: str
    alive: bool

    def arrive(self, port: int, frame: bytes, now: int) -> None:
        """A frame comes in at a port."""


class Clearable(Protocol):
    """Queues in front of a direction."""

    def clear(self) -> int:
        """Drop all that wait; how many they were."""


class Tap:
    """Counts the frames sent in one direction for which a predicate holds."""

    __slots__ = ("count", "predicate")

    def __init__(self, predicate: Callable[[bytes], bool]) -> None:
        self.predicate = predicate
        self.count = 0


TraceHook = Callable[[int, str, "Direction", bytes], None]
"""Called with the time, what happened ("sent", "delivered", "lost", ...), where, and the frame."""


class Direction:
    """One direction of a link, from (source, source_port) to (target, target_port)."""

    __slots__ = (
        "_bits_left_over",
        "_bounded",
        "_clock",
        "_cut",
        "_delay",
        "_delivered",
        "_duplicated",
        "_fate",
        "_free_at",
        "_longest_wait",
        "_lost",
        "_max_frame",
        "_offered",
        "_overhead",
        "_oversized",
        "_queue_full",
        "_rate",
        "_refused_down",
        "_reordered",
        "_sent",
        "_sent_bytes",
        "_taps",
        "_to_dead",
        "_waiting",
        "_waiting_bytes",
        "name",
        "queues",
        "source",
        "source_port",
        "spec",
        "strict",
        "target",
        "target_port",
        "trace",
        "up",
    )

    def __init__(
        self,
        clock: Clock,
        seed: int,
        source: Receiver,
        source_port: int,
        target: Receiver,
        target_port: int,
        spec: LinkSpec,
        *,
        strict: bool,
    ) -> None:
        self.name = direction_name(source.name, source_port, target.name, target_port)
        self.source, self.source_port = source, source_port
        self.target, self.target_port = target, target_port
        self.spec = spec
        self.strict = strict
        self.up = True
        self.trace: TraceHook | None = None
        self._clock = clock
        self._max_frame = spec.mtu + ETHERNET_BYTES
        # When the wire is free, and the fraction of a nanosecond after that, in 1/rate.
        self._free_at = 0
        self._bits_left_over = 0
        # (when it leaves the queue, its size), for bounded queues.
        self._waiting: deque[tuple[int, int]] = deque()
        self._waiting_bytes = 0
        self._taps: list[Tap] = []
        # Set where packets wait in front of the link, by priority, rather than in it.
        self.queues: Clearable | None = None
        # What `send` needs of the specification for every frame.
        self._rate, self._delay, self._overhead = spec.rate, spec.delay, spec.overhead_bytes
        self._bounded = spec.queue_frames is not None or spec.queue_bytes is not None
        self._fate: Callable[[], tuple[int, ...]] | None = None
        if spec.loss or spec.duplicate or spec.reorder:
            self._fate = Faults(
                seed,
                self.name,
                loss=spec.loss,
                duplicate=spec.duplicate,
                reorder=spec.reorder,
                reorder_delay=spec.reorder_delay,
            ).fate
        self._offered = self._sent = self._sent_bytes = self._delivered = 0
        self._lost = self._duplicated = self._reordered = 0
        self._queue_full = self._oversized = self._refused_down = self._cut = self._to_dead = 0
        self._longest_wait = 0

    @property
    def free_at(self) -> int:
        """When the wire has taken all that it was given."""
        return self._free_at

    def refuse_full(self) -> None:
        """Count a packet that found no room in the queues in front of the link."""
        self._offered += 1
        self._queue_full += 1

    def waited(self, nanoseconds: int) -> None:
        """Note how long a packet waited in the queues in front of the link."""
        self._longest_wait = max(self._longest_wait, nanoseconds)

    @property
    def counters(self) -> LinkCounters:
        """The frames so far."""
        return LinkCounters(
            offered=self._offered,
            sent=self._sent,
            sent_bytes=self._sent_bytes,
            delivered=self._delivered,
            lost=self._lost,
            duplicated=self._duplicated,
            reordered=self._reordered,
            queue_full=self._queue_full,
            oversized=self._oversized,
            refused_down=self._refused_down,
            cut=self._cut,
            to_dead=self._to_dead,
            longest_wait=self._longest_wait,
        )

    def watch(self, predicate: Callable[[bytes], bool]) -> Tap:
        """Count from now on the sent frames for which the predicate holds."""
        tap = Tap(predicate)
        self.share(tap)
        return tap

    def share(self, tap: Tap) -> None:
        """Count into a counter that other directions have too."""
        self._taps.append(tap)

    def send(self, frame: bytes, now: int) -> None:
        """Offer a frame; raises FrameTooLargeError where the source is a host."""
        self._offered += 1
        size = len(frame)
        if size > self._max_frame:
            self._refuse_oversized(frame, now)
            return
        if not self.up:
            self._refused_down += 1
            self._tell(now, "down", frame)
            return
        start = self._free_at
        if start < now:
            start = now
            self._bits_left_over = 0
        elif start > now:
            if self._bounded and self._is_full(size, start, now):
                self._queue_full += 1
                self._tell(now, "queue-full", frame)
                return
            if start - now > self._longest_wait:
                self._longest_wait = start - now
        rate = self._rate
        if rate is not None:
            work = (size + self._overhead) * _BIT_NANOSECONDS_IN_BYTE + self._bits_left_over
            start += work // rate
            self._free_at = start
            left_over = self._bits_left_over = work % rate
            arrival = start + self._delay + (left_over > 0)
        else:
            arrival = start + self._delay
        self._sent += 1
        self._sent_bytes += size
        if self._taps:
            for tap in self._taps:
                tap.count += tap.predicate(frame)
        if self.trace is not None:
            self.trace(now, "sent", self, frame)
        clock = self._clock
        delays = ON_TIME if self._fate is None else self._fate()
        if delays is ON_TIME:
            heappush(clock.heap, (arrival, clock.next_number(), self, frame))
            return
        if not delays:
            self._lost += 1
            self._tell(now, "lost", frame)
            return
        self._reordered += delays[0] > 0
        self._duplicated += len(delays) - 1
        for delay in delays:
            heappush(clock.heap, (arrival + delay, clock.next_number(), self, frame))

    def fire(self, now: int, frame: bytes) -> None:
        """A frame reaches the far end."""
        target = self.target
        if not target.alive:
            self._to_dead += 1
            self._tell(now, "to-dead", frame)
            return
        self._delivered += 1
        if self.trace is not None:
            self.trace(now, "delivered", self, frame)
        target.arrive(self.target_port, frame, now)

    def cut(self, now: int, *, under_way_too: bool) -> None:
        """Lose what waits in the queue, and with `under_way_too` also what is on the wire."""
        delay = self.spec.delay

        def is_cut(time: int, target: object) -> bool:
            return target is self and (under_way_too or time - delay > now)

        self._cut += len(self._clock.cancel(is_cut))
        if self.queues is not None:
            self.queues.clear()
        self._free_at = min(self._free_at, now)
        self._bits_left_over = 0
        self._waiting.clear()
        self._waiting_bytes = 0

    def _is_full(self, size: int, start: int, now: int) -> bool:
        spec, waiting = self.spec, self._waiting
        while waiting and waiting[0][0] <= now:
            self._waiting_bytes -= waiting.popleft()[1]
        if spec.queue_frames is not None and len(waiting) >= spec.queue_frames:
            return True
        if spec.queue_bytes is not None and self._waiting_bytes + size > spec.queue_bytes:
            return True
        waiting.append((start, size))
        self._waiting_bytes += size
        return False

    def _refuse_oversized(self, frame: bytes, now: int) -> None:
        self._oversized += 1
        self._tell(now, "oversized", frame)
        if self.strict:
            raise FrameTooLargeError(
                f"{self.source.name} sends a frame of {len(frame)} bytes into {self.name}: the "
                f"largest legal size is {self._max_frame} (MTU {self.spec.mtu}); "
                "send fewer lanes a message or raise the MTU"
            )

    def _tell(self, now: int, what: str, frame: bytes) -> None:
        if self.trace is not None:
            self.trace(now, what, self, frame)
