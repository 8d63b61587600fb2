"""`milp`: the optimum from a general solver, HiGHS, as someone without SMC would get it.

Variables: x_v, the messages on link v; b_v in {0, 1}, whether v is blue, 0 outside Lambda; S_v is
the number of workers at or below v. Minimal x is what Algorithm 1 sends when

    x_v >= L(v) + sum of x_c over the children c - S_v b_v,     x_v >= min(1, S_v)
    sum of b_v <= k

since turning v blue takes away at most the S_v messages that reach it. Link v is within a bound
X iff x_v <= floor(X * w(v)), so that every number in the programme is an integer, whatever the
rates are.

HiGHS computes in doubles, so nothing that it says is believed unseen. A first programme with psi
itself as a variable, in doubles, gives some good set. Its exact psi is then lowered: a programme
with integer caps looks for the fewest blue switches that stay strictly below it, until there is
none. Every set that HiGHS offers is counted again exactly; only its "infeasible" is taken on
trust, hence the limit on the number of workers.
"""

from fractions import Fraction
from typing import Any

from controller.placement.budget import checked_budget
from controller.placement.errors import PlacementError
from controller.placement.loads import Placement, message_counts, most_congested
from controller.placement.tree import Tree

__all__ = ["MOST_WORKERS", "milp"]

_INFEASIBLE = 2
MOST_WORKERS = 200_000
"""HiGHS takes a b_v within 1e-6 of 0 or 1 for that integer. Times S_v, the error in messages must
stay well below the 1 by which integers differ; with 10^9 workers it gives wrong answers."""


def milp(tree: Tree, k: int) -> Placement:
    """The optimum by mixed-integer programming: least congestion, fewest blue switches.

    Among such sets it is the solver's choice, the same for the same input and HiGHS. It takes
    seconds for hundreds of switches and has no upper limit on time.

    Raises:
        PlacementError: k is negative or not an integer; there are more than MOST_WORKERS
            workers; or HiGHS offers a set that exact counting refutes.
    """
    budget = checked_budget(k)
    below = tree.subtree_loads()
    if below[0] > MOST_WORKERS:
        raise PlacementError(
            f"milp: {below[0]} workers, the solver's tolerances allow {MOST_WORKERS}: use smc"
        )
    programme = _Programme(tree, below, budget)
    blue = programme.roughly_best()
    if len(blue) > budget:
        blue = frozenset()
    congestion = _congestion(tree, blue)
    while congestion > 0:
        better = programme.fewest(congestion, strictly=True)
        if better is None or len(better) > budget:
            break
        reached = _congestion(tree, better)
        if reached >= congestion:
            raise _refuted()
        congestion = reached
    fewest = programme.fewest(congestion, strictly=False)
    if fewest is None or len(fewest) > budget or _congestion(tree, fewest) != congestion:
        raise _refuted()
    return Placement(fewest, congestion, "milp", budget)


def _refuted() -> PlacementError:
    return PlacementError(
        "milp: the solver offered a set that is not what it says, counted exactly: use smc"
    )


def _congestion(tree: Tree, blue: frozenset[int]) -> Fraction:
    return most_congested(tree, message_counts(tree, blue))


class _Programme:
    """The constraints that do not depend on the bound; columns x_0 .., b_0 .., then psi."""

    def __init__(self, tree: Tree, below: tuple[int, ...], budget: int) -> None:
        # Loaded here: nothing else in this package needs a solver.
        import numpy as np
        from scipy import optimize, sparse

        n = tree.n
        self._tree, self._below, self._np, self._solver = tree, below, np, optimize
        rows, columns, values = list(range(n)), list(range(n)), [1.0] * n
        for v in range(n):
            if v:
                rows.append(tree.parent[v])
                columns.append(v)
                values.append(-1.0)
            rows.append(v)
            columns.append(n + v)
            values.append(float(below[v]))
        rows += [n] * n
        columns += range(n, 2 * n)
        values += [-1.0] * n
        self._sends = sparse.csr_array((values, (rows, columns)), shape=(n + 1, 2 * n + 1))
        self._at_least = np.array([*map(float, tree.load), -float(min(budget, n))])
        rates = np.array([float(rate) for rate in tree.rate])
        self._rates = rates / rates.max()
        self._within = sparse.csr_array(
            (
                [*([1.0] * n), *(-self._rates)],
                (list(range(n)) * 2, [*range(n), *([2 * n] * n)]),
            ),
            shape=(n, 2 * n + 1),
        )

    def roughly_best(self) -> frozenset[int]:
        """A set of about the least congestion, as doubles see it."""
        n, np = self._tree.n, self._np
        cost = np.zeros(2 * n + 1)
        cost[2 * n] = 1
        within = self._solver.LinearConstraint(self._within, -np.inf, 0.0)
        return self._solve(cost, self._below, [within], gap=1e-3) or frozenset()

    def fewest(self, bound: Fraction, *, strictly: bool) -> frozenset[int] | None:
        """The fewest blue switches that keep all links within the bound, or short of it."""
        n = self._tree.n
        caps = []
        for rate, below in zip(self._tree.rate, self._below, strict=True):
            top = bound.numerator * rate.numerator - strictly
            cap = min(top // (bound.denominator * rate.denominator), below)
            if cap < min(1, below):
                return None
            caps.append(cap)
        cost = self._np.zeros(2 * n + 1)
        cost[n : 2 * n] = 1
        return self._solve(cost, tuple(caps), [], gap=0.0)

    def _solve(
        self, cost: Any, caps: tuple[int, ...], more: list[Any], gap: float
    ) -> frozenset[int] | None:
        n, np = self._tree.n, self._np
        least = [float(min(1, below)) for below in self._below]
        lower = np.array([*least, *([0.0] * n), 0.0])
        upper = np.array([*map(float, caps), *map(float, self._tree.available), np.inf])
        result = self._solver.milp(
            cost,
            integrality=np.array([0] * n + [1] * n + [0]),
            bounds=self._solver.Bounds(lower, upper),
            constraints=[
                self._solver.LinearConstraint(self._sends, self._at_least, np.inf),
                *more,
            ],
            options={"mip_rel_gap": gap},
        )
        if result.status == _INFEASIBLE:
            return None
        if result.status != 0:
            raise PlacementError(f"milp: HiGHS gave up: {' '.join(result.message.split())}")
        return frozenset(np.flatnonzero(result.x[n : 2 * n] > 0.5).tolist())
