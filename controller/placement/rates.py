"""Products of a rational bound and many rates, exact to the last message, as arrays.

cap(v) = floor(X * w(v)) needs up to 188 bits when X and w are quotients of 63-bit integers. Doubles
give all but a few of the floors: a product that stays further from every integer than its own
rounding error has a certain floor. The few others are computed in Python's integers.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.placement.search import SAMPLE, median, spread

__all__ = ["RateSpans", "Rates"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# A relative error of a product: each of bound, numerator and denominator is rounded once, the
# quotient and the product once more, five times 2^-53 in all (and less than 2^-52 more of second
# order).
_ERROR = 2.0**-50
_WIDE_EPSILON = float(np.finfo(np.longdouble).eps)
_WORTH_ANOTHER_TRY = 64


class Rates:
    """The rates numerator / denominator, and for each the most messages of any of its links.

    Args:
        numerator, denominator: int64, from 1 to 2^63 - 1.
        most: int64, from 0 to 2^62: floors are not told apart above it.
    """

    __slots__ = ("_approximate", "_asked", "_floors", "denominator", "most", "numerator")

    def __init__(self, numerator: Integers, denominator: Integers, most: Integers) -> None:
        self.numerator = numerator
        self.denominator = denominator
        self.most = most
        self._approximate: Floats = numerator / denominator
        self._asked: Fraction | None = None
        self._floors: tuple[Integers, Flags] | None = None

    def floors(self, bound: Fraction) -> tuple[Integers, Flags]:
        """min(floor(bound * rate), most) for every rate, and where bound * rate is that integer.

        bound is m / w for one of the rates w and 0 <= m <= 2^62, so that doubles hold it.
        """
        if self._floors is None or self._asked != bound:
            self._asked, self._floors = bound, self._computed(bound)
        return self._floors

    def only(self, index: Integers) -> "Rates":
        """Some of the rates."""
        return Rates(self.numerator[index], self.denominator[index], self.most[index])

    def _computed(self, bound: Fraction) -> tuple[Integers, Flags]:
        product = self._approximate * (bound.numerator / bound.denominator)
        floors, certain = _floors(product, self.most, _ERROR)
        exact = np.zeros(floors.size, np.bool_)
        rest = np.flatnonzero(~certain)
        if rest.size > _WORTH_ANOTHER_TRY:
            # The same in the widest format there is: 64 bits of precision on most machines, 53
            # again on others, which only leaves more to the integers.
            wide = self.numerator[rest].astype(np.longdouble) / self.denominator[rest]
            scale = np.longdouble(str(bound.numerator)) / np.longdouble(str(bound.denominator))
            floors[rest], certain = _floors(wide * scale, self.most[rest], 8 * _WIDE_EPSILON)
            rest = rest[~certain]
        for i in rest.tolist():
            top = bound.numerator * int(self.numerator[i])
            quotient, over = divmod(top, bound.denominator * int(self.denominator[i]))
            floors[i] = min(quotient, int(self.most[i]))
            exact[i] = over == 0 and quotient <= self.most[i]
        return floors, exact

    def largest(self, messages: Integers) -> Fraction:
        """The largest messages / rate, one entry of messages a rate."""
        approximate = messages / self._approximate
        near = np.flatnonzero(approximate >= approximate.max() * (1 - 4 * _ERROR))
        top, bottom = 0, 1
        for i in near.tolist():
            over = int(messages[i]) * int(self.denominator[i])
            under = int(self.numerator[i])
            if over * bottom > top * under:
                top, bottom = over, under
        return Fraction(top, bottom)


@dataclass(frozen=True, slots=True)
class RateSpans:
    """Candidates m / rate, first <= m <= last (none where first > last), as arrays by rate.

    The doubles in `count` and `typical` only choose which candidate is tried next.
    """

    rates: Rates
    first: Integers
    last: Integers

    @classmethod
    def of(cls, rates: Rates) -> "RateSpans":
        """Every value that the congestion of a link can take."""
        return cls(rates, np.zeros(rates.most.size, np.int64), rates.most)

    def count(self) -> float:
        """How many there are, in double precision."""
        return float(self._sizes().sum(dtype=np.float64))

    def typical(self, turn: int) -> Fraction:
        """The median of all where they are few, else of a sample."""
        sizes = self._sizes()
        if self.count() <= SAMPLE:
            chosen = np.repeat(np.arange(sizes.size), sizes)
            offset = np.concatenate([np.arange(size) for size in sizes])
        else:
            ends = np.cumsum(sizes, dtype=np.float64)
            places = np.array([place * 2.0**-53 for place in spread(turn, 1 << 53)]) * ends[-1]
            chosen = np.minimum(np.searchsorted(ends, places, "right"), sizes.size - 1)
            inside = places - (ends[chosen] - sizes[chosen])
            offset = np.clip(inside, 0, 2.0**62).astype(np.int64)
        messages = np.minimum(self.first[chosen] + offset, self.last[chosen])
        return median(
            [
                (int(m) * int(b), int(a))
                for m, a, b in zip(
                    messages,
                    self.rates.numerator[chosen],
                    self.rates.denominator[chosen],
                    strict=True,
                )
            ]
        )

    def below(self, bound: Fraction) -> "RateSpans":
        """Those less than the bound."""
        floors, exact = self.rates.floors(bound)
        return self._kept(self.first, np.minimum(self.last, floors - exact))

    def above(self, bound: Fraction) -> "RateSpans":
        """Those greater than the bound."""
        floors, _ = self.rates.floors(bound)
        return self._kept(np.maximum(self.first, floors + 1), self.last)

    def _sizes(self) -> Integers:
        sizes: Integers = np.maximum(self.last - self.first + 1, 0)
        return sizes

    def _kept(self, first: Integers, last: Integers) -> "RateSpans":
        kept = np.flatnonzero(first <= last)
        if 2 * kept.size > first.size:
            return RateSpans(self.rates, first, last)
        return RateSpans(self.rates.only(kept), first[kept], last[kept])


def _floors(
    product: NDArray[np.floating[Any]], most: Integers, error: float
) -> tuple[Integers, Flags]:
    """min(floor(product), most), and where that is certain.

    The true product is within `error` times the product of the computed one.
    """
    margin = product * error
    # most + 1 is rounded in the same format, by less than the second margin.
    beyond = product - 2 * margin > most.astype(product.dtype) + 1
    whole = np.floor(product)
    part = product - whole
    certain = (part > margin) & (1 - part > margin)
    floors = np.minimum(np.minimum(whole, 2.0**62).astype(np.int64), most)
    return np.where(beyond, most, floors), beyond | certain
