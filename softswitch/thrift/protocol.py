"""Thrift's binary protocol (thrift-binary-protocol specification, strict form, without frames).

Values are read by what the bytes say they are, not by a description of the service: a struct
becomes a dict from field id to value. Written is only what the services answer.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

STOP, BOOL, BYTE, DOUBLE, I16, I32, I64 = 0, 2, 3, 4, 6, 8, 10
STRING, STRUCT, MAP, SET, LIST = 11, 12, 13, 14, 15
CALL, REPLY, EXCEPTION, ONEWAY = 1, 2, 3, 4
UNKNOWN_METHOD, INTERNAL_ERROR, PROTOCOL_ERROR = 1, 6, 7
"""Kinds of TApplicationException."""

MAX_CALL = 1 << 20
"""Bytes of a call."""
MAX_DEPTH = 8
"""How deep values may be nested."""

_VERSION = 0x80010000
_NUMBERS = {BOOL: ">?", BYTE: ">b", DOUBLE: ">d", I16: ">h", I32: ">i", I64: ">q"}

Value = bool | int | float | bytes | list["Value"] | dict[int, "Value"]


class ThriftError(Exception):
    """What came is no call in Thrift's binary protocol."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call: `name` is ``service:method``, `arguments` go by their field id."""

    name: str
    kind: int
    sequence: int
    arguments: dict[int, Value]


def read_call(stream: BinaryIO) -> Call | None:
    """The next call; None where the client has ended. Raises ThriftError."""
    first = stream.read(4)
    if not first:
        return None
    reader = _Reader(stream)
    first += reader.take(4 - len(first))
    (word,) = struct.unpack(">I", first)
    if word & 0xFFFF0000 != _VERSION:
        raise ThriftError(f"a call begins with {first.hex()}, not with version 1 of the protocol")
    name = reader.string()
    (sequence,) = reader.unpack(">i")
    text = name.decode("utf-8", "replace")
    return Call(text, word & 0xFF, sequence, reader.struct(0))


class _Reader:
    """Reads one call, and not more than MAX_CALL bytes of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._left = MAX_CALL

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self._left:
            raise ThriftError(f"a call of more than {MAX_CALL} bytes")
        self._left -= count
        found = self._stream.read(count)
        if len(found) < count:
            raise ThriftError("the connection ends inside a call")
        return found

    def unpack(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def string(self) -> bytes:
        (length,) = self.unpack(">i")
        return self.take(length)

    def struct(self, depth: int) -> dict[int, Value]:
        fields: dict[int, Value] = {}
        while (kind := self.take(1)[0]) != STOP:
            (number,) = self.unpack(">h")
            fields[number] = self.value(kind, depth + 1)
        return fields

    def value(self, kind: int, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise ThriftError(f"values nested more than {MAX_DEPTH} deep")
        if kind in _NUMBERS:
            return self.unpack(_NUMBERS[kind])[0]
        if kind == STRING:
            return self.string()
        if kind == STRUCT:
            return self.struct(depth)
        if kind in (LIST, SET):
            of, count = self.unpack(">Bi")
            return [self.value(of, depth + 1) for _ in range(count)]
        if kind == MAP:
            of, to, count = self.unpack(">BBi")
            return [[self.value(of, depth + 1), self.value(to, depth + 1)] for _ in range(count)]
        raise ThriftError(f"a value of type {kind}, which there is not")


# --- what is written ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct: its id, its type, and its value as bytes."""

    number: int
    kind: int
    data: bytes


def i32(number: int, value: int) -> Field:
    """A field of 32 bits."""
    return Field(number, I32, struct.pack(">i", value))


def i64(number: int, value: int) -> Field:
    """A field of 64 bits."""
    return Field(number, I64, struct.pack(">q", value))


def boolean(number: int, value: bool) -> Field:
    """A field that is true or false."""
    return Field(number, BOOL, struct.pack(">?", value))


def string(number: int, value: bytes) -> Field:
    """A field of text or bytes."""
    return Field(number, STRING, _counted(value))


def nested(number: int, fields: Sequence[Field]) -> Field:
    """A field that is a struct."""
    return Field(number, STRUCT, pack(fields))


def structs(number: int, items: Sequence[Sequence[Field]]) -> Field:
    """A field that is a list of structs."""
    packed = b"".join(pack(item) for item in items)
    return Field(number, LIST, struct.pack(">bi", STRUCT, len(items)) + packed)


def no_strings(number: int) -> Field:
    """A field that is an empty map from strings to strings."""
    return Field(number, MAP, struct.pack(">bbi", STRING, STRING, 0))


def pack(fields: Sequence[Field]) -> bytes:
    """A struct."""
    return b"".join(struct.pack(">bh", f.kind, f.number) + f.data for f in fields) + bytes([STOP])


def message(kind: int, name: str, sequence: int, fields: Sequence[Field]) -> bytes:
    """A whole message: a REPLY with its result, or an EXCEPTION."""
    method = name.rpartition(":")[2].encode()
    head = struct.pack(">I", _VERSION | kind) + _counted(method) + struct.pack(">i", sequence)
    return head + pack(fields)


def exception(call: Call, kind: int, text: str) -> bytes:
    """The answer to a call that cannot be carried out (TApplicationException)."""
    fields = (string(1, text.encode()), i32(2, kind))
    return message(EXCEPTION, call.name, call.sequence, fields)


def _counted(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value
