"""The strategies that SMC is compared with: Top and Max of Sec. III, and the two extremes.

None of them spends a blue switch outside Lambda, and all but `all_blue` keep to the budget.
"""

from collections.abc import Iterable

from controller.placement.budget import checked_budget
from controller.placement.loads import Placement, loads
from controller.placement.tree import Tree

__all__ = ["all_blue", "all_red", "max_load", "top"]


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
