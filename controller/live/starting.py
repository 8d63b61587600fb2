"""The start of a network's process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from controller.errors import (
    BadInputError,
    BluetreeError,
    EnvironmentLacksError,
    RunFailedError,
)
from controller.live import state as folder

START_DEADLINE_S = 600.0
_END_S = 90.0
_POLL_S = 0.02


def start_daemon(state: Path, arguments: Sequence[str]) -> None:
    """Start a network in a process that outlives this one, and wait until it is up.

    `arguments` are the daemon's, but for its folder. Raises the error that it ends with.
    """
    folder.prepare(state)
    if folder.is_locked(state):
        raise BadInputError(
            f"--state {state}: a network is up here (process {folder.owner(state)}); take it "
            "down first, or name another folder"
        )
    words = [sys.executable, "-m", "controller.live.daemon", "--state", str(state)]
    words += arguments
    folder.socket_path(state).unlink(missing_ok=True)
    with folder.log_path(state).open("wb") as log:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_until_up(state, process)
    except BaseException:  # interrupted, or too late: nobody would take it down
        process.terminate()
        process.wait(_END_S)
        raise


def _wait_until_up(state: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while not folder.socket_path(state).exists():
        if (code := process.poll()) is not None:
            raise _failure(state, code)
        if time.monotonic() > deadline:
            raise RunFailedError(f"the network is not up after {START_DEADLINE_S:g} s")
        time.sleep(_POLL_S)


def _failure(state: Path, code: int) -> BluetreeError:
    """What the daemon ended with, as an error of the same exit code."""
    said = folder.log_path(state).read_text(encoding="utf-8", errors="replace").splitlines()
    text = said[-1].removeprefix("error: ") if said else f"the network ended with exit code {code}"
    kinds = {kind.exit_code: kind for kind in (BadInputError, EnvironmentLacksError)}
    return kinds.get(code, RunFailedError)(text)
