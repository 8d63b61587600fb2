"""What a job's machines came to, as values that may cross between processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """The destination of a job.

    Attributes:
        sums: int32 [chunks, lanes].
        waits_for: what the first incomplete chunk waits for, empty if there is none.
        without: ranks whose values are not in a sum, by chunk, of chunks that are without some.
    """

    job: int
    done: bool
    sums: Values
    waits_for: str
    overflowed: frozenset[int]
    without: Mapping[int, frozenset[int]]

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
            destination.without,
        )


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """How far one worker is. Chunk numbers are those on the wire.

    Attributes:
        epoch, moved_at: the latest epoch, and the chunk from which it holds.
        next_chunk: the number above all chunks that have left.
        drained_below: every chunk below it is answered.
        drained: whether every chunk of the epochs before the latest is answered.
        completed: chunks answered.
        mismatches, mismatched: wrong sums of an endless job, and the first of their chunks.
        first_answers: when the first chunk of each of the latest epochs was answered, in
            nanoseconds of the monotonic clock.
        failure: the chunk that was given up, in words; "" if none was.
    """

    name: str
    job: int
    epoch: int
    moved_at: int
    next_chunk: int
    drained_below: int
    drained: bool
    completed: int
    in_flight: int
    held: bool
    done: bool
    resent: int
    direct: int
    mismatches: int
    mismatched: tuple[int, ...]
    first_answers: Mapping[int, int]
    failure: str

    @classmethod
    def of(cls, worker: Worker) -> WorkerProgress:
        """Report a worker as it is now."""
        counters = worker.counters
        return cls(
            name=worker.config.name,
            job=worker.job,
            epoch=worker.epoch,
            moved_at=worker.moved_at,
            next_chunk=worker.next_chunk,
            drained_below=worker.drained_below,
            drained=worker.drained,
            completed=worker.completed,
            in_flight=worker.in_flight,
            held=worker.held,
            done=worker.done,
            resent=counters.resent,
            direct=counters.direct,
            mismatches=worker.mismatches.count + len(worker.overflowed),
            mismatched=tuple(worker.mismatches.chunks),
            first_answers=dict(worker.first_answers),
            failure=str(worker.failure or ""),
        )


@dataclass(frozen=True, slots=True)
class DestinationProgress:
    """How far the destination of a job is; see `WorkerProgress`.

    `complete_below`: every chunk below it is complete; `waits_for`: what the first other waits for;
    `lacking`: names of the workers whose values that one lacks.
    """

    job: int
    epoch: int
    moved_at: int
    next_chunk: int
    complete_below: int
    completed: int
    done: bool
    mismatches: int
    mismatched: tuple[int, ...]
    waits_for: str
    lacking: tuple[str, ...]

    @classmethod
    def of(cls, destination: Destination) -> DestinationProgress:
        """Report a destination as it is now."""
        waiting = destination.first_incomplete()
        return cls(
            job=destination.job,
            epoch=destination.epoch,
            moved_at=destination.moved_at,
            next_chunk=destination.next_chunk,
            complete_below=destination.complete_below,
            completed=destination.completed,
            done=destination.done,
            mismatches=destination.mismatches.count + len(destination.overflowed),
            mismatched=tuple(destination.mismatches.chunks),
            waits_for="" if waiting is None else destination.explain(waiting),
            lacking=() if waiting is None else destination.lacking(waiting),
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
