"""Captures in pcapng (draft-ietf-opsawg-pcapng), nanosecond times, one interface a direction."""

import struct
from typing import BinaryIO

_SECTION_HEADER = 0x0A0D0D0A
_INTERFACE_DESCRIPTION = 1
_ENHANCED_PACKET = 6
_BYTE_ORDER = 0x1A2B3C4D
_UNKNOWN_LENGTH = -1
_LINKTYPE_ETHERNET = 1
_OPTION_NAME = 2
_OPTION_TIME_RESOLUTION = 9
_NANOSECONDS = bytes([9])


class PcapngWriter:
    """Writes frames to an open binary stream; interfaces appear as they are first used."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._interfaces: dict[str, int] = {}
        self._write_block(_SECTION_HEADER, struct.pack("<IHHq", _BYTE_ORDER, 1, 0, _UNKNOWN_LENGTH))

    def write(self, now: int, interface: str, frame: bytes) -> None:
        """Add a frame seen at a time (nanoseconds) on an interface."""
        number = self._interfaces.get(interface)
        if number is None:
            number = self._interfaces[interface] = len(self._interfaces)
            options = _option(_OPTION_NAME, interface.encode()) + _option(
                _OPTION_TIME_RESOLUTION, _NANOSECONDS
            )
            body = struct.pack("<HHI", _LINKTYPE_ETHERNET, 0, 0) + options + _option(0, b"")
            self._write_block(_INTERFACE_DESCRIPTION, body)
        size = len(frame)
        head = struct.pack("<IIIII", number, now >> 32, now & 0xFFFFFFFF, size, size)
        self._write_block(_ENHANCED_PACKET, head + _padded(frame))

    def _write_block(self, kind: int, body: bytes) -> None:
        length = struct.pack("<I", 12 + len(body))
        self._stream.write(struct.pack("<I", kind) + length + body + length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
