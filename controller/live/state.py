"""The folder of a network that lives: its lock, its socket, its log.

network.lock   locked while the network lives; holds the daemon's process id
network.sock   where clients connect; there once the network is up
network.log    what the daemon says, of its latest start
journals/      what destinations have completed
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.errors import BadInputError, RunFailedError

_LONGEST_SOCKET_PATH = 100
"""Unix sockets' names hold 107 bytes, and the socket is made under a longer name first."""


class NetworkDownError(RunFailedError):
    """No network lives in the folder, or it has just ended."""


def socket_path(state: Path) -> Path:
    """Where clients connect."""
    return state / "network.sock"


def log_path(state: Path) -> Path:
    """What the daemon says."""
    return state / "network.log"


def journals_path(state: Path) -> Path:
    """Where destinations record what they complete."""
    return state.absolute() / "journals"


def prepare(state: Path) -> None:
    """Make the folder; BadInputError where it cannot be used."""
    path = socket_path(state.absolute())
    if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
        raise BadInputError(
            f"--state {state}: too long for a socket's name; use a folder of at most "
            f"{_LONGEST_SOCKET_PATH - len(path.name) - 1} bytes"
        )
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"--state {state}: {error.strerror}; name another folder") from None
    if not os.access(state, os.W_OK | os.X_OK):
        raise BadInputError(f"--state {state}: not writable; name another folder")


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Hold the folder; BadInputError where a network lives in it."""
    try:
        handle = os.open(_lock_path(state), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadInputError(f"--state {state}: {error.strerror}; name another folder") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInputError(
                f"--state {state}: a network is up here (process {owner(state)}); take it down "
                "first, or name another folder"
            ) from None
        os.truncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        # A socket that nobody serves is what a killed daemon leaves.
        socket_path(state).unlink(missing_ok=True)
        try:
            yield
        finally:
            socket_path(state).unlink(missing_ok=True)
    finally:
        os.close(handle)


def is_locked(state: Path) -> bool:
    """Whether a daemon holds the folder."""
    try:
        handle = os.open(_lock_path(state), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def owner(state: Path) -> str:
    """The process id that the folder's lock names, "unknown" if none."""
    try:
        return _lock_path(state).read_text(encoding="ascii").strip() or "unknown"
    except (OSError, UnicodeDecodeError):
        return "unknown"


def _lock_path(state: Path) -> Path:
    return state / "network.lock"
