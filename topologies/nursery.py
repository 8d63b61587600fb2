"""Many processes of few programs: a process that has imported them forks the others.

A switch or a host as a Python process takes most of its start-up to import, and most of its memory
holds what it imported. Forked from one process that has done so already, each starts in
milliseconds and shares that memory. The nursery has one thread and no open channel when it forks.

    python -m topologies.nursery MODULE...

reads pickled `Birth`s from its standard input, forks for each, and writes the process id as a line
to its standard output. The child runs `main(words)` of the module in a session of its own. When the
nursery ends, the kernel kills all its children; it ends with its standard input.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_CLONE_NEWNET = 0x40000000
_TITLE_BYTES = 15
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Birth:
    """A process to be.

    Attributes:
        module, words: what it runs.
        title: its name in lists of processes, of which the kernel keeps 15 bytes.
        log: the file that what it prints is added to.
        namespace: a process whose network it is to see; None for the nursery's own.
    """

    module: str
    words: tuple[str, ...]
    title: str
    log: Path
    namespace: int | None = None


class Nursling:
    """A process that a nursery has forked, as seen by who asked for it; like `Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._handle: int | None = os.pidfd_open(pid)
        except ProcessLookupError:  # gone already
            self._handle = None

    def poll(self) -> int | None:
        """None while it runs; its exit code is the nursery's, and not known here."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raises subprocess.TimeoutExpired."""
        ended = self._look(timeout)
        if ended is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return ended

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self._handle is None:
            return 0
        if not select.select([self._handle], (), (), timeout)[0]:
            return None
        os.close(self._handle)
        self._handle = None
        return 0

    def _signal(self, number: signal.Signals) -> None:
        if self._handle is not None:
            try:
                signal.pidfd_send_signal(self._handle, number)
            except ProcessLookupError:
                self._look(None)


class Nursery:
    """A nursery as a child of this process."""

    def __init__(self, modules: Sequence[str], log: IO[bytes]) -> None:
        # Numeric libraries would start threads for every core, which a fork does not take along.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "GRPC_VERBOSITY": "NONE"}
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", __name__, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
        )

    def fork(self, birth: Birth) -> Nursling:
        """Have a process forked; raises RuntimeError where the nursery is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(pickle.dumps(birth))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError("the process that forks switches and hosts is gone") from None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that forks switches and hosts is gone")
        return Nursling(int(line))

    def close(self) -> None:
        """End it, and with it every process that it has forked."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def _settle(birth: Birth, nursery: int) -> None:
    """Make the forked process one of its own."""
    os.setsid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != nursery:  # it ended before the kernel was told
        os._exit(1)
    _libc.prctl(_PR_SET_NAME, birth.title.encode()[:_TITLE_BYTES], 0, 0, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(birth.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for have, wanted in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(have, wanted)
    os.close(nothing)
    os.close(log)
    if birth.namespace is not None:
        handle = os.open(f"/proc/{birth.namespace}/ns/net", os.O_RDONLY)
        if _libc.setns(handle, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the network of {birth.namespace}")
        os.close(handle)


def main(modules: Sequence[str]) -> int:
    """Import the modules and serve; see the module's text."""
    for module in modules:
        importlib.import_module(module)
    # The kernel reaps; who asked for a process watches it by a descriptor of its own.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # the collector would write to all memory that is shared
    own = os.getpid()
    while True:
        try:
            birth: Birth = pickle.load(sys.stdin.buffer)
        except EOFError:
            return 0
        pid = os.fork()
        if pid == 0:
            _settle(birth, own)
            return int(importlib.import_module(birth.module).main(list(birth.words)))
        sys.stdout.buffer.write(b"%d\n" % pid)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
