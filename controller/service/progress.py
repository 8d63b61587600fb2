"""How far a job is, as the controller judges it. Pure."""

from __future__ import annotations

from controller.live.client import JobProgress


def completed(progress: JobProgress) -> int:
    """Chunks complete at the destination; where that was killed, at every worker."""
    destination = progress.destination
    return progress.completed if destination is None else destination.completed


def waits_for(progress: JobProgress) -> str:
    """What the first incomplete chunk waits for, in words."""
    destination = progress.destination
    return "its destination, which was killed" if destination is None else destination.waits_for


def is_drained(progress: JobProgress, epoch: int) -> bool:
    """Whether nothing under an epoch before this one is under way."""
    return all(
        worker.epoch >= epoch and worker.drained_below >= worker.moved_at
        for worker in progress.workers
    )
