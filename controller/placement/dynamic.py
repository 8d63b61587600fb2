"""`smc_dp`: the paper's SMC-Gather and SMC-Color (Algorithms 3 and 4), mended.

Written to be read beside the paper: the names are its symbols and the comments its equation and
line numbers. What differs from the printed text is marked "Mended"; docs/placement.md explains
each. It shares the search over X with `smc` and nothing else, so each checks the other.
"""

from dataclasses import dataclass
from fractions import Fraction

from controller.placement.budget import checked_budget
from controller.placement.loads import Placement, loads
from controller.placement.search import candidate_spans, least_feasible
from controller.placement.tree import Tree

__all__ = ["smc_dp"]

# beta as a function of i, the budget: entry i; past its end, its last entry. Non-increasing.
_Beta = list[int]


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What SMC-Gather leaves at every switch v.

    red[v][m - 1] is beta_v^m(., R) and blue[v][m - 1] is beta_v^m(., B), for m = 1 .. C(v); a
    leaf has one of each, its two colours. beta[v] is beta_v. `infinity` is the number of messages
    that stands for "no such set": more than any sum of numbers of messages here.
    """

    red: list[list[_Beta]]
    blue: list[list[_Beta]]
    beta: list[_Beta]
    infinity: int


def smc_dp(tree: Tree, k: int) -> Placement:
    """Algorithm 2, SMC: the optimum by dynamic programming over the split of the budget.

    The same congestion as `smc` and as many blue switches, though not always the same ones.
    Vectors are bounded by the size of their subtree, so a bound costs O(n k) in place of the
    O(n k^2) of Theorem 1.

    Raises:
        PlacementError: k is negative or not an integer.
    """
    asked = checked_budget(k)
    budget = min(asked, sum(tree.available))

    def attempt(bound: Fraction) -> Fraction | None:
        gathered = _gather(tree, budget, bound)
        return bound if _least_budget(gathered) is not None else None

    # Mended (Alg. 2, lines 2-4): search the candidates m / w, not multiples of 1 / w_max.
    everything = frozenset(v for v in range(tree.n) if tree.available[v])
    best, worst = loads(tree, everything).congestion, loads(tree, ()).congestion
    optimum = best
    if worst > best and attempt(best) is None:
        optimum = least_feasible(candidate_spans(tree), best, worst, attempt)
    gathered = _gather(tree, budget, optimum)
    # Mended (Alg. 2, line 5): Color starts with the least budget that is enough, not with k.
    enough = _least_budget(gathered)
    assert enough is not None
    return Placement(_color(tree, gathered, enough), optimum, "smc-dp", asked)


def _least_budget(gathered: _Gathered) -> int | None:
    """The least i with beta_r(i) < infinity, or None."""
    return next((i for i, b in enumerate(gathered.beta[0]) if b < gathered.infinity), None)


def _gather(tree: Tree, k: int, bound: Fraction) -> _Gathered:
    """Algorithm 3, SMC-Gather, for the bound X: beta_v(i) for all v, children before parents."""
    below = tree.subtree_loads()
    infinity = below[0] + 2
    gathered = _Gathered(
        [[] for _ in range(tree.n)],
        [[] for _ in range(tree.n)],
        [[] for _ in range(tree.n)],
        infinity,
    )

    # b * tau(v) <= X, said of messages: b <= floor(X * w(v)).
    caps = [
        bound.numerator * rate.numerator // (bound.denominator * rate.denominator)
        for rate in tree.distinct_rates
    ]
    for v in tree.order:
        cap = caps[tree.rate_index[v]]
        # Mended (Eq. (5), line 22): a blue switch with nothing below it sends 0. And (Eq. (5),
        # lines 9 and 22): the link of a blue switch is held to X as well.
        one = min(1, below[v])
        may_be_blue = tree.available[v] and one <= cap
        red, blue = gathered.red[v], gathered.blue[v]
        load = tree.load[v] if tree.load[v] <= cap else infinity
        if not tree.children[v]:
            red.append([load])  # Eq. (12), lines 4-6
            blue.append(_prepaid([0], one, infinity, k) if may_be_blue else [infinity])
        for m, c in enumerate(tree.children[v], start=1):
            beta_c = gathered.beta[c]
            if m == 1:
                # Eq. (6), lines 18-20: beta_c1(i) + L(v), or infinity above the cap.
                red.append(_mincost([load], beta_c, cap, k, infinity))
                # Eq. (5), lines 21-24. Mended (line 21): tests beta < infinity, not beta <= X.
                blue.append(_prepaid(beta_c, one, infinity, k) if may_be_blue else [infinity])
            else:
                # Eq. (9) with condition (10), line 27.
                red.append(_mincost(red[-1], beta_c, cap, k, infinity))
                # Eq. (8), line 26. Mended: beta_v^1 has already paid for v, so the budget is i,
                # not i - 1; and the value is 1 as in Lemma 2, not the sum that mincost returns.
                sums = _mincost(blue[-1], beta_c, infinity - 1, k, infinity)
                blue.append([one if b < infinity else infinity for b in sums])
        # Eq. (11), line 29.
        gathered.beta[v] = _minimum(blue[-1], red[-1])
    return gathered


def _prepaid(beta_c: _Beta, one: int, infinity: int, k: int) -> _Beta:
    """beta_v^1(i, B) of Eq. (5): `one` where i - 1 is enough below; infinity at i = 0."""
    return [infinity, *(one if b < infinity else infinity for b in beta_c)][: k + 1]


def _mincost(beta_v: _Beta, beta_c: _Beta, cap: int, k: int, infinity: int) -> _Beta:
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


def _minimum(a: _Beta, b: _Beta) -> _Beta:
    return [min(_at(a, i), _at(b, i)) for i in range(max(len(a), len(b)))]


def _at(beta: _Beta, i: int) -> int:
    return beta[min(i, len(beta) - 1)]


def _color(tree: Tree, gathered: _Gathered, enough: int) -> frozenset[int]:
    """Algorithm 4, SMC-Color: hands the budget down from the root, parents before children."""
    budget = {0: enough}  # lines 3-4
    chosen: list[int] = []
    for v in reversed(tree.order):
        i = budget.pop(v)
        red, blue = gathered.red[v], gathered.blue[v]
        # Mended (lines 7-10): blue only where that sends strictly less, hence never outside
        # Lambda and never for nothing.
        is_blue = _at(blue[-1], i) < _at(red[-1], i)
        if is_blue:
            chosen.append(v)
        partial = blue if is_blue else red
        children = tree.children[v]
        for m in range(len(children), 1, -1):  # lines 11-14
            j = _minsplit(i, partial[m - 2], gathered.beta[children[m - 1]], gathered.infinity)
            budget[children[m - 1]] = j
            i -= j
        if children:
            budget[children[0]] = i - 1 if is_blue else i  # lines 15-18
    return frozenset(chosen)


def _minsplit(i: int, beta_v: _Beta, beta_c: _Beta, infinity: int) -> int:
    """Lines 21-25: the least j that attains mincost. A blue v's infinite beta_v(0) bars j = i."""

    def cost(j: int) -> int:
        there, here = _at(beta_v, i - j), _at(beta_c, j)
        return infinity if infinity in (there, here) else min(there + here, infinity)

    return min(range(min(i, len(beta_c) - 1) + 1), key=cost)
