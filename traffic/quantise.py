"""Fixed-point numbers whose sums fit a lane.

A switch adds int32 lanes. `Quantiser` maps reals x with |x| <= bound to integers q = rint(x * s),
with s the largest power of two for which `workers` such integers cannot leave int32, rounding
included:

    workers * rint(bound * s) <= 2**31 - 1

(rint is monotone, so |q| <= rint(bound * s).) A product with a power of two is exact in float64,
hence each contribution is off by at most half a unit, 0.5 / s, and the decoded sum, which is exact
again, by at most

    error_bound = workers * 0.5 / s

against the exact sum of the contributions. There is no other source of error.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traffic.errors import QuantiseError
from traffic.message import LANE_MAX

# Bounds whose scale and error bound are normal float64 numbers, with room for the 31 lane bits.
_EXPONENT_LIMIT = 900


class Quantiser:
    """Fixed point for sums of `workers` contributions, each value at most `bound` in magnitude.

    Raises QuantiseError if no scale exists for them.
    """

    __slots__ = ("bound", "exponent", "workers")

    def __init__(self, workers: int, bound: float) -> None:
        if not 1 <= workers <= LANE_MAX:
            raise QuantiseError(f"workers is {workers}: it must be 1 to {LANE_MAX}")
        if not (math.isfinite(bound) and 2.0**-_EXPONENT_LIMIT <= bound <= 2.0**_EXPONENT_LIMIT):
            raise QuantiseError(
                f"bound is {bound}: it must lie between 2**-{_EXPONENT_LIMIT} and "
                f"2**{_EXPONENT_LIMIT}"
            )
        self.workers = workers
        self.bound = float(bound)
        self.exponent = _largest_exponent(LANE_MAX // workers, self.bound)

    @property
    def scale(self) -> float:
        """s, a power of two: units of a lane per one."""
        return math.ldexp(1.0, self.exponent)

    @property
    def error_bound(self) -> float:
        """Largest difference of a decoded sum from the exact one, per element."""
        return self.workers * math.ldexp(0.5, -self.exponent)

    def encode(self, values: ArrayLike) -> NDArray[np.int32]:
        """Lanes of real values, same shape; raises QuantiseError naming the first bad index.

        Refused are NaN, infinity and magnitudes above the bound.
        """
        array = np.asarray(values, dtype=np.float64)
        # Comparisons with NaN are false, so one test finds all three.
        fine = np.abs(array) <= self.bound
        if not fine.all():
            raise self._refusal(array, fine)
        return np.rint(np.ldexp(array, self.exponent)).astype(np.int32)

    def decode(self, sums: NDArray[np.integer]) -> NDArray[np.float64]:
        """Real values of sums of lanes, same shape."""
        if not np.issubdtype(sums.dtype, np.integer):
            raise QuantiseError(f"sums have the type {sums.dtype}: they must be integers")
        return np.ldexp(sums.astype(np.float64), -self.exponent)

    def _refusal(self, array: NDArray[np.float64], fine: NDArray[np.bool_]) -> QuantiseError:
        index = tuple(int(i) for i in np.argwhere(~fine)[0])
        value = float(array[index])
        place = _name(index)
        if math.isnan(value):
            message = f"value{place} is NaN: it has no fixed-point form"
        elif math.isinf(value):
            message = f"value{place} is infinite: it has no fixed-point form"
        else:
            message = f"value{place} is {value}: its magnitude exceeds the bound {self.bound}"
        return QuantiseError(message, index)


def _largest_exponent(limit: int, bound: float) -> int:
    """Largest e with rint(bound * 2**e) <= limit, for limit >= 1."""
    # bound = mantissa * 2**power with 0.5 <= mantissa < 1, so this e gives less than limit + 1 or
    # one too few; the loop settles rounding.
    _, power = math.frexp(bound)
    exponent = limit.bit_length() - power + 1
    while round(math.ldexp(bound, exponent)) > limit:
        exponent -= 1
    return exponent


def _name(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""
