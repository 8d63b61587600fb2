"""Journals in files, mapped into memory: what was written stays when its writer is killed.

It is the kernel that has it then, so it does not outlive the machine.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from traffic.destination_config import DestinationConfig
from traffic.errors import CommandError
from traffic.journal import Journal, size_of


class JournalFolder:
    """The journals of one host's destinations, a file each."""

    def __init__(self, path: Path, host: str) -> None:
        self._path = path
        self._host = host

    def open(self, config: DestinationConfig, *, resume: bool) -> Journal:
        """The journal of a job, empty, or as the destination before has left it.

        Raises CommandError where there is none to resume, ConfigError where it is of another job.
        """
        path = self._file(config.job)
        size = size_of(config)
        try:
            if not resume:
                # Not written over: the destination before may have it mapped still.
                path.unlink(missing_ok=True)
            with path.open("r+b" if resume else "x+b") as file:
                if not resume:
                    file.truncate(size)
                buffer = mmap.mmap(file.fileno(), 0)
        except (OSError, ValueError) as error:
            raise CommandError(f"host {self._host}: journal {path}: {error}") from None
        return Journal(config, buffer, resume=resume)

    def forget(self, job: int) -> None:
        """Remove the journal of a job, if there is one."""
        self._file(job).unlink(missing_ok=True)

    def _file(self, job: int) -> Path:
        return self._path / f"{self._host}-job{job}.journal"
