"""The way up: every message on the link to the parent is counted once, in the right cell."""

from __future__ import annotations

import pytest

from controller.program import Op, Update
from p4src.constants import Flag, Outcome
from tests.packet.program import (
    IDLE_PORT,
    WORKERS,
    BluetreeSwitch,
    Job,
    Source,
)
from tests.packet.program_frames import (
    answer,
    contribution,
    lanes,
    sum_to_parent,
    summed,
    to_parent,
)
from tests.packet.targets import Target

JOB = Job(sources=WORKERS[:3])
OTHER = Job(job=2, sources=WORKERS[:3], slot_base=4)
FACTORS_AND_CHUNKS = ((1, 0), (3, JOB.window))


def send(switch: BluetreeSwitch, *frames: tuple[Source, bytes]) -> None:
    """Send frames one after the other and forget what comes out."""
    for source, frame in frames:
        switch.target.exchange(source.port, frame)


def test_a_red_switch_counts_every_message(target: Target) -> None:
    switch = BluetreeSwitch(target)
    switch.target.insert(*JOB.membership(), *OTHER.membership())
    for chunk in range(4):
        for source in JOB.sources:
            send(switch, (source, contribution(source, chunk, lanes(1))))
    first = JOB.sources[0]
    for flags in (Flag.RESENT, Flag.RESENT | Flag.DIRECT):
        send(switch, (first, contribution(first, 0, lanes(1), flags=flags)))
    send(switch, (first, contribution(first, 0, lanes(1), job=2)))
    assert switch.messages(1) == (12, 2)
    assert switch.messages(2) == (1, 0)


def test_a_blue_switch_counts_one_message_a_chunk(target: Target) -> None:
    switch = BluetreeSwitch(target, JOB, OTHER)
    for chunk in range(10):
        for source in JOB.sources:
            send(switch, (source, contribution(source, chunk, lanes(chunk))))
    assert switch.messages(1) == (10, 0)
    for source in JOB.sources:
        again = contribution(source, 9, lanes(9), flags=Flag.RESENT)
        send(switch, (source, again))
    assert switch.messages(1) == (10, 3)
    assert switch.messages(2) == (0, 0)


def test_late_and_marked_messages_are_counted_by_their_own_mark(target: Target) -> None:
    switch = BluetreeSwitch(target, JOB)
    first = JOB.sources[0]
    send(switch, (first, contribution(first, JOB.window, lanes(1))))
    for flags in (0, Flag.RESENT, Flag.RESENT):
        send(switch, (first, contribution(first, 0, lanes(1), flags=flags)))
    assert switch.messages() == (1, 2)
    for flags in (Flag.DIRECT, Flag.LATE | Flag.RESENT):
        send(switch, (first, contribution(first, JOB.window, lanes(1), flags=flags)))
    assert switch.messages() == (2, 3)


def test_allocations_that_follow_each_other_are_counted_apart(target: Target) -> None:
    """By the low bit of the epoch, whether the switch is blue in it (epoch 1) or red."""
    switch = BluetreeSwitch(target, JOB)
    first = JOB.sources[0]
    for source in JOB.sources:
        send(switch, (source, contribution(source, 0, lanes(1), epoch=1)))
    for epoch, count in ((2, 4), (3, 2), (2**32 - 1, 1), (2**32 - 2, 3)):
        for flags in (0, Flag.RESENT):
            for _ in range(count):
                send(switch, (first, contribution(first, 0, lanes(1), epoch=epoch, flags=flags)))
    assert switch.messages_by_phase() == {(1, 0): 1 + 3, (1, 1): 3, (0, 0): 7, (0, 1): 7}


def test_what_does_not_leave_is_not_counted(target: Target) -> None:
    switch = BluetreeSwitch(target, JOB)
    first, second, _ = JOB.sources
    switch.check_all(
        [
            (first.port, contribution(first, 0, lanes(1))),
            (first.port, contribution(first, 0, lanes(1), flags=Flag.RESENT)),
            (second.port, contribution(second, 0, lanes(1), weight=7)),
            (second.port, contribution(first, 0, lanes(1))),
            (IDLE_PORT, contribution(first, 0, lanes(1))),
            (first.port, answer(0, lanes(1))),
            (first.port, contribution(first, 0, lanes(1))[:-1]),
        ],
        {
            Outcome.ABSORBED: 1,
            Outcome.DUPLICATE: 1,
            Outcome.BAD_WEIGHT: 1,
            Outcome.UNREGISTERED: 3,
            Outcome.MALFORMED: 1,
        },
    )
    assert switch.messages() == (0, 0)


def test_bytes_are_those_of_the_message(target: Target) -> None:
    switch = BluetreeSwitch(target, JOB)
    frames = [contribution(source, 0, lanes(1)) for source in JOB.sources]
    send(switch, *zip(JOB.sources, frames, strict=True))
    (counted,) = (
        value
        for entry, value in target.direct_counters("upstream").items()
        if dict(entry.match) == {"job": 1, "phase": JOB.epoch & 1, "resent": 0}
    )
    assert (counted.packets, counted.bytes) == (1, 14 + 20 + 8 + 20 + 128)


def test_a_red_switch_without_a_way_up_drops(target: Target) -> None:
    switch = BluetreeSwitch(target)
    entries = [entry for entry in JOB.membership() if entry.table != "upstream"]
    switch.target.insert(*entries)
    first = JOB.sources[0]
    for flags in (0, Flag.RESENT, Flag.DIRECT, Flag.LATE):
        frame = contribution(first, 0, lanes(1), flags=flags)
        switch.check(first.port, frame, Outcome.NO_PARENT)
    switch.target.insert(*JOB.upstream())
    frame = contribution(first, 0, lanes(1, 3))
    switch.check(first.port, frame, Outcome.FORWARDED, to_parent(frame))


@pytest.mark.parametrize("missing", [0, 1])
def test_first_transmissions_and_repetitions_have_entries_of_their_own(
    target: Target, missing: int
) -> None:
    switch = BluetreeSwitch(target)
    present = [entry for entry in JOB.upstream() if dict(entry.match)["resent"] != missing]
    others = [entry for entry in JOB.membership() if entry.table != "upstream"]
    switch.target.insert(*others, *present)
    first = JOB.sources[0]
    for resent in (0, 1):
        frame = contribution(first, 0, lanes(1), flags=Flag.RESENT if resent else 0)
        if resent == missing:
            switch.check(first.port, frame, Outcome.NO_PARENT)
        else:
            switch.check(first.port, frame, Outcome.FORWARDED, to_parent(frame))


def test_a_sum_that_found_no_way_up_is_kept(target: Target) -> None:
    """It leaves, whole, with the first repetition after the way up is there."""
    switch = BluetreeSwitch(target, JOB)
    for factor, chunk in FACTORS_AND_CHUNKS:
        switch.target.write([Update(Op.DELETE, entry) for entry in JOB.upstream()])
        frames = [
            contribution(source, chunk, lanes(source.source, factor)) for source in JOB.sources
        ]
        for source, frame in zip(JOB.sources[:2], frames[:2], strict=True):
            switch.check(source.port, frame, Outcome.ABSORBED)
        switch.check(JOB.sources[2].port, frames[2], Outcome.NO_PARENT)
        switch.target.insert(*JOB.upstream())
        again = contribution(
            JOB.sources[0], chunk, lanes(JOB.sources[0].source, factor), flags=Flag.RESENT
        )
        expected = summed(*(lanes(source.source, factor) for source in JOB.sources))
        leaving = sum_to_parent(again, JOB, expected, Flag.RESENT)
        switch.check(JOB.sources[0].port, again, Outcome.REEMITTED, leaving)
