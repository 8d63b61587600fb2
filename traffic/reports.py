"""What a job's machines came to, as values that may cross between processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traffic.destination import Destination
from traffic.worker import ChunkFailure, Worker

Values = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker: `results` is int32 [chunks, lanes] for an allreduce, else empty; `known` says
    which of its rows are answered, bool [chunks]."""

    done: bool
    results: Values
    known: NDArray[np.bool_]
    resent: int
    failure: ChunkFailure | None
    overflowed: frozenset[int]

    def placed_at(self, first: int) -> WorkerReport:
        """The same, in a tensor of which it has had a part from a chunk on."""
        if not self.results.size:
            return self
        before = np.zeros((first, self.results.shape[1]), dtype=np.int32)
        return replace(
            self,
            results=np.concatenate((before, self.results)),
            known=np.concatenate((np.zeros(first, dtype=bool), self.known)),
            overflowed=frozenset(first + chunk for chunk in self.overflowed),
        )

    @classmethod
    def of(cls, worker: Worker) -> WorkerReport:
        """Report a worker as it is now."""
        return cls(
            worker.done,
            worker.results,
            worker.known,
            worker.counters.resent,
            worker.failure,
            worker.overflowed,
        )


@dataclass(frozen=True, slots=True)
class DestinationReport:
    """The destination of a job.

    Attributes:
        sums: int32 [chunks, lanes].
        known: which of its rows are complete, bool [chunks].
        waits_for: what the first incomplete chunk waits for, empty if there is none.
        without: ranks whose values are not in a sum, by chunk, of chunks that are without some.
    """

    job: int
    done: bool
    sums: Values
    known: NDArray[np.bool_]
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
            np.array(
                [not destination.missing(i) for i in range(len(destination.sums))], dtype=bool
            ),
            "" if waiting is None else destination.explain(waiting),
            destination.overflowed,
            destination.without,
        )


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """How far one worker is. Chunk numbers are those on the wire.

    Attributes:
        epoch, moved_at: the latest epoch, and the chunk from which it holds.
        first_chunk: the first that it has a part in.
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
    first_chunk: int
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
            first_chunk=worker.config.first_chunk,
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

    @property
    def completed(self) -> int:
        """Chunks whose sum the destination has."""
        return int(self.destination.known.sum())

    def is_right(self, sums: NDArray[np.int64]) -> bool:
        """Whether the destination, and every worker that was told, has exactly these sums."""
        told = [one for one in self.workers if one.results.size]
        everywhere = (self.destination.known, *(one.known for one in told))
        return all(known.all() for known in everywhere) and self.is_right_so_far(sums)

    def is_right_so_far(self, sums: NDArray[np.int64]) -> bool:
        """Whether each sum that the destination, or a worker that was told, has is right."""
        told = [(one.results, one.known) for one in self.workers if one.results.size]
        overflowed = self.destination.overflowed.union(*(w.overflowed for w in self.workers))
        return not overflowed and all(
            np.array_equal(got[known], sums[known])
            for got, known in ((self.destination.sums, self.destination.known), *told)
        )

    def continued(self, rest: JobOutcome, first: int) -> JobOutcome:
        """This up to a chunk, and from there on what the same job came to after a new start."""
        head, tail = self.destination, rest.destination
        destination = DestinationReport(
            head.job,
            tail.done,
            np.concatenate((head.sums[:first], tail.sums)),
            np.concatenate((head.known[:first], tail.known)),
            tail.waits_for,
            _overflowed(head.overflowed, tail.overflowed, first),
            {chunk: gone for chunk, gone in head.without.items() if chunk < first}
            | {first + chunk: gone for chunk, gone in tail.without.items()},
        )
        workers = [
            WorkerReport(
                late.done,
                np.concatenate((early.results[:first], late.results)),
                np.concatenate((early.known[:first], late.known)),
                early.resent + late.resent,
                late.failure,
                _overflowed(early.overflowed, late.overflowed, first),
            )
            for early, late in zip(self.workers, rest.workers, strict=True)
        ]
        return JobOutcome(destination, tuple(workers))


def _overflowed(head: Iterable[int], tail: Iterable[int], first: int) -> frozenset[int]:
    """Chunks that overflowed: those of the first part below `first`, and those of the second."""
    return frozenset([chunk for chunk in head if chunk < first] + [first + chunk for chunk in tail])
