"""The tree of switches that every placement algorithm works on.

Switch 0 is the root, linked to the destination. Link ``v`` is the link from switch ``v`` to its
parent (of switch 0: to the destination), so every array here has one entry a switch and one a
link. Rates are exact rationals; nothing in this package compares floats.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from typing import TypeVar

from controller.placement.errors import PlacementError

__all__ = ["RateLike", "Tree", "as_rate"]

RateLike = int | Fraction | str | float

_RATE_TEXT = re.compile(r"[0-9]{1,40}(/[0-9]{1,40}|(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?)")
_SHOWN = 5
_Value = TypeVar("_Value")


def as_rate(value: object) -> Fraction:
    """The exact rational that a rate is written as.

    Accepted: a positive int or Fraction, a string ("3", "3/2", "1.5"), or a finite float, which
    means the decimal that it prints as (0.1 is 1/10).

    Raises:
        PlacementError: anything else; the line starts with the value, not with its place.
    """
    rate = _parse_rate(value)
    if rate <= 0:
        raise PlacementError(f"{_shown(value)} is not a rate: write a number above 0")
    return rate


def _parse_rate(value: object) -> Fraction:
    if isinstance(value, bool):
        raise PlacementError(f"{value} is not a rate: write a number above 0")
    if isinstance(value, Rational):
        # numpy's integers are rationals too, of their own int type.
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float):
        if not math.isfinite(value):
            raise PlacementError(f"{value} is not a rate: write a finite number above 0")
        return Fraction(str(float(value)))
    if isinstance(value, str):
        text = value.strip()
        if _RATE_TEXT.fullmatch(text) and not re.search(r"/0+$", text):
            return Fraction(text)
    raise PlacementError(
        f"{_shown(value)} is not a rate: write a positive integer, decimal or fraction, like 3/2"
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Tree:
    """A weighted tree of n switches with its load: T = (V, E, omega), L and Lambda of Sec. II.

    Attributes:
        parent: parent[v] is the switch that v sends to; parent[0] is -1, the destination.
        rate: messages a second of link v, as exact rationals above 0 (omega).
        load: workers at switch v, each sending one message (L).
        available: whether switch v may be blue (Lambda).
        children: the children of every switch, by rising index.
        order: every switch once, children before parents (post-order).
        distinct_rates: every rate that occurs, once, by first occurrence.
        rate_index: for every link, where its rate stands in distinct_rates. Hashing a Fraction is
            slow, so the algorithms work once a distinct rate where they can.
    """

    parent: tuple[int, ...]
    rate: tuple[Fraction, ...]
    load: tuple[int, ...]
    available: tuple[bool, ...]
    children: tuple[tuple[int, ...], ...] = field(compare=False)
    order: tuple[int, ...] = field(compare=False)
    distinct_rates: tuple[Fraction, ...] = field(compare=False)
    rate_index: tuple[int, ...] = field(compare=False)

    def __init__(
        self,
        parent: Sequence[int],
        rate: Sequence[RateLike],
        load: Sequence[int],
        available: Sequence[bool] | None = None,
    ) -> None:
        """Check and freeze the four arrays, each of length n >= 1, index 0 the root.

        Raises:
            PlacementError: arrays of different lengths, no root or a second one, an unknown
                parent, a cycle, a rate that is not a finite number above 0, a load that is not an
                integer >= 0. The message names the array and the index.
        """
        if available is None:
            available = (True,) * len(parent)
        n = len(parent)
        for name, array in (("rate", rate), ("load", load), ("available", available)):
            if len(array) != n:
                raise PlacementError(
                    f"{name} has {len(array)} entries and parent has {n}: give one entry a switch"
                )
        if n == 0:
            raise PlacementError("the tree has no switch: give at least the root, parent=[-1]")
        parents = _checked_parents(parent)
        children = _children_of(parents)
        order = _post_order(parents, children)
        self._set("parent", parents)
        rates = _checked(rate, "rate", _interning(as_rate))
        index: dict[Fraction, int] = {}
        rate_index = tuple(index.setdefault(w, len(index)) for w in rates)
        self._set("rate", rates)
        self._set("load", _checked(load, "load", _as_load))
        self._set("available", _checked(available, "available", _as_flag))
        self._set("children", children)
        self._set("order", order)
        self._set("distinct_rates", tuple(index))
        self._set("rate_index", rate_index)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """How many switches the tree has."""
        return len(self.parent)

    def depths(self) -> tuple[int, ...]:
        """Links between each switch and the root (the root: 0)."""
        depth = [0] * self.n
        for v in reversed(self.order):
            if v:
                depth[v] = depth[self.parent[v]] + 1
        return tuple(depth)

    def heights(self) -> tuple[int, ...]:
        """Links on the longest way down from each switch to a leaf (a leaf: 0)."""
        height = [0] * self.n
        for v in self.order[:-1]:
            above = self.parent[v]
            height[above] = max(height[above], height[v] + 1)
        return tuple(height)

    def subtree_loads(self) -> tuple[int, ...]:
        """Workers at or below each switch: what its link carries when everything is red."""
        total = list(self.load)
        for v in self.order[:-1]:
            total[self.parent[v]] += total[v]
        return tuple(total)

    def __repr__(self) -> str:
        more = ", ..." if self.n > _SHOWN else ""
        parent = ", ".join(map(str, self.parent[:_SHOWN]))
        return f"Tree(n={self.n}, parent=[{parent}{more}], workers={sum(self.load)})"


def _checked_parents(parent: Sequence[int]) -> tuple[int, ...]:
    n = len(parent)
    parents = _checked(parent, "parent", _as_index)
    if parents[0] != -1:
        raise PlacementError(f"parent[0] is {parents[0]}: switch 0 is the root, write -1")
    for v, above in enumerate(parents):
        if v and above == -1:
            raise PlacementError(
                f"parent[{v}] is -1: only switch 0 is the root, give switch {v} a parent"
            )
        if not -1 <= above < n:
            raise PlacementError(f"parent[{v}] is {above}: parents lie in 0..{n - 1}")
    return parents


def _children_of(parent: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    children: list[list[int]] = [[] for _ in parent]
    for v, above in enumerate(parent):
        if v:
            children[above].append(v)
    return tuple(map(tuple, children))


def _post_order(parent: tuple[int, ...], children: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Children before parents, without recursion: a path of a million switches is a tree too."""
    reached: list[int] = []
    stack = [0]
    while stack:
        v = stack.pop()
        reached.append(v)
        stack.extend(children[v])
    if len(reached) < len(parent):
        cycle = _cycle_outside(parent, set(reached))
        shown = " -> ".join(map(str, cycle[:_SHOWN] + (["..."] if len(cycle) > _SHOWN else [])))
        raise PlacementError(
            f"parent has a cycle, {shown} -> {cycle[0]}: every switch must lead to the root, 0"
        )
    reached.reverse()
    return tuple(reached)


def _cycle_outside(parent: tuple[int, ...], reached: set[int]) -> list[int]:
    v = next(v for v in range(len(parent)) if v not in reached)
    place: dict[int, int] = {}
    path: list[int] = []
    while v not in place:
        place[v] = len(path)
        path.append(v)
        v = parent[v]
    return path[place[v] :]


def _as_index(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise PlacementError(
            f"{_shown(value)} is not a switch: write its index, or -1 for the root"
        )
    return int(value.__index__())


def _as_load(value: object) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or int(value.__index__()) < 0:
        raise PlacementError(f"{_shown(value)} is not a number of workers: write an integer >= 0")
    return int(value.__index__())


def _as_flag(value: object) -> bool:
    # Compared by value so that numpy's own booleans are flags too, and a string never is.
    if isinstance(value, str) or value not in (True, False):
        raise PlacementError(f"{_shown(value)} is not a flag: write True or False")
    return bool(value)


def _interning(parse: Callable[[object], Fraction]) -> Callable[[object], Fraction]:
    """Parse equal values once: a large tree has few distinct rates, and they share one object."""
    seen: dict[object, Fraction] = {}

    def parse_once(value: object) -> Fraction:
        if not isinstance(value, int | str | Fraction) or isinstance(value, bool):
            return parse(value)
        if value not in seen:
            seen[value] = parse(value)
        return seen[value]

    return parse_once


def _checked(
    array: Sequence[object], name: str, parse: Callable[[object], _Value]
) -> tuple[_Value, ...]:
    """Every entry parsed; the error of a bad one names its array and index."""
    parsed: list[_Value] = []
    try:
        for value in array:
            parsed.append(parse(value))  # noqa: PERF401 - the count so far is the place of an error
    except PlacementError as error:
        raise PlacementError(f"{name}[{len(parsed)}]: {error}") from None
    return tuple(parsed)
