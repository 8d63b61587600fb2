"""Floating point values as int32 lanes with one exponent for each block.

A block is what one message carries. All workers use the exponent e of its largest value, so that
|x| <= 2**e for every value of the block at every worker, and send q = rint(x * 2**(b - e)), where b
is the largest number for which `workers` such integers cannot leave int32:

    workers * 2**b <= 2**31 - 1

A product with a power of two is exact, so each worker's value is off by at most half a unit, and
the sum of integers is exact. Let M be the largest magnitude in the block over all workers, so that
2**e <= 2 * M. The decoded sum differs from the exact one by at most

    float32    workers * 2**(e - b - 1)      <= workers * M * 2**-b
    float64    workers * 2**(e - 2*b - 2)    <= workers * M * 2**-(2*b + 1)

and by the rounding of the result to its own type. float64 takes two lanes a value: q, and what
rounding left over, times 2**(b + 1), in the other. (b is 28 for 4 workers, 26 for 16, 20 for 1024.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from traffic.message import LANE_MAX

EXPONENT_BIAS = 2048
"""Added to e on the wire, so that all exponents of float64 are positive; 0 is a block of zeros."""

FLOATS = {np.dtype(np.float32): 1, np.dtype(np.float64): 2}
"""Lanes that a value takes, by type."""


class Blocks:
    """One worker's values [n], float32 or float64, all finite, cut into blocks of `lanes` lanes."""

    def __init__(self, values: NDArray[np.floating[Any]], workers: int, lanes: int) -> None:
        self._parts = FLOATS[values.dtype]
        self._type = values.dtype
        self._count = values.size
        self._bits = mantissa_bits(workers)
        self.lanes = lanes
        in_block = lanes // self._parts
        self.blocks = -(-values.size // in_block)
        self._values = np.zeros((self.blocks, in_block), dtype=values.dtype)
        self._values.ravel()[: values.size] = values
        largest = np.abs(self._values).max(axis=1, initial=0).astype(np.float64)
        _, powers = np.frexp(largest)
        self.exponents = np.where(largest > 0, powers + EXPONENT_BIAS, 0).astype(np.uint16)

    def encode(self, block: int, exponent: int) -> bytes:
        """The lanes of a block, big-endian, under the exponent that all workers agreed on."""
        scale = self._bits - (exponent - EXPONENT_BIAS)
        scaled = np.ldexp(self._values[block].astype(np.float64), scale)
        whole = np.rint(scaled)
        if self._parts == 1:
            return bytes(whole.astype(">i4"))
        rest = np.rint(np.ldexp(scaled - whole, self._bits + 1))
        return bytes(np.concatenate((whole, rest)).astype(">i4"))

    def decode(
        self, sums: NDArray[np.int32], exponents: NDArray[np.uint16], divisor: int = 1
    ) -> NDArray[np.floating[Any]]:
        """Values [n] of sums [blocks, lanes] under the agreed exponents, divided by `divisor`.

        A result that does not fit the type comes out infinite.
        """
        half = self.lanes // self._parts
        total = sums[:, :half].astype(np.float64)
        if self._parts == 2:
            total += np.ldexp(sums[:, half:].astype(np.float64), -self._bits - 1)
        scale = exponents.astype(np.int64)[:, None] - EXPONENT_BIAS - self._bits
        with np.errstate(over="ignore"):
            values = np.ldexp(total / divisor, scale.astype(np.int32)).astype(self._type)
        return values.ravel()[: self._count]


def mantissa_bits(workers: int) -> int:
    """b, the bits of a value's magnitude for sums of so many workers."""
    return (LANE_MAX // workers).bit_length() - 1


def error_bound(dtype: Any, workers: int, largest: float) -> float:
    """Largest difference of an element of a sum from the exact one, before rounding to `dtype`.

    `largest` is the largest magnitude, over all workers, in the element's block.
    """
    _, exponent = np.frexp(largest)
    bits = mantissa_bits(workers)
    unit = exponent - bits - 1 if FLOATS[np.dtype(dtype)] == 1 else exponent - 2 * bits - 2
    return workers * float(np.ldexp(1.0, unit))
