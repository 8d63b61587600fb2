"""A testbed's processes: started apart from the command that starts them, and ended again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from controller.errors import RunFailedError
from controller.service.folder import Folder, Page, Process

START_S = 120.0
END_S = 60.0
_POLL_S = 0.05
_TAIL_LINES = 5
_Found = TypeVar("_Found")


def start_controller(folder: Folder, listen: str | None) -> Process:
    """Start a controller, and wait until it serves or stands by."""
    if folder.serving() is None:
        # Of a controller that was killed.
        folder.controller_socket.unlink(missing_ok=True)
    words = ["-m", "controller.service", "--state", str(folder.path)]
    if listen is not None:
        words += ["--listen", listen]
    started = spawn(words, folder.controller_log)

    def there() -> Process | None:
        serving = folder.serving()
        candidates = [*folder.standbys(), *([serving] if serving else [])]
        found = next((one for one in candidates if one.pid == started.pid), None)
        if found is not None and found == serving and not folder.controller_socket.exists():
            return None
        return found

    return wait_for(there, started, "the controller", folder.controller_log)


def start_page(folder: Folder, listen: str) -> Page:
    """Start the page's process, and wait until it serves."""
    started = spawn(
        ["-m", "controller.web.server", "--state", str(folder.path), "--listen", listen],
        folder.web_log,
    )
    return wait_for(folder.page, started, "the page", folder.web_log)


def spawn(words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a Python process in a session of its own, so that it outlives this one."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def wait_for(
    there: Callable[[], _Found | None],
    started: subprocess.Popen[bytes],
    what: str,
    log: Path,
) -> _Found:
    """Wait until a process is there; RunFailedError shows its log where it is not."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        found = there()
        if found is not None:
            return found
        if started.poll() is not None:
            raise RunFailedError(f"{what} ended as it started: {tail(log)}")
        time.sleep(_POLL_S)
    raise RunFailedError(f"{what} is not ready after {START_S:g} s: {tail(log)}")


def end_controllers(folder: Folder) -> list[int]:
    """End all controllers of a testbed, and wait until they are gone; their process numbers."""
    ended: list[int] = []
    deadline = time.monotonic() + END_S
    # A standby may take over just as its primary ends.
    while time.monotonic() < deadline:
        serving = folder.serving()
        there = [*folder.standbys(), *([serving] if serving else [])]
        if not there:
            break
        for process in there:
            if process.pid not in ended:
                ended.append(process.pid)
                _signal(process.pid, signal.SIGTERM)
        time.sleep(_POLL_S)
    for pid in ended:
        if not wait_until_gone(pid):
            _signal(pid, signal.SIGKILL)
    return ended


def end_page(folder: Folder) -> None:
    """End the page's process, if there is one."""
    page = folder.page()
    if page is not None:
        _signal(page.pid, signal.SIGTERM)
        if not wait_until_gone(page.pid):
            _signal(page.pid, signal.SIGKILL)


def wait_until_gone(pid: int) -> bool:
    """Wait until a process has ended; False when it has not within END_S."""
    deadline = time.monotonic() + END_S
    while not _is_gone(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; its parent may not have noticed yet."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


def tail(log: Path) -> str:
    """The end of a log, in one line."""
    try:
        lines = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
    except OSError as error:
        return str(error)
    return " | ".join(lines) or "no log"


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
