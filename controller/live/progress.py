"""How far a job is, as its hosts say."""

from __future__ import annotations

from dataclasses import dataclass

from traffic.reports import DestinationProgress, WorkerProgress

HOST_S = 10.0
"""How long a host may take to do what it is told. One that takes longer holds up nobody else."""


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job is: its destination (None if that was killed, or is silent), and its workers.

    Attributes:
        workers: by rank; those that were killed or are silent are left out.
        silent: names of hosts that live and do not answer. Nothing is known of them, so the job is
            neither done nor drained.
        gone: names of hosts that were killed, or whose processes have ended.
    """

    destination: DestinationProgress | None
    workers: tuple[WorkerProgress, ...]
    silent: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    @property
    def completed(self) -> int:
        """Chunks that every worker that answers, and has a part in them, has the answer to."""
        first = min((worker.first_chunk for worker in self.workers), default=0)
        return min((one.completed + one.first_chunk - first for one in self.workers), default=0)

    @property
    def answers(self) -> int:
        """Chunks complete at the destination, and answers at all workers, together."""
        here = self.destination.completed if self.destination is not None else 0
        return here + sum(worker.completed for worker in self.workers)

    @property
    def drained_below(self) -> int:
        """Every worker has the answer to every chunk below it."""
        if self.silent:
            return 0
        return min((worker.drained_below for worker in self.workers), default=0)

    @property
    def mismatches(self) -> int:
        """Wrong sums, at the workers and at the destination."""
        here = self.destination.mismatches if self.destination is not None else 0
        return here + sum(worker.mismatches for worker in self.workers)

    @property
    def resent(self) -> int:
        """Retransmissions by the workers."""
        return sum(worker.resent for worker in self.workers)

    @property
    def done(self) -> bool:
        """Whether every worker has every answer."""
        is_known = bool(self.workers) and not self.silent
        return is_known and all(worker.done for worker in self.workers)

    @property
    def failure(self) -> str:
        """The first chunk that was given up, in words; "" if none was."""
        return next((worker.failure for worker in self.workers if worker.failure), "")

    def first_answer(self, epoch: int) -> int | None:
        """When the first chunk of an epoch was answered anywhere, on the monotonic clock."""
        times = [one.first_answers[epoch] for one in self.workers if epoch in one.first_answers]
        return min(times, default=None)
