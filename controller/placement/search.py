"""The exact search over the bound X on congestion (Algorithm 2, line 4, mended).

Congestion is always some number of messages over some rate, so the optimum is one of the
candidates m / w for a distinct rate w and an integer m. Stepping by 1 / w_max, as the paper
prints, misses it when rates differ. Nothing lists all candidates: those of one rate are an
arithmetic progression, held as a span (first m, last m), and spans are counted and cut.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from controller.placement.tree import Tree

__all__ = ["Span", "candidate_spans", "least_feasible"]

_SHORT_LIST = 256


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


def candidate_spans(tree: Tree) -> list[Span]:
    """Every value that the congestion of a link can take, one span a distinct rate.

    A link carries at most the workers below it, so a rate's span ends with the largest such
    number among its links.
    """
    most = [0] * len(tree.distinct_rates)
    for index, below in zip(tree.rate_index, tree.subtree_loads(), strict=True):
        if below > most[index]:
            most[index] = below
    return [
        Span(rate.numerator, rate.denominator, 0, last)
        for rate, last in zip(tree.distinct_rates, most, strict=True)
    ]


def least_feasible(
    spans: list[Span],
    low: Fraction,
    high: Fraction,
    attempt: Callable[[Fraction], Fraction | None],
) -> Fraction:
    """The least candidate X that is feasible, found by halving the candidates that remain.

    Args:
        spans: all candidates.
        low: a bound known to be infeasible.
        high: a candidate known to be feasible.
        attempt: for a bound X, the congestion at or below X that some placement really reaches,
            or None where none keeps within X. Feasibility is monotone in X.

    The number of attempts is about log2 of the number of candidates between low and high; each
    leaves at most 5/8 of them, and nearly always about half.
    """
    while True:
        spans = _strictly_between(spans, low, high)
        remaining = sum(span.last - span.first + 1 for span in spans)
        if remaining <= max(_SHORT_LIST, 4 * len(spans)):
            return _bisect(_sorted_candidates(spans), high, attempt)
        bound = _near_median(spans, remaining, low, high)
        reached = attempt(bound)
        if reached is None:
            low = bound
        else:
            high = reached


def _strictly_between(spans: list[Span], low: Fraction, high: Fraction) -> list[Span]:
    cut = []
    for span in spans:
        first = max(span.first, span.messages_within(low) + 1)
        last = min(span.last, span.messages_short_of(high))
        if first <= last:
            cut.append(Span(span.numerator, span.denominator, first, last))
    return cut


def _near_median(spans: list[Span], remaining: int, low: Fraction, high: Fraction) -> Fraction:
    """A candidate with between 3/8 and 5/8 of the remaining ones at or below it.

    Halves an interval of values, counting only. It ends: a window that is narrower than the
    smallest step 1 / w holds at most one candidate a span, and spans are fewer than a quarter of
    the candidates, the width of the target.
    """
    while True:
        middle = (low + high) / 2
        at_or_below = sum(
            min(max(span.messages_within(middle), span.first - 1), span.last) - span.first + 1
            for span in spans
        )
        if 8 * at_or_below < 3 * remaining:
            low = middle
        elif 8 * at_or_below > 5 * remaining:
            high = middle
        else:
            return _largest_up_to(spans, middle)


def _largest_up_to(spans: Iterable[Span], bound: Fraction) -> Fraction:
    best_top, best_bottom = -1, 1
    for span in spans:
        messages = min(span.messages_within(bound), span.last)
        if messages < span.first:
            continue
        top, bottom = messages * span.denominator, span.numerator
        if top * best_bottom > best_top * bottom:
            best_top, best_bottom = top, bottom
    return Fraction(best_top, best_bottom)


def _sorted_candidates(spans: list[Span]) -> list[Fraction]:
    """The remaining candidates, rising, each value once.

    Two different candidates differ by at least 1 / (numerator * numerator'), so they differ
    after multiplying by the scale and rounding down too: integers sort in place of fractions.
    """
    scale = 2 * max((span.numerator for span in spans), default=1) ** 2
    by_key: dict[int, tuple[int, int]] = {}
    for span in spans:
        for messages in range(span.first, span.last + 1):
            top = messages * span.denominator
            by_key[top * scale // span.numerator] = (top, span.numerator)
    return [Fraction(*by_key[key]) for key in sorted(by_key)]


def _bisect(
    candidates: list[Fraction],
    high: Fraction,
    attempt: Callable[[Fraction], Fraction | None],
) -> Fraction:
    """The least feasible among the sorted candidates, or `high` where none of them is."""
    below, above = 0, len(candidates)
    while below < above:
        middle = (below + above) // 2
        reached = attempt(candidates[middle])
        if reached is None:
            below = middle + 1
        else:
            high = reached
            above = middle
            while above > below and candidates[above - 1] >= reached:
                above -= 1
    return high
