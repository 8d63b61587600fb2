"""Red and blue: what passes as it came, and how one allocation follows another."""

from __future__ import annotations

import pytest

from controller.program import Op, Update
from p4src.constants import Flag, Outcome
from tests.packet.program import (
    CHILD,
    WORKERS,
    BluetreeSwitch,
    Job,
    Source,
)
from tests.packet.program_frames import (
    contribution,
    is_sound,
    lanes,
    sum_to_parent,
    summed,
    to_parent,
)
from tests.packet.targets import Target

JOB = Job(sources=(*WORKERS[:2], CHILD))
FIRST, SECOND, _ = JOB.sources


@pytest.fixture
def red(target: Target) -> BluetreeSwitch:
    """A switch that carries JOB but is blue for nobody."""
    switch = BluetreeSwitch(target)
    switch.target.insert(*JOB.membership(), JOB.group())
    return switch


@pytest.fixture
def blue(target: Target) -> BluetreeSwitch:
    """A switch that is blue for JOB."""
    return BluetreeSwitch(target, JOB)


def complete(switch: BluetreeSwitch, job: Job, chunk: int, factor: int, start: int = 0) -> None:
    """Bring in the sources from `start` on; the sum of all must come out, and be right."""
    sources = job.sources[start:]
    for source in sources[:-1]:
        frame = contribution(source, chunk, lanes(source.source, factor), epoch=job.epoch)
        switch.check(source.port, frame, Outcome.ABSORBED)
    last = sources[-1]
    frame = contribution(last, chunk, lanes(last.source, factor), epoch=job.epoch)
    expected = summed(*(lanes(source.source, factor) for source in job.sources))
    switch.check(last.port, frame, Outcome.EMITTED, sum_to_parent(frame, job, expected))


@pytest.mark.parametrize("factor", [1, 3])
def test_red_passes_everything_as_it_came(red: BluetreeSwitch, factor: int) -> None:
    """Only TTL, destination MAC and the IPv4 checksum change; the UDP checksum stays right."""
    for source in JOB.sources:
        for flags in (0, Flag.RESENT, Flag.OVERFLOW, 0xF0):
            frame = contribution(source, 0, lanes(source.source, factor), flags=flags)
            port, out = to_parent(frame)
            assert is_sound(out)
            assert out[6:14] == frame[6:14]
            assert out[14:22] == frame[14:22]
            assert out[26:] == frame[26:]
            red.check(source.port, frame, Outcome.FORWARDED, (port, out))


def test_red_passes_every_source_of_a_subtree(red: BluetreeSwitch) -> None:
    """Below a red child its workers speak for themselves."""
    for number in range(CHILD.source, CHILD.source + 4):
        source = Source(number, CHILD.port)
        frame = contribution(source, 0, lanes(number))
        red.check(source.port, frame, Outcome.FORWARDED, to_parent(frame))


def test_red_does_not_ask_for_a_weight(red: BluetreeSwitch) -> None:
    for weight in (0, 5, 2**16 - 1):
        frame = contribution(FIRST, 0, lanes(1), weight=weight)
        red.check(FIRST.port, frame, Outcome.FORWARDED, to_parent(frame))


def test_repetitions_pass_a_red_switch_each_time(red: BluetreeSwitch) -> None:
    frame = contribution(FIRST, 0, lanes(1))
    for _ in range(3):
        red.check(FIRST.port, frame, Outcome.FORWARDED, to_parent(frame))


@pytest.mark.parametrize("mark", [Flag.DIRECT, Flag.LATE, Flag.DIRECT | Flag.LATE])
@pytest.mark.parametrize("resent", [0, Flag.RESENT])
def test_marked_messages_pass_a_blue_switch(blue: BluetreeSwitch, mark: Flag, resent: Flag) -> None:
    """They leave the slot alone, whether it is empty, growing or full."""
    for factor, chunk in ((1, 0), (3, JOB.window)):
        marked = [
            (
                source.port,
                contribution(source, chunk + later, lanes(9, factor), flags=mark | resent),
            )
            for source in JOB.sources
            for later in (0, JOB.window)
        ]

        def all_pass(messages: list[tuple[int, bytes]] = marked) -> None:
            for port, frame in messages:
                blue.check(port, frame, Outcome.FORWARDED_MARKED, to_parent(frame))

        all_pass()
        frame = contribution(FIRST, chunk, lanes(FIRST.source, factor))
        blue.check(FIRST.port, frame, Outcome.ABSORBED)
        all_pass()
        complete(blue, JOB, chunk, factor, start=1)
        all_pass()


def test_a_marked_message_needs_no_weight_but_admission(blue: BluetreeSwitch) -> None:
    frame = contribution(FIRST, 0, lanes(1), flags=Flag.DIRECT, weight=9)
    blue.check(FIRST.port, frame, Outcome.FORWARDED_MARKED, to_parent(frame))
    blue.check(SECOND.port, frame, Outcome.UNREGISTERED)


def test_a_newer_epoch_takes_the_slots_over(blue: BluetreeSwitch) -> None:
    """Also from a far newer chunk of the older epoch; and what is left of that epoch is late."""
    old_chunk = 1000 * JOB.window
    old = contribution(FIRST, old_chunk, lanes(1, 3))
    blue.check(FIRST.port, old, Outcome.ABSORBED)
    new = Job(sources=JOB.sources, epoch=2)
    blue.target.insert(*new.blue())
    complete(blue, new, 0, 1)
    blue.check(FIRST.port, old, Outcome.FORWARDED_LATE, to_parent(old, flags=Flag.LATE))
    complete(blue, new, JOB.window, 3)


def test_an_older_epoch_is_red_once_its_entries_are_gone(blue: BluetreeSwitch) -> None:
    started = contribution(FIRST, 0, lanes(1))
    blue.check(FIRST.port, started, Outcome.ABSORBED)
    new = Job(sources=JOB.sources, epoch=2)
    blue.target.insert(*new.blue())
    blue.target.write([Update(Op.DELETE, entry) for entry in JOB.blue()])
    blue.check(FIRST.port, started, Outcome.FORWARDED, to_parent(started))
    for source in JOB.sources:
        frame = contribution(source, 0, lanes(source.source, 3))
        blue.check(source.port, frame, Outcome.FORWARDED, to_parent(frame))
    complete(blue, new, 0, 1)


def test_an_epoch_nobody_knows_is_red(blue: BluetreeSwitch) -> None:
    for epoch in (0, 2, 2**31, 2**32 - 1):
        frame = contribution(FIRST, 0, lanes(1, 3), epoch=epoch)
        blue.check(FIRST.port, frame, Outcome.FORWARDED, to_parent(frame))
    complete(blue, JOB, 0, 1)


def test_epochs_compare_as_unsigned(blue: BluetreeSwitch) -> None:
    newest = Job(sources=JOB.sources, epoch=2**32 - 1)
    middle = Job(sources=JOB.sources, epoch=2**31 - 1)
    blue.target.insert(*newest.blue(), *middle.blue())
    complete(blue, middle, 0, 1)
    complete(blue, newest, 0, 3)
    late = contribution(FIRST, 2**32 - JOB.window, lanes(1), epoch=middle.epoch)
    blue.check(FIRST.port, late, Outcome.FORWARDED_LATE, to_parent(late, flags=Flag.LATE))


def test_a_switch_may_be_blue_for_some_of_its_sources(target: Target) -> None:
    """A worker without an entry passes a blue switch as it came, beside the sum of the others."""
    job = Job(sources=WORKERS[:2])
    alone = WORKERS[2]
    switch = BluetreeSwitch(target)
    switch.target.insert(*Job(sources=WORKERS[:3]).membership(), *job.blue())
    for factor, chunk in ((1, 0), (3, job.window)):
        frame = contribution(alone, chunk, lanes(9, factor))
        switch.check(alone.port, frame, Outcome.FORWARDED, to_parent(frame))
        complete(switch, job, chunk, factor)


def test_red_becomes_blue_by_entries_alone(red: BluetreeSwitch) -> None:
    frame = contribution(FIRST, 0, lanes(1, 3))
    red.check(FIRST.port, frame, Outcome.FORWARDED, to_parent(frame))
    red.target.insert(*JOB.blue())
    complete(red, JOB, 0, 1)
    red.target.write([Update(Op.DELETE, entry) for entry in JOB.blue()])
    red.check(FIRST.port, frame, Outcome.FORWARDED, to_parent(frame))
