"""What a job's machines came to, as values that may cross between processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traffic.destination import Destination
from traffic.worker import ChunkFailure, Worker

Values = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker: `results` is int32 [chunks, lanes] for an allreduce, else empty."""

    done: bool
    results: Values
    resent: int
    failure: ChunkFailure | None
    overflowed: frozenset[int]

    @classmethod
    def of(cls, worker: Worker) -> WorkerReport:
        """Report a worker as it is now."""
        return cls(
            worker.done,
            worker.results,
            worker.counters.resent,
            worker.failure,
            worker.overflowed,
        )


@dataclass(frozen=True, slots=True)
class DestinationReport:
    """The destination: `sums` is int32 [chunks, lanes]; `waits_for` says what the first incomplete
    chunk waits for, and is empty if there is none."""

    job: int
    done: bool
    sums: Values
    waits_for: str
    overflowed: frozenset[int]

    @classmethod
    def of(cls, destination: Destination) -> DestinationReport:
        """Report a destination as it is now."""
        waiting = destination.first_incomplete()
        return cls(
            destination.job,
            destination.done,
            destination.sums,
            "" if waiting is None else destination.explain(waiting),
            destination.overflowed,
        )


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What one job came to, everywhere: its destination, and its workers by rank."""

    destination: DestinationReport
    workers: tuple[WorkerReport, ...]

    @property
    def complete(self) -> bool:
        """Whether every worker had every chunk answered."""
        return self.destination.done and all(worker.done for worker in self.workers)

    @property
    def resent(self) -> int:
        """Retransmissions by the workers."""
        return sum(worker.resent for worker in self.workers)

    @property
    def stuck(self) -> str:
        """What an incomplete job waits for, in words."""
        failures = [worker.failure for worker in self.workers if worker.failure is not None]
        return self.destination.waits_for or (str(failures[0]) if failures else "")

    def is_right(self, sums: NDArray[np.int64]) -> bool:
        """Whether the destination, and every worker that was told, has exactly these sums."""
        told: Sequence[Values] = [w.results for w in self.workers if w.results.size]
        overflowed = self.destination.overflowed.union(*(w.overflowed for w in self.workers))
        return not overflowed and all(
            np.array_equal(got, sums) for got in (self.destination.sums, *told)
        )
