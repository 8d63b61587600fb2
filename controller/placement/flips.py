"""`smc`: the exact optimum, one bottom-up pass a bound, whatever k is.

For a bound X every link v has a cap, the floor(X * w(v)) messages that it may carry. The pass
finds the fewest blue switches that keep every link within its cap; X is feasible iff they are at
most k. It keeps, for every subtree, its *flips*: the recolourings from red to blue that would
lower what the subtree sends, each at the price of one blue switch. docs/placement.md proves it.
"""

from fractions import Fraction
from heapq import heappop, heappush

from controller.placement.budget import checked_budget
from controller.placement.loads import Placement, message_counts, most_congested
from controller.placement.search import candidate_spans, least_feasible
from controller.placement.tree import Tree

__all__ = ["COMPILED_FROM", "fewest_blue", "smc"]

COMPILED_FROM = 1 << 15
"""From this many switches on `smc` is `smc_arrays`; below, loading a compiler does not pay."""

# (-worth, switch): heapq serves the smallest, so the largest worth first, then the lowest index.
_Flip = tuple[int, int]


def smc(tree: Tree, k: int) -> Placement:
    """A placement of at most k blue switches with the least congestion there is (C-BIC, Eq. (2)).

    Among all such placements it spends the fewest blue switches. Ties are settled by Theorem 2 of
    docs/placement.md: the set is the one that the pass below finds at the optimum, taking the
    flip with the larger worth, then the lower index, so it depends on the input alone. A budget
    above the number of available switches is the same as that number.

    Cost: O(n log^2 n) a bound (O(n) where every switch is available), for about log2 of the
    number of candidate congestions. Large trees take the compiled path of arrays.py, which gives
    the same answer, unless their numbers need more than 64 bits.

    Raises:
        PlacementError: k is negative or not an integer.
    """
    budget = checked_budget(k)
    if tree.n >= COMPILED_FROM:
        # Numpy is loaded by those who need it.
        from controller.placement.arrays import arrays_of_tree, smc_arrays

        arrays = arrays_of_tree(tree)
        if arrays is not None:
            return smc_arrays(arrays, budget)
    red: frozenset[int] = frozenset()
    everything = frozenset(v for v in range(tree.n) if tree.available[v])
    # No placement is worse than all-red, and none is better than all that is available.
    worst = _congestion(tree, red)
    best = _congestion(tree, everything)

    def attempt(bound: Fraction) -> Fraction | None:
        blue = fewest_blue(tree, bound, budget)
        return None if blue is None else _congestion(tree, blue)

    optimum = best
    if worst > best and attempt(best) is None:
        optimum = least_feasible(candidate_spans(tree), best, worst, attempt)
    # Once more at the optimum, so that the set depends on the input alone, not on the search.
    blue = fewest_blue(tree, optimum, budget)
    assert blue is not None
    return Placement(blue, optimum, "smc", budget)


def fewest_blue(tree: Tree, bound: Fraction, budget: int) -> frozenset[int] | None:
    """The fewest available switches that keep every link within `bound`, or None.

    None means that more than `budget` would be needed, or that no set at all is enough.
    """
    parent, available = tree.parent, tree.available
    cap_of = [
        bound.numerator * rate.numerator // (bound.denominator * rate.denominator)
        for rate in tree.distinct_rates
    ]
    caps = [cap_of[index] for index in tree.rate_index]
    sent = list(tree.load)  # M(v), once the children of v have been seen
    inherited: dict[int, list[_Flip]] = {}  # of unavailable switches only; see below
    blue: list[int] = []
    for v in tree.order:
        messages = sent[v]
        if available[v]:
            # Its own flip, worth M(v) - 1, beats every flip below, so nothing is inherited.
            if messages > caps[v]:
                if caps[v] < 1 or len(blue) == budget:
                    return None
                blue.append(v)
                messages = 1
            flips = [(1 - messages, v)] if messages > 1 else []
        else:
            flips = inherited.pop(v, [])
            while messages > caps[v]:
                if not flips or len(blue) == budget:
                    return None
                lowered, u = heappop(flips)
                blue.append(u)
                messages += lowered
        if v:
            above = parent[v]
            sent[above] += messages
            if flips and not available[above]:
                inherited[above] = _merged(inherited.get(above), flips)
    return frozenset(blue)


def _merged(mine: list[_Flip] | None, theirs: list[_Flip]) -> list[_Flip]:
    """The union of two heaps; the smaller is poured into the larger: O(n log^2 n) over a tree."""
    if mine is None:
        return theirs
    if len(mine) < len(theirs):
        mine, theirs = theirs, mine
    for flip in theirs:
        heappush(mine, flip)
    return mine


def _congestion(tree: Tree, blue: frozenset[int]) -> Fraction:
    return most_congested(tree, message_counts(tree, blue))
