"""Hash algorithms of v1model that are not csum16; all take the joined input as bytes."""

from zlib import crc32 as _zlib_crc32

from softswitch.entries import CrcConfig


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


class CustomCrc:
    """A CRC whose polynomial a control plane may set; starts as bmv2's for its width.

    Call it with the joined input. Parameters as in Koopman's and Williams' model: polynomial
    without its top term, start value, value for the final exclusive or, reflected input bytes,
    reflected remainder.
    """

    def __init__(self, config: CrcConfig) -> None:
        self.configure(config)

    def configure(self, config: CrcConfig) -> None:
        """Take other parameters, from the next packet on."""
        self._live = (config, _crc_table(config))

    @property
    def config(self) -> CrcConfig:
        return self._live[0]

    def __call__(self, data: bytes) -> int:
        config, table = self._live
        mask, top = (1 << config.width) - 1, config.width - 8
        value = config.initial
        for byte in data:
            byte = _reflect(byte, 8) if config.reflect_data else byte
            value = table[value >> top ^ byte] ^ value << 8 & mask
        value = _reflect(value, config.width) if config.reflect_remainder else value
        return value ^ config.final_xor


def _reflect(value: int, width: int) -> int:
    return int(f"{value:0{width}b}"[::-1], 2)


def _crc_table(config: CrcConfig) -> tuple[int, ...]:
    top, mask = 1 << (config.width - 1), (1 << config.width) - 1
    rows: list[int] = []
    for index in range(256):
        value = index << (config.width - 8)
        for _ in range(8):
            value = (value << 1 ^ (config.polynomial if value & top else 0)) & mask
        rows.append(value)
    return tuple(rows)


class Toeplitz:
    """The Toeplitz hash of receive-side scaling, with a key of 32-bit words (bmv2's: one 0)."""

    def __init__(self, key: bytes = bytes(4)) -> None:
        self.configure(key)

    def configure(self, key: bytes) -> None:
        """Take another key; its length is a multiple of 4 bytes, and not 0."""
        self._words = tuple(int.from_bytes(key[i : i + 4]) for i in range(0, len(key), 4))

    def __call__(self, data: bytes) -> int:
        words, value = self._words, 0
        for number, at in enumerate(range(0, len(data), 4)):
            word = int.from_bytes(data[at : at + 4].ljust(4, b"\0"))
            pair = words[number % len(words)] << 32 | words[(number + 1) % len(words)]
            for bit in range(32):
                if word >> (31 - bit) & 1:
                    value ^= pair >> (32 - bit)
        return value & 0xFFFFFFFF


class RoundRobin:
    """Counts from 0, whatever the input."""

    def __init__(self) -> None:
        self._next = 0

    def __call__(self, data: bytes) -> int:
        self._next += 1
        return self._next - 1


class ConsistentRoundRobin:
    """Counts from 0, and gives the same number again for the same input.

    It remembers the last 65,536 inputs (bmv2 all of them).
    """

    def __init__(self) -> None:
        self._next = 0
        self._known: dict[bytes, int] = {}

    def __call__(self, data: bytes) -> int:
        found = self._known.get(data)
        if found is not None:
            return found
        if len(self._known) >= 1 << 16:
            del self._known[next(iter(self._known))]
        self._known[data] = self._next
        self._next += 1
        return self._next - 1


StatefulHash = CustomCrc | Toeplitz | RoundRobin | ConsistentRoundRobin

CUSTOM = {
    "crc8_custom": CrcConfig(8, 0x07, 0, 0, False, False),
    "crc16_custom": CrcConfig(16, 0x8005, 0, 0, True, True),
    "crc32_custom": CrcConfig(32, 0x04C11DB7, 0xFFFFFFFF, 0xFFFFFFFF, True, True),
    "crc64_custom": CrcConfig(64, 0x1B, 0, 0, True, True),
}
"""What bmv2 starts the custom CRCs with."""

STATEFUL = frozenset((*CUSTOM, "toeplitz", "round_robin", "round_robin_consistent"))
"""Algorithms of which every calculation has an instance of its own on every switch."""


def stateful_hash(algorithm: str) -> StatefulHash:
    """A fresh instance of one of `STATEFUL`."""
    if algorithm in CUSTOM:
        return CustomCrc(CUSTOM[algorithm])
    if algorithm == "toeplitz":
        return Toeplitz()
    return RoundRobin() if algorithm == "round_robin" else ConsistentRoundRobin()
