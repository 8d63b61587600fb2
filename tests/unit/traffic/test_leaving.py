"""A job goes on without a worker: every chunk is summed over one set of workers, known to all."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.live.progress import JobProgress
from p4src.constants import LANES
from tests.unit.traffic.cloud import Cloud
from tests.unit.traffic.hosts import EPOCH, answer, contribution, destination, worker
from traffic.destination import Verdict
from traffic.endpoint import Op
from traffic.epochs import Epochs, Term
from traffic.errors import ConfigError
from traffic.message import decode_frame
from traffic.reports import WorkerProgress
from traffic.stream import Rows, Stream
from traffic.worker import Worker

ONES = [1] * LANES
SOLO = {1: frozenset({0}), 2: frozenset({1}), 3: frozenset({2})}
LEFT = {1: frozenset({0}), 2: frozenset({1})}
GONE = frozenset({2})


def sent(frames: list[bytes]) -> list[tuple[int, int, int]]:
    messages = [decode_frame(frame) for frame in frames]
    return [(message.chunk, message.epoch, message.flags) for message in messages]


def test_a_chunk_is_of_the_last_term_that_has_not_kept_it_out() -> None:
    epochs = Epochs("w0", 3)
    epochs.move(4, 50, lowest=40)
    assert epochs.follow(Term(5, 20, frozenset({22, 60}), GONE))
    assert not epochs.follow(Term(5, 20, frozenset({22, 60}), GONE))
    assert epochs.follow(Term(7, 25, frozenset({27, 60}), GONE | {0}))
    expected = {19: 3, 20: 5, 22: 3, 24: 5, 25: 7, 27: 5, 59: 7, 60: 4, 61: 7}
    assert {chunk: epochs.of(chunk) for chunk in expected} == expected
    assert [epochs.term(chunk).absent for chunk in (60, 24, 25)] == [set(), GONE, GONE | {0}]
    assert epochs.without(59, 3) == {0: GONE | {0}, 2: GONE | {0}}
    with pytest.raises(ConfigError, match="epoch 8 has rank 0 back, whom epoch 7 is without"):
        epochs.check_absent(8, GONE, ())
    assert epochs.drop_below(23) == [3]
    assert epochs.drop_below(60) == []
    assert epochs.drop_below(61) == [4, 5]
    assert (epochs.of(60), epochs.of(0)) == (7, 7)


def test_the_destination_keeps_what_is_complete_and_gathers_the_others_anew() -> None:
    dest = destination(list(SOLO.values()), 3, chunks=8)
    for chunk in (0, 2):
        for source in SOLO:
            dest.receive(contribution(source, ONES, chunk=chunk), 0)
    for source in (1, 3):
        dest.receive(contribution(source, ONES, chunk=1), 0)
    term = dest.exclude(EPOCH + 1, GONE, LEFT, 1)
    assert term == Term(EPOCH + 1, 1, frozenset({2}), GONE)
    assert dest.exclude(EPOCH + 1, GONE, LEFT, 2) is term
    assert (dest.lacking(1), dest.missing(2)) == (("w0", "w1"), ())
    # What was on its way under the old epoch counts for nothing, and completes nothing.
    assert dest.receive(contribution(2, ONES, chunk=1), 3) == []
    assert dest.receive(contribution(3, ONES, chunk=1, epoch=EPOCH + 1), 3) == []
    assert dest.stats.frames[Verdict.OTHER_EPOCH.value] == 1
    assert dest.stats.frames[Verdict.UNKNOWN_SOURCE.value] == 1
    dest.receive(contribution(1, ONES, chunk=1, epoch=EPOCH + 1), 4)
    (frame,) = dest.receive(contribution(2, ONES, chunk=1, epoch=EPOCH + 1), 4)
    message = decode_frame(frame)
    assert (message.epoch, message.weight, message.lanes[:4]) == (EPOCH + 1, 2, b"\0\0\0\2")
    # A complete chunk keeps its sum and weight, whoever asks.
    (frame,) = dest.receive(contribution(3, ONES, chunk=2), 5)
    message = decode_frame(frame)
    assert (message.epoch, message.weight, message.lanes[:4]) == (EPOCH, 3, b"\0\0\0\3")
    assert dict(dest.without) == dict.fromkeys((1, 3, 4, 5, 6, 7), GONE)


def test_a_job_moves_and_ends_where_those_that_are_left_are() -> None:
    dest = destination(list(SOLO.values()), 3, chunks=20)
    for chunk in range(4):
        dest.receive(contribution(3, ONES, chunk=chunk), 0)
    for source in SOLO:
        dest.receive(contribution(source, ONES, chunk=1), 0)
    assert dest.next_chunk == 4
    # Only the worker that is gone had got beyond chunk 1.
    dest.exclude(EPOCH + 1, GONE, LEFT, 1)
    assert dest.next_chunk == 2
    dest.move(EPOCH + 2, 2, LEFT)
    dest.finish(2)
    assert dest.terms[-1] == Term(EPOCH + 2, 2, absent=GONE)


def test_who_comes_back_is_left_out_again_while_chunks_before_it_are_not_complete() -> None:
    dest = destination(list(SOLO.values()), 3, chunks=8)
    dest.exclude(EPOCH + 1, GONE, LEFT, 0)
    dest.move(EPOCH + 2, 3, SOLO, absent=frozenset())
    with pytest.raises(ConfigError, match="epoch 6 has rank 2 back, whom epoch 4 is without"):
        dest.exclude(EPOCH + 3, frozenset({1}), {1: frozenset({0}), 3: frozenset({2})}, 1)
    assert dest.epoch == EPOCH + 2
    for chunk in range(3):
        for source in LEFT:
            dest.receive(contribution(source, ONES, chunk=chunk, epoch=EPOCH + 1), 2)
    term = dest.exclude(EPOCH + 3, frozenset({1}), {1: frozenset({0}), 3: frozenset({2})}, 3)
    assert term == Term(EPOCH + 3, 3, absent=frozenset({1}))


@pytest.mark.parametrize(
    ("absent", "sources", "text"),
    [
        (frozenset({0, 1, 2}), {}, "all 3 workers are left out"),
        (GONE, SOLO, "source 3 speaks for rank 2, which is left out"),
        (GONE, {1: frozenset({0})}, "no source speaks for worker 1"),
    ],
)
def test_a_term_that_does_not_fit_changes_nothing(
    absent: frozenset[int], sources: dict[int, frozenset[int]], text: str
) -> None:
    dest = destination(list(SOLO.values()), 3)
    with pytest.raises(ConfigError, match=text):
        dest.exclude(EPOCH + 1, absent, sources, 0)
    assert (dest.epoch, dest.terms) == (EPOCH, (Term(EPOCH, 0),))


def test_a_worker_sends_what_is_in_flight_again_and_takes_no_answer_of_the_other_epoch() -> None:
    w = worker(0, 3, chunks=20, window=4, initial_timeout=100, min_timeout=100)
    w.start(0)
    w.receive(answer(w.config, 2), 1)
    # Chunks 0, 1, 3 and 6 are in flight; 3 is complete at the destination, its answer was lost.
    term = Term(EPOCH + 1, 1, frozenset({2, 3}), GONE)
    assert sent(w.follow(term, 2)) == [(1, EPOCH + 1, 0), (6, EPOCH + 1, 0)]
    assert w.follow(term, 3) == []
    assert not w.drained
    assert w.receive(answer(w.config, 1), 4) == []
    assert w.receive(answer(w.config, 3, weight=2), 4) == []
    assert w.receive(answer(w.config, 1, epoch=EPOCH + 1), 4) == []
    assert w.counters.ignored == {"other-epoch": 1, "wrong-weight": 2}
    assert sent(w.receive(answer(w.config, 1, epoch=EPOCH + 1, weight=2), 5)) == [(5, EPOCH + 1, 0)]
    w.receive(answer(w.config, 3), 6)
    assert not w.drained
    assert sent(w.receive(answer(w.config, 0), 7)) == [(4, EPOCH + 1, 0)]
    assert w.drained


def test_a_worker_refuses_a_term_that_contradicts_what_it_has() -> None:
    w = worker(0, 3, chunks=20)
    w.start(0)
    w.receive(answer(w.config, 2), 1)
    with pytest.raises(ConfigError, match="an answer to chunk 2, which is not complete"):
        w.follow(Term(EPOCH + 1, 0, absent=GONE), 2)
    with pytest.raises(ConfigError, match="is left out of epoch 4 itself"):
        w.follow(Term(EPOCH + 1, 3, absent=frozenset({0})), 2)
    assert w.epoch == EPOCH


class LeavingCloud(Cloud):
    """Of whose workers some go: silent from then on, or, not knowing it, as busy as before."""

    def __init__(self, workers: int, window: int, op: Op, seed: int) -> None:
        super().__init__(workers, window, op, seed)
        self.gone: frozenset[int] = frozenset()
        self.silent: set[int] = set()
        self.terms: list[Term] = [Term(self.destination.epoch, 0)]
        self.taken: defaultdict[int, set[tuple[int, bytes]]] = defaultdict(set)

    def deliver(self, rank: int, frame: bytes, now: int) -> None:
        w = self.everyone[rank]
        if rank in self.silent:
            return
        before = w.completed
        super().deliver(rank, frame, now)
        if w.completed > before:
            message = decode_frame(frame)
            self.taken[message.chunk].add((message.weight, message.lanes))

    def exclude(self, rank: int, now: int, *, silent: bool) -> None:
        if silent:
            self.silent.add(rank)
            for _ in range(self.rng.randrange(30)):
                self.step(now)
        self.gone |= {rank}
        sources = {i + 1: frozenset({i}) for i in range(self.workers) if i not in self.gone}
        epoch = self.destination.epoch + self.rng.randint(1, 3)
        term = self.destination.exclude(epoch, self.gone, sources, now)
        self.terms.append(term)
        for w in self.rng.sample(self.left, len(self.left)):
            for _ in range(self.rng.randrange(10)):
                self.step(now)
            self.send(w.follow(term, now))
            assert self.destination.exclude(epoch, self.gone, sources, now) == term
            self.send(w.follow(term, now))

    @property
    def left(self) -> list[Worker]:
        return [w for w in self.everyone if w.config.rank not in self.gone]

    @property
    def ticking(self) -> list[Worker]:
        return [w for w in self.everyone if w.config.rank not in self.silent]


@given(
    workers=st.integers(2, 4),
    window=st.sampled_from([1, 2, 3, 4, 8]),
    op=st.sampled_from(list(Op)),
    events=st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from(["silent", "busy", "move"])), max_size=4
    ),
    seed=st.integers(0, 10**6),
)
def test_whoever_goes_and_whenever_it_is_heard_all_have_one_sum_for_a_chunk(
    workers: int, window: int, op: Op, events: list[tuple[int, str]], seed: int
) -> None:
    cloud = LeavingCloud(workers, window, op, seed)
    rng = random.Random(seed)
    for w in cloud.everyone:
        cloud.send(w.start(0))
    planned = dict(events)
    for now in range(1, 500):
        cloud.step(now)
        event = planned.get(now)
        if event == "move":
            cloud.move(now)
        elif event is not None and len(cloud.left) > 1:
            rank = rng.choice(cloud.left).config.rank
            cloud.exclude(rank, now, silent=event == "silent")
    end = max(w.hold() for w in cloud.left)
    for w in cloud.left:
        cloud.send(w.finish(end, 500))
    now = 500
    while not all(w.done for w in cloud.left):
        now += 10
        assert now < 10**6
        cloud.step(now)
    assert cloud.destination.mismatches.count == 0
    assert sum(w.mismatches.count for w in cloud.everyone) == 0
    assert all(w.drained for w in cloud.left)
    check_sums(cloud, end)


def check_sums(cloud: LeavingCloud, end: int) -> None:
    """Every answer that anyone took, also who is gone, is the one sum of its chunk."""
    stream = Stream(seed=2, workers=cloud.workers, period=5)
    values = [Rows(stream.values(rank)) for rank in range(cloud.workers)]
    for chunk in range(end):
        absent = next(
            (term.absent for term in reversed(cloud.terms) if term.covers(chunk)), frozenset()
        )
        ((weight, lanes),) = cloud.taken[chunk]
        assert weight == cloud.workers - len(absent)
        if lanes:
            total = sum(
                int.from_bytes(values[rank].chunk(chunk)[:4], "big", signed=True)
                for rank in range(cloud.workers)
                if rank not in absent
            )
            assert int.from_bytes(lanes[:4], "big", signed=True) == total


def test_a_worker_comes_back_from_a_chunk_on_and_has_no_part_in_those_before() -> None:
    dest = destination(list(SOLO.values()), 3, chunks=6)
    left = [worker(rank, 3, chunks=6, window=2) for rank in (0, 1)]
    frames = [frame for w in left for frame in w.start(0)]
    term = dest.exclude(EPOCH + 1, GONE, LEFT, 1)
    for w in left:
        w.follow(term, 1)
    first = max(w.hold() for w in left)
    back = worker(2, 3, chunks=6 - first, window=2, first_chunk=first, epoch=EPOCH + 2)
    dest.move(EPOCH + 2, first, SOLO, absent=frozenset())
    frames = [frame for w in left for frame in w.move(EPOCH + 2, first, 2, frozenset())]
    # Those before are sent again, as if their answers were asked for.
    frames += [frame for w in left for frame in w.tick(10**9)]
    weights = {}
    for now in range(100):
        answers = [answer for frame in frames for answer in dest.receive(frame, now)]
        for answered in map(decode_frame, answers):
            weights[answered.chunk] = answered.weight
        everyone = left if not left[0].drained else [*left, back]
        frames = [f for w in everyone for answer in answers for f in w.receive(answer, now)]
        if left[0].drained and not back.counters.sent:
            frames += back.start(now)
            assert back.start(now) == []
    assert all(w.done for w in (*left, back))
    # Who came back lacks no chunk that it has no part in.
    known = [WorkerProgress.of(w) for w in (*left, back)]
    assert JobProgress(None, tuple(known)).completed == 6
    assert weights == {chunk: 2 if chunk < first else 3 for chunk in range(6)}
