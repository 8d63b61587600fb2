"""Which epoch a chunk belongs to, and which workers are in its sum.

A job has one term after another: an allocation, its epoch, and the workers that it leaves out. Each
holds from one chunk on. Reallocation under load moves a job from a chunk on that nobody has sent:
chunks below it go on under the old epoch in all things (first sends, repetitions, answers), the
others under the new one. A term that leaves workers out begins at the first chunk that is not
complete, and all chunks beyond it that are stay in the terms before: they are `kept`. No chunk has
two epochs. Chunk numbers here are those on the wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from traffic.errors import ConfigError

_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Term:
    """An allocation of a job: from which chunk on it holds, and whom it is without.

    Attributes:
        kept: chunks from `from_chunk` on that belong to earlier terms nevertheless.
        absent: ranks within the job of the workers that have no part in its sums.
    """

    epoch: int
    from_chunk: int
    kept: frozenset[int] = _NONE
    absent: frozenset[int] = _NONE

    def covers(self, chunk: int) -> bool:
        """Whether a chunk is in this term, unless it is in a later one."""
        return chunk >= self.from_chunk and chunk not in self.kept


class Epochs:
    """The terms of one job at one host, in order; the first holds from chunk 0 on."""

    __slots__ = ("_last", "_terms", "_who")

    def __init__(self, who: str, epoch: int, absent: frozenset[int] = _NONE) -> None:
        self._who = who
        self._last = Term(epoch, 0, absent=absent)
        self._terms = [self._last]

    @property
    def newest(self) -> int:
        """The latest epoch moved to."""
        return self._last.epoch

    @property
    def moved_at(self) -> int:
        """The chunk from which the latest epoch holds."""
        return self._last.from_chunk

    @property
    def last(self) -> Term:
        """The latest term."""
        return self._last

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms that are not forgotten."""
        return tuple(self._terms)

    def term(self, chunk: int) -> Term:
        """The term of a chunk."""
        if len(self._terms) == 1 or self._last.covers(chunk):
            return self._last
        return next((one for one in reversed(self._terms) if one.covers(chunk)), self._terms[0])

    def of(self, chunk: int) -> int:
        """The epoch of a chunk."""
        return self.term(chunk).epoch

    def without(self, first: int, chunks: int) -> dict[int, frozenset[int]]:
        """The ranks left out of chunks from number `first` on, counted from there, if any are."""
        if not any(term.absent for term in self._terms):
            return {}
        absent = {i: self.term(first + i).absent for i in range(chunks)}
        return {i: ranks for i, ranks in absent.items() if ranks}

    def move(
        self, epoch: int, from_chunk: int, lowest: int, absent: frozenset[int] | None = None
    ) -> bool:
        """Let chunks from `from_chunk` on belong to a newer epoch; False if they do already.

        `absent` are the workers that it is without, by default those of the term before. Raises
        ConfigError where the epoch is not newer, or the chunk lies below `lowest`, the first that
        may still change its epoch.
        """
        if epoch == self.newest and from_chunk == self.moved_at:
            return False
        self.check_newer(epoch)
        lowest = max(lowest, self.moved_at)
        if from_chunk < lowest:
            raise ConfigError(
                f"{self._who}: cannot move to epoch {epoch} from chunk {from_chunk} on: the first "
                f"that is free is {lowest}; hold all workers and take the largest"
            )
        self._append(
            Term(epoch, from_chunk, absent=self._last.absent if absent is None else absent)
        )
        return True

    def follow(self, term: Term) -> bool:
        """Enter a term as it is; False if its epoch is the latest already.

        Raises ConfigError where its epoch is not newer.
        """
        if term.epoch == self.newest:
            return False
        self.check_newer(term.epoch)
        self._append(term)
        return True

    def check_absent(self, epoch: int, absent: frozenset[int], incomplete: Iterable[int]) -> None:
        """Raise ConfigError where an epoch would have back whom the latest is without, or whom one
        of the chunks that are not complete yet is without: who came back does not have these."""
        for term in (self._last, *(self.term(chunk) for chunk in incomplete)):
            back = term.absent - absent
            if back:
                raise ConfigError(
                    f"{self._who}: epoch {epoch} has rank {min(back)} back, whom epoch "
                    f"{term.epoch} is without: move to an epoch with it, from a chunk on"
                )

    def drop_below(self, chunk: int) -> list[int]:
        """Forget epochs that hold only for chunks below one; returns those."""
        dropped = []
        while len(self._terms) > 1 and not self._is_needed(chunk):
            dropped.append(self._terms.pop(0).epoch)
            first = self._terms[0]
            self._terms[0] = Term(first.epoch, 0, absent=first.absent)
            self._last = self._terms[-1]
        return dropped

    def check_newer(self, epoch: int) -> None:
        """Raise ConfigError unless an epoch is a number newer than all so far."""
        if epoch <= self.newest:
            raise ConfigError(f"{self._who}: epoch {epoch} is not newer than {self.newest}")
        if epoch >= 1 << 32:
            raise ConfigError(f"{self._who}: epoch {epoch} has more than 32 bits")

    def _append(self, term: Term) -> None:
        self._terms.append(term)
        self._last = term

    def _is_needed(self, chunk: int) -> bool:
        """Whether the first term holds for that chunk or a later one."""
        first, *later = self._terms
        if chunk < min(one.from_chunk for one in later):
            return True
        return any(kept >= chunk and self.term(kept) is first for one in later for kept in one.kept)
