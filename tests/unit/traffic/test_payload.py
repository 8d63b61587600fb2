"""A worker whose chunks depend on earlier answers asks for each only when that answer is in."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from p4src.constants import LANES, Flag
from tests.unit.traffic.hosts import answer, worker_config
from traffic.message import Message, decode_frame, pack_lanes
from traffic.worker import Worker


class Chain:
    """Chunk c carries one more than the exponent that answered chunk c - reach."""

    lanes = LANES

    def __init__(self, chunks: int, reach: int) -> None:
        self.chunks, self.reach = chunks, reach
        self.told: dict[int, tuple[bytes, int]] = {}

    def message(self, chunk: int) -> tuple[bytes, int]:
        """Raises KeyError where the answer that it depends on was not told."""
        value = 0 if chunk < self.reach or not self.reach else 1 + self.told[chunk - self.reach][1]
        return pack_lanes([value] * LANES), chunk + 1

    def answered(self, chunk: int, lanes: bytes, exponent: int, absent: frozenset[int]) -> None:
        """Once a chunk."""
        assert chunk not in self.told
        self.told[chunk] = (lanes, exponent)


@given(
    chunks=st.integers(0, 40),
    reach=st.integers(0, 12),
    window=st.integers(1, 12),
    rng=st.randoms(use_true_random=False),
)
def test_sends_each_chunk_once_its_answer_is_in(
    chunks: int, reach: int, window: int, rng: random.Random
) -> None:
    payload = Chain(chunks, reach)
    config = worker_config(0, 1, window=window)
    worker = Worker(config, payload)
    in_flight = [decode_frame(frame) for frame in worker.start(0)]
    sent: list[Message] = []
    while in_flight:
        assert len(in_flight) <= min(window, reach or window)
        message = in_flight.pop(rng.randrange(len(in_flight)))
        sent.append(message)
        values = message.values
        frame = answer(config, message.chunk, lanes=pack_lanes(values), exponent=message.exponent)
        in_flight += map(decode_frame, worker.receive(frame, 0))
        assert worker.receive(frame, 0) == []
    assert worker.done
    assert sorted(message.chunk for message in sent) == list(range(chunks))
    for message in sent:
        # The exponent that answered chunk c - reach was c - reach + 1.
        value = message.chunk - reach + 2 if 0 < reach <= message.chunk else 0
        assert message.values == (value,) * LANES
        assert message.exponent == message.chunk + 1
        assert payload.told[message.chunk] == (message.lanes, message.exponent)


def test_a_repetition_carries_the_same() -> None:
    worker = Worker(worker_config(0, 1, window=2), Chain(4, 2))
    first = [decode_frame(frame) for frame in worker.start(0)]
    deadline = worker.next_deadline
    assert deadline is not None
    again = [decode_frame(frame) for frame in worker.tick(2 * deadline)]
    assert {message.flags for message in again} == {Flag.RESENT.value}
    assert [(m.chunk, m.lanes, m.exponent) for m in again] == [
        (m.chunk, m.lanes, m.exponent) for m in first
    ]
