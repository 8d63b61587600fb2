"""Priority queues in front of links, with a compiled program that takes priorities from packets."""

import pytest

from softswitch.device import Device
from softswitch.entries import CloneSession, Replica
from tests.unit.fabric.nodes import Sender, Sink
from tests.unit.softswitch.programs import PROGRAMS
from topologies.fabric import Fabric, FabricError, LinkSpec
from topologies.fabric.link import LinkCounters
from topologies.fabric.nodes import HOST_PORT
from topologies.fabric.queues import QueueCounters

QUEUES = 8
FRAME_BYTES = 1000
FRAME_NS = 8_000_000  # at 1 Mbit/s


def order(priority: int, number: int, code: int = 0, argument: int = 2) -> bytes:
    """A frame for port 2 (or a multicast group) at a priority, with a number at its end."""
    head = bytes([code, priority]) + argument.to_bytes(2) + bytes([1])
    return head.ljust(FRAME_BYTES - 2, b"\0") + number.to_bytes(2)


def number(frame: bytes) -> int:
    return int.from_bytes(frame[-2:])


def told(frame: bytes) -> tuple[int, int, int, int]:
    """What egress was told: depth as it came and left, when it came, how long it waited (us)."""
    return (
        int.from_bytes(frame[6:8]),
        int.from_bytes(frame[8:10]),
        int.from_bytes(frame[10:14]),
        int.from_bytes(frame[14:18]),
    )


def device() -> Device:
    made = Device(queues=QUEUES)
    made.load_pipeline((PROGRAMS / "queues.json").read_bytes())
    return made


class Bench:
    """A sender, a switch with queues, and a sink behind a slow link at port 2."""

    def __init__(
        self, frames: list[bytes], latency: int = 0, depth: int | None = None, loss: float = 0
    ) -> None:
        self.fabric = Fabric(seed=1)
        self.device = device()
        self.sink = Sink()
        self.lost: list[tuple[int, bytes]] = []
        self.fabric.add_queued_switch(
            "s",
            self.device,
            QUEUES,
            latency=latency,
            on_unconnected=lambda port, frame: self.lost.append((port, frame)),
        )
        self.fabric.add_host("a", Sender(frames))
        self.fabric.add_host("b", self.sink)
        self.fabric.connect(("a", HOST_PORT), ("s", 1), LinkSpec(delay=0))
        self.fabric.connect(
            ("s", 2),
            ("b", HOST_PORT),
            LinkSpec(rate=10**6, delay=0, queue_frames=depth, loss=loss),
        )

    def run(self) -> list[int]:
        """The numbers of the frames, in the order of arrival."""
        self.fabric.run()
        return [number(frame) for frame in self.sink.frames]

    @property
    def link(self) -> LinkCounters:
        return self.fabric.direction("s", "b").counters


def test_the_highest_goes_first_and_each_queue_keeps_its_order() -> None:
    priorities = [0, 3, 7, 0, 5, 7, 3, 0]
    bench = Bench([order(priority, i) for i, priority in enumerate(priorities)])
    # The first was on the wire already when the others came.
    assert bench.run() == [0, 2, 5, 4, 1, 6, 3, 7]
    assert bench.sink.times == [FRAME_NS * n for n in range(1, 9)]
    assert bench.link.sent == bench.link.offered == 8
    assert bench.link.longest_wait == 7 * FRAME_NS


def test_one_that_comes_late_overtakes_what_waits() -> None:
    bench = Bench([order(0, i) for i in range(5)])
    bench.fabric.call_at(FRAME_NS * 5 // 2, lambda: bench.fabric.inject("s", 1, order(6, 9)))
    assert bench.run() == [0, 1, 2, 9, 3, 4]
    assert bench.sink.times[-1] == 6 * FRAME_NS


def test_egress_runs_when_the_turn_has_come_and_is_told_of_the_wait() -> None:
    bench = Bench([order(4, i) for i in range(3)])
    bench.run()
    frame_us = FRAME_NS // 1000
    assert [told(frame) for frame in bench.sink.frames] == [
        (0, 0, 0, 0),
        (0, 1, 0, frame_us),
        (1, 0, 0, 2 * frame_us),
    ]


def test_depth_is_of_each_queue() -> None:
    frames = [order(7, 0), *(order(2, n) for n in (1, 2, 3)), *(order(5, n) for n in (4, 5, 6))]
    bench = Bench(frames, depth=2)
    assert bench.run() == [0, 4, 5, 1, 2]
    queues = bench.fabric.queues("s", 2)
    assert queues.counters(2) == QueueCounters(offered=3, served=2, dropped=1, longest=2)
    assert queues.counters(5) == QueueCounters(offered=3, served=2, dropped=1, longest=2)
    assert (bench.link.queue_full, bench.link.offered, bench.link.sent) == (2, 7, 5)


def test_latency_comes_before_the_queue() -> None:
    bench = Bench([order(1, 0), order(2, 1), order(3, 2)], latency=500)
    assert bench.run() == [0, 2, 1]
    assert bench.sink.times == [500 + FRAME_NS * n for n in (1, 2, 3)]


def test_a_priority_that_no_queue_has_drops() -> None:
    fabric = Fabric()
    few = Device(queues=4)
    few.load_pipeline((PROGRAMS / "queues.json").read_bytes())
    sink = Sink()
    fabric.add_queued_switch("s", few, 4)
    fabric.add_host("a", Sender([order(3, 1), order(4, 2), order(0, 3)]))
    fabric.add_host("b", sink)
    fabric.connect(("a", HOST_PORT), ("s", 1), LinkSpec())
    fabric.connect(("s", 2), ("b", HOST_PORT), LinkSpec(rate=10**6))
    fabric.run()
    assert [number(frame) for frame in sink.frames] == [1, 3]


def test_copies_are_queued_at_their_ports() -> None:
    """A multicast, a clone that egress makes, and ports without a link."""
    bench = Bench([order(3, 0), order(3, 1, code=1, argument=9), order(1, 2, code=3)])
    bench.device.create_multicast_group(9, (Replica(2), Replica(2, 1), Replica(5)))
    bench.device.create_clone_session(CloneSession(6, (Replica(2),)))
    assert bench.run() == [0, 1, 1, 2, 2]
    assert [(port, number(frame)) for port, frame in bench.lost] == [(5, 1)]


def test_lost_frames_take_their_time() -> None:
    bench = Bench([order(n % 8, n) for n in range(200)], loss=0.3)
    arrived = bench.run()
    assert bench.link.sent == 200
    assert 0 < bench.link.lost == 200 - len(arrived)
    assert bench.fabric.now == 200 * FRAME_NS


def test_a_dead_switch_loses_what_waits() -> None:
    bench = Bench([order(n % 8, n) for n in range(20)])
    bench.fabric.call_at(FRAME_NS * 3 + 1, lambda: bench.fabric.fail("s"))
    # Three have arrived; the fourth is going on the wire, and is cut off.
    assert bench.run() == [0, 7, 15]
    queues = bench.fabric.queues("s", 2)
    assert sum(queues.waiting(priority) for priority in range(QUEUES)) == 0
    bench.fabric.restart("s", device())
    bench.fabric.inject("s", 1, order(0, 99))
    assert bench.run()[-1] == 99


def test_what_is_refused() -> None:
    bench = Bench([])
    with pytest.raises(FabricError, match="give queue_frames instead of queue_bytes"):
        bench.fabric.connect(("s", 3), ("b", 1), LinkSpec(queue_bytes=1))
    with pytest.raises(FabricError, match="port 9 of s has no priority queues"):
        bench.fabric.queues("s", 9)
