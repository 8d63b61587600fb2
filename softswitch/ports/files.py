"""Ports that are files, as with bmv2's --use-files: from NAME_in.pcap, to NAME_out.pcap."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from softswitch.ports.capture import Capture, read_frames
from softswitch.ports.interface import Interface
from softswitch.ports.naming import PortName

_MTU = 65535


class FilePort:
    """A port whose frames go to a file. Those that come are the replay's: see `replay`."""

    def __init__(self, name: PortName) -> None:
        """Create or empty the file of what goes out; raises PortError, also for a bad file in."""
        next(read_frames(in_file(name)), None)
        self.name = name
        self.number = name.port
        self.interface = Interface(name.interface, 0, _MTU, True, False, True)
        self.outbox: list[bytes] = []
        self.works = True
        self._never = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._out = Capture(Path(f"{name.interface}_out.pcap"))

    def fileno(self) -> int:
        """Return a descriptor that never becomes readable."""
        return self._never

    def receive(self, limit: int) -> Sequence[bytes]:
        """Return nothing."""
        return ()

    def flush(self) -> None:
        """Write all of `outbox` to the file."""
        for frame in self.outbox:
            self._out.record(frame)
        self.outbox.clear()

    def trouble(self) -> OSError | None:
        """A file has none."""
        return None

    def is_there(self) -> bool:
        """A file that is open stays."""
        return True

    def look(self) -> bool:
        """A file takes everything."""
        return True

    def tell_losses(self) -> None:
        """Nothing is lost."""

    def close(self) -> None:
        """Close the file."""
        self._out.close()
        os.close(self._never)


def in_file(name: PortName) -> Path:
    """The file of the frames that come in at a port."""
    return Path(f"{name.interface}_in.pcap")


def replay(names: Sequence[PortName]) -> Iterator[tuple[int, bytes]]:
    """Yield (port, frame) of all files in the order of their times; PortError for a bad file.

    Of frames of the same time those of the port that is named first come first.
    """
    recordings = [_numbered(at, name) for at, name in enumerate(names)]
    for _, at, frame in heapq.merge(*recordings, key=lambda item: item[:2]):
        yield names[at].port, frame


def _numbered(at: int, name: PortName) -> Iterator[tuple[int, int, bytes]]:
    for time_ns, frame in read_frames(in_file(name)):
        yield time_ns, at, frame
