"""The exact search over the bound X on congestion (Algorithm 2, line 4, mended).

Congestion is always some number of messages over some rate, so the optimum is one of the
candidates m / w for a distinct rate w and an integer m. Stepping by 1 / w_max, as the paper
prints, misses it when rates differ. Nothing lists all candidates: those of one rate are an
arithmetic progression, held as a span (first m, last m), and spans are counted and cut.

The search is written once, over what it must know of a set of candidates. `Spans` is such a set
in Python's integers; `RateSpans` in rates.py is one in arrays.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Protocol, TypeVar

from controller.placement.tree import Tree

__all__ = [
    "SAMPLE",
    "Candidates",
    "Span",
    "Spans",
    "candidate_spans",
    "least_feasible",
    "median",
    "spread",
]

SAMPLE = 31
"""How many candidates are compared to find one near the median."""

# 2^64 over the golden ratio: its multiples modulo 2^64 fall evenly into every stretch.
_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 1 << 64

_Self = TypeVar("_Self", bound="Candidates")


class Candidates(Protocol):
    """A finite set of congestions, as far as the search must know it."""

    def count(self) -> float:
        """How many there are: 0 iff there is none, and within a millionth otherwise."""

    def typical(self, turn: int) -> Fraction:
        """The median of a sample of them; another sample every turn."""

    def below(self: _Self, bound: Fraction) -> _Self:
        """Those less than the bound."""

    def above(self: _Self, bound: Fraction) -> _Self:
        """Those greater than the bound."""


_Set = TypeVar("_Set", bound=Candidates)


def least_feasible(
    candidates: _Set,
    low: Fraction,
    high: Fraction,
    attempt: Callable[[Fraction], Fraction | None],
) -> Fraction:
    """The least candidate X that is feasible, found by halving the candidates that remain.

    Args:
        candidates: all of them.
        low: a bound known to be infeasible.
        high: a candidate known to be feasible.
        attempt: for a bound X, a feasible candidate at or below X, such as the congestion that
            some placement really reaches, or None where X is infeasible. Feasibility is monotone
            in X.

    Each attempt leaves at most 3/4 of the candidates, and nearly always about half: the number
    of attempts is about log2 of the number of candidates between low and high.
    """
    remaining = candidates.above(low).below(high)
    turn = 0
    while remaining.count():
        bound, turn = _central(remaining, turn)
        reached = attempt(bound)
        if reached is None:
            remaining = remaining.above(bound)
        else:
            high = reached
            remaining = remaining.below(reached)
    return high


def _central(candidates: _Set, turn: int) -> tuple[Fraction, int]:
    """A candidate with at most 3/4 of all below it and at most 3/4 above it; and the next turn.

    It ends: the window keeps the median, which passes, and loses at least one candidate a turn.
    """
    window, most = candidates, candidates.count() * 3 / 4
    while True:
        bound = window.typical(turn)
        turn += 1
        if candidates.below(bound).count() > most:
            window = window.below(bound)
        elif candidates.above(bound).count() > most:
            window = window.above(bound)
        else:
            return bound, turn


def spread(turn: int, most: int) -> Iterable[int]:
    """SAMPLE numbers of 0 .. most - 1, spread evenly, other ones every turn."""
    first = turn * SAMPLE
    return (((first + i) * _GOLDEN + _GOLDEN // 2) % _WORD * most // _WORD for i in range(SAMPLE))


def median(sample: Sequence[tuple[int, int]]) -> Fraction:
    """The median of the fractions top / bottom, bottom > 0, compared as integers.

    Two different ones differ by at least 1 / (bottom * bottom'), so they keep their order after
    multiplying by twice the largest bottom squared and rounding down.
    """
    scale = 2 * max(bottom for _, bottom in sample) ** 2
    ordered = sorted(sample, key=lambda candidate: candidate[0] * scale // candidate[1])
    return Fraction(*ordered[len(ordered) // 2])


@dataclass(frozen=True, slots=True)
class Span:
    """The candidates m / rate for first <= m <= last; rate = numerator / denominator."""

    numerator: int
    denominator: int
    first: int
    last: int

    def messages_within(self, bound: Fraction) -> int:
        """floor(bound * rate): the most messages that keep such a link within the bound."""
        return (bound.numerator * self.numerator) // (bound.denominator * self.denominator)

    def messages_short_of(self, bound: Fraction) -> int:
        """The most messages that keep such a link strictly below the bound."""
        return (bound.numerator * self.numerator - 1) // (bound.denominator * self.denominator)


@dataclass(frozen=True, slots=True)
class Spans:
    """Candidates as spans, none of them empty."""

    spans: tuple[Span, ...]

    def count(self) -> int:
        """How many there are, equal values of different rates counted each."""
        return sum(span.last - span.first + 1 for span in self.spans)

    def typical(self, turn: int) -> Fraction:
        """The median of all where they are few, else of a sample."""
        ends = list(accumulate(span.last - span.first + 1 for span in self.spans))
        places = range(ends[-1]) if ends[-1] <= SAMPLE else spread(turn, ends[-1])
        sample = []
        for place in places:
            index = bisect_right(ends, place)
            span = self.spans[index]
            messages = span.last - (ends[index] - 1 - place)
            sample.append((messages * span.denominator, span.numerator))
        return median(sample)

    def below(self, bound: Fraction) -> "Spans":
        """Those less than the bound."""
        return Spans(
            tuple(
                Span(span.numerator, span.denominator, span.first, last)
                for span in self.spans
                if span.first <= (last := min(span.last, span.messages_short_of(bound)))
            )
        )

    def above(self, bound: Fraction) -> "Spans":
        """Those greater than the bound."""
        return Spans(
            tuple(
                Span(span.numerator, span.denominator, first, span.last)
                for span in self.spans
                if (first := max(span.first, span.messages_within(bound) + 1)) <= span.last
            )
        )


def candidate_spans(tree: Tree) -> Spans:
    """Every value that the congestion of a link can take, one span a distinct rate.

    A link carries at most the workers below it, so a rate's span ends with the largest such
    number among its links.
    """
    most = [0] * len(tree.distinct_rates)
    for index, below in zip(tree.rate_index, tree.subtree_loads(), strict=True):
        if below > most[index]:
            most[index] = below
    return Spans(
        tuple(
            Span(rate.numerator, rate.denominator, 0, last)
            for rate, last in zip(tree.distinct_rates, most, strict=True)
        )
    )
