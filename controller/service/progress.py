"""How far a job is, as the controller judges it."""

from __future__ import annotations

import time

from controller.live.client import NetworkClient
from controller.live.progress import JobProgress

DRAIN_S = 30.0
"""How long a change waits for the old epoch; the job goes on draining after that."""
STALL_S = 5.0
"""Without a further chunk for so long, it is asked what a job waits for."""


class Stalls:
    """Notices jobs that do not get on."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, float]] = {}

    def stood(self, job: int, progress: JobProgress) -> float:
        """For how many seconds a job has been where it is."""
        now, done = time.monotonic(), completed(progress)
        before, since = self._last.get(job, (-1, now))
        if done != before:
            self._last[job] = (done, now)
            return 0.0
        return now - since


class Silence:
    """Notices hosts of a job that do not answer for long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def is_long(self, progress: JobProgress | None) -> bool:
        """Whether at each look for so many seconds some host was silent."""
        if progress is None or not progress.silent:
            self._since = None
            return False
        now = time.monotonic()
        self._since = self._since or now
        return now - self._since > self._seconds


def completed(progress: JobProgress) -> int:
    """Chunks complete at the destination; where that was killed, at every worker."""
    destination = progress.destination
    return progress.completed if destination is None else destination.completed


def waits_for(progress: JobProgress) -> str:
    """What the first incomplete chunk waits for, in words."""
    destination = progress.destination
    if destination is not None:
        return destination.waits_for
    what = "does not answer" if progress.silent else "was killed"
    return f"its destination, which {what}"


def why_late(hosts: NetworkClient, progress: JobProgress | None) -> str:
    """What a job waits for, in words, with the remedy where hosts do not answer."""
    if progress is None:
        return "its hosts are gone"
    return hosts.silence(progress.silent) if progress.silent else waits_for(progress)


def is_drained(progress: JobProgress, epoch: int) -> bool:
    """Whether nothing under an epoch before this one is under way."""
    return not progress.silent and all(
        worker.epoch >= epoch and worker.drained for worker in progress.workers
    )
