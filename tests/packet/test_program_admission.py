"""Admission: who may speak for whom, with what weight, in which slots.

Whatever is refused must leave the slots alone: every test completes a chunk right after.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from p4src.constants import SLOTS, Flag, Outcome
from tests.packet.program import (
    CHILD,
    CHILD_INTERVAL,
    IDLE_PORT,
    PARENT_PORT,
    WORKERS,
    BluetreeSwitch,
    Job,
    Source,
)
from tests.packet.program_frames import (
    contribution,
    lanes,
    sum_to_parent,
    summed,
    to_parent,
)
from tests.packet.targets import PORTS, Target

JOB = Job(sources=(*WORKERS[:2], CHILD))


def refused_amid_a_chunk(
    switch: BluetreeSwitch,
    job: Job,
    outcome: Outcome,
    refused: Iterable[tuple[int, bytes]],
    chunk: int = 0,
) -> None:
    """Send what is to be refused before, amid and after a chunk; its sum must be right."""
    for factor, now in ((1, chunk), (3, chunk + job.window)):
        messages = list(refused)
        expected = summed(*(lanes(source.source, factor) for source in job.sources))
        for i, source in enumerate(job.sources):
            switch.check_all(messages, {outcome: len(messages)})
            frame = contribution(source, now, lanes(source.source, factor), job=job.job)
            if i < len(job.sources) - 1:
                switch.check(source.port, frame, Outcome.ABSORBED)
            else:
                leaving = sum_to_parent(frame, job, expected)
                switch.check(source.port, frame, Outcome.EMITTED, leaving)
        switch.check_all(messages, {outcome: len(messages)})


def test_a_source_is_refused_at_every_port_but_its_own(target: Target) -> None:
    switch = BluetreeSwitch(target, JOB)
    wrong = [
        (port, contribution(source, 0, lanes(99)))
        for source in JOB.sources
        for port in PORTS
        if port != source.port
    ]
    refused_amid_a_chunk(switch, JOB, Outcome.UNREGISTERED, wrong)


def test_sources_outside_the_interval_are_refused(target: Target) -> None:
    """At a worker's port all but one, at a child's all outside its subtree; 0 everywhere."""
    switch = BluetreeSwitch(target, JOB)
    low, high = CHILD_INTERVAL
    outside: dict[int, tuple[int, ...]] = {
        source.port: (0, source.source - 1, source.source + 1) for source in WORKERS[:2]
    }
    outside[CHILD.port] = (0, 1, low - 1, high + 1, 2**15, 2**16 - 1)
    strangers = [
        (port, contribution(Source(number, port), chunk, lanes(99), flags=flags))
        for port, numbers in outside.items()
        for number in numbers
        for chunk, flags in ((0, 0), (JOB.window, Flag.RESENT), (0, Flag.DIRECT))
    ]
    refused_amid_a_chunk(switch, JOB, Outcome.UNREGISTERED, strangers)


def test_the_whole_interval_is_admitted(target: Target) -> None:
    switch = BluetreeSwitch(target, JOB)
    low, high = CHILD_INTERVAL
    for number in range(low + 1, high + 1):
        frame = contribution(Source(number, CHILD.port), 0, lanes(1))
        switch.check(CHILD.port, frame, Outcome.FORWARDED, to_parent(frame))


def test_jobs_nobody_registered_are_refused(target: Target) -> None:
    switch = BluetreeSwitch(target, JOB)
    strange = [
        (source.port, contribution(source, 0, lanes(99), job=job, flags=flags))
        for source in JOB.sources
        for job in (0, 2, 257, 2**16 - 1)
        for flags in (0, Flag.DIRECT, Flag.LATE)
    ]
    refused_amid_a_chunk(switch, JOB, Outcome.UNREGISTERED, strange)


def test_the_port_to_the_parent_and_an_idle_one_admit_nobody(target: Target) -> None:
    switch = BluetreeSwitch(target, JOB)
    strange = [
        (port, contribution(Source(number, port), 0, lanes(99)))
        for port in (IDLE_PORT, PARENT_PORT)
        for number in (0, 1, *(source.source for source in JOB.sources), 2**16 - 1)
    ]
    refused_amid_a_chunk(switch, JOB, Outcome.UNREGISTERED, strange)


def test_another_weight_is_refused(target: Target) -> None:
    switch = BluetreeSwitch(target, JOB)
    wrong = [
        (source.port, contribution(source, chunk, lanes(99), weight=weight))
        for source in JOB.sources
        for weight in (0, 2, 4, source.weight + 1, 2**15, 2**16 - 1)
        for chunk in (0, 100 * JOB.window)
    ]
    refused_amid_a_chunk(switch, JOB, Outcome.BAD_WEIGHT, wrong)


def test_the_last_slot_works(target: Target) -> None:
    for window in (1, 4):
        job = Job(sources=JOB.sources, slot_base=SLOTS - window, window=window)
        switch = BluetreeSwitch(target, job)
        refused_amid_a_chunk(switch, job, Outcome.ABSORBED, [], chunk=window - 1)


@pytest.mark.parametrize(
    "slot_base", [SLOTS, SLOTS + 1, 2**16, 2**31 - 1, 2**31, 2**32 - SLOTS, 2**32 - 1]
)
def test_a_slot_beyond_the_last_is_refused(target: Target, slot_base: int) -> None:
    """The entries of another job point outside; bmv2 itself checks no index."""
    inside = Job(sources=JOB.sources)
    outside = Job(job=2, sources=WORKERS[3:5], slot_base=slot_base, window=1)
    switch = BluetreeSwitch(target, inside, outside)
    beyond = [
        (source.port, contribution(source, chunk, lanes(99), job=2))
        for source in outside.sources
        for chunk in (0, 1, 2**32 - 1)
    ]
    refused_amid_a_chunk(switch, inside, Outcome.BAD_SLOT, beyond)


def test_only_the_part_of_a_window_beyond_the_last_slot_is_refused(target: Target) -> None:
    """Chunks 0 of four slots that start at the last one fits; 1 to 3 do not."""
    job = Job(sources=JOB.sources, slot_base=SLOTS - 1)
    switch = BluetreeSwitch(target, job)
    beyond = [
        (source.port, contribution(source, chunk, lanes(99)))
        for source in JOB.sources
        for chunk in (1, 2, 3)
    ]
    refused_amid_a_chunk(switch, job, Outcome.BAD_SLOT, beyond)


def test_slots_do_not_wrap_around_to_those_of_others(target: Target) -> None:
    """Base and chunk together pass 2^32: the slot is outside, not slot 0."""
    inside = Job(sources=JOB.sources)
    outside = Job(job=2, sources=WORKERS[3:5], slot_base=2**32 - 2)
    switch = BluetreeSwitch(target, inside, outside)
    beyond = [
        (source.port, contribution(source, chunk, lanes(99), job=2))
        for source in outside.sources
        for chunk in (0, 1, 2, 3, 1002, 1003)
    ]
    refused_amid_a_chunk(switch, inside, Outcome.BAD_SLOT, beyond)


def test_jobs_do_not_touch_each_other(target: Target) -> None:
    """Two jobs with the same sources, epochs and chunks, in neighbouring slots."""
    jobs = [Job(job=i + 1, sources=JOB.sources, slot_base=4 * i) for i in range(3)]
    switch = BluetreeSwitch(target, *jobs)
    for chunk, factor in ((3, 1), (3 + JOB.window, 3)):
        vectors = {
            (job.job, source): lanes(job.job * 100 + source.source, factor)
            for job in jobs
            for source in JOB.sources
        }
        for source in JOB.sources:
            for job in jobs:
                frame = contribution(source, chunk, vectors[job.job, source], job=job.job)
                if source is not JOB.sources[-1]:
                    switch.check(source.port, frame, Outcome.ABSORBED)
                    continue
                expected = summed(*(vectors[job.job, source] for source in JOB.sources))
                leaving = sum_to_parent(frame, job, expected)
                switch.check(source.port, frame, Outcome.EMITTED, leaving)
