"""The self-clocked window of a worker: which chunks may leave, and which have been answered.

Chunk c + window leaves only when c is answered. The slots of a switch are a power of two, which a
window that is none does not divide: then chunk c + pool, with pool the next power of two, waits for
c too. So no two chunks in flight share a slot, in any pool of a power of two that holds the window.

The chunks that share a slot go on by themselves, and where messages are lost those of one slot may
fall behind the others. They do so by at most AHEAD windows, since no chunk leaves that is further
from the lowest one without an answer: this bounds what a worker must remember, and how long a
change of allocation waits for the chunks before it.
"""

from __future__ import annotations

from collections.abc import Iterable

AHEAD = 8
"""Windows between the lowest chunk that is not answered and the highest that may leave."""


class Window:
    """Chunks 0 to `chunks` - 1 of one job at one worker; `size` of them may be in flight.

    Where the content of a chunk depends on the answer to another, that lies `reach` before it.
    """

    __slots__ = (
        "_above",
        "_ahead",
        "_distances",
        "_kept",
        "_low",
        "_next",
        "chunks",
        "done",
        "held",
    )

    def __init__(self, size: int, chunks: int, reach: int = 0) -> None:
        self.chunks = chunks
        self.done = 0
        self.held = False
        pool = 1 << (size - 1).bit_length()
        self._distances = sorted({size, pool, reach} - {0})
        self._ahead = AHEAD * pool
        # Every chunk below _low is answered, and those in _above; none from _next on has left.
        self._low = 0
        self._above: set[int] = set()
        self._next = 0
        # May leave as soon as nothing is held back and the lowest chunk is near enough.
        self._kept: set[int] = set()

    @property
    def low(self) -> int:
        """The lowest chunk that is not answered."""
        return self._low

    @property
    def next(self) -> int:
        """The number above all chunks that have left."""
        return self._next

    def first(self) -> list[int]:
        """The chunks that leave at the start; none where they have left."""
        return self._leave(range(self._next, min(self._distances[0], self.chunks)))

    def is_answered(self, chunk: int) -> bool:
        """Whether a chunk has been answered."""
        return chunk < self._low or chunk in self._above

    def has_left(self, chunk: int) -> bool:
        """Whether a chunk was sent."""
        return chunk < self._next and chunk not in self._kept and self._may_leave(chunk)

    def before(self, chunk: int) -> list[int]:
        """The chunks whose answers let a chunk leave."""
        return [chunk - distance for distance in self._distances if chunk >= distance]

    def answer(self, chunk: int) -> list[int]:
        """Note the answer to a chunk that had none; returns the chunks that leave now."""
        self.done += 1
        above = self._above
        above.add(chunk)
        while self._low in above:
            above.remove(self._low)
            self._low += 1
        next_ = [chunk + distance for distance in self._distances]
        if self._kept and not self.held:
            next_ = sorted({*next_, *self._kept})
            self._kept.clear()
        return self._leave(next_)

    def release(self) -> list[int]:
        """Hold nothing back any more; returns the chunks that leave now."""
        self.held = False
        kept, self._kept = self._kept, set()
        return self._leave(sorted(kept))

    def _leave(self, chunks: Iterable[int]) -> list[int]:
        ready = [chunk for chunk in chunks if self._may_leave(chunk)]
        end = 0 if self.held else self._low + self._ahead
        leaving = [chunk for chunk in ready if chunk < end]
        self._kept.update(ready[len(leaving) :])
        if leaving:
            self._next = max(self._next, leaving[-1] + 1)
        return leaving

    def _may_leave(self, chunk: int) -> bool:
        # Asked when a chunk that it waits for is answered, so it holds once, at the last of these.
        if chunk >= self.chunks:
            return False
        low, above = self._low, self._above
        for distance in self._distances:
            before = chunk - distance
            if before >= low and before not in above:
                return False
        return True
