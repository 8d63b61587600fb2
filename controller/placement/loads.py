"""Algorithm 1, Reduce: how many messages every link carries for a set of blue switches."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral

from controller.placement.errors import PlacementError
from controller.placement.tree import Tree

__all__ = ["Loads", "Placement", "loads", "message_counts", "most_congested"]


@dataclass(frozen=True, slots=True)
class Loads:
    """What one Reduce puts on the links of a tree.

    Attributes:
        messages: msg_e(T, L, U) of Sec. II, one entry a link.
        rate: the rate of each link, as in the tree.
        congestion: psi(T, L, U), Eq. (1): the largest messages / rate.
    """

    messages: tuple[int, ...]
    rate: tuple[Fraction, ...]
    congestion: Fraction

    @property
    def link_congestion(self) -> tuple[Fraction, ...]:
        """psi_e(T, L, U) = messages / rate of every link, exact, in seconds."""
        return tuple(m / w for m, w in zip(self.messages, self.rate, strict=True))


@dataclass(frozen=True, slots=True)
class Placement:
    """Which switches are blue, and the congestion that this gives.

    Attributes:
        blue: U, the indices of the blue switches.
        congestion: psi(T, L, U), exact.
        strategy: the name of the algorithm that chose them, as the command line spells it.
        k: the budget that it was given.
    """

    blue: frozenset[int]
    congestion: Fraction
    strategy: str
    k: int


def loads(tree: Tree, blue: Iterable[int]) -> Loads:
    """Messages and congestion of every link when the switches of `blue` aggregate.

    A red switch sends M(v) = L(v) + what its children send; a blue one min(1, M(v)). This is the
    arithmetic alone: whether a switch is available is the chooser's business, not checked here.

    Raises:
        PlacementError: an entry of `blue` is not a switch of the tree.
    """
    chosen = frozenset(blue)
    for v in chosen:
        if isinstance(v, bool) or not isinstance(v, Integral) or not 0 <= v < tree.n:
            raise PlacementError(f"blue names {v!r}: switches are the integers 0..{tree.n - 1}")
    messages = message_counts(tree, chosen)
    return Loads(tuple(messages), tree.rate, most_congested(tree, messages))


def message_counts(tree: Tree, blue: frozenset[int]) -> list[int]:
    """Messages on every link, one pass from the leaves up."""
    sent = list(tree.load)
    parent = tree.parent
    for v in tree.order:
        if sent[v] > 1 and v in blue:
            sent[v] = 1
        if v:
            sent[parent[v]] += sent[v]
    return sent


def most_congested(tree: Tree, messages: Iterable[int]) -> Fraction:
    """The largest messages / rate: rationals are compared once a distinct rate, not once a link."""
    most = [0] * len(tree.distinct_rates)
    for index, count in zip(tree.rate_index, messages, strict=True):
        if count > most[index]:
            most[index] = count
    # a/b > c/d is a d > c b: integers, since building and comparing Fractions is slow.
    top, bottom = 0, 1
    for rate, count in zip(tree.distinct_rates, most, strict=True):
        if count * rate.denominator * bottom > top * rate.numerator:
            top, bottom = count * rate.denominator, rate.numerator
    return Fraction(top, bottom)
