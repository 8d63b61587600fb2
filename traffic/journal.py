"""What a destination must not forget: every complete chunk, written before its answer leaves.

A journal is a buffer of records, one for each of the chunks that may be asked for. With the buffer
in a file, the destination that takes the place of one that was killed has the same sums, and gives
the same answers. A record is marked void, written, then given its number: one that was being
written when its writer died is void. An endless job has two records for each slot, so that the
chunk before is still known then.

    header   magic, job, epoch, first chunk, lanes, records, wrong sums so far
    record   number of its chunk and 1 (0: void), exponent, flags, lanes

Nothing here does I/O: a mapped file is a buffer like any other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import TypeAlias

from traffic.destination_config import DestinationConfig
from traffic.errors import ConfigError
from traffic.message import LANE_BYTES

Buffer: TypeAlias = bytearray | mmap
_MAGIC = b"bluetree journal"
_HEADER = struct.Struct("=16sHIQII")
_WRONG = struct.Struct("=Q")
_WRONG_AT = _HEADER.size
RECORDS_AT = _WRONG_AT + _WRONG.size
_NUMBER = struct.Struct("=Q")
_REST = struct.Struct("=HB")
_LANES_AT = _NUMBER.size + _REST.size
_OVERFLOWED = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """A complete chunk; chunks count from 0 within the tensor. `lanes` are big-endian int32."""

    chunk: int
    lanes: bytes
    exponent: int
    overflowed: bool


class Journal:
    """The complete chunks of one job in a buffer of `size_of` bytes."""

    def __init__(self, config: DestinationConfig, buffer: Buffer, *, resume: bool) -> None:
        """Begin anew, or with what is there; ConfigError where that is of another job."""
        self._buffer = buffer
        self._records = _records(config)
        self._step = record_bytes(config.lanes)
        header = _HEADER.pack(
            _MAGIC, config.job, config.epoch, config.first_chunk, config.lanes, self._records
        )
        if not resume:
            buffer[:] = bytes(len(buffer))
            buffer[: _HEADER.size] = header
        elif len(buffer) != size_of(config) or buffer[: _HEADER.size] != header:
            raise ConfigError(
                f"destination of job {config.job}: what is on record is of another job, or none"
            )

    @property
    def wrong(self) -> int:
        """Sums of an endless job so far that were not what they had to be."""
        (count,) = _WRONG.unpack_from(self._buffer, _WRONG_AT)
        return int(count)

    def note(self, entry: Entry, *, right: bool) -> None:
        """Record a chunk, in place of what nobody can ask for any more."""
        buffer, at = self._buffer, self._at(entry.chunk % self._records)
        if not right:
            _WRONG.pack_into(buffer, _WRONG_AT, self.wrong + 1)
        _NUMBER.pack_into(buffer, at, 0)
        _REST.pack_into(buffer, at + _NUMBER.size, entry.exponent, entry.overflowed * _OVERFLOWED)
        buffer[at + _LANES_AT : at + self._step] = entry.lanes
        _NUMBER.pack_into(buffer, at, entry.chunk + 1)

    def entries(self) -> Iterator[Entry]:
        """What is on record, by record."""
        for record in range(self._records):
            at = self._at(record)
            (number,) = _NUMBER.unpack_from(self._buffer, at)
            if number:
                exponent, flags = _REST.unpack_from(self._buffer, at + _NUMBER.size)
                lanes = bytes(self._buffer[at + _LANES_AT : at + self._step])
                yield Entry(number - 1, lanes, exponent, bool(flags & _OVERFLOWED))

    def _at(self, record: int) -> int:
        return RECORDS_AT + record * self._step


def record_bytes(lanes: int) -> int:
    """Bytes of one record."""
    return _LANES_AT + lanes * LANE_BYTES


def size_of(config: DestinationConfig) -> int:
    """Bytes of the journal of a job."""
    return RECORDS_AT + _records(config) * record_bytes(config.lanes)


def _records(config: DestinationConfig) -> int:
    return config.chunks if config.stream is None else 2 * config.pool
