"""`smc_dp`: the paper's SMC-Gather and SMC-Color (Algorithms 3 and 4), mended.

Written to be read beside the paper: the names are its symbols and the comments its equation and
line numbers. What differs from the printed text is marked "Mended"; docs/placement.md explains
each. `smc_gather` and `smc_color` are what one switch v does, as in the paper; here they are
called switch by switch, in distributed.py by agents that send each other messages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from controller.placement.budget import checked_budget
from controller.placement.loads import Placement, loads
from controller.placement.search import candidate_spans, least_feasible
from controller.placement.tree import Tree

__all__ = ["Beta", "Gathered", "Local", "least_budget", "smc_color", "smc_dp", "smc_gather"]

Beta = list[int]
"""beta_v as a function of i, the budget: entry i; past its end, its last entry. Non-increasing."""


@dataclass(frozen=True, slots=True)
class Local:
    """What SMC-Gather must know at a switch v, for one bound X.

    Attributes:
        load: L(v).
        available: whether v is in Lambda.
        below: workers at or below v.
        cap: floor(X * w(v)): b * tau(v) <= X is b <= cap for a number of messages b.
        k: the budget.
        infinity: the number of messages that stands for "no such set": more than any sum of
            numbers of messages here.
    """

    load: int
    available: bool
    below: int
    cap: int
    k: int
    infinity: int


@dataclass(frozen=True, slots=True)
class Gathered:
    """What SMC-Gather leaves at a switch v.

    red[m - 1] is beta_v^m(., R) and blue[m - 1] is beta_v^m(., B), for m = 1 .. C(v); a leaf has
    one of each, its two colours. beta is beta_v.
    """

    red: list[Beta]
    blue: list[Beta]
    beta: Beta
    infinity: int


def smc_dp(tree: Tree, k: int) -> Placement:
    """Algorithm 2, SMC: the optimum by dynamic programming over the split of the budget.

    The same congestion as `smc` and as many blue switches, though not always the same ones: of
    splits that cost the same, the later child gets the smaller share. Vectors are as long as
    their subtree has available switches, so a bound costs O(n k) in place of the O(n k^2) of
    Theorem 1.

    Raises:
        PlacementError: k is negative or not an integer.
    """
    asked = checked_budget(k)
    budget = min(asked, sum(tree.available))

    def attempt(bound: Fraction) -> Fraction | None:
        root = _gather(tree, budget, bound)[0]
        return bound if least_budget(root.beta, root.infinity) is not None else None

    # Mended (Alg. 2, lines 2-4): search the candidates m / w, not multiples of 1 / w_max.
    everything = frozenset(v for v in range(tree.n) if tree.available[v])
    best, worst = loads(tree, everything).congestion, loads(tree, ()).congestion
    optimum = best
    if worst > best and attempt(best) is None:
        optimum = least_feasible(candidate_spans(tree), best, worst, attempt)
    gathered = _gather(tree, budget, optimum)
    # Mended (Alg. 2, line 5): Color starts with the least budget that is enough, not with k.
    enough = least_budget(gathered[0].beta, gathered[0].infinity)
    assert enough is not None
    return Placement(_color(tree, gathered, enough), optimum, "smc-dp", asked)


def least_budget(beta_r: Beta, infinity: int) -> int | None:
    """The least i with beta_r(i) < infinity, or None."""
    return next((i for i, b in enumerate(beta_r) if b < infinity), None)


def _gather(tree: Tree, k: int, bound: Fraction) -> list[Gathered]:
    """SMC-Gather at every switch, children before parents, for the bound X."""
    below = tree.subtree_loads()
    caps = [
        bound.numerator * rate.numerator // (bound.denominator * rate.denominator)
        for rate in tree.distinct_rates
    ]
    infinity = below[0] + 2
    gathered: dict[int, Gathered] = {}
    for v in tree.order:
        cap = caps[tree.rate_index[v]]
        local = Local(tree.load[v], tree.available[v], below[v], cap, k, infinity)
        gathered[v] = smc_gather(local, [gathered[c].beta for c in tree.children[v]])
    return [gathered[v] for v in range(tree.n)]


def smc_gather(v: Local, children: Sequence[Beta]) -> Gathered:
    """Algorithm 3, SMC-Gather at switch v, once it has beta_c of every child c.

    At most O(k) times the number of children, and O(n k) over a whole tree.
    """
    k, infinity = v.k, v.infinity
    # Mended (Eq. (5), line 22): a blue switch with nothing below it sends 0. And (Eq. (5),
    # lines 9 and 22): the link of a blue switch is held to X as well.
    one = min(1, v.below)
    may_be_blue = v.available and one <= v.cap
    red: list[Beta] = []
    blue: list[Beta] = []
    load = v.load if v.load <= v.cap else infinity
    if not children:
        red.append([load])  # Eq. (12), lines 4-6
        blue.append(_prepaid([0], one, infinity, k) if may_be_blue else [infinity])
    for m, beta_c in enumerate(children, start=1):
        if m == 1:
            # Eq. (6), lines 18-20: beta_c1(i) + L(v), or infinity above the cap.
            red.append(_mincost([load], beta_c, v.cap, k, infinity))
            # Eq. (5), lines 21-24. Mended (line 21): tests beta < infinity, not beta <= X.
            blue.append(_prepaid(beta_c, one, infinity, k) if may_be_blue else [infinity])
        else:
            # Eq. (9) with condition (10), line 27.
            red.append(_mincost(red[-1], beta_c, v.cap, k, infinity))
            # Eq. (8), line 26. Mended: beta_v^1 has already paid for v, so the budget is i,
            # not i - 1; and the value is 1 as in Lemma 2, not the sum that mincost returns.
            sums = _mincost(blue[-1], beta_c, infinity - 1, k, infinity)
            blue.append([one if b < infinity else infinity for b in sums])
    # Eq. (11), line 29.
    return Gathered(red, blue, _minimum(blue[-1], red[-1]), infinity)


def _prepaid(beta_c: Beta, one: int, infinity: int, k: int) -> Beta:
    """beta_v^1(i, B) of Eq. (5): `one` where i - 1 is enough below; infinity at i = 0."""
    return [infinity, *(one if b < infinity else infinity for b in beta_c)][: k + 1]


def _mincost(beta_v: Beta, beta_c: Beta, cap: int, k: int, infinity: int) -> Beta:
    """Lines 32-37 for every i at once: min over j of beta_v(i - j) + beta_c(j), up to the cap.

    Each pair (i - j, j) inside both vectors is visited once; over a tree that is O(n k) pairs.
    """
    length = min(len(beta_v) + len(beta_c) - 1, k + 1)
    least = [infinity] * length
    for used, there in enumerate(beta_v):
        if there >= infinity:
            continue
        for j, here in enumerate(beta_c[: length - used]):
            if here < infinity:
                total = there + here
                if total <= cap and total < least[used + j]:
                    least[used + j] = total
    # "At most i": a larger budget is never worse.
    for i in range(1, length):
        least[i] = min(least[i], least[i - 1])
    return least


def _minimum(a: Beta, b: Beta) -> Beta:
    return [min(_at(a, i), _at(b, i)) for i in range(max(len(a), len(b)))]


def _at(beta: Beta, i: int) -> int:
    return beta[min(i, len(beta) - 1)]


def _color(tree: Tree, gathered: list[Gathered], enough: int) -> frozenset[int]:
    """SMC-Color at every switch, parents before children, from the root's budget down."""
    budget = {0: enough}  # lines 3-4
    chosen: list[int] = []
    for v in reversed(tree.order):
        children = tree.children[v]
        betas = [gathered[c].beta for c in children]
        is_blue, shares = smc_color(budget.pop(v), gathered[v], betas)
        budget.update(zip(children, shares, strict=True))
        if is_blue:
            chosen.append(v)
    return frozenset(chosen)


def smc_color(i: int, v: Gathered, children: Sequence[Beta]) -> tuple[bool, list[int]]:
    """Algorithm 4, SMC-Color at switch v, once it has i from its parent.

    Returns:
        whether v is blue, and the budget that it hands to each child.
    """
    # Mended (lines 7-10): blue only where that sends strictly less, hence never outside Lambda
    # and never for nothing.
    is_blue = _at(v.blue[-1], i) < _at(v.red[-1], i)
    shares = list(_shares(i, is_blue, v, children))
    shares.reverse()
    return is_blue, shares


def _shares(i: int, is_blue: bool, v: Gathered, children: Sequence[Beta]) -> Iterator[int]:
    """The budgets of the children, from the last to the first."""
    partial = v.blue if is_blue else v.red
    for m in range(len(children), 1, -1):  # lines 11-14
        j = _minsplit(i, partial[m - 2], children[m - 1], v.infinity)
        yield j
        i -= j
    if children:
        yield i - 1 if is_blue else i  # lines 15-18


def _minsplit(i: int, beta_v: Beta, beta_c: Beta, infinity: int) -> int:
    """Lines 21-25: the least j that attains mincost. A blue v's infinite beta_v(0) bars j = i."""

    def cost(j: int) -> int:
        there, here = _at(beta_v, i - j), _at(beta_c, j)
        return infinity if infinity in (there, here) else min(there + here, infinity)

    return min(range(min(i, len(beta_c) - 1) + 1), key=cost)
