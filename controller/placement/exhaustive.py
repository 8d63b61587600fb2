"""`brute_force`: every set of at most k available switches tried, the judge of small cases."""

from itertools import combinations
from math import comb

from controller.placement.budget import checked_budget
from controller.placement.errors import PlacementError
from controller.placement.loads import Placement, message_counts, most_congested
from controller.placement.tree import Tree

__all__ = ["SUBSET_LIMIT", "brute_force"]

SUBSET_LIMIT = 1 << 18
"""The most sets that brute_force is willing to try: all subsets of 18 switches."""


def brute_force(tree: Tree, k: int) -> Placement:
    """The optimum of C-BIC by trying every U inside Lambda with |U| <= k.

    Smaller sets are tried first, in lexicographic order, and only a strictly better one replaces
    the best, so the set returned is the smallest, and then the first, of the optimal ones.

    Raises:
        PlacementError: k is negative or not an integer, or there are more than SUBSET_LIMIT sets.
    """
    budget = checked_budget(k)
    candidates = [v for v in range(tree.n) if tree.available[v]]
    size = min(budget, len(candidates))
    subsets = 0
    for i in range(size + 1):
        subsets += comb(len(candidates), i)
        if subsets > SUBSET_LIMIT:
            raise PlacementError(
                f"brute-force would try more than {SUBSET_LIMIT} sets: choosing up to {size} of "
                f"{len(candidates)} available switches; use smc, which is exact too"
            )
    best = frozenset[int]()
    least = most_congested(tree, tree.subtree_loads())
    for i in range(1, size + 1):
        for members in combinations(candidates, i):
            blue = frozenset(members)
            congestion = most_congested(tree, message_counts(tree, blue))
            if congestion < least:
                best, least = blue, congestion
    return Placement(best, least, "brute-force", budget)
