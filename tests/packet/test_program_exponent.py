"""The exponent of a slot: the largest of its sources, whatever the order, whatever came before."""

from __future__ import annotations

import itertools

import pytest
from scapy.layers.l2 import Ether

from p4src.constants import Flag, Outcome
from tests.packet.program import CHILD, PARENT_PORT, WORKERS, BluetreeSwitch, Job
from tests.packet.program_frames import (
    answer,
    contribution,
    fanned_out,
    lanes,
    sum_to_parent,
    summed,
    to_parent,
)
from tests.packet.targets import Target
from traffic.wire import Aggregation

JOB = Job(sources=(*WORKERS[:2], CHILD))
VECTORS = [lanes(source.source) for source in JOB.sources]
SUM = summed(*VECTORS)
LARGEST = 2**16 - 1


@pytest.fixture
def switch(target: Target) -> BluetreeSwitch:
    """The shipped program, blue for JOB."""
    return BluetreeSwitch(target, JOB)


def frames(chunk: int, exponents: tuple[int, ...], flags: int = 0) -> list[tuple[int, bytes]]:
    """Ports and contributions of every source of JOB, each with its exponent."""
    return [
        (source.port, contribution(source, chunk, values, exponent=exponent, flags=flags))
        for source, values, exponent in zip(JOB.sources, VECTORS, exponents, strict=True)
    ]


def check_complete(
    switch: BluetreeSwitch, arriving: list[tuple[int, bytes]], exponent: int
) -> None:
    """All sources arrive in this order: one sum leaves, with this exponent."""
    leaving = sum_to_parent(arriving[-1][1], JOB, SUM, exponent=exponent)
    switch.check_all(arriving, {Outcome.ABSORBED: 2, Outcome.EMITTED: 1}, [leaving])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize(
    "exponents", [(0, 0, 0), (1, 2, 3), (255, 256, 0), (LARGEST, 1, LARGEST - 1)], ids=str
)
def test_the_largest_in_any_order(
    switch: BluetreeSwitch, exponents: tuple[int, ...], order: tuple[int, ...]
) -> None:
    arriving = frames(0, exponents)
    check_complete(switch, [arriving[i] for i in order], max(exponents))


def test_compares_as_unsigned(switch: BluetreeSwitch) -> None:
    check_complete(switch, frames(0, (2**15, 2**15 - 1, 1)), 2**15)


def test_a_repetition_changes_nothing_and_brings_the_largest_again(switch: BluetreeSwitch) -> None:
    first, strange = frames(0, (7, 9, 8)), frames(0, (LARGEST,) * 3, Flag.RESENT)
    for (port, frame), (_, again) in list(zip(first, strange, strict=True))[:2]:
        switch.check(port, frame, Outcome.ABSORBED)
        switch.check(port, again, Outcome.DUPLICATE)
    port, frame = first[2]
    switch.check(port, frame, Outcome.EMITTED, sum_to_parent(frame, JOB, SUM, exponent=9))
    for port, again in strange:
        leaving = sum_to_parent(again, JOB, SUM, Flag.RESENT, exponent=9)
        switch.check(port, again, Outcome.REEMITTED, leaving)


def test_a_newer_chunk_starts_from_zero(switch: BluetreeSwitch) -> None:
    """Also where the older one was never whole."""
    check_complete(switch, frames(0, (LARGEST, 3, 4)), LARGEST)
    check_complete(switch, frames(JOB.window, (2, 3, 4)), 4)
    port, frame = frames(2 * JOB.window, (LARGEST, 0, 0))[0]
    switch.check(port, frame, Outcome.ABSORBED)
    check_complete(switch, frames(3 * JOB.window, (0, 1, 0)), 1)


def test_neighbouring_slots_keep_their_own(switch: BluetreeSwitch) -> None:
    chunks = range(JOB.window)
    for chunk in chunks:
        for port, frame in frames(chunk, (chunk, 10 * chunk, 0))[:2]:
            switch.check(port, frame, Outcome.ABSORBED)
    for chunk in chunks:
        port, frame = frames(chunk, (chunk, 10 * chunk, 0))[2]
        leaving = sum_to_parent(frame, JOB, SUM, exponent=10 * chunk)
        switch.check(port, frame, Outcome.EMITTED, leaving)


def test_late_and_direct_keep_what_they_carry(switch: BluetreeSwitch) -> None:
    port, frame = frames(JOB.window, (1, 1, 1))[0]
    switch.check(port, frame, Outcome.ABSORBED)
    port, late = frames(0, (77, 78, 79))[1]
    switch.check(port, late, Outcome.FORWARDED_LATE, to_parent(late, flags=Flag.LATE))
    assert Ether(to_parent(late, flags=Flag.LATE)[1])[Aggregation].exponent == 78
    port, direct = frames(JOB.window, (77, 78, 79), Flag.DIRECT)[1]
    switch.check(port, direct, Outcome.FORWARDED_MARKED, to_parent(direct))
    arriving = frames(JOB.window, (1, 2, 0))[1:]
    leaving = sum_to_parent(arriving[-1][1], JOB, SUM, exponent=2)
    switch.check_all(arriving, {Outcome.ABSORBED: 1, Outcome.EMITTED: 1}, [leaving])


@pytest.mark.parametrize("values", [SUM, None], ids=["result", "acknowledgement"])
def test_answers_bring_it_down(switch: BluetreeSwitch, values: tuple[int, ...] | None) -> None:
    frame = answer(0, values, exponent=0x0102)
    leaving = fanned_out(frame, JOB.sources)
    switch.check_all([(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, leaving)
