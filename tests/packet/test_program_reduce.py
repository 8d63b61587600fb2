"""The Reduce itself: sums, lane by lane, and the mark of an overflow."""

from __future__ import annotations

import pytest

from p4src.constants import LANES, Flag, Outcome
from tests.packet.program import (
    CHILD,
    WORKERS,
    BluetreeSwitch,
    Job,
)
from tests.packet.program_frames import (
    LANE_MAX,
    LANE_MIN,
    contribution,
    lanes,
    sum_to_parent,
    summed,
)
from tests.packet.targets import Target


def reduce_chunk(
    switch: BluetreeSwitch, job: Job, chunk: int, vectors: list[tuple[int, ...]], flags: int = 0
) -> None:
    """Send every source's vector; the last one must bring the sum out, with `flags`."""
    for source, values in zip(job.sources[:-1], vectors[:-1], strict=True):
        switch.check(source.port, contribution(source, chunk, values), Outcome.ABSORBED)
    last = contribution(job.sources[-1], chunk, vectors[-1])
    leaving = sum_to_parent(last, job, summed(*vectors), flags)
    switch.check(job.sources[-1].port, last, Outcome.EMITTED, leaving)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_sum_of_all_sources(target: Target, n: int) -> None:
    job = Job(sources=WORKERS[:n])
    switch = BluetreeSwitch(target, job)
    for chunk, factor in ((0, 1), (job.window, 3)):
        reduce_chunk(switch, job, chunk, [lanes(seed, factor) for seed in range(n)])


def test_order_of_arrival_does_not_matter(target: Target) -> None:
    forward = Job(sources=WORKERS[:3])
    switch = BluetreeSwitch(target, forward)
    vectors = [lanes(seed) for seed in range(3)]
    reduce_chunk(switch, forward, 0, vectors)
    backward = Job(sources=WORKERS[2::-1])
    reduce_chunk(switch, backward, 4, [lanes(seed, 3) for seed in range(3)])


def test_workers_beside_a_blue_child_weigh_what_they_stand_for(target: Target) -> None:
    job = Job(sources=(*WORKERS[:2], CHILD))
    switch = BluetreeSwitch(target, job)
    for chunk, factor in ((0, 1), (job.window, 3)):
        reduce_chunk(switch, job, chunk, [lanes(seed, factor) for seed in range(3)])
    assert job.weight == 5


def test_every_lane_wraps_alone(target: Target) -> None:
    """Each lane in turn is pushed over the edge; a carry would show in the lane before it."""
    job = Job()
    switch = BluetreeSwitch(target, job)
    for lane in range(LANES):
        edge, step = [0] * LANES, [0] * LANES
        edge[lane], step[lane] = LANE_MAX, 1
        reduce_chunk(switch, job, lane, [tuple(edge), tuple(step)], Flag.OVERFLOW)


@pytest.mark.parametrize(
    ("addend", "other", "overflow"),
    [
        pytest.param(-1, 1, False, id="all ones plus one"),
        pytest.param(-1, -1, False, id="two negatives"),
        pytest.param(LANE_MIN, LANE_MAX, False, id="both ends"),
        pytest.param(LANE_MAX, 0, False, id="largest"),
        pytest.param(LANE_MIN, 0, False, id="smallest"),
        pytest.param(LANE_MAX, 1, True, id="over the largest"),
        pytest.param(LANE_MAX, LANE_MAX, True, id="twice the largest"),
        pytest.param(LANE_MIN, -1, True, id="under the smallest"),
        pytest.param(LANE_MIN, LANE_MIN, True, id="twice the smallest"),
    ],
)
def test_edges_of_int32_in_every_lane_at_once(
    target: Target, addend: int, other: int, overflow: bool
) -> None:
    job = Job()
    switch = BluetreeSwitch(target, job)
    flags = Flag.OVERFLOW if overflow else 0
    reduce_chunk(switch, job, 0, [(addend,) * LANES, (other,) * LANES], flags)
    reduce_chunk(switch, job, 4, [lanes(1, 3), lanes(2, 3)])
    reduce_chunk(switch, job, 8, [(other,) * LANES, (addend,) * LANES], flags)


def test_neighbours_of_opposite_edges_do_not_touch(target: Target) -> None:
    job = Job(sources=WORKERS[:3])
    switch = BluetreeSwitch(target, job)
    edges = (LANE_MAX, LANE_MIN, -1, 0, 1)
    vectors = [tuple(edges[(i + shift) % 5] for i in range(LANES)) for shift in range(3)]
    reduce_chunk(switch, job, 0, vectors, Flag.OVERFLOW)
    reduce_chunk(switch, job, 4, [lanes(seed, 3) for seed in range(3)])


def test_overflow_in_the_middle_is_told_though_the_sum_fits(target: Target) -> None:
    """MAX + 1 - 1 is right in the end, but a partial sum left int32."""
    job = Job(sources=WORKERS[:3])
    switch = BluetreeSwitch(target, job)
    vectors = [(LANE_MAX,) + (0,) * (LANES - 1), (1,) * LANES, (-1,) * LANES]
    reduce_chunk(switch, job, 0, vectors, Flag.OVERFLOW)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_overflow_of_a_child_sticks(target: Target, place: int) -> None:
    """A child's mark reaches the parent, wherever among the sources it arrives."""
    job = Job(sources=WORKERS[:3])
    switch = BluetreeSwitch(target, job)
    frames = [
        contribution(source, 0, lanes(i), flags=Flag.OVERFLOW if i == place else 0)
        for i, source in enumerate(job.sources)
    ]
    for source, frame in zip(job.sources[:2], frames[:2], strict=True):
        switch.check(source.port, frame, Outcome.ABSORBED)
    leaving = sum_to_parent(frames[2], job, summed(*map(lanes, range(3))), Flag.OVERFLOW)
    switch.check(job.sources[2].port, frames[2], Outcome.EMITTED, leaving)
    again = contribution(job.sources[0], 0, lanes(0), flags=Flag.RESENT)
    leaving = sum_to_parent(again, job, summed(*map(lanes, range(3))), Flag.OVERFLOW | Flag.RESENT)
    switch.check(job.sources[0].port, again, Outcome.REEMITTED, leaving)
    reduce_chunk(switch, job, 4, [lanes(seed, 3) for seed in range(3)])


def test_a_repetition_does_not_bring_its_overflow_mark_in(target: Target) -> None:
    job = Job()
    switch = BluetreeSwitch(target, job)
    first, second = job.sources
    switch.check(first.port, contribution(first, 0, lanes(0)), Outcome.ABSORBED)
    marked = contribution(first, 0, lanes(0), flags=Flag.OVERFLOW | Flag.RESENT)
    switch.check(first.port, marked, Outcome.DUPLICATE)
    last = contribution(second, 0, lanes(1))
    leaving = sum_to_parent(last, job, summed(lanes(0), lanes(1)))
    switch.check(second.port, last, Outcome.EMITTED, leaving)


def test_other_flags_do_not_travel_in_a_sum(target: Target) -> None:
    """Bits that nobody has given a meaning are ignored when received, and 0 when sent."""
    job = Job()
    switch = BluetreeSwitch(target, job)
    first, second = job.sources
    switch.check(first.port, contribution(first, 0, lanes(0), flags=0xF0), Outcome.ABSORBED)
    last = contribution(second, 0, lanes(1), flags=0xF0)
    leaving = sum_to_parent(last, job, summed(lanes(0), lanes(1)))
    switch.check(second.port, last, Outcome.EMITTED, leaving)
