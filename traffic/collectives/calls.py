"""A collective call: what all ranks must agree on, and how its array becomes chunks and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traffic.collectives.blocks import FLOATS, Blocks
from traffic.collectives.errors import SumOverflowError, UnsuitableArrayError
from traffic.endpoint import Op
from traffic.message import LANE_BYTES
from traffic.payload import Payload, Tensor

Array = NDArray[Any]
NO_ROOT = -1


class Kind(StrEnum):
    """The collectives."""

    ALLREDUCE = "allreduce"
    REDUCE = "reduce"
    BROADCAST = "broadcast"
    BARRIER = "barrier"


@dataclass(frozen=True, slots=True)
class Call:
    """What every rank must ask for alike. `root` is -1 where there is none."""

    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    op: str = "sum"
    root: int = NO_ROOT

    def __str__(self) -> str:
        if self.kind is Kind.BARRIER:
            return "barrier()"
        words = [f"{self.dtype}{list(self.shape)}"]
        if self.kind is not Kind.BROADCAST:
            words.append(self.op)
        if self.root != NO_ROOT:
            words.append(f"root {self.root}")
        return f"{self.kind.value}({', '.join(words)})"

    @property
    def size(self) -> int:
        """Elements of the array."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class Part:
    """One rank's part in a call.

    Attributes:
        payload: what its worker sends.
        op: what its worker waits for: the sum, or only an acknowledgement.
        result: the call's result once the worker is done, told which chunks overflowed; raises
            SumOverflowError.
    """

    payload: Payload
    op: Op
    result: Callable[[frozenset[int]], Array | None]


def check(array: Array) -> None:
    """Refuse what cannot be summed: another type, NaN, infinity. Raises UnsuitableArrayError."""
    if array.dtype == np.int32:
        return
    if array.dtype not in FLOATS:
        raise UnsuitableArrayError(
            f"the array is {array.dtype}: sums are of float32, float64 or int32; convert it"
        )
    fine = np.isfinite(array)
    if not fine.all():
        index = tuple(int(i) for i in np.argwhere(~fine)[0])
        place = f"[{', '.join(map(str, index))}]" if index else ""
        what = "NaN" if np.isnan(array[index]) else "infinite"
        raise UnsuitableArrayError(
            f"value{place} is {what}: only finite values have a sum; mask it or stop there", index
        )


def part_of(call: Call, array: Array, rank: int, ranks: int, lanes: int, window: int) -> Part:
    """A rank's part in a call; the array is flattened, and no block is larger than a message."""
    if call.kind is Kind.BARRIER:
        nothing = Tensor(np.zeros((1, lanes), dtype=np.int32), with_sums=False)
        return Part(nothing, Op.REDUCE, lambda _: None)
    if call.kind is Kind.BROADCAST:
        return _broadcast(call, array, rank == call.root, lanes)
    op = Op.ALLREDUCE if call.kind is Kind.ALLREDUCE or rank == call.root else Op.REDUCE
    if array.dtype == np.int32:
        return _integers(call, array, op, ranks, lanes)
    return _floats(call, array, op, ranks, lanes, window)


def _broadcast(call: Call, array: Array, is_root: bool, lanes: int) -> Part:
    """The root's bytes as lanes, zeros from everyone else: the sum is the root's, bit for bit."""
    octets = np.ascontiguousarray(array).tobytes()
    in_chunk = lanes * LANE_BYTES
    chunks = -(-len(octets) // in_chunk)
    rows = np.zeros((chunks, lanes), dtype=np.int32)
    if is_root:
        padded = octets.ljust(chunks * in_chunk, b"\0")
        rows = np.frombuffer(padded, dtype=np.int32).reshape(chunks, lanes)
    tensor = Tensor(rows, with_sums=True)

    def result(overflowed: frozenset[int]) -> Array:
        raw = tensor.sums.tobytes()[: len(octets)]
        return np.frombuffer(raw, dtype=call.dtype).reshape(call.shape).copy()

    return Part(tensor, Op.ALLREDUCE, result)


def _integers(call: Call, array: Array, op: Op, ranks: int, lanes: int) -> Part:
    rows = np.zeros((-(-array.size // lanes), lanes), dtype=np.int32)
    rows.ravel()[: array.size] = array.ravel()
    tensor = Tensor(rows, with_sums=op == Op.ALLREDUCE)

    def result(overflowed: frozenset[int]) -> Array | None:
        _refuse_overflow(call, overflowed, lanes)
        if op == Op.REDUCE:
            return None
        sums = tensor.sums.ravel()[: array.size].reshape(call.shape)
        return sums / ranks if call.op == "mean" else sums

    return Part(tensor, op, result)


def _floats(call: Call, array: Array, op: Op, ranks: int, lanes: int, window: int) -> Part:
    blocks = Blocks(array.ravel(), ranks, lanes)
    payload = BlockPayload(blocks, window, with_sums=op == Op.ALLREDUCE)

    def result(overflowed: frozenset[int]) -> Array | None:
        flawed = payload.flawed | {chunk - payload.reach for chunk in overflowed}
        _refuse_overflow(call, flawed, lanes // FLOATS[array.dtype])
        if op == Op.REDUCE:
            return None
        divisor = ranks if call.op == "mean" else 1
        values = blocks.decode(payload.sums, payload.agreed, divisor).reshape(call.shape)
        fits = np.isfinite(values)
        if not fits.all():
            index = [int(i) for i in np.argwhere(~fits)[0]]
            raise SumOverflowError(f"{call}: the sum at {index} does not fit {call.dtype}")
        return values

    return Part(payload, op, result)


def _refuse_overflow(call: Call, chunks: frozenset[int], in_chunk: int) -> None:
    if chunks:
        first = min(chunks) * in_chunk
        raise SumOverflowError(
            f"{call}: a sum left int32 among elements {first} to "
            f"{min(first + in_chunk, call.size) - 1} ({len(chunks)} chunks of {in_chunk} in all): "
            "scale the values down, or use a floating type"
        )


class BlockPayload:
    """Blocks, each under an exponent that was agreed `window` chunks before.

    Chunk c carries the exponent that its sender needs for block c; block c itself is in chunk
    c + reach, and the answer to chunk c says the exponent that all of them use there. The first
    `reach` chunks carry exponents only.
    """

    __slots__ = ("_blocks", "_nothing", "agreed", "chunks", "flawed", "lanes", "reach", "sums")

    def __init__(self, blocks: Blocks, window: int, *, with_sums: bool) -> None:
        self._blocks = blocks
        self.lanes = blocks.lanes
        self.reach = min(window, blocks.blocks)
        self.chunks = self.reach + blocks.blocks
        self.agreed = np.zeros(blocks.blocks, dtype=np.uint16)
        self.sums = np.zeros((blocks.blocks if with_sums else 0, self.lanes), dtype=np.int32)
        self.flawed: frozenset[int] = frozenset()
        self._nothing = bytes(self.lanes * LANE_BYTES)

    def message(self, chunk: int) -> tuple[bytes, int]:
        """The lanes of a block that is due, and the exponent of one that is to come."""
        blocks = self._blocks
        exponent = int(blocks.exponents[chunk]) if chunk < blocks.blocks else 0
        block = chunk - self.reach
        if block < 0 or not self.agreed[block] or block in self.flawed:
            return self._nothing, exponent
        return blocks.encode(block, int(self.agreed[block])), exponent

    def answered(self, chunk: int, lanes: bytes, exponent: int, absent: frozenset[int]) -> None:
        """Keep an exponent and a sum."""
        if chunk < self._blocks.blocks:
            self.agreed[chunk] = exponent
            if exponent < self._blocks.exponents[chunk]:
                # Not the maximum: under it the block would not fit its lanes.
                self.flawed |= {chunk}
        if lanes and chunk >= self.reach:
            self.sums[chunk - self.reach] = np.frombuffer(lanes, dtype=">i4")
