"""Hash algorithms of v1model that are not csum16; all take the joined input as bytes."""

from zlib import crc32 as _zlib_crc32


def _table(polynomial: int, reflected: bool) -> tuple[int, ...]:
    rows: list[int] = []
    for index in range(256):
        value = index if reflected else index << 8
        for _ in range(8):
            if reflected:
                value = value >> 1 ^ (polynomial if value & 1 else 0)
            else:
                value = (value << 1 ^ (polynomial if value & 0x8000 else 0)) & 0xFFFF
        rows.append(value)
    return tuple(rows)


_ARC = _table(0xA001, reflected=True)
_CCITT = _table(0x1021, reflected=False)


def crc16(data: bytes) -> int:
    """CRC-16/ARC: polynomial 0x8005 reflected, start 0."""
    value = 0
    for byte in data:
        value = value >> 8 ^ _ARC[(value ^ byte) & 0xFF]
    return value


def crc_ccitt(data: bytes) -> int:
    """CRC-16/CCITT-FALSE: polynomial 0x1021, start 0xFFFF."""
    value = 0xFFFF
    for byte in data:
        value = (value << 8 & 0xFFFF) ^ _CCITT[value >> 8 ^ byte]
    return value


def crc32(data: bytes) -> int:
    """CRC-32 of Ethernet."""
    return _zlib_crc32(data)


def identity(data: bytes) -> int:
    """The first 8 bytes as a number."""
    return int.from_bytes(data[:8])


def _fold(data: bytes, size: int) -> int:
    value = 0
    for at in range(0, len(data), size):
        value ^= int.from_bytes(data[at : at + size].ljust(size, b"\0"))
    return value


def xor16(data: bytes) -> int:
    """Exclusive or of all 16-bit words, the last one padded with 0 bits."""
    return _fold(data, 2)


def xor32(data: bytes) -> int:
    """Exclusive or of all 32-bit words, the last one padded with 0 bits."""
    return _fold(data, 4)
