"""A packet in two steps: what is queued where, what egress is told, how queues are served."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softswitch.device import Device
from softswitch.errors import InvalidArgument
from softswitch.queued import MAX_PASSES, QueuedPacket
from softswitch.queues import DEFAULT_DEPTH, PortQueues, QueueCounters
from softswitch.switch import Switch
from tests.unit.softswitch.programs import PROGRAMS, load

UNICAST, MULTICAST, CLONE_INGRESS, CLONE_EGRESS, RECIRCULATE = range(5)
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Shown:
    """What egress wrote of a packet's wait."""

    instance_type: int
    enq_qdepth: int
    deq_qdepth: int
    enq_timestamp: int
    deq_timedelta: int
    now: int


def order(code: int, priority: int = 0, argument: int = 1) -> bytes:
    return bytes([code, priority]) + argument.to_bytes(2) + bytes([1]) + bytes(19) + b"payload"


def shown(frame: bytes | None) -> Shown:
    assert frame is not None
    widths = (1, 2, 2, 4, 4, 6)
    values: list[int] = []
    at = 5
    for width in widths:
        values.append(int.from_bytes(frame[at : at + width]))
        at += width
    return Shown(*values)


@pytest.fixture
def switch() -> Switch:
    switch = load("queues", queues=8)
    switch.multicast_group(9, [(1, 10), (2, 20)])
    switch.mirror(5, 7)
    switch.mirror(6, 8)
    return switch


def places(packets: list[QueuedPacket] | tuple[QueuedPacket, ...]) -> list[tuple[int, int]]:
    return [(p.port, p.priority) for p in packets]


def test_a_copy_tells_its_queue(switch: Switch) -> None:
    assert places(switch.enqueue(3, order(UNICAST, 5, 4))) == [(4, 5)]
    assert places(switch.enqueue(3, order(MULTICAST, 2, 9))) == [(1, 2), (2, 2)]


def test_a_clone_of_ingress_starts_at_priority_0(switch: Switch) -> None:
    assert places(switch.enqueue(3, order(CLONE_INGRESS, 6, 4))) == [(7, 0), (4, 6)]


def test_what_leaves_in_two_steps_is_what_leaves_in_one(switch: Switch) -> None:
    packet = order(CLONE_INGRESS, 3, 4)
    frames = [(p.port, switch.dequeue(p, 70).frame) for p in switch.enqueue(3, packet, 70)]
    assert frames == switch.process(3, packet, 70)


def test_egress_is_told_of_the_wait(switch: Switch) -> None:
    (packet,) = switch.enqueue(3, order(UNICAST, 5), 1_000)
    departure = switch.dequeue(packet, 1_250, enq_qdepth=12, deq_qdepth=3)
    assert shown(departure.frame) == Shown(0, 12, 3, 1_000, 250, 1_250)
    assert departure.queued == ()


def test_times_are_cut_to_the_width_of_their_fields(switch: Switch) -> None:
    (packet,) = switch.enqueue(3, order(UNICAST), (1 << 32) + 5)
    frame = switch.dequeue(packet, (1 << 33) + 7, enq_qdepth=(1 << 19) + 1).frame
    assert shown(frame) == Shown(0, 1, 0, 5, 2, (1 << 33) + 7)


def test_in_one_step_nothing_waits(switch: Switch) -> None:
    ((_, frame),) = switch.process(3, order(UNICAST, 5), 1_000)
    assert shown(frame) == Shown(0, 0, 0, 1_000, 0, 1_000)


def test_the_wait_of_one_packet_is_not_told_to_the_next(switch: Switch) -> None:
    (packet,) = switch.enqueue(3, order(UNICAST), 10)
    switch.dequeue(packet, 30, 4, 5)
    ((_, frame),) = switch.process(3, order(UNICAST), 40)
    assert shown(frame) == Shown(0, 0, 0, 40, 0, 40)


def test_an_egress_clone_is_queued_again(switch: Switch) -> None:
    (packet,) = switch.enqueue(3, order(CLONE_EGRESS, 4, 2), 5)
    departure = switch.dequeue(packet, 9, 1, 1)
    assert shown(departure.frame).instance_type == 0
    assert places(departure.queued) == [(8, 0)]
    (clone,) = departure.queued
    assert clone.enqueued_us == 9
    assert shown(switch.dequeue(clone, 20).frame) == Shown(2, 0, 0, 9, 11, 20)


def test_what_is_recirculated_is_queued_anew(switch: Switch) -> None:
    (packet,) = switch.enqueue(3, order(RECIRCULATE, 7, 2), 5)
    departure = switch.dequeue(packet, 9)
    assert departure.frame is None
    assert places(departure.queued) == [(2, 1)]
    assert shown(switch.dequeue(departure.queued[0], 9).frame).instance_type == 0


def test_passes_are_counted_over_both_steps() -> None:
    switch = load("copies")
    assert switch.enqueue(3, bytes([12]) + bytes(20)) == []
    (packet,) = switch.enqueue(3, bytes([8, 0, 0, 2]) + bytes(20))
    passed = QueuedPacket(
        packet.port,
        packet.priority,
        packet.length,
        packet.enqueued_us,
        packet.came_by,
        MAX_PASSES,
        packet.egress,
        packet.arguments,
        packet.state,
    )
    assert switch.dequeue(packet).queued != ()
    assert switch.dequeue(passed).queued == ()


def test_a_priority_without_a_queue_drops_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    switch = load("queues")
    switch.mirror(6, 8)
    for step in (switch.process, switch.enqueue):
        caplog.clear()
        assert step(3, order(UNICAST, 1)) == []
    assert switch.process(3, order(UNICAST, 0)) != []
    with caplog.at_level("ERROR", "softswitch"):
        again = load("queues")
        for _ in range(10):
            again.process(3, order(UNICAST, 3))
    assert (
        len([r for r in caplog.records if "priority 3, a port has queues 0..0" in r.msg % r.args])
        == 2
    )


def test_a_packet_runs_on_the_pipeline_that_it_was_enqueued_under(switch: Switch) -> None:
    (packet,) = switch.enqueue(3, order(UNICAST, 2))
    switch.device.load_pipeline((PROGRAMS / "copies.json").read_bytes())
    assert shown(switch.dequeue(packet, 6).frame).now == 6


def test_a_device_without_a_pipeline_queues_nothing() -> None:
    assert Device(1).enqueue(1, b"x" * 60) == []


# --- the queues of a port -------------------------------------------------------------------------


def some(switch: Switch, priority: int) -> QueuedPacket:
    (packet,) = switch.enqueue(3, order(UNICAST, priority))
    return packet


def drain(queues: PortQueues, now: int) -> list[int]:
    """Serve all that may leave; their priorities."""
    found: list[int] = []
    while (served := queues.take(now)) is not None:
        found.append(served.packet.priority)
    return found


def test_the_largest_priority_is_served_first(switch: Switch) -> None:
    queues = PortQueues(8)
    for priority in (0, 5, 2, 7, 5):
        assert queues.offer(some(switch, priority), 0)
    assert len(queues) == 5
    assert drain(queues, 0) == [7, 5, 5, 2, 0]
    assert queues.next_turn() is None


def test_packets_of_a_queue_stay_in_order(switch: Switch) -> None:
    queues = PortQueues(8)
    packets = [some(switch, 2) for _ in range(5)]
    for packet in packets:
        queues.offer(packet, 0)
    taken = [queues.take(0) for _ in packets]
    assert [t.packet for t in taken if t is not None] == packets
    assert [(t.enq_qdepth, t.deq_qdepth) for t in taken if t is not None] == [
        (0, 4),
        (1, 3),
        (2, 2),
        (3, 1),
        (4, 0),
    ]


def test_a_full_queue_drops_and_counts(switch: Switch) -> None:
    queues = PortQueues(2)
    taken = [queues.offer(some(switch, 1), 0) for _ in range(DEFAULT_DEPTH + 3)]
    assert taken == [True] * 64 + [False] * 3
    assert queues.offer(some(switch, 0), 0)
    assert queues.counters(1) == QueueCounters(67, 0, 3)
    queues.set_depth(2, 0)
    assert [queues.offer(some(switch, 0), 0) for _ in range(2)] == [True, False]
    assert (queues.depth(0), queues.depth(1), queues.waiting(0)) == (2, 64, 2)


def test_a_rate_spaces_turns_and_lets_lower_queues_by(switch: Switch) -> None:
    queues = PortQueues(2)
    queues.set_rate(10, 1)
    assert (queues.rate(0), queues.rate(1)) == (0, 10)
    for _ in range(3):
        queues.offer(some(switch, 1), 0)
        queues.offer(some(switch, 0), 0)
    assert drain(queues, 0) == [1, 0, 0, 0]
    assert queues.next_turn() == SECOND // 10
    assert drain(queues, SECOND // 10 - 1) == []
    assert drain(queues, SECOND // 10) == [1]
    assert drain(queues, SECOND) == [1]
    queues.offer(some(switch, 1), 5 * SECOND)
    assert drain(queues, 5 * SECOND) == [1]


def test_a_rate_holds_for_packets_that_come_later(switch: Switch) -> None:
    queues = PortQueues(1)
    queues.set_rate(1)
    for _ in range(2):
        queues.offer(some(switch, 0), 0)
    queues.set_rate(0)
    queues.offer(some(switch, 0), 0)
    assert drain(queues, 0) == [0]
    assert drain(queues, SECOND) == [0, 0]


def test_clearing_drops_what_waits(switch: Switch) -> None:
    queues = PortQueues(2)
    for priority in (0, 1, 1):
        queues.offer(some(switch, priority), 0)
    assert queues.clear() == 3
    assert len(queues) == 0
    assert drain(queues, 0) == []
    assert queues.counters(1) == QueueCounters(2, 0, 2)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: PortQueues(0), "at least one"),
        (lambda: PortQueues(2).set_rate(-1), "queue rate -1"),
        (lambda: PortQueues(2).set_depth(-1), "queue depth -1"),
        (lambda: PortQueues(2).set_depth(1, 2), "queues 0..1"),
        (lambda: PortQueues(2).rate(-1), "queues 0..1"),
    ],
)
def test_bad_settings_are_named(wrong: object, words: str) -> None:
    assert callable(wrong)
    with pytest.raises(InvalidArgument, match=words):
        wrong()


_SWITCH = load("queues", queues=4)
_PACKETS = [some(_SWITCH, priority) for priority in range(4)]


@given(
    steps=st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60),
    rates=st.tuples(*[st.sampled_from([0, 100, 1000])] * 4),
    depth=st.integers(0, 5),
)
def test_every_packet_is_served_dropped_or_waits(
    steps: list[tuple[int, bool]], rates: tuple[int, ...], depth: int
) -> None:
    queues = PortQueues(4)
    queues.set_depth(depth)
    for priority, rate in enumerate(rates):
        queues.set_rate(rate, priority)
    now = 0
    for priority, serve in steps:
        now += 1_000_000
        queues.offer(_PACKETS[priority], now)
        assert queues.waiting(priority) <= depth
        if serve:
            before = [queues.waiting(p) for p in range(4)]
            served = queues.take(now)
            if served is not None:
                highest = served.packet.priority
                assert all(not before[p] or rates[p] for p in range(highest + 1, 4))
    for priority in range(4):
        counters = queues.counters(priority)
        waiting = queues.waiting(priority)
        assert counters.offered == counters.served + counters.dropped + waiting
    assert len(queues) == sum(queues.waiting(p) for p in range(4))
