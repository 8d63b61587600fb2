"""The command `softswitch` run by a test, and raw frames at its interfaces."""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

COMMAND = str(Path(sys.executable).with_name("softswitch"))
DEADLINE_S = 15.0
PAUSE_S = 0.02

Found = TypeVar("Found")

_SOL_PACKET, _PACKET_AUXDATA, _PACKET_IGNORE_OUTGOING = 263, 8, 23
_ETH_P_ALL = 3


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


class SwitchProcess:
    """A running switch; its output is in a file."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.log = directory / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.address = self.await_line("Server listening on ").rpartition(" ")[2]

    def await_line(self, text: str) -> str:
        """Return the first line of the log that has `text` in it, when it is there."""
        return wait_for(lambda: next((x for x in self.lines() if text in x), None), self.evidence)

    def lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def evidence(self) -> str:
        return "\n".join(self.lines()[-30:])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """End the switch; return its exit code and the seconds that it took."""
        start = time.monotonic()
        self.process.send_signal(how)
        code = self.process.wait(DEADLINE_S)
        return code, time.monotonic() - start

    def __enter__(self) -> SwitchProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def wait_for(what: Callable[[], Found | None], evidence: Callable[[], str]) -> Found:
    """Return what `what` returns as soon as it is not None; looks again and again."""
    deadline = time.monotonic() + DEADLINE_S
    while (found := what()) is None:
        assert time.monotonic() < deadline, evidence()
        select.select((), (), (), PAUSE_S)
    return found


class Wire:
    """This end of a link: sends and receives frames as a wire would carry them."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
        self._socket.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        self._socket.bind((interface, 0))

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def receive(self, seconds: float = DEADLINE_S) -> bytes | None:
        """Return the next frame, its VLAN tag put back where the kernel took one off."""
        self._socket.settimeout(seconds)
        try:
            frame, control, _, _ = self._socket.recvmsg(65536, 128)
        except (TimeoutError, BlockingIOError):
            return None
        for level, kind, data in control:
            if (level, kind) == (_SOL_PACKET, _PACKET_AUXDATA):
                status = int.from_bytes(data[0:4], sys.byteorder)
                tag = int.from_bytes(data[16:18], sys.byteorder)
                if status & 1 << 4:
                    frame = frame[:12] + b"\x81\x00" + tag.to_bytes(2, "big") + frame[12:]
        return frame

    def close(self) -> None:
        self._socket.close()
