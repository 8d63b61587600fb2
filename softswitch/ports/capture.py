"""Frames in pcap files: recorded in the classic format, in microseconds, and read back."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path

from softswitch.ports.errors import PortError

_MAGIC = 0xA1B2C3D4
_MAGIC_NS = 0xA1B23C4D
_VERSION = (2, 4)
_SNAP_LENGTH = 262144
_LINKTYPE_ETHERNET = 1
_LINKTYPES = (_LINKTYPE_ETHERNET, 0)
"""What is read as Ethernet; bmv2 writes 0 into its files."""
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


def read_frames(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (time in nanoseconds, frame) of a pcap file of Ethernet frames; raises PortError.

    Of either byte order, and in microseconds or nanoseconds. A record that is cut short ends it.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PortError(f"cannot read {path}: {error.strerror}") from error
    for order in "<>":
        for magic, unit in ((_MAGIC, 1000), (_MAGIC_NS, 1)):
            if data[:4] == struct.pack(f"{order}I", magic):
                yield from _records(path, data, order, unit)
                return
    raise PortError(f"{path} is no pcap file (pcapng is not read): convert it, as with editcap")


def _records(path: Path, data: bytes, order: str, unit: int) -> Iterator[tuple[int, bytes]]:
    head, record = struct.Struct(f"{order}IHHiIII"), struct.Struct(f"{order}IIII")
    if len(data) < head.size or head.unpack_from(data)[6] not in _LINKTYPES:
        raise PortError(f"{path} is no recording of Ethernet frames")
    at = head.size
    while at + record.size <= len(data):
        seconds, fraction, length, _ = record.unpack_from(data, at)
        at += record.size
        if at + length > len(data):
            return
        yield seconds * 1_000_000_000 + fraction * unit, data[at : at + length]
        at += length
