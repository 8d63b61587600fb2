"""The folder of a testbed: its sockets, database, locks and logs."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from controller.live import state as live_state
from controller.service.errors import NetworkKilledError, NoControllerError, NoTestbedError


def default_folder() -> Path:
    """`$XDG_RUNTIME_DIR/bluetree`, or one of this user in the folder for temporary files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "bluetree"
    return Path(tempfile.gettempdir()) / f"bluetree-{os.geteuid()}"


@dataclass(frozen=True, slots=True)
class Process:
    """A controller's process: its number, election id, and when it began (seconds since 1970)."""

    pid: int
    election_id: int
    since: float


@dataclass(frozen=True, slots=True)
class Page:
    """The process that serves the page, and where."""

    pid: int
    url: str


@dataclass(frozen=True, slots=True)
class Folder:
    """Names in the folder of one testbed."""

    path: Path

    @property
    def network_socket(self) -> Path:
        """Where the network's process listens."""
        return self.path / "network.sock"

    @property
    def controller_socket(self) -> Path:
        """Where the controller that serves listens."""
        return self.path / "controller.sock"

    @property
    def database(self) -> Path:
        """The desired state."""
        return self.path / "state.db"

    @property
    def lock(self) -> Path:
        """Locked by the controller that serves, for as long as it lives."""
        return self.path / "controller.lock"

    @property
    def network_log(self) -> Path:
        """What the network's process has to say."""
        return self.path / "network.log"

    @property
    def controller_log(self) -> Path:
        """What controllers have to say."""
        return self.path / "controller.log"

    def serving(self) -> Process | None:
        """The controller that serves, or None."""
        text = _held(self.lock)
        return None if text is None else _process(text)

    def standbys(self) -> list[Process]:
        """The controllers that wait to take over."""
        found = []
        for path in sorted(self.path.glob("standby-*.json")):
            with suppress(FileNotFoundError), path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    process = _process(file.read())
                    if process is not None:
                        found.append(process)
                else:
                    # Its owner is gone without having removed it.
                    path.unlink(missing_ok=True)
        return found

    @property
    def web_log(self) -> Path:
        """What the page's process has to say."""
        return self.path / "web.log"

    def page(self) -> Page | None:
        """The page that is served, or None."""
        text = _held(self.path / "web.lock")
        return None if not text else Page(*json.loads(text))

    @contextmanager
    def serve_page(self, host: str, port: int) -> Iterator[None]:
        """Be shown as the page's process inside."""
        path = self.path / "web.lock"
        with path.open("w+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(json.dumps([os.getpid(), f"http://{host}:{port}/"]).encode("ascii"))
            file.flush()
            yield
            path.unlink(missing_ok=True)

    def require_testbed(self) -> None:
        """Raise NoTestbedError or NetworkKilledError unless a network is up in the folder."""
        if live_state.is_locked(self.path):
            return
        if self.network_socket.exists():
            raise NetworkKilledError(
                f"the network in {self.path} was killed, and its jobs with it: `bluetree down "
                f"--state {self.path}` tidies up, `bluetree up TOPOLOGY` starts another"
            )
        raise NoTestbedError(
            f"no testbed is up in {self.path}: start one with `bluetree up TOPOLOGY`, "
            "or name its folder with --state"
        )

    def require_controller(self) -> None:
        """Raise what `require_testbed` does, or NoControllerError unless one serves or will."""
        self.require_testbed()
        if self.serving() is None and not self.standbys():
            raise NoControllerError(
                f"no controller runs for the testbed in {self.path}: `bluetree up --state "
                f"{self.path}` starts one; the network and its jobs go on without"
            )


class Lease:
    """The right to serve a testbed, or a sign that one waits for it: a locked file.

    The kernel takes the lock back when the process ends, however it ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a+b")

    def take(self, process: Process) -> bool:
        """Take it if it is free, and say who has it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._file.truncate(0)
        self._file.write(
            json.dumps([process.pid, process.election_id, process.since]).encode("ascii")
        )
        self._file.flush()
        return True

    def close(self) -> None:
        """Give it back."""
        self._file.close()


@contextmanager
def waiting(folder: Folder, process: Process) -> Iterator[None]:
    """Be shown among the standbys inside."""
    path = folder.path / f"standby-{process.pid}.json"
    # Under another name first: a file of the name that nobody has locked is taken for a dead one's.
    new = path.with_suffix(".new")
    lease = Lease(new)
    lease.take(process)
    new.rename(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lease.close()


def _held(path: Path) -> bytes | None:
    """What a file says whose lock somebody holds; None if nobody does."""
    try:
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read()
    except FileNotFoundError:
        pass
    return None


def _process(text: bytes) -> Process | None:
    try:
        pid, election_id, since = json.loads(text)
    except ValueError:
        return None
    return Process(pid, election_id, since)
