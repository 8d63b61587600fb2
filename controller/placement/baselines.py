"""The strategies that SMC is compared with: Top, Max and Level of Sec. III, and the two extremes.

None of them spends a blue switch outside Lambda, and all but `all_blue` keep to the budget.
"""

from collections.abc import Iterable

from controller.placement.budget import checked_budget
from controller.placement.loads import Placement, loads
from controller.placement.tree import Tree

__all__ = ["all_blue", "all_red", "level", "max_load", "top"]


def top(tree: Tree, k: int) -> Placement:
    """Top: the k available switches closest to the root.

    Among equally close ones those with more workers at or below them come first, then those with
    the lower index. On the paper's Fig. 1 this gives its 8.
    """
    budget = checked_budget(k)
    depth, below = tree.depths(), tree.subtree_loads()
    ranked = sorted(_available(tree), key=lambda v: (depth[v], -below[v], v))
    return _placed(tree, ranked[:budget], "top", budget)


def max_load(tree: Tree, k: int) -> Placement:
    """Max: the k available switches with the largest load L(v); the lower index breaks ties."""
    budget = checked_budget(k)
    ranked = sorted(_available(tree), key=lambda v: (-tree.load[v], v))
    return _placed(tree, ranked[:budget], "max", budget)


def level(tree: Tree, k: int) -> Placement:
    """Level: all available switches at one distance from the root, the best that k allows.

    The paper defines it on complete binary trees; here any tree has levels, the sets of switches
    equally far from the root. Of the levels with at most k available switches the one with the
    least congestion is taken; then the one with fewer switches, then the one nearer the root.
    Where no level fits the budget nothing is blue.
    """
    budget = checked_budget(k)
    depth = tree.depths()
    levels: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    for v in _available(tree):
        levels[depth[v]].append(v)
    placements = [
        _placed(tree, members, "level", budget) for members in levels if len(members) <= budget
    ]
    placements.append(_placed(tree, (), "level", budget))
    return min(placements, key=lambda placement: (placement.congestion, len(placement.blue)))


def all_red(tree: Tree, k: int) -> Placement:
    """No blue switch: the upper end of what congestion can be."""
    return _placed(tree, (), "all-red", checked_budget(k))


def all_blue(tree: Tree, k: int) -> Placement:
    """Every available switch blue, whatever k is: the lower end of what congestion can be."""
    return _placed(tree, _available(tree), "all-blue", checked_budget(k))


def _available(tree: Tree) -> list[int]:
    return [v for v in range(tree.n) if tree.available[v]]


def _placed(tree: Tree, blue: Iterable[int], strategy: str, k: int) -> Placement:
    chosen = frozenset(blue)
    return Placement(chosen, loads(tree, chosen).congestion, strategy, k)
