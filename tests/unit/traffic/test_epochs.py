"""A job moves from one allocation to the next at one chunk number, and ends at one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4src.constants import LANES, Flag
from tests.unit.traffic.cloud import Cloud
from tests.unit.traffic.hosts import (
    EPOCH,
    JOB,
    answer,
    contribution,
    destination,
    whole_numbers,
    worker,
)
from traffic.destination import Destination, Verdict
from traffic.endpoint import Op
from traffic.epochs import Epochs
from traffic.errors import ConfigError
from traffic.message import decode_frame, pack_lanes
from traffic.stream import MOST_CHUNKS, Rows, Stream
from traffic.worker import Worker

SOLO = {1: frozenset({0}), 2: frozenset({1}), 3: frozenset({2})}
PAIRED = {**SOLO, 9: frozenset({0, 1})}
ONES = [1] * LANES


def chunks_of(frames: list[bytes]) -> list[int]:
    return [decode_frame(frame).chunk for frame in frames]


def epochs_of(frames: list[bytes]) -> dict[int, int]:
    return {decode_frame(frame).chunk: decode_frame(frame).epoch for frame in frames}


def endless(rank: int = 0, workers: int = 1, **changes: Any) -> Worker:
    config = worker(rank, workers, chunks=0, **changes).config
    return Worker(config, Stream(seed=1, workers=workers, period=3))


def test_each_chunk_has_one_epoch() -> None:
    epochs = Epochs("w0", 3)
    assert epochs.move(5, 100, lowest=90)
    assert epochs.move(8, 200, lowest=90)
    assert not epochs.move(8, 200, lowest=900)
    expected = {0: 3, 99: 3, 100: 5, 199: 5, 200: 8, 2**32 - 1: 8}
    assert {chunk: epochs.of(chunk) for chunk in expected} == expected
    assert epochs.drop_below(150) == [3]
    assert (epochs.of(150), epochs.of(200), epochs.newest, epochs.moved_at) == (5, 8, 8, 200)
    for epoch, chunk, text in ((8, 300, "not newer"), (9, 199, "the first that is free is 200")):
        with pytest.raises(ConfigError, match=text):
            epochs.move(epoch, chunk, lowest=0)
    with pytest.raises(ConfigError, match="more than 32 bits"):
        epochs.move(1 << 32, 900, lowest=0)


def test_a_held_worker_goes_on_with_what_has_left_and_sends_nothing_new() -> None:
    w = worker(0, 2, chunks=20, initial_timeout=100, min_timeout=100)
    assert chunks_of(w.start(0)) == [0, 1, 2, 3]
    assert chunks_of(w.receive(answer(w.config, 2), 1)) == [6]
    assert w.hold() == 7
    assert w.receive(answer(w.config, 0), 2) == []
    assert chunks_of(w.tick(100)) == [1, 3]
    assert w.hold() == 7
    assert chunks_of(w.release(101)) == [4]
    assert chunks_of(w.receive(answer(w.config, 6), 102)) == [10]


def test_a_worker_held_before_its_start_starts_when_released() -> None:
    w = worker(0, 2, chunks=20)
    assert w.hold() == 0
    assert w.start(0) == []
    assert chunks_of(w.release(1)) == [0, 1, 2, 3]


def test_chunks_below_the_move_keep_their_epoch_in_everything() -> None:
    w = worker(0, 2, chunks=20, initial_timeout=100, min_timeout=100)
    w.start(0)
    w.receive(answer(w.config, 2), 1)
    w.hold()
    w.receive(answer(w.config, 0), 2)
    # Another worker was two chunks further: 7 and 8 have not left here, and are of the old epoch.
    frames = w.move(EPOCH + 1, 9, 3)
    assert epochs_of(frames) == {4: EPOCH}
    assert epochs_of(w.tick(100)) == {1: EPOCH, 3: EPOCH}
    for chunk in (1, 3, 4, 6):
        w.receive(answer(w.config, chunk), 101)
    assert epochs_of(w.receive(answer(w.config, 5, epoch=EPOCH), 102)) == {9: EPOCH + 1}
    assert w.drained_below == 7
    assert w.receive(answer(w.config, 9, epoch=EPOCH), 103) == []
    assert w.receive(answer(w.config, 7, epoch=EPOCH + 1), 103) == []
    assert w.counters.ignored == {"other-epoch": 2}
    assert epochs_of(w.receive(answer(w.config, 7), 104)) == {11: EPOCH + 1}
    assert dict(w.first_answers) == {EPOCH: 1}
    w.receive(answer(w.config, 9, epoch=EPOCH + 1), 105)
    assert dict(w.first_answers) == {EPOCH: 1, EPOCH + 1: 105}


def test_no_chunk_runs_far_ahead_of_one_that_is_not_answered() -> None:
    w = worker(0, 2, chunks=200, window=4)
    w.start(0)
    chunk, sent = 1, []
    while frames := w.receive(answer(w.config, chunk), 1):
        sent += chunks_of(frames)
        chunk += 4
    # Chunk 0 has no answer: the last that left is less than eight windows from it.
    assert sent == list(range(5, 32, 4))
    assert w.in_flight == 3
    # Its answer lets go what it held up, the next of its own slot and the next of the other.
    assert chunks_of(w.receive(answer(w.config, 0), 2)) == [4, 33]


def test_a_move_below_what_has_left_is_refused_and_changes_nothing() -> None:
    w = worker(0, 2, chunks=20)
    w.start(0)
    w.hold()
    with pytest.raises(ConfigError, match="from chunk 3 on: the first that is free is 4"):
        w.move(EPOCH + 1, 3, 1)
    with pytest.raises(ConfigError, match="not newer"):
        w.move(EPOCH, 9, 1)
    assert (w.epoch, w.held) == (EPOCH, True)
    w.move(EPOCH + 1, 4, 1)
    w.hold()
    assert w.move(EPOCH + 1, 4, 2) == []
    assert (w.epoch, w.held) == (EPOCH + 1, False)


def test_an_endless_job_ends_where_it_is_told_to() -> None:
    w = endless(window=2)
    w.start(0)
    rows = Rows(Stream(seed=1, workers=1, period=3).sums())

    def lanes(chunk: int) -> bytes:
        return rows.chunk(chunk)

    for chunk in range(400):
        frames = w.receive(answer(w.config, chunk, lanes=lanes(chunk)), chunk)
        assert chunks_of(frames) == [chunk + 2]
        assert decode_frame(frames[0]).lanes == lanes(chunk + 2)
    assert w.hold() == 402
    with pytest.raises(ConfigError, match="cannot end before chunk 401: 402 is the first"):
        w.finish(401, 400)
    assert w.finish(403, 400) == []
    assert chunks_of(w.receive(answer(w.config, 400, lanes=lanes(400)), 401)) == [402]
    for chunk in (401, 402):
        assert not w.done
        w.receive(answer(w.config, chunk, lanes=lanes(chunk)), 402)
    assert w.done
    assert (w.mismatches.count, w.results.shape) == (0, (0, LANES))


def test_a_wrong_sum_of_an_endless_job_is_counted_with_its_chunk() -> None:
    w = endless(window=2)
    w.start(0)
    right = Rows(Stream(seed=1, workers=1, period=3).sums())
    w.receive(answer(w.config, 0, lanes=right.chunk(0)), 1)
    w.receive(answer(w.config, 1, lanes=right.chunk(0)), 1)
    assert (w.mismatches.count, w.mismatches.chunks) == (1, [1])


def test_chunk_numbers_do_not_wrap() -> None:
    first = MOST_CHUNKS - 3
    w = endless(window=2, first_chunk=first)
    w.start(0)
    rows = Rows(Stream(seed=1, workers=1, period=3).sums())
    assert chunks_of(w.receive(answer(w.config, first, lanes=rows.chunk(first)), 1)) == [2**32 - 1]
    for chunk in (first + 1, first + 2):
        assert w.receive(answer(w.config, chunk, lanes=rows.chunk(chunk)), 2) == []
    assert (w.done, w.mismatches.count) == (True, 0)


def test_an_endless_tensor_fits_and_differs_from_round_to_round() -> None:
    stream = Stream(seed=4, workers=5)
    values = np.array([stream.values(rank) for rank in range(5)])
    assert (values.sum(axis=0, dtype=np.int64) == stream.sums()).all()
    assert np.abs(values.astype(np.int64)).sum(axis=0).max() <= 2**31 - 1
    rows = Rows(stream.sums())
    assert len({rows.chunk(chunk) for chunk in range(61 * LANES)}) == 61 * LANES
    assert rows.chunk(61 * LANES) == rows.chunk(0)
    with pytest.raises(ConfigError, match="period 0"):
        Stream(seed=0, workers=1, period=0)


def moving(**changes: Any) -> Destination:
    return destination([frozenset({0}), frozenset({1}), frozenset({2})], 3, **changes)


def test_the_destination_gathers_each_chunk_under_its_own_epoch() -> None:
    dest = moving(chunks=10)
    dest.receive(contribution(1, ONES, chunk=1), 0)
    with pytest.raises(ConfigError, match="the first that is free is 2"):
        dest.move(EPOCH + 1, 1, PAIRED)
    dest.move(EPOCH + 1, 2, PAIRED)
    dest.move(EPOCH + 1, 2, PAIRED)
    # Under the old epoch nobody speaks for two, and a new one cannot carry an old chunk.
    refused = [
        contribution(9, ONES, weight=2, chunk=1),
        contribution(2, ONES, chunk=1, epoch=EPOCH + 1),
        contribution(2, ONES, chunk=2),
    ]
    assert [dest.receive(frame, 1) for frame in refused] == [[], [], []]
    for source in (2, 3):
        frames = dest.receive(contribution(source, ONES, chunk=1), 1)
    assert epochs_of(frames) == {1: EPOCH}
    dest.receive(contribution(9, ONES, weight=2, chunk=2, epoch=EPOCH + 1), 2)
    frames = dest.receive(contribution(3, ONES, chunk=2, epoch=EPOCH + 1), 2)
    assert epochs_of(frames) == {2: EPOCH + 1}
    again = dest.receive(contribution(3, ONES, chunk=1), 3)
    assert (decode_frame(again[0]).flags, decode_frame(again[0]).epoch) == (Flag.RESENT, EPOCH)
    assert dest.stats.frames[Verdict.UNKNOWN_SOURCE.value] == 1
    assert dest.stats.frames[Verdict.OTHER_EPOCH.value] == 2


def test_a_destination_with_sources_that_do_not_fit_does_not_move() -> None:
    dest = moving(chunks=10)
    with pytest.raises(ConfigError, match="no source speaks for worker 2"):
        dest.move(EPOCH + 1, 2, {1: frozenset({0}), 2: frozenset({1})})
    assert dest.epoch == EPOCH


def test_an_endless_destination_keeps_what_may_be_asked_for_and_forgets_the_rest() -> None:
    stream = Stream(seed=1, workers=3, period=3)
    dest = moving(chunks=0, window=4, stream=stream)
    rows = [Rows(stream.values(rank)) for rank in range(3)]

    def send(source: int, chunk: int, epoch: int = EPOCH) -> list[bytes]:
        lanes = rows[source - 1].chunk(chunk)
        return dest.receive(contribution(source, ONES, chunk=chunk, lanes=lanes, epoch=epoch), 0)

    for chunk in range(10):
        frames = [send(source, chunk) for source in (1, 2, 3)][-1]
        assert decode_frame(frames[0]).lanes == Rows(stream.sums()).chunk(chunk)
    assert send(1, 5) == []
    assert dest.stats.frames[Verdict.LONG_COMPLETE.value] == 1
    assert chunks_of(send(1, 6)) == [6]
    assert dest.complete_below == 10
    # The old epoch is known for as long as anyone may ask under it.
    dest.move(EPOCH + 1, 10, PAIRED)
    assert chunks_of(send(1, 9)) == [9]
    for chunk in range(10, 30):
        for source in (1, 2, 3):
            send(source, chunk, EPOCH + 1)
    dest.move(EPOCH + 2, 30, SOLO)
    assert send(1, 9) == []
    assert dest.stats.frames[Verdict.OTHER_EPOCH.value] == 1
    assert (dest.mismatches.count, dest.done) == (0, False)
    dest.finish(30)
    assert dest.done
    with pytest.raises(ConfigError, match="cannot end before chunk 29"):
        dest.finish(29)


def test_an_endless_destination_counts_wrong_sums() -> None:
    dest = moving(chunks=0, window=4, stream=Stream(seed=1, workers=3))
    for source in (1, 2, 3):
        dest.receive(contribution(source, ONES, chunk=2), 0)
    assert (dest.mismatches.count, dest.mismatches.chunks) == (1, [2])


@pytest.mark.parametrize(
    "changes",
    [
        {"chunks": 1, "window": 4, "stream": Stream(0, 3)},
        {"chunks": 0, "stream": Stream(0, 3)},
        {"chunks": 0, "window": 4, "stream": Stream(0, 2)},
    ],
)
def test_an_endless_destination_that_cannot_work_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=f"job {JOB}: an endless"):
        moving(**changes)


@given(
    workers=st.integers(1, 4),
    window=st.sampled_from([1, 2, 3, 4, 8]),
    op=st.sampled_from(list(Op)),
    moves=st.lists(st.integers(0, 300), max_size=4),
    seed=st.integers(0, 10**6),
)
def test_any_delay_and_loss_and_any_moves_leave_every_sum_right(
    workers: int, window: int, op: Op, moves: list[int], seed: int
) -> None:
    cloud = Cloud(workers, window, op, seed)
    for w in cloud.everyone:
        cloud.send(w.start(0))
    for now in range(1, 400):
        cloud.step(now)
        if now in moves:
            cloud.move(now)
    end = max(w.hold() for w in cloud.everyone)
    cloud.destination.finish(end)
    for w in cloud.everyone:
        cloud.send(w.finish(end, 400))
    now = 400
    while not all(w.done for w in cloud.everyone):
        now += 10
        assert now < 10**6
        cloud.step(now)
    assert cloud.destination.done
    assert cloud.destination.mismatches.count == 0
    assert sum(w.mismatches.count for w in cloud.everyone) == 0
    assert cloud.destination.completed == end
    assert cloud.first_sends == Counter(dict.fromkeys(range(end), workers))


def test_a_tensor_with_an_end_moves_and_keeps_its_sums() -> None:
    values = whole_numbers(1, 6, seed=3)[0]
    w = worker(0, 1, values, window=2)
    w.start(0)
    start = w.hold()
    w.move(EPOCH + 1, start, 1)
    for chunk in range(6):
        epoch = EPOCH if chunk < start else EPOCH + 1
        lanes = pack_lanes(values[chunk].tolist())
        w.receive(answer(w.config, chunk, epoch=epoch, lanes=lanes), 2 + chunk)
    assert w.done
    assert (w.results == values).all()
