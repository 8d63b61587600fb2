"""Which ranks of a job have made which calls: says when one can begin, and why one cannot.

A call begins when every rank has made it, alike, and the one before has ended. Any failure here is
the job's last word: ranks that have not seen the same calls cannot go on together. When every rank
has come and gone, the job begins anew.

A job may go on without ranks that it loses, if all of them say so as they join: those whose
connection ends, and those that have not made a call in time, which are told so and have no part in
it any more. A call is over the ranks that have made it and are there when it begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from traffic.collectives.calls import Array, Call
from traffic.collectives.errors import CollectiveError, MismatchError, MissingRankError
from traffic.collectives.link import OnLoss

_SHOWN = 8


@dataclass(slots=True)
class _Open:
    """A call that some ranks have made, and the arrays that they gave."""

    number: int
    first_rank: int
    call: Call
    since: int
    arrays: dict[int, Array | None]


class Rendezvous:
    """The open calls of one job; times are nanoseconds of one clock."""

    def __init__(self, job: int, ranks: int, patience: int) -> None:
        """`patience`: how long a call may wait for the ranks that have not made it."""
        self.job = job
        self.ranks = ranks
        self._patience = patience
        self._running = False
        self._anew()

    def _anew(self) -> None:
        self._joined: set[int] = set()
        self._left: set[int] = set()
        # Ranks that the others have gone on without while they were there, or before they came.
        self._lost: set[int] = set()
        self._open: deque[_Open] = deque()
        self._made = [0] * self.ranks
        self.failure: CollectiveError | None = None
        self.failure_told = False
        self.on_loss: OnLoss | None = None
        """What the ranks have said as they joined; None before the first."""
        self.expelled: dict[int, CollectiveError] = {}
        """Ranks that the others have gone on without, and are to be told so."""

    @property
    def joined(self) -> frozenset[int]:
        """Ranks that are there."""
        return frozenset(self._joined - self._left)

    @property
    def goes_on(self) -> bool:
        """Whether the job goes on without ranks that it loses."""
        return self.on_loss is OnLoss.CONTINUE

    def join(self, rank: int, on_loss: OnLoss = OnLoss.FAIL) -> None:
        """Take a rank in; raises CollectiveError if there is none of that number to take."""
        if not 0 <= rank < self.ranks:
            raise CollectiveError(f"job {self.job} has ranks 0 to {self.ranks - 1}, not {rank}")
        if rank in self._joined:
            raise CollectiveError(
                f"rank {rank} of job {self.job} has joined already"
                + (", and left: it may join anew when all have" if rank in self._left else "")
            )
        if self.on_loss not in (None, on_loss):
            raise MismatchError(
                f"job {self.job}: rank {rank} asks for on_rank_loss={on_loss.value!r}, others for "
                f"{self.on_loss.value!r}; all ranks must ask for the same"
            )
        if rank in self._lost:
            raise MissingRankError(
                f"rank {rank} of job {self.job} is late: the others have gone on without it",
                (rank,),
            )
        self.on_loss = on_loss
        self._joined.add(rank)
        if self.failure is not None:
            # Too late for this time: it has come and gone.
            failure = self.failure
            self.leave(rank)
            raise failure

    def leave(self, rank: int) -> None:
        """A rank is gone: calls that it has not made can never begin, or do without it."""
        self._left.add(rank)
        self.expelled.pop(rank, None)
        if len(self._left | (self._lost - self._joined)) == self.ranks:
            self._anew()
        self._blame_those_who_left()

    def call(self, rank: int, call: Call, array: Array | None, now: int) -> None:
        """Rank's next call."""
        number = self._made[rank]
        self._made[rank] += 1
        if self.failure is not None or rank in self._lost:
            return
        entry = next((entry for entry in self._open if entry.number == number), None)
        if entry is None:
            entry = _Open(number, rank, call, now, {})
            self._open.append(entry)
        elif entry.call != call:
            self.failure = MismatchError(
                f"call {number} of job {self.job}: rank {entry.first_rank} asks for {entry.call}, "
                f"rank {rank} for {call}; all ranks must make the same calls in the same order"
            )
            return
        entry.arrays[rank] = array
        self._blame_those_who_left()

    def begin(self) -> tuple[int, Call, Mapping[int, Array | None]] | None:
        """The call that can begin now, with its number and arrays by rank; it is running then."""
        if self.failure is not None or self._running:
            return None
        gone = self._left | self._lost if self.goes_on else frozenset()
        while self._open and not self._missing(self._open[0]):
            entry = self._open.popleft()
            arrays = {rank: array for rank, array in entry.arrays.items() if rank not in gone}
            # Who made it may be gone, all of them.
            if arrays:
                self._running = True
                return entry.number, entry.call, arrays
        return None

    def end(self) -> None:
        """The running call is over."""
        self._running = False

    @property
    def deadline(self) -> int | None:
        """When the first call has waited too long."""
        if self.failure is not None or not self._open:
            return None
        if not self._missing(self._open[0]):
            return None
        return self._open[0].since + self._patience

    def look(self, now: int) -> None:
        """Fail if the first call has waited too long."""
        deadline = self.deadline
        if deadline is not None and now >= deadline:
            entry = self._open[0]
            missing = self._missing(entry)
            seconds = self._patience / 1e9
            there = "have" if len(missing) > 1 else "has"
            late = MissingRankError(
                f"call {entry.number} of job {self.job}, {entry.call}: {_names(missing)} {there} "
                f"not made it within {seconds:g} s: look at what it does instead, or allow more "
                "with --timeout",
                missing,
            )
            if not self.goes_on:
                self.failure = late
                return
            self.expel(missing, late)

    def expel(self, ranks: Collection[int], why: CollectiveError) -> None:
        """Go on without ranks that are there, or have not come."""
        self._lost.update(ranks)
        self.expelled |= dict.fromkeys(ranks, why)

    def _missing(self, entry: _Open) -> tuple[int, ...]:
        """Who has not made a call and is waited for."""
        gone = self._left | self._lost if self.goes_on else frozenset()
        return tuple(r for r in range(self.ranks) if r not in entry.arrays and r not in gone)

    def _blame_those_who_left(self) -> None:
        if self.failure is not None or self.goes_on:
            return
        for entry in self._open:
            gone = tuple(rank for rank in self._missing(entry) if rank in self._left)
            if gone:
                verb = "have" if len(gone) > 1 else "has"
                self.failure = MissingRankError(
                    f"call {entry.number} of job {self.job}, {entry.call}: {_names(gone)} {verb} "
                    "left without making it",
                    gone,
                )
                return


def _names(ranks: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ranks[:_SHOWN]))
    more = f" and {len(ranks) - _SHOWN} more" if len(ranks) > _SHOWN else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"
