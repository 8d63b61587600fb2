"""One process a rank: started together, and ended together when one of them fails."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Self

from controller.errors import BadInputError, RunFailedError

GRACE_S = 5.0
"""How long the others may go on, to say what they miss, once one rank has failed."""
_KILL_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class RankCommand:
    """How one rank is started: its words, and what is added to the environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


class RankProcesses:
    """The processes of all ranks; a context manager that leaves none behind."""

    def __init__(self, commands: Sequence[RankCommand], stdout: IO[str] | None = None) -> None:
        """`stdout`: where the ranks print, by default where this process does."""
        self._commands = commands
        self._stdout = stdout
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        """Start all; raises BadInputError where a program cannot be started."""
        for command in self._commands:
            try:
                process = subprocess.Popen(
                    [*_with_this_process(), *command.words],
                    env={**os.environ, **command.environment},
                    stdin=subprocess.DEVNULL,
                    stdout=self._stdout,
                    start_new_session=True,
                )
            except OSError as error:
                self._end_all()
                raise BadInputError(
                    f"{command.words[0]}: cannot be started: {error.strerror}"
                ) from None
            self._processes.append(process)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_all()

    def wait(
        self,
        blamed: Callable[[], Collection[int]] = tuple,
        left_out: Callable[[], Collection[int]] = tuple,
        *,
        goes_on: bool = False,
    ) -> Mapping[int, str]:
        """Wait until all have ended; RunFailedError names the first that failed.

        Where the others go on, it is raised only if all fail; returned is how those ended that did
        not end well, by rank. Those that they have gone on without, `left_out`, have GRACE_S to end
        once all others have.

        Those that fail since another is gone may be noticed before it: where some ranks are
        `blamed` in the end, the first of them is named. Where none is, and all end alike in time,
        it says so.
        """
        failed: dict[int, int] = {}
        deadline = float("inf")
        with ExitStack() as ends, selectors.DefaultSelector() as selector:
            for rank, process in enumerate(self._processes):
                end = ends.enter_context(open(os.pidfd_open(process.pid), "rb", buffering=0))
                selector.register(end, selectors.EVENT_READ, rank)
            while selector.get_map() and time.monotonic() < deadline:
                is_limited = deadline < float("inf")
                left = max(0.0, deadline - time.monotonic()) if is_limited else None
                for key, _ in selector.select(left):
                    selector.unregister(key.fileobj)
                    code = self._processes[key.data].wait()
                    if code != 0:
                        failed[key.data] = code
                        if not goes_on:
                            deadline = min(deadline, time.monotonic() + GRACE_S)
                still = {key.data for key in selector.get_map().values()}
                if goes_on and still.issubset(left_out()):
                    deadline = min(deadline, time.monotonic() + GRACE_S)
            late = {key.data for key in selector.get_map().values()} if goes_on else set()
        if failed and (not goes_on or len(failed) + len(late) == len(self._processes)):
            causes = [rank for rank in failed if rank in blamed()]
            rank = (causes or list(failed))[0]
            who = f"rank {rank}"
            all_alike = len(failed) == len(self._processes) and len(set(failed.values())) == 1
            if all_alike and len(failed) > 1 and not causes:
                # Such as a script that is not there: none is more to blame than another.
                who = "every rank"
            raise RunFailedError(f"{who} {_ending(failed[rank])}: see what it said above")
        endings = {rank: _ending(code) for rank, code in failed.items()}
        endings |= dict.fromkeys(late, "was left out, and did not end by itself")
        return {rank: endings[rank] for rank in sorted(endings)}

    def _end_all(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in self._processes:
                if process.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, number)
            deadline = time.monotonic() + _KILL_AFTER_S
            for process in self._processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))


def _with_this_process() -> tuple[str, ...]:
    """Words before a command that end it when this process is killed, where the system has them."""
    has = shutil.which("setpriv") is not None
    return ("setpriv", "--pdeathsig", "TERM", "--") if has else ()


def _ending(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
