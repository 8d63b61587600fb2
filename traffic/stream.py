"""An endless tensor: chunks that go round and round, whose every sum is known beforehand.

Worker `rank` holds `period` rows of values, drawn from (seed, rank). Chunk number c carries row
c % period, its lanes rotated by the number of times that the rows have gone round. The period is a
prime, so no slot meets the same values again soon: a stale or mixed sum cannot pass for a right
one. What the workers' values add up to is computed here, from the same seed, without a network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p4src.constants import LANES
from traffic.errors import ConfigError
from traffic.message import LANE_BYTES, LANE_MAX

MOST_CHUNKS = 1 << 32
"""Chunk numbers are 32 bits wide, and a job ends before they wrap."""
SHOWN_MISMATCHES = 16
"""Chunks with a wrong sum that are remembered by number; all are counted."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What an endless job sums: the values of `workers` workers from one seed."""

    seed: int
    workers: int
    period: int = 61
    lanes: int = LANES

    def __post_init__(self) -> None:
        if self.workers < 1 or self.period < 1 or self.lanes < 1 or self.seed < 0:
            raise ConfigError(
                f"endless tensor of seed {self.seed}, {self.workers} workers, period "
                f"{self.period}, {self.lanes} lanes: the seed is at least 0, all else at least 1"
            )

    def values(self, rank: int) -> NDArray[np.int32]:
        """The rows [period, lanes] of a worker: uniform over all that no sum can overflow."""
        limit = LANE_MAX // self.workers
        source = np.random.SeedSequence(self.seed, spawn_key=(rank,))
        return np.random.default_rng(source).integers(
            -limit, limit, (self.period, self.lanes), dtype=np.int32, endpoint=True
        )

    def check_workers(self, who: str, workers: int) -> None:
        """Raise ConfigError unless it is for that number of workers."""
        if self.workers != workers:
            raise ConfigError(
                f"{who}: an endless tensor of {self.workers} workers in a job of {workers}"
            )

    def sums(self, absent: frozenset[int] = frozenset()) -> NDArray[np.int32]:
        """The rows [period, lanes] of the sum over all workers but those with these ranks."""
        total = np.zeros((self.period, self.lanes), dtype=np.int64)
        for rank in range(self.workers):
            if rank not in absent:
                total += self.values(rank)
        return total.astype(np.int32)


class Rows:
    """The bytes of a stream's chunks, big-endian, from its rows [period, lanes]."""

    __slots__ = ("_lanes", "_rows")

    def __init__(self, rows: NDArray[np.int32]) -> None:
        self._lanes = int(rows.shape[1])
        self._rows: list[bytes] = [row.tobytes() for row in rows.astype(">i4")]

    def chunk(self, chunk: int) -> bytes:
        """What chunk number `chunk` carries."""
        turns, at = divmod(chunk, len(self._rows))
        row = self._rows[at]
        cut = turns % self._lanes * LANE_BYTES
        return row[cut:] + row[:cut]


class Sums:
    """The sums of a stream's chunks, over whichever workers have a part in each."""

    __slots__ = ("_rows", "_stream")

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rows: dict[frozenset[int], Rows] = {}

    def chunk(self, chunk: int, absent: frozenset[int]) -> bytes:
        """The sum of chunk number `chunk`, without the values of some ranks."""
        rows = self._rows.get(absent)
        if rows is None:
            rows = self._rows[absent] = Rows(self._stream.sums(absent))
        return rows.chunk(chunk)


class Mismatches:
    """Sums that were not what they had to be, by chunk number on the wire."""

    __slots__ = ("chunks", "count")

    def __init__(self) -> None:
        self.count = 0
        self.chunks: list[int] = []

    def note(self, chunk: int) -> None:
        """Count a chunk whose sum is wrong."""
        self.count += 1
        if len(self.chunks) < SHOWN_MISMATCHES:
            self.chunks.append(chunk)


class StreamPayload:
    """The `Payload` of one worker of a stream whose first chunk has the number `first_chunk`."""

    __slots__ = ("_first", "_sent", "_sums", "chunks", "lanes", "mismatches", "reach")

    def __init__(self, stream: Stream, rank: int, first_chunk: int) -> None:
        self.chunks = MOST_CHUNKS - first_chunk
        self.lanes = stream.lanes
        self.reach = 0
        self.mismatches = Mismatches()
        self._first = first_chunk
        self._sent = Rows(stream.values(rank))
        self._sums = Sums(stream)

    def message(self, chunk: int) -> tuple[bytes, int]:
        """A row, and no exponent."""
        return self._sent.chunk(self._first + chunk), 0

    def answered(self, chunk: int, lanes: bytes, exponent: int, absent: frozenset[int]) -> None:
        """Compare the sum; an acknowledgement carries none."""
        if lanes and lanes != self._sums.chunk(self._first + chunk, absent):
            self.mismatches.note(self._first + chunk)
