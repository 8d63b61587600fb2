"""`level`: the Level strategy of Sec. III, on any tree."""

from collections.abc import Iterator
from fractions import Fraction

from controller.placement.budget import checked_budget
from controller.placement.loads import Placement, loads
from controller.placement.tree import Tree

__all__ = ["level"]

# The most messages of any link, by the index of its rate: one division a rate, not one a link.
_Most = dict[int, int]


def level(tree: Tree, k: int) -> Placement:
    """Level: all available switches at one distance from the root, the best that k allows.

    The paper defines it on complete binary trees; here any tree has levels, the sets of switches
    equally far from the root. Of the levels with at most k available switches the one with the
    least congestion is taken; then the one with fewer switches, then the one nearer the root.
    Where no level fits the budget, or none helps, nothing is blue.

    Cost: O(n D) for all levels together, D being the number of distinct rates.

    Raises:
        PlacementError: k is negative or not an integer.
    """
    budget = checked_budget(k)
    levels = _levels(tree)
    best = (loads(tree, ()).congestion, 0, -1)
    for depth, congestion in enumerate(_congestions(tree, levels)):
        size = sum(tree.available[v] for v in levels[depth])
        if size <= budget:
            best = min(best, (congestion, size, depth))
    congestion, _, depth = best
    blue = frozenset(v for v in levels[depth] if tree.available[v]) if depth >= 0 else frozenset()
    return Placement(blue, congestion, "level", budget)


def _levels(tree: Tree) -> list[list[int]]:
    depth = tree.depths()
    levels: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    for v in range(tree.n):
        levels[depth[v]].append(v)
    return levels


def _congestions(tree: Tree, levels: list[list[int]]) -> Iterator[Fraction]:
    """For each level, from the root's down, the congestion when its available switches are blue.

    Links below the blue level carry what they carry when all is red. Above it, a link never
    carries less than one further down, so only those count whose rate is smaller than that of
    every link above them: the record links.
    """
    below = tree.subtree_loads()
    record = _records(tree)
    bottoms = _bottoms(tree, record, len(levels))
    red_below = _suffix_maxima(tree, levels, below)
    settled: _Most = {}  # record links whose whole subtree lies above the level: all red
    carried = [0] * tree.n  # of record links: workers in their subtree above the level
    for depth, members in enumerate(levels):
        for v in bottoms[depth - 1] if depth else ():
            _raise(settled, tree.rate_index[v], below[v])
        most: _Most = {}
        arriving: dict[int, int] = {}
        for u in members:
            sent = min(1, below[u]) if tree.available[u] else below[u]
            _raise(most, tree.rate_index[u], sent)
            for r in _records_from(tree, record, tree.parent[u]):
                arriving[r] = arriving.get(r, 0) + sent
        for r, sent in arriving.items():
            _raise(most, tree.rate_index[r], sent + carried[r])
        yield max(_maximum(tree, most), _maximum(tree, settled), red_below[depth + 1])
        for u in members:
            if tree.load[u]:
                for r in _records_from(tree, record, u):
                    carried[r] += tree.load[u]


def _records(tree: Tree) -> list[int]:
    """For each switch the lowest record link at or above its own."""
    record = [0] * tree.n
    for v in reversed(tree.order):
        if v:
            above = record[tree.parent[v]]
            record[v] = v if tree.rate[v] < tree.rate[above] else above
    return record


def _records_from(tree: Tree, record: list[int], v: int) -> Iterator[int]:
    """The record links on the way from link v up to the destination; none above the root."""
    while v >= 0:
        yield record[v]
        v = tree.parent[record[v]]


def _bottoms(tree: Tree, record: list[int], depths: int) -> list[list[int]]:
    """The record links by the depth of the deepest switch below them."""
    depth, height = tree.depths(), tree.heights()
    bottoms: list[list[int]] = [[] for _ in range(depths)]
    for v in range(tree.n):
        if record[v] == v:
            bottoms[depth[v] + height[v]].append(v)
    return bottoms


def _suffix_maxima(tree: Tree, levels: list[list[int]], below: tuple[int, ...]) -> list[Fraction]:
    """Entry d: the congestion among links at depth d and deeper when all is red; then a 0."""
    maxima = [Fraction(0)]
    for members in reversed(levels):
        most: _Most = {}
        for v in members:
            _raise(most, tree.rate_index[v], below[v])
        maxima.append(max(maxima[-1], _maximum(tree, most)))
    maxima.reverse()
    return maxima


def _raise(most: _Most, index: int, messages: int) -> None:
    if messages > most.get(index, -1):
        most[index] = messages


def _maximum(tree: Tree, most: _Most) -> Fraction:
    rates = tree.distinct_rates
    return max((messages / rates[i] for i, messages in most.items()), default=Fraction(0))
