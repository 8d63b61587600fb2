"""`smc_arrays`: smc on arrays, for trees of up to millions of switches.

The same algorithm as in flips.py and the same answer, ties included: the pass over the switches
is compiled (kernels.py), the search over X works on arrays (rates.py). docs/placement.md says why
nothing overflows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.placement.budget import checked_budget
from controller.placement.errors import PlacementError
from controller.placement.loads import Placement
from controller.placement.rates import Rates, RateSpans
from controller.placement.search import least_feasible
from controller.placement.tree import Tree

__all__ = ["MOST_MESSAGES", "TreeArrays", "arrays_of_tree", "smc_arrays"]

MOST_MESSAGES = 1 << 62
"""The most workers of a whole tree: sums of them, and one more, fit 64 bits with a sign."""

_LARGEST = (1 << 63) - 1

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, init=False, eq=False)
class TreeArrays:
    """A tree of n switches as arrays of length n; index 0 is the root (see Tree for the model).

    Attributes:
        parent: int64; parent[0] is -1.
        rate_numerator, rate_denominator: int64 above 0; the rate of link v is their quotient, not
            necessarily in lowest terms.
        load: int64, workers at each switch; at most 2^62 in all.
        available: bool, Lambda.
        order: int64, every switch once, children before parents.
    """

    parent: Integers
    rate_numerator: Integers
    rate_denominator: Integers
    load: Integers
    available: Flags
    order: Integers

    def __init__(
        self,
        parent: Sequence[int] | NDArray[Any],
        rate_numerator: Sequence[int] | NDArray[Any],
        rate_denominator: Sequence[int] | NDArray[Any],
        load: Sequence[int] | NDArray[Any],
        available: Sequence[bool] | NDArray[Any] | None = None,
    ) -> None:
        """Check the arrays; int64 and bool arrays are kept, not copied, and must not change.

        Raises:
            PlacementError: a wrong type or length, no root or a second one, an unknown parent, a
                cycle, a rate that is not above 0, a negative load, more than 2^62 workers. The
                line names the array and the first index that is wrong.
        """
        parents = _integers("parent", parent)
        n = parents.size
        if n == 0:
            raise PlacementError("the tree has no switch: give at least the root, parent=[-1]")
        self._set("parent", parents)
        for name, values in (
            ("rate_numerator", rate_numerator),
            ("rate_denominator", rate_denominator),
            ("load", load),
        ):
            self._set(name, _integers(name, values, n))
        flags = np.ones(n, np.bool_) if available is None else _flags(available, n)
        self._set("available", flags)
        _refuse("rate_numerator", self.rate_numerator, self.rate_numerator < 1, "above 0")
        _refuse("rate_denominator", self.rate_denominator, self.rate_denominator < 1, "above 0")
        _refuse("load", self.load, self.load < 0, "0 or more")
        # A double sum is exact enough to see that an integer sum may wrap around.
        if self.load.sum(dtype=np.float64) > 1.5 * MOST_MESSAGES or self.load.sum() > MOST_MESSAGES:
            raise PlacementError(
                f"load adds up to more than {MOST_MESSAGES} workers: use smc(Tree(...), k), which "
                "has no such limit"
            )
        self._set("order", _order(parents))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """How many switches the tree has."""
        return self.parent.size


@dataclass(frozen=True, slots=True)
class _Ordered:
    """The arrays with switches renumbered, children before parents; label: the caller's numbers.

    kind[v] tells which of `rates` link v has; below[v] is the workers at or below v. In a
    contracted tree a kind of rates.most.size is a link without limit.
    """

    parent: Integers
    load: Integers
    available: Flags
    label: Integers
    kind: Integers
    below: Integers
    rates: Rates

    def caps(self, bound: Fraction) -> Integers:
        """The most messages within the bound by kind, the unlimited one last."""
        return np.append(self.rates.floors(bound)[0], MOST_MESSAGES)


def smc_arrays(tree: TreeArrays, k: int) -> Placement:
    """The placement of smc, from arrays: least congestion, fewest blue switches, same ties.

    Cost: O(n + k log n) a bound, for about log2 of the number of candidate congestions.

    Raises:
        PlacementError: k is negative or not an integer.
    """
    budget = checked_budget(k)
    return _solved(_ordered(tree), budget)


def arrays_of_tree(tree: Tree) -> TreeArrays | None:
    """The same tree as arrays, or None where its numbers need more than 64 bits."""
    if sum(tree.load) > MOST_MESSAGES:
        return None
    if any(max(rate.numerator, rate.denominator) > _LARGEST for rate in tree.distinct_rates):
        return None
    index = np.array(tree.rate_index, np.int64)
    return TreeArrays(
        np.array(tree.parent, np.int64),
        np.array([rate.numerator for rate in tree.distinct_rates], np.int64)[index],
        np.array([rate.denominator for rate in tree.distinct_rates], np.int64)[index],
        np.array(tree.load, np.int64),
        np.array(tree.available, np.bool_),
    )


def _solved(tree: _Ordered, budget: int) -> Placement:
    from controller.placement import kernels

    rates = tree.rates
    spend = min(budget, int(np.count_nonzero(tree.available)))
    chosen = np.empty(spend, np.int64)

    def blue_within(bound: Fraction) -> int:
        return kernels.fewest_blue(
            tree.parent,
            tree.load,
            tree.available,
            tree.label,
            tree.kind,
            tree.caps(bound),
            spend,
            chosen,
        )

    def attempt(bound: Fraction) -> Fraction | None:
        nonlocal tree
        if blue_within(bound) >= 0:
            return bound
        tree = _contracted(tree, bound)
        return None

    # No placement is worse than all-red, and none is better than all that is available.
    worst = rates.largest(rates.most)
    least = kernels.message_counts(tree.parent, tree.load, tree.available)
    best = rates.largest(kernels.most_of_each(tree.kind, rates.most.size, least))
    optimum = best
    if worst > best and attempt(best) is None:
        optimum = least_feasible(RateSpans.of(rates), best, worst, attempt)
    # Once more at the optimum, so that the set depends on the input alone, not on the search.
    count = blue_within(optimum)
    return Placement(frozenset(tree.label[chosen[:count]].tolist()), optimum, "smc", budget)


def _contracted(tree: _Ordered, infeasible: Fraction) -> _Ordered:
    """The part of the tree in which bounds above an infeasible one differ."""
    from controller.placement import kernels

    parent, load, kind = tree.parent.copy(), tree.load.copy(), tree.kind.copy()
    unlimited = tree.rates.most.size
    stays = kernels.contract(
        parent, load, tree.available, kind, tree.below, tree.caps(infeasible), unlimited
    )
    if 2 * np.count_nonzero(stays) > stays.size:
        return tree
    position = np.cumsum(stays) - 1
    parent, kind = parent[stays], kind[stays]
    parent[:-1] = position[parent[:-1]]
    used = np.zeros(unlimited + 1, np.bool_)
    used[kind] = True
    used[unlimited] = False
    number = np.cumsum(used) - 1
    number[unlimited] = np.count_nonzero(used)
    return _Ordered(
        parent,
        load[stays],
        tree.available[stays],
        tree.label[stays],
        number[kind],
        tree.below[stays],
        tree.rates.only(np.flatnonzero(used)),
    )


def _ordered(tree: TreeArrays) -> _Ordered:
    from controller.placement import kernels

    n, order = tree.n, tree.order
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    parent = np.full(n, -1, np.int64)
    parent[:-1] = position[tree.parent[order[:-1]]]
    load, available = tree.load[order], tree.available[order]
    numerator, denominator, kind = _distinct(
        tree.rate_numerator[order], tree.rate_denominator[order]
    )
    below = kernels.message_counts(parent, load, np.zeros(n, np.bool_))
    most = kernels.most_of_each(kind, numerator.size, below)
    rates = Rates(numerator, denominator, most)
    return _Ordered(parent, load, available, order, kind, below, rates)


def _distinct(numerator: Integers, denominator: Integers) -> tuple[Integers, Integers, Integers]:
    """The rates that occur, and for every link which of them it has.

    Where most links have a rate of their own, or two rates share a key, each link keeps its own:
    that a rate occurs once only saves work.
    """
    n = numerator.size
    key = numerator.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + denominator.view(np.uint64)
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    few = 2 * first.size <= n
    same = few and bool(
        (numerator[first][kind] == numerator).all()
        and (denominator[first][kind] == denominator).all()
    )
    if not same:
        return numerator, denominator, np.arange(n)
    return numerator[first], denominator[first], kind.astype(np.int64)


def _order(parent: Integers) -> Integers:
    from controller.placement import kernels

    n = parent.size
    if parent[0] != -1:
        raise PlacementError(f"parent[0] is {parent[0]}: switch 0 is the root, write -1")
    wrong = np.flatnonzero((parent[1:] < 0) | (parent[1:] >= n))
    if wrong.size:
        v = int(wrong[0]) + 1
        if parent[v] == -1:
            raise PlacementError(
                f"parent[{v}] is -1: only switch 0 is the root, give switch {v} a parent"
            )
        raise PlacementError(f"parent[{v}] is {parent[v]}: parents lie in 0..{n - 1}")
    order, reached = kernels.orderly(parent)
    if reached < n:
        outside = np.ones(n, np.bool_)
        outside[order[n - reached :]] = False
        v = int(np.flatnonzero(outside)[0])
        for _ in range(n):  # a tail of at most n switches leads into the cycle
            v = int(parent[v])
        raise PlacementError(
            f"parent has a cycle through switch {v}: every switch must lead to the root, 0"
        )
    return order


def _integers(name: str, values: Sequence[int] | NDArray[Any], n: int | None = None) -> Integers:
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.int64)
    _check_shape(name, array, n)
    if array.dtype.kind not in "iu":
        raise PlacementError(f"{name} is an array of {array.dtype}: give integers of 64 bits")
    if array.dtype == np.uint64:
        _refuse(name, array, array > _LARGEST, "below 2^63")
    return np.ascontiguousarray(array, np.int64)


def _flags(values: Sequence[bool] | NDArray[Any], n: int) -> Flags:
    array = np.asarray(values)
    _check_shape("available", array, n)
    if array.dtype != np.bool_:
        raise PlacementError(f"available is an array of {array.dtype}: give True or False")
    return np.ascontiguousarray(array)


def _check_shape(name: str, array: NDArray[Any], n: int | None) -> None:
    if array.ndim != 1:
        raise PlacementError(f"{name} has {array.ndim} dimensions: give one entry a switch")
    if n is not None and array.size != n:
        raise PlacementError(
            f"{name} has {array.size} entries and parent has {n}: give one entry a switch"
        )


def _refuse(name: str, array: NDArray[Any], wrong: Flags, rule: str) -> None:
    places = np.flatnonzero(wrong)
    if places.size:
        raise PlacementError(f"{name}[{places[0]}] is {array[places[0]]}: must be {rule}")
