"""A chunk is complete when the largest sources heard cover every worker exactly once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4src.constants import LANES, Flag, Kind
from tests.unit.traffic.hosts import EPOCH, JOB, contribution, destination, whole_numbers
from traffic.destination import Recipient, Verdict
from traffic.endpoint import Op
from traffic.errors import ConfigError, Refusal
from traffic.message import decode_datagram, decode_frame, group_ip
from traffic.requests import RequestConfig

SOLO = [frozenset({0}), frozenset({1}), frozenset({2})]
NESTED = [*SOLO, frozenset({0, 1}), frozenset({0, 1, 2})]
ONES = [1] * LANES


@st.composite
def laminar_sets(draw: st.DrawFn) -> list[frozenset[int]]:
    """Every worker alone, and unions of neighbours as switches above them have."""
    workers = draw(st.integers(1, 9))
    sets = [frozenset({rank}) for rank in range(workers)]
    top = list(sets)
    while len(top) > 1 and draw(st.booleans()):
        low = draw(st.integers(0, len(top) - 2))
        high = draw(st.integers(low + 1, len(top) - 1))
        union = frozenset[int]().union(*top[low : high + 1])
        top[low : high + 1] = [union]
        sets.append(union)
    return sets


@given(laminar_sets(), st.data())
def test_any_order_and_repetition_gives_the_sum_when_and_only_when_all_are_covered(
    sets: list[frozenset[int]], data: st.DataObject
) -> None:
    workers = max(max(ranks) for ranks in sets) + 1
    values = whole_numbers(workers, 1, seed=data.draw(st.integers(0, 99)))[:, 0]
    dest = destination(sets, workers, chunks=1)
    exponents = data.draw(st.lists(st.integers(0, 2**16 - 1), min_size=workers, max_size=workers))
    expected = values.sum(axis=0, dtype=np.int64)
    covered: set[int] = set()
    order = data.draw(st.lists(st.integers(1, len(sets)), max_size=4 * len(sets)))
    for now, source in enumerate([*order, *range(1, workers + 1)]):
        ranks = sets[source - 1]
        was_complete = dest.done
        lanes = values[sorted(ranks)].sum(axis=0, dtype=np.int64).tolist()
        largest = max(exponents[rank] for rank in ranks)
        frame = contribution(source, lanes, weight=len(ranks), exponent=largest)
        frames = dest.receive(frame, now)
        covered |= ranks
        assert dest.done == (len(covered) == workers)
        assert dest.missing(0) == tuple(r for r in range(workers) if r not in covered)
        assert len(frames) == dest.done
        if frames:
            answer = decode_frame(frames[0])
            assert answer.kind == Kind.RESULT
            assert answer.weight == workers
            assert answer.flags == (Flag.RESENT if was_complete else 0)
            assert list(answer.values) == expected.tolist()
            assert answer.exponent == max(exponents)
    assert dest.done
    assert (dest.sums[0] == expected).all()
    assert dest.exponents.tolist() == [max(exponents)]
    assert sum(dest.stats.frames.values()) == len(order) + workers


def test_an_answer_is_multicast_to_the_group() -> None:
    dest = destination([frozenset({0})], 1)
    frame = dest.receive(contribution(1, ONES), 0)[0]
    assert frame[:6] == bytes.fromhex("01005e420007")
    datagram = decode_datagram(frame)
    assert datagram.dst_ip == bytes(map(int, group_ip(JOB).split(".")))
    assert (datagram.src_port, datagram.dst_port) == (9590, 9590)


def test_reduce_is_acknowledged_without_lanes() -> None:
    dest = destination([frozenset({0})], 1, op=Op.REDUCE)
    answer = decode_frame(dest.receive(contribution(1, ONES, exponent=9), 0)[0])
    assert (answer.kind, answer.lanes, answer.weight) == (Kind.ACK, b"", 1)
    assert answer.exponent == 9


def test_the_recipient_of_a_reduce_is_sent_the_sum() -> None:
    to = Recipient("02:01:00:00:00:01", "10.0.0.4", 9591)
    dest = destination(SOLO[:2], 2, op=Op.REDUCE, recipient=to)
    assert dest.receive(contribution(1, ONES, exponent=4), 0) == []
    for flags in (0, Flag.RESENT.value):
        acknowledgement, result = dest.receive(contribution(2, [5] * LANES, exponent=9), 0)
        message = decode_datagram(acknowledgement).message
        assert (message.kind, message.flags, message.exponent) == (Kind.ACK, flags, 9)
        assert result[:6] == bytes.fromhex("020100000001")
        datagram = decode_datagram(result)
        assert (datagram.dst_ip, datagram.dst_port) == (bytes((10, 0, 0, 4)), 9591)
        message = datagram.message
        assert (message.kind, message.flags, message.exponent) == (Kind.RESULT, flags, 9)
        assert message.values == (6,) * LANES


def test_a_larger_source_replaces_the_smaller_ones_within_it() -> None:
    dest = destination(NESTED, 3, chunks=1)
    dest.receive(contribution(1, ONES), 0)
    dest.receive(contribution(4, [10] * LANES, weight=2), 0)
    assert dest.missing(0) == (2,)
    dest.receive(contribution(2, ONES), 0)
    assert dest.receive(contribution(3, [100] * LANES), 0)
    assert dest.sums[0].tolist() == [110] * LANES
    assert dest.stats.frames == {
        Verdict.COUNTED.value: 2,
        Verdict.COVERED.value: 1,
        Verdict.COMPLETING.value: 1,
    }


def test_every_refused_frame_ends_in_exactly_one_counter() -> None:
    dest = destination(NESTED, 3)
    refused = {
        Verdict.WRONG_WEIGHT.value: contribution(4, ONES, weight=1),
        Verdict.UNKNOWN_SOURCE.value: contribution(6, ONES),
        Verdict.OTHER_JOB.value: contribution(1, ONES, job=JOB + 1),
        Verdict.OTHER_EPOCH.value: contribution(1, ONES, epoch=EPOCH - 1),
        Verdict.OTHER_KIND.value: contribution(1, ONES, kind=Kind.RESULT.value),
        Verdict.NO_SUCH_CHUNK.value: contribution(1, ONES, chunk=4),
        Verdict.NOT_ADDRESSED.value: _to_port_9591(contribution(1, ONES)),
        Refusal.TRUNCATED.value: contribution(1, ONES)[:50],
    }
    for frame in refused.values():
        assert dest.receive(frame, 0) == []
    assert dest.stats.frames == dict.fromkeys(refused, 1)
    assert dest.missing(0) == (0, 1, 2)


def _to_port_9591(frame: bytes) -> bytes:
    return frame[:36] + (9591).to_bytes(2, "big") + b"\x00\x9c\x00\x00" + frame[42:]


def test_wrong_weight_changes_nothing_even_for_a_complete_chunk() -> None:
    dest = destination([frozenset({0, 1}), *SOLO[:2]], 2)
    assert dest.receive(contribution(1, ONES, weight=2), 0)
    assert dest.receive(contribution(1, ONES, weight=1), 0) == []


def test_overflow_here_is_noticed_and_told() -> None:
    dest = destination(SOLO[:2], 2, chunks=1)
    dest.receive(contribution(1, [2**31 - 1] * LANES), 0)
    answer = decode_frame(dest.receive(contribution(2, [1] + [0] * (LANES - 1)), 0)[0])
    assert answer.flags == Flag.OVERFLOW
    assert dest.overflowed == {0}
    assert dest.stats.overflowed == 1
    assert dest.sums[0].tolist() == [-(2**31)] + [2**31 - 1] * (LANES - 1)


def test_overflow_at_a_switch_is_noticed_and_told_each_time() -> None:
    dest = destination([frozenset({0, 1})], 2)
    frame = contribution(1, ONES, weight=2, flags=Flag.OVERFLOW.value)
    assert decode_frame(dest.receive(frame, 0)[0]).flags == Flag.OVERFLOW
    assert decode_frame(dest.receive(frame, 0)[0]).flags == Flag.OVERFLOW | Flag.RESENT
    assert dest.overflowed == {0}


def test_overflow_of_a_source_that_was_replaced_does_not_count() -> None:
    dest = destination(NESTED, 3, chunks=1)
    dest.receive(contribution(4, ONES, weight=2, flags=Flag.OVERFLOW.value), 0)
    dest.receive(contribution(5, ONES, weight=3), 0)
    assert dest.done
    assert dest.overflowed == frozenset()


def test_extremes_of_int32_are_no_overflow() -> None:
    dest = destination(SOLO[:2], 2, chunks=1)
    dest.receive(contribution(1, [2**31 - 1, -(2**31)] + [0] * (LANES - 2)), 0)
    dest.receive(contribution(2, [0] * LANES), 0)
    assert dest.overflowed == frozenset()
    assert dest.sums[0, :2].tolist() == [2**31 - 1, -(2**31)]


def test_marks_are_counted() -> None:
    dest = destination(SOLO, 3)
    dest.receive(contribution(1, ONES, flags=Flag.DIRECT | Flag.RESENT), 0)
    dest.receive(contribution(2, ONES, flags=Flag.LATE.value), 0)
    dest.receive(contribution(3, ONES), 0)
    dest.receive(contribution(3, ONES, flags=Flag.RESENT.value), 0)
    stats = dest.stats
    assert (stats.direct, stats.late, stats.resent) == (1, 1, 2)
    assert (stats.answers, stats.answers_again) == (2, 1)


def test_where_much_is_lost_an_answer_leaves_more_than_once_and_is_counted_as_often() -> None:
    asking = RequestConfig(quiet=100, timeout=10, max_timeout=1_000, direct_time=10_000)
    dest = destination(SOLO[:1], 1, chunks=400, window=8, requests=asking)
    dest.start(0)
    now, frames = 0, []
    for chunk in range(8, 400, 8):
        # Slot 0 gets on; whatever else is expected has to be asked for.
        dest.receive(contribution(1, ONES, chunk=chunk - 8), now + 1)
        now += 1_000
        assert dest.tick(now)
        for other in range(chunk - 7, chunk):
            frames = dest.receive(contribution(1, ONES, chunk=other), now)
    answers = [message for frame in frames if (message := decode_frame(frame)).kind == Kind.RESULT]
    assert len(answers) == 2
    assert answers[0] == answers[1]
    assert answers[0].flags == 0
    stats = dest.stats
    assert stats.answers - stats.answers_again == dest.completed
    assert stats.answers_again > dest.completed // 2


def test_one_answer_serves_many_that_ask_within_the_interval() -> None:
    dest = destination(SOLO[:1], 1, answer_interval=100)
    ask = contribution(1, ONES, flags=Flag.RESENT.value)
    assert dest.receive(contribution(1, ONES), 1000)
    assert dest.receive(ask, 1099) == []
    assert dest.receive(ask, 1100)
    assert dest.receive(ask, 1199) == []
    assert dest.stats.frames == {
        Verdict.COMPLETING.value: 1,
        Verdict.ANSWERED_LATELY.value: 2,
        Verdict.ANSWERED_AGAIN.value: 1,
    }


def test_a_stuck_chunk_is_explained() -> None:
    dest = destination([frozenset({rank}) for rank in range(11)], 11)
    dest.receive(contribution(1, ONES), 0)
    assert dest.first_incomplete() == 0
    assert dest.explain(0) == (
        "chunk 0 of job 7 waits for w1, w2, w3, w4, w5, w6, w7, w8 and 2 more"
    )
    single = destination(SOLO[:1], 1, chunks=1)
    single.receive(contribution(1, ONES), 0)
    assert single.explain(0) == "chunk 0 of job 7 is complete"
    assert single.first_incomplete() is None
    with pytest.raises(ConfigError, match="job 7 has no chunk 4: 0 to 3"):
        dest.missing(4)


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        ([frozenset({0, 1}), frozenset({1, 2})], "source 2 overlap"),
        ([frozenset({0, 1, 2}), frozenset({0, 1}), frozenset({1, 2})], "source 3 overlap"),
        ([frozenset({0, 1})], "no source speaks for worker 2"),
        ([frozenset({0, 1, 2, 3})], "ranks 0 to 3"),
        ([frozenset()], "source 1 speaks for no worker"),
    ],
)
def test_sets_that_are_not_laminar_or_incomplete_are_refused(
    sources: list[frozenset[int]], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        destination(sources, 3)


def test_invalid_ids_are_refused() -> None:
    for change in ({"job": 0}, {"epoch": 0}, {"epoch": 2**32}):
        with pytest.raises(ConfigError):
            destination(SOLO, 3, **change)
    with pytest.raises(ConfigError, match="no worker"):
        destination([], 0)
    with pytest.raises(ConfigError, match="source 65536 is not an id"):
        replace(destination(SOLO[:1], 1).config, sources={65536: frozenset({0})})


def test_other_lane_counts() -> None:
    dest = destination(SOLO[:1], 1, lanes=2, chunks=1)
    assert dest.receive(contribution(1, ONES), 0) == []
    assert dest.stats.frames == {Refusal.BAD_LANE_COUNT.value: 1}
    assert dest.receive(contribution(1, [1, -2]), 0)
    assert dest.sums.tolist() == [[1, -2]]
