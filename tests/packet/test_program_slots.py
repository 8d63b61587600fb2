"""The slots of a blue switch: repetition, reuse, lateness, loss.

Every test runs values x1 and then x3 through the same slots without a reset between, so that what
a slot kept of its earlier chunk would show in the sum.
"""

from __future__ import annotations

import itertools

import pytest

from p4src.constants import Flag, Outcome
from tests.packet.program import (
    CHILD,
    WORKERS,
    BluetreeSwitch,
    Job,
)
from tests.packet.program_frames import (
    contribution,
    lanes,
    sum_to_parent,
    summed,
    to_parent,
)
from tests.packet.targets import Target

JOB = Job(sources=(*WORKERS[:3], CHILD))
FACTORS = (1, 3)


def vectors(factor: int) -> list[tuple[int, ...]]:
    """The values of every source of JOB."""
    return [lanes(source.source, factor) for source in JOB.sources]


def frames(chunk: int, factor: int, flags: int = 0) -> list[bytes]:
    """The contributions of every source of JOB."""
    return [
        contribution(source, chunk, values, flags=flags)
        for source, values in zip(JOB.sources, vectors(factor), strict=True)
    ]


PORTS = [source.port for source in JOB.sources]


@pytest.fixture
def switch(target: Target) -> BluetreeSwitch:
    """The shipped program, blue for JOB."""
    return BluetreeSwitch(target, JOB)


def test_repetition_before_completion_is_dropped(switch: BluetreeSwitch) -> None:
    for factor, chunk in zip(FACTORS, (0, JOB.window), strict=True):
        first, again = frames(chunk, factor), frames(chunk, factor, Flag.RESENT)
        for i in range(3):
            switch.check(PORTS[i], first[i], Outcome.ABSORBED)
            for j in range(i + 1):
                switch.check(PORTS[j], again[j], Outcome.DUPLICATE)
                switch.check(PORTS[j], first[j], Outcome.DUPLICATE)
        leaving = sum_to_parent(first[3], JOB, summed(*vectors(factor)))
        switch.check(PORTS[3], first[3], Outcome.EMITTED, leaving)


def test_repetition_after_completion_brings_the_sum_again(switch: BluetreeSwitch) -> None:
    for factor, chunk in zip(FACTORS, (0, JOB.window), strict=True):
        first, again = frames(chunk, factor), frames(chunk, factor, Flag.RESENT)
        expected = summed(*vectors(factor))
        switch.check_all(
            zip(PORTS, first, strict=True),
            {Outcome.ABSORBED: 3, Outcome.EMITTED: 1},
            [sum_to_parent(first[3], JOB, expected)],
        )
        for port, frame in [*zip(PORTS, again, strict=True), *zip(PORTS, first, strict=True)]:
            leaving = sum_to_parent(frame, JOB, expected, Flag.RESENT)
            switch.check(port, frame, Outcome.REEMITTED, leaving)


def test_values_of_a_repetition_do_not_count(switch: BluetreeSwitch) -> None:
    """Only the first message of a source is summed, and only its sum leaves later."""
    first, strange = frames(0, 1), frames(0, 3, Flag.RESENT)
    for i in range(3):
        switch.check(PORTS[i], first[i], Outcome.ABSORBED)
        switch.check(PORTS[i], strange[i], Outcome.DUPLICATE)
    expected = summed(*vectors(1))
    switch.check(PORTS[3], first[3], Outcome.EMITTED, sum_to_parent(first[3], JOB, expected))
    leaving = sum_to_parent(strange[0], JOB, expected, Flag.RESENT)
    switch.check(PORTS[0], strange[0], Outcome.REEMITTED, leaving)


def test_a_completing_repetition_leaves_as_a_first_transmission(switch: BluetreeSwitch) -> None:
    """The link above counts it as what it is there: the first sum of its chunk."""
    for factor, chunk in zip(FACTORS, (0, JOB.window), strict=True):
        again = frames(chunk, factor, Flag.RESENT)
        switch.check_all(
            zip(PORTS, again, strict=True),
            {Outcome.ABSORBED: 3, Outcome.EMITTED: 1},
            [sum_to_parent(again[3], JOB, summed(*vectors(factor)))],
        )
    assert switch.messages() == (2, 0)


def test_a_newer_chunk_takes_an_unfinished_slot_over(switch: BluetreeSwitch) -> None:
    old = frames(0, 3)
    for i in range(3):
        switch.check(PORTS[i], old[i], Outcome.ABSORBED)
    new = frames(JOB.window, 1)
    for i in range(3):
        switch.check(PORTS[i], new[i], Outcome.ABSORBED)
    leaving = sum_to_parent(new[3], JOB, summed(*vectors(1)))
    switch.check(PORTS[3], new[3], Outcome.EMITTED, leaving)


def test_slots_are_reused_again_and_again(switch: BluetreeSwitch) -> None:
    for chunk in range(5 * JOB.window):
        factor = FACTORS[chunk // JOB.window % 2]
        sent = frames(chunk, factor)
        switch.check_all(
            zip(PORTS, sent, strict=True),
            {Outcome.ABSORBED: 3, Outcome.EMITTED: 1},
            [sum_to_parent(sent[3], JOB, summed(*vectors(factor)))],
        )


def test_a_late_packet_passes_unchanged_and_marked(switch: BluetreeSwitch) -> None:
    """Late for a slot that is growing, for one that is full, by one window or by many."""
    for factor, chunk in zip(FACTORS, (5 * JOB.window, 9 * JOB.window), strict=True):
        new = frames(chunk, factor)
        for i in range(3):
            switch.check(PORTS[i], new[i], Outcome.ABSORBED)
            for age in (JOB.window, 5 * JOB.window):
                for flags in (0, Flag.RESENT):
                    late = frames(chunk - age, 3, flags)[i]
                    leaving = to_parent(late, flags=flags | Flag.LATE)
                    switch.check(PORTS[i], late, Outcome.FORWARDED_LATE, leaving)
        leaving = sum_to_parent(new[3], JOB, summed(*vectors(factor)))
        switch.check(PORTS[3], new[3], Outcome.EMITTED, leaving)
        late = frames(chunk - JOB.window, 3)[3]
        leaving = to_parent(late, flags=Flag.LATE)
        switch.check(PORTS[3], late, Outcome.FORWARDED_LATE, leaving)
        again = frames(chunk, factor, Flag.RESENT)[0]
        leaving = sum_to_parent(again, JOB, summed(*vectors(factor)), Flag.RESENT)
        switch.check(PORTS[0], again, Outcome.REEMITTED, leaving)


def test_a_late_sum_of_a_child_keeps_its_source_and_weight(switch: BluetreeSwitch) -> None:
    switch.check(PORTS[0], frames(JOB.window, 1)[0], Outcome.ABSORBED)
    late = contribution(CHILD, 0, lanes(9), flags=Flag.OVERFLOW)
    leaving = to_parent(late, flags=Flag.OVERFLOW | Flag.LATE)
    switch.check(CHILD.port, late, Outcome.FORWARDED_LATE, leaving)


def test_chunks_compare_as_unsigned(switch: BluetreeSwitch) -> None:
    """The last chunk of an epoch is newer than all others, though its top bit is set."""
    last = 2**32 - JOB.window
    switch.check(PORTS[0], frames(2**31, 1)[0], Outcome.ABSORBED)
    switch.check(PORTS[0], frames(last, 1)[0], Outcome.ABSORBED)
    late = frames(2**31, 3)[1]
    switch.check(PORTS[1], late, Outcome.FORWARDED_LATE, to_parent(late, flags=Flag.LATE))
    late = frames(0, 3)[1]
    switch.check(PORTS[1], late, Outcome.FORWARDED_LATE, to_parent(late, flags=Flag.LATE))
    rest = frames(last, 1)
    switch.check(PORTS[1], rest[1], Outcome.ABSORBED)
    switch.check(PORTS[2], rest[2], Outcome.ABSORBED)
    leaving = sum_to_parent(rest[3], JOB, summed(*vectors(1)))
    switch.check(PORTS[3], rest[3], Outcome.EMITTED, leaving)


def test_both_halves_of_the_window_in_flight(switch: BluetreeSwitch) -> None:
    """All slots grow at once: a source fills the window before the next one starts."""
    for base, factor in zip((0, JOB.window), FACTORS, strict=True):
        chunks = range(base, base + JOB.window)
        arriving = [
            (PORTS[i], frames(chunk, factor + chunk)[i]) for i in range(3) for chunk in chunks
        ]
        switch.check_all(arriving, {Outcome.ABSORBED: 3 * JOB.window})
        last = [frames(chunk, factor + chunk)[3] for chunk in chunks]
        switch.check_all(
            [(PORTS[3], frame) for frame in last],
            {Outcome.EMITTED: JOB.window},
            [
                sum_to_parent(frame, JOB, summed(*vectors(factor + chunk)))
                for chunk, frame in zip(chunks, last, strict=True)
            ],
        )


def test_one_slot_moves_on_while_its_neighbour_waits(switch: BluetreeSwitch) -> None:
    """Chunks 1 to 3 stand still, slot 0 is used four times."""
    waiting = {chunk: frames(chunk, 1) for chunk in range(1, JOB.window)}
    for sent in waiting.values():
        switch.check(PORTS[0], sent[0], Outcome.ABSORBED)
    for chunk in range(0, 4 * JOB.window, JOB.window):
        sent = frames(chunk, 3)
        switch.check_all(
            zip(PORTS, sent, strict=True),
            {Outcome.ABSORBED: 3, Outcome.EMITTED: 1},
            [sum_to_parent(sent[3], JOB, summed(*vectors(3)))],
        )
    for sent in waiting.values():
        switch.check_all(
            zip(PORTS[1:], sent[1:], strict=True),
            {Outcome.ABSORBED: 2, Outcome.EMITTED: 1},
            [sum_to_parent(sent[3], JOB, summed(*vectors(1)))],
        )


def test_every_packet_twice(switch: BluetreeSwitch) -> None:
    for factor, chunk in zip(FACTORS, (0, JOB.window), strict=True):
        sent = frames(chunk, factor)
        expected = summed(*vectors(factor))
        switch.check_all(
            [(port, frame) for port, frame in zip(PORTS, sent, strict=True) for _ in range(2)],
            {
                Outcome.ABSORBED: 3,
                Outcome.DUPLICATE: 3,
                Outcome.EMITTED: 1,
                Outcome.REEMITTED: 1,
            },
            [
                sum_to_parent(sent[3], JOB, expected),
                sum_to_parent(sent[3], JOB, expected, Flag.RESENT),
            ],
        )


@pytest.mark.parametrize("lost", range(len(JOB.sources)))
def test_loss_of_each_packet_in_turn(switch: BluetreeSwitch, lost: int) -> None:
    """One contribution never arrives; then every source repeats, as its timer makes it do."""
    for factor, chunk in zip(FACTORS, (0, JOB.window), strict=True):
        sent, again = frames(chunk, factor), frames(chunk, factor, Flag.RESENT)
        present = [i for i in range(4) if i != lost]
        switch.check_all([(PORTS[i], sent[i]) for i in present], {Outcome.ABSORBED: 3})
        expected = summed(*vectors(factor))
        for i in range(4):
            if i < lost:
                switch.check(PORTS[i], again[i], Outcome.DUPLICATE)
                continue
            outcome = Outcome.EMITTED if i == lost else Outcome.REEMITTED
            flags = 0 if i == lost else Flag.RESENT
            leaving = sum_to_parent(again[i], JOB, expected, flags)
            switch.check(PORTS[i], again[i], outcome, leaving)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_loss_of_the_sum_is_repaired_by_any_source(
    switch: BluetreeSwitch, order: tuple[int, ...]
) -> None:
    """The parent never got the sum: whoever repeats first brings it, with everyone's values."""
    for factor, chunk in zip(FACTORS, (0, JOB.window), strict=True):
        sent, again = frames(chunk, factor), frames(chunk, factor, Flag.RESENT)
        expected = summed(*vectors(factor))
        last = sent[order[-1]]
        switch.check_all(
            [(PORTS[i], sent[i]) for i in (3, *order)],
            {Outcome.ABSORBED: 3, Outcome.EMITTED: 1},
            [sum_to_parent(last, JOB, expected)],
        )
        frame = again[order[0]]
        leaving = sum_to_parent(frame, JOB, expected, Flag.RESENT)
        switch.check(PORTS[order[0]], frame, Outcome.REEMITTED, leaving)
