"""The sums that a destination has: of a tensor with an end, or of an endless one.

Chunks count from 0. A tensor with an end keeps every sum. An endless one keeps those that may be
asked for again, and each is compared, as it comes, with the one computed from the same seed.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from traffic.destination_config import DestinationConfig
from traffic.journal import Journal
from traffic.stream import MOST_CHUNKS, Stream, Sums


class Ledger(Protocol):
    """The complete chunks of one job."""

    chunks: int
    sums: NDArray[np.int32]
    exponents: NDArray[np.uint16]

    @property
    def count(self) -> int:
        """How many chunks are complete."""

    @property
    def end_of_complete(self) -> int:
        """The number above all chunks that are complete."""

    def restore(self, chunk: int, lanes: bytes, exponent: int) -> None:
        """Note the sum of a chunk that was complete before; rising chunks."""

    def is_complete(self, chunk: int) -> bool:
        """Whether the chunk's sum is known."""

    def complete(
        self, chunk: int, total: NDArray[np.int32], exponent: int, absent: frozenset[int]
    ) -> bool:
        """Note a sum, without the values of some ranks, and the largest exponent; whether it is
        right, as far as that is known."""

    def keeps(self, chunk: int) -> bool:
        """Whether some worker may still ask for the sum of a complete chunk."""

    def lanes_of(self, chunk: int) -> bytes:
        """The sum of a chunk that it keeps."""

    def exponent_of(self, chunk: int) -> int:
        """The largest exponent of a chunk that it keeps."""

    def first_incomplete(self) -> int | None:
        """The lowest chunk that is not complete."""

    def end_at(self, chunks: int) -> None:
        """Let the tensor end after so many chunks."""


class TensorLedger:
    """Keeps all sums [chunks, lanes]: zero where not complete, modulo 2**32 where overflowed."""

    __slots__ = ("_complete", "chunks", "exponents", "sums")

    def __init__(self, chunks: int, lanes: int) -> None:
        self.chunks = chunks
        self.sums = np.zeros((chunks, lanes), dtype=np.int32)
        self.exponents = np.zeros(chunks, dtype=np.uint16)
        self._complete = bytearray(chunks)

    @property
    def count(self) -> int:
        """See `Ledger`."""
        return self._complete.count(1)

    @property
    def end_of_complete(self) -> int:
        """See `Ledger`."""
        return self._complete.rfind(1) + 1

    def restore(self, chunk: int, lanes: bytes, exponent: int) -> None:
        """See `Ledger`."""
        self.sums[chunk] = np.frombuffer(lanes, dtype=">i4")
        self.exponents[chunk] = exponent
        self._complete[chunk] = 1

    def is_complete(self, chunk: int) -> bool:
        """See `Ledger`."""
        return self._complete[chunk] != 0

    def complete(
        self, chunk: int, total: NDArray[np.int32], exponent: int, absent: frozenset[int]
    ) -> bool:
        """See `Ledger`: whoever knows the values compares afterwards."""
        self.sums[chunk] = total
        self.exponents[chunk] = exponent
        self._complete[chunk] = 1
        return True

    def keeps(self, chunk: int) -> bool:
        """See `Ledger`."""
        return True

    def lanes_of(self, chunk: int) -> bytes:
        """See `Ledger`."""
        lanes: bytes = self.sums[chunk].astype(">i4").tobytes()
        return lanes

    def exponent_of(self, chunk: int) -> int:
        """See `Ledger`."""
        return int(self.exponents[chunk])

    def first_incomplete(self) -> int | None:
        """See `Ledger`."""
        chunk = self._complete.find(0)
        return None if chunk < 0 else chunk

    def end_at(self, chunks: int) -> None:
        """See `Ledger`."""
        self.chunks = chunks
        self.sums, self.exponents = self.sums[:chunks], self.exponents[:chunks]
        del self._complete[chunks:]


class StreamLedger:
    """Keeps the latest sum of each of `window` slots.

    Chunk c + window leaves a worker only when it has the answer to c. So the chunks of one slot
    become complete in order, and once c + window is complete nobody needs the sum of c.
    """

    __slots__ = (
        "_expected",
        "_exponents",
        "_first",
        "_latest",
        "_sums",
        "_window",
        "chunks",
        "exponents",
        "sums",
    )

    def __init__(self, stream: Stream, window: int, first_chunk: int) -> None:
        self.chunks = MOST_CHUNKS - first_chunk
        self.sums = np.zeros((0, stream.lanes), dtype=np.int32)
        self.exponents = np.zeros(0, dtype=np.uint16)
        self._first = first_chunk
        self._expected = Sums(stream)
        self._window = window
        self._latest = [slot - window for slot in range(window)]
        self._sums = [b""] * window
        self._exponents = [0] * window

    @property
    def count(self) -> int:
        """See `Ledger`."""
        return sum(latest // self._window + 1 for latest in self._latest)

    @property
    def end_of_complete(self) -> int:
        """See `Ledger`."""
        return max(self._latest) + 1

    def restore(self, chunk: int, lanes: bytes, exponent: int) -> None:
        """See `Ledger`."""
        slot = chunk % self._window
        self._latest[slot] = chunk
        self._sums[slot] = lanes
        self._exponents[slot] = exponent

    def is_complete(self, chunk: int) -> bool:
        """See `Ledger`."""
        return chunk <= self._latest[chunk % self._window]

    def complete(
        self, chunk: int, total: NDArray[np.int32], exponent: int, absent: frozenset[int]
    ) -> bool:
        """See `Ledger`."""
        lanes = total.astype(">i4").tobytes()
        self.restore(chunk, lanes, exponent)
        return lanes == self._expected.chunk(self._first + chunk, absent)

    def keeps(self, chunk: int) -> bool:
        """See `Ledger`."""
        return self._latest[chunk % self._window] == chunk

    def lanes_of(self, chunk: int) -> bytes:
        """See `Ledger`."""
        return self._sums[chunk % self._window]

    def exponent_of(self, chunk: int) -> int:
        """See `Ledger`."""
        return self._exponents[chunk % self._window]

    def first_incomplete(self) -> int | None:
        """See `Ledger`."""
        lowest = min(self._latest) + self._window
        return lowest if lowest < self.chunks else None

    def end_at(self, chunks: int) -> None:
        """See `Ledger`."""
        self.chunks = chunks


def open_ledger(config: DestinationConfig) -> Ledger:
    """The empty ledger of a job."""
    if config.stream is None:
        return TensorLedger(config.chunks, config.lanes)
    return StreamLedger(config.stream, config.pool, config.first_chunk)


def resume(ledger: Ledger, journal: Journal) -> set[int]:
    """Take over what is on record; returns the chunks of which a lane overflowed."""
    entries = sorted(journal.entries(), key=lambda entry: entry.chunk)
    for entry in entries:
        ledger.restore(entry.chunk, entry.lanes, entry.exponent)
    return {entry.chunk for entry in entries if entry.overflowed}


def due(ledger: Ledger, window: int) -> list[int]:
    """The chunks that workers may have sent: of each place in the window, the first incomplete."""
    end = min(ledger.end_of_complete + window, ledger.chunks)
    return [
        chunk
        for chunk in range(ledger.first_incomplete() or 0, end)
        if not ledger.is_complete(chunk) and (chunk < window or ledger.is_complete(chunk - window))
    ]
