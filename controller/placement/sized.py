"""SMC in other settings: messages of different sizes, links in use, the budget spent as painted.

The pass of `smc` stays exact when sizes are subadditive, that is when a merged message is never
larger than its parts together, as with unions of keys. What it needs is that the flip of an
available switch v is worth at least as much as any flip at a u below it:

    M(v) - merged(v) >= M(u) - merged(u)

Let v send, red, what u sends and R more, so that M(v) = M(u) + R. The content of v is that of u
and of what makes up R, so merged(v) <= merged(u) + R. Taking it from M(v) gives the line above. A
blue switch sends merged(v) whatever is blue below it, so flips of different subtrees stay
independent, and merged(v) <= M(v) always, so a cap below merged(v) is met by no set at all.

The caps are free: each link may have one of its own, for instance what others leave of it.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from heapq import heappop, heappush

from controller.placement.budget import checked_budget
from controller.placement.errors import PlacementError
from controller.placement.flips import smc
from controller.placement.loads import Placement, message_counts, most_congested
from controller.placement.message_size import MessageSizes, sized_loads, unit_sizes
from controller.placement.tree import Tree

__all__ = ["fewest_within", "smc_beside", "smc_painted", "smc_sized"]

_NONE: frozenset[int] = frozenset()
# (-worth, switch), as in the pass of `smc`.
_Flip = tuple[int, int]


def smc_sized(tree: Tree, sizes: MessageSizes, k: int) -> Placement:
    """A placement of at most k blue switches with the least congestion by size.

    Exact where sizes are subadditive; with `unit_sizes` it is `smc`. It spends the fewest blue
    switches that reach the optimum. The congestion is in units a second.

    Raises:
        PlacementError: k is negative or not an integer, sizes of another tree, or a merged message
            that is larger than the messages of its subtree together.
    """
    budget = checked_budget(k)
    everything = frozenset(v for v in range(tree.n) if tree.available[v])
    red = sized_loads(tree, sizes, _NONE)
    for v, (merged, parts) in enumerate(zip(sizes.merged, red.units, strict=True)):
        if merged > parts:
            raise PlacementError(
                f"merged[{v}] is {merged} and its parts are {parts} together: "
                "sizes must be subadditive"
            )
    best = sized_loads(tree, sizes, everything).congestion

    def attempt(bound: Fraction) -> Fraction | None:
        blue = fewest_within(tree, sizes, bound, budget)
        return None if blue is None else sized_loads(tree, sizes, blue).congestion

    optimum = best
    if red.congestion > best and attempt(best) is None:
        optimum = _least_feasible(tree, best, red.congestion, attempt)
    blue = fewest_within(tree, sizes, optimum, budget)
    assert blue is not None
    return Placement(blue, optimum, "smc-sized", budget)


def smc_beside(tree: Tree, carried: Sequence[int], k: int) -> Placement:
    """A placement of at most k blue switches with the least congestion beside other traffic.

    `carried` is what every link carries already; the congestion that is least, and that the
    placement names, is of both together. Exact, with the fewest blue switches that reach it.

    Raises:
        PlacementError: k is negative or not an integer, or another number of links.
    """
    budget = checked_budget(k)
    if len(carried) != tree.n:
        raise PlacementError(
            f"carried has {len(carried)} entries and the tree {tree.n} links: give one a link"
        )
    sizes = unit_sizes(tree)

    def total(blue: frozenset[int]) -> Fraction:
        own = message_counts(tree, blue)
        return most_congested(tree, [a + b for a, b in zip(own, carried, strict=True)])

    def attempt(bound: Fraction) -> Fraction | None:
        blue = fewest_within(tree, sizes, bound, budget, carried=carried)
        return None if blue is None else total(blue)

    optimum = total(frozenset(v for v in range(tree.n) if tree.available[v]))
    worst = total(_NONE)
    if worst > optimum and attempt(optimum) is None:
        optimum = _least_feasible(tree, optimum, worst, attempt)
    chosen = fewest_within(tree, sizes, optimum, budget, carried=carried)
    assert chosen is not None
    return Placement(chosen, optimum, "smc", budget)


def smc_painted(tree: Tree, k: int) -> Placement:
    """The optimum of `smc`, spending the budget as SMC-Color does (Algorithm 4).

    SMC-Color paints a switch blue wherever beta(i, B) is finite, from the root down: whenever some
    optimal set of at most k has it blue. Here switches are taken by rising depth, then index, and
    each is painted if with all those painted before some set of at most k reaches the optimum. So
    nearly always all of k is spent, where `smc` stops at what the optimum needs.

    Cost: at most n passes of O(n log^2 n).

    Raises:
        PlacementError: k is negative or not an integer.
    """
    budget = checked_budget(k)
    sizes = unit_sizes(tree)
    optimum = smc(tree, budget).congestion
    depth = tree.depths()
    painted: frozenset[int] = _NONE
    witness = fewest_within(tree, sizes, optimum, budget)
    assert witness is not None
    for v in sorted(range(tree.n), key=lambda v: (depth[v], v)):
        if len(painted) == budget:
            break
        if not tree.available[v]:
            continue
        if v not in witness:
            found = fewest_within(tree, sizes, optimum, budget, forced=painted | {v})
            if found is None:
                continue
            witness = found
        painted |= {v}
    return Placement(painted, optimum, "smc", budget)


def fewest_within(
    tree: Tree,
    sizes: MessageSizes,
    bound: Fraction,
    budget: int,
    *,
    forced: frozenset[int] = _NONE,
    available: Sequence[bool] | None = None,
    carried: Sequence[int] | None = None,
) -> frozenset[int] | None:
    """The fewest available switches, `forced` among them, that keep every link within `bound`.

    `available` stands in for that of the tree; `carried` is what other traffic puts on every link.
    None means that more than `budget` would be needed, or that no set at all is enough.
    """
    allowed = tree.available if available is None else available
    cap_of = [
        bound.numerator * rate.numerator // (bound.denominator * rate.denominator)
        for rate in tree.distinct_rates
    ]
    sent = list(sizes.own)
    inherited: dict[int, list[_Flip]] = {}
    blue: list[int] = []
    for v in tree.order:
        units, cap = sent[v], cap_of[tree.rate_index[v]]
        if carried is not None:
            cap -= carried[v]
        flips: list[_Flip] = []
        if v in forced or (allowed[v] and units > cap):
            blue.append(v)
            units = sizes.merged[v]
            if units > cap or len(blue) > budget:
                return None
        elif allowed[v]:
            if units > sizes.merged[v]:
                flips = [(sizes.merged[v] - units, v)]
        else:
            flips = inherited.pop(v, [])
            while units > cap:
                if not flips or len(blue) == budget:
                    return None
                lowered, u = heappop(flips)
                blue.append(u)
                units += lowered
        if v:
            above = tree.parent[v]
            sent[above] += units
            if flips and not allowed[above]:
                inherited[above] = _merged(inherited.get(above, []), flips)
    return frozenset(blue)


def _merged(mine: list[_Flip], theirs: list[_Flip]) -> list[_Flip]:
    if len(mine) < len(theirs):
        mine, theirs = theirs, mine
    for flip in theirs:
        heappush(mine, flip)
    return mine


def _least_feasible(
    tree: Tree,
    low: Fraction,
    high: Fraction,
    attempt: Callable[[Fraction], Fraction | None],
) -> Fraction:
    """The least feasible value above `low`, infeasible, and up to `high`, which is reached.

    Halves the interval until no value that a link's congestion can take, an integer over a rate,
    is left inside it.
    """
    while True:
        below = max((math.ceil(high * rate) - 1) / rate for rate in tree.distinct_rates)
        if below <= low:
            return high
        bound = min(below, (low + high) / 2)
        reached = attempt(bound)
        if reached is None:
            low = bound
        else:
            high = reached
