"""Records frames in a pcap file (the classic format, in microseconds; any analyser reads it)."""

from __future__ import annotations

import struct
import time
from pathlib import Path

from softswitch.ports.errors import PortError

_MAGIC = 0xA1B2C3D4
_VERSION = (2, 4)
_SNAP_LENGTH = 262144
_LINKTYPE_ETHERNET = 1
_RECORD = struct.Struct("=IIII")


class Capture:
    """One pcap file. Every frame is on disk when `record` returns, as with bmv2."""

    def __init__(self, path: Path) -> None:
        """Create or empty `path`; raises PortError."""
        try:
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise PortError(f"cannot record to {path}: {error.strerror}") from error
        head = struct.pack("=IHHiIII", _MAGIC, *_VERSION, 0, 0, _SNAP_LENGTH, _LINKTYPE_ETHERNET)
        self._file.write(head)

    def record(self, frame: bytes) -> None:
        """Append a frame under the time of now."""
        now = time.time_ns() // 1000
        length = len(frame)
        self._file.write(_RECORD.pack(now // 1_000_000, now % 1_000_000, length, length) + frame)

    def close(self) -> None:
        """End the recording."""
        self._file.close()
