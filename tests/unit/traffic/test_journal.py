"""A destination that takes the place of one that was killed gives the same answers."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.live.script import Script
from p4src.constants import LANES
from tests.unit.traffic.hosts import EPOCH, JOB, contribution, destination
from tests.unit.traffic.test_leaving import LeavingCloud, check_sums
from traffic.commands import Commands, Exclude
from traffic.destination import Destination, DestinationConfig
from traffic.endpoint import Op
from traffic.epochs import Term
from traffic.errors import ConfigError
from traffic.host import Host
from traffic.journal import RECORDS_AT, Journal, record_bytes, size_of
from traffic.message import decode_frame
from traffic.stream import Stream

ONES = [1] * LANES
PAIR = [frozenset({0}), frozenset({1})]


def begun(**changes: Any) -> tuple[Destination, bytearray]:
    config = destination(PAIR, 2, **changes).config
    buffer = bytearray(b"x" * size_of(config))
    return Destination(config, Journal(config, buffer, resume=False)), buffer


def resumed(config: DestinationConfig, buffer: bytearray) -> Destination:
    return Destination(config, Journal(config, buffer, resume=True))


def test_complete_chunks_are_answered_as_before_and_the_others_gathered_anew() -> None:
    dest, buffer = begun(chunks=5)
    big = [2**31 - 1] * LANES
    for source in (1, 2):
        dest.receive(contribution(source, big, chunk=3, exponent=source), 0)
        dest.receive(contribution(source, ONES, chunk=1), 0)
    dest.receive(contribution(1, ONES, chunk=0), 0)
    (before,) = dest.receive(contribution(1, big, chunk=3, exponent=1), 0)
    again = resumed(dest.config, buffer)
    assert (again.completed, again.next_chunk, again.complete_below) == (2, 4, 0)
    assert again.receive(contribution(1, big, chunk=3, exponent=1), 0) == [before]
    assert (again.missing(0), again.missing(1)) == ((0, 1), ())
    assert again.overflowed == {3}
    assert (again.sums == dest.sums).all()
    for chunk in (0, 2, 4):
        for source in (1, 2):
            again.receive(contribution(source, ONES, chunk=chunk), 1)
    assert again.done


def test_an_endless_job_keeps_two_chunks_for_each_slot() -> None:
    stream = Stream(seed=1, workers=2)
    dest, buffer = begun(chunks=0, window=2, stream=stream)
    for chunk in range(7):
        for source in (1, 2):
            dest.receive(contribution(source, ONES, chunk=chunk), 0)
    assert dest.mismatches.count == 7
    # The number of the last chunk's record: void while it is written.
    at = RECORDS_AT + 6 % 4 * record_bytes(LANES)
    assert buffer[at : at + 8] == (7).to_bytes(8, "little")
    again = resumed(dest.config, buffer)
    assert (again.completed, again.complete_below, again.mismatches.count) == (7, 7, 7)
    buffer[at : at + 8] = bytes(8)
    again = resumed(dest.config, buffer)
    assert (again.completed, again.complete_below) == (6, 6)


def test_the_record_of_another_job_is_refused() -> None:
    dest, buffer = begun(chunks=5)
    for changes in ({"epoch": EPOCH + 1}, {"job": JOB + 1}, {"chunks": 6}, {"first_chunk": 5}):
        other = destination(PAIR, 2, **{"chunks": 5, **changes}).config
        with pytest.raises(ConfigError, match="is of another job, or none"):
            resumed(other, buffer)
    with pytest.raises(ConfigError, match="is of another job, or none"):
        resumed(dest.config, bytearray(len(buffer)))


class RestartingCloud(LeavingCloud):
    """Whose destination is killed, now and then while it records a chunk, and starts anew."""

    def __init__(self, workers: int, window: int, op: Op, seed: int) -> None:
        super().__init__(workers, window, op, seed)
        config = self.destination.config
        self.buffer = bytearray(size_of(config))
        self.destination = Destination(config, Journal(config, self.buffer, resume=False))

    def restart(self, now: int) -> None:
        config, terms = self.destination.config, self.destination.terms
        saved = bytes(self.buffer)
        done = self.destination.completed
        if self.up and self.rng.random() < 0.7:
            self.destination.receive(self.up.pop(self.rng.randrange(len(self.up))), now)
        if self.destination.completed > done:
            # Killed before the answer left, with the record as it was, void, or whole.
            how = self.rng.choice(["as it was", "void", "whole"])
            changed = [i for i in range(len(saved)) if saved[i] != self.buffer[i]]
            if how == "as it was":
                self.buffer[:] = saved
            elif how == "void":
                step = record_bytes(LANES)
                at = RECORDS_AT + (changed[-1] - RECORDS_AT) // step * step
                self.buffer[at : at + 8] = bytes(8)
        self.destination = resumed(config, self.buffer)
        for term in terms:
            if term.epoch > config.epoch:
                present = set(range(self.workers)) - term.absent
                sources = {rank + 1: frozenset({rank}) for rank in present}
                self.destination.follow(term, sources, now)


@given(
    workers=st.integers(1, 4),
    window=st.sampled_from([1, 2, 3, 4, 8]),
    op=st.sampled_from(list(Op)),
    events=st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from(["restart", "restart", "leave", "move"])),
        max_size=6,
    ),
    seed=st.integers(0, 10**6),
)
def test_a_destination_that_restarts_whenever_has_lost_and_changed_nothing(
    workers: int, window: int, op: Op, events: list[tuple[int, str]], seed: int
) -> None:
    cloud = RestartingCloud(workers, window, op, seed)
    rng = random.Random(seed)
    for w in cloud.everyone:
        cloud.send(w.start(0))
    planned = dict(events)
    for now in range(1, 500):
        cloud.step(now)
        event = planned.get(now)
        if event == "move":
            cloud.move(now)
        elif event == "restart":
            cloud.restart(now)
        elif event == "leave" and len(cloud.left) > 1:
            cloud.exclude(rng.choice(cloud.left).config.rank, now, silent=rng.random() < 0.5)
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
    check_sums(cloud, end)


class Buffers:
    """Journals in memory."""

    def __init__(self, buffer: bytearray) -> None:
        self.buffer = buffer

    def open(self, config: DestinationConfig, *, resume: bool) -> Journal:
        return Journal(config, self.buffer, resume=resume)

    def forget(self, job: int) -> None:
        self.buffer.clear()


def test_it_hears_nothing_before_it_knows_all_terms() -> None:
    dest, buffer = begun(chunks=8)
    left = {1: frozenset({0})}
    exclude = Exclude(JOB, EPOCH + 1, frozenset({1}), left)
    script = Script(dest.config)
    script.note(exclude, dest.exclude(exclude.epoch, exclude.absent, left, 0))
    attach, start = script.replay()
    host = Host("h", dest.config.mac, dest.config.ip)
    commands = Commands(host, journals=Buffers(buffer))
    commands.carry_out(attach, 1)
    # What the worker that is left out had sent must complete nothing, however soon it arrives.
    for source in (1, 2):
        assert host.receive(contribution(source, ONES, chunk=0), 1) == []
    commands.carry_out(start, 1)
    (frame,) = host.receive(contribution(1, ONES, chunk=0, epoch=EPOCH + 1), 2)
    assert decode_frame(frame).weight == 1


def test_terms_are_taken_over_with_what_is_complete() -> None:
    dest, buffer = begun(chunks=8)
    for source in (1, 2):
        for chunk in (0, 2):
            dest.receive(contribution(source, ONES, chunk=chunk), 0)
    left = {1: frozenset({0})}
    term = dest.exclude(EPOCH + 1, frozenset({1}), left, 0)
    again = resumed(dest.config, buffer)
    again.follow(term, left, 1)
    assert again.terms == (Term(EPOCH, 0), term)
    (frame,) = again.receive(contribution(1, ONES, chunk=1, epoch=EPOCH + 1), 1)
    assert decode_frame(frame).weight == 1
    (frame,) = again.receive(contribution(1, ONES, chunk=2), 1)
    assert decode_frame(frame).weight == 2
