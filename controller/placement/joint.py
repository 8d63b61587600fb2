"""The offline optimum of many workloads at once, by mixed integer programming.

What `OnlineAllocator` decides workload by workload, without knowing the next, is decided here for
all of them together. It says how far from it online is; it is meant for small cases, since nothing
better than branch and bound is known for several workloads that share capacities.

For workload t and switch v, with b = 1 where v is blue for t, m what v sends for t, and S what it
would send if all were red:

    minimise X
    m[t,v] >= M[t,v] - (S[t,v] - 1) b[t,v]   where M[t,v] = L_t(v) + sum of m[t,c], c below v
    m[t,v] >= 1                              where S[t,v] > 0
    sum over t of m[t,v] <= X w(v)           for every link
    sum over v of b[t,v] <= k_t              for every workload
    sum over t of b[t,v] <= a(v)             for every switch; b[t,v] = 0 outside Lambda

X is a multiple of 1 / g, g the least common multiple of the rates' numerators; where g is small the
program counts X in these steps, as an integer, which lets the solver cut off far more.

The solver works in floating point. What it answers is checked exactly: the congestion of its blue
sets is computed in rationals, and it counts as the optimum only if the solver's lower bound
excludes every value m / w(e) below it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from controller.placement.budget import checked_budget
from controller.placement.errors import PlacementError
from controller.placement.loads import loads, most_congested
from controller.placement.tree import Tree

__all__ = ["JointPlacement", "joint_optimum"]

_DIGITS = 1e-6
_FINEST = 10**6


@dataclass(frozen=True, slots=True)
class JointPlacement:
    """Which switches are blue for which workload, and the congestion of all together.

    Attributes:
        blue: for every workload its blue switches.
        messages: what all workloads together put on every link.
        congestion: the largest messages / rate, exact; no other choice has less.
    """

    blue: tuple[frozenset[int], ...]
    messages: tuple[int, ...]
    congestion: Fraction


def joint_optimum(
    tree: Tree,
    workloads: Sequence[Sequence[int]],
    budgets: Sequence[int],
    capacity: Sequence[int | None],
    *,
    seconds: float = 60.0,
) -> JointPlacement:
    """The least congestion that workloads known in advance can have together.

    Args:
        tree: the switches, links and Lambda; its loads are not used.
        workloads: for every workload its workers at every switch.
        budgets: for every workload its k.
        capacity: a(s) of every switch; None is no limit.
        seconds: how long the solver may take.

    Raises:
        PlacementError: arrays that do not fit together, or an optimum that was not proven in time.
    """
    if len(budgets) != len(workloads) or len(capacity) != tree.n:
        raise PlacementError(
            f"{len(workloads)} workloads, {len(budgets)} budgets and {len(capacity)} capacities "
            f"for {tree.n} switches: give one budget a workload and one capacity a switch"
        )
    loaded = [Tree(tree.parent, tree.rate, load, tree.available) for load in workloads]
    limits = [checked_budget(k) for k in budgets]
    if not any(any(one.load) for one in loaded):
        nothing = tuple(frozenset[int]() for _ in loaded)
        return JointPlacement(nothing, (0,) * tree.n, Fraction(0))
    program = _Program(tree, loaded, limits, capacity)
    blue, bound = program.solve(seconds)
    messages = [0] * tree.n
    for one, chosen in zip(loaded, blue, strict=True):
        for v, count in enumerate(loads(one, chosen).messages):
            messages[v] += count
    congestion = most_congested(tree, messages)
    if bound <= float(_next_below(tree, congestion)) + _DIGITS:
        raise PlacementError(
            f"the joint optimum was not proven within {seconds:g} s: at most {congestion}, "
            f"at least {bound:.6g}; give it more seconds, fewer switches or fewer workloads"
        )
    return JointPlacement(tuple(blue), tuple(messages), congestion)


def _next_below(tree: Tree, congestion: Fraction) -> Fraction:
    """The largest value below `congestion` that the congestion of a link can take."""
    return max((math.ceil(congestion * rate) - 1) / rate for rate in tree.distinct_rates)


class _Program:
    """The mixed integer program: columns are X in steps, then b[t,v], then m[t,v]."""

    def __init__(
        self,
        tree: Tree,
        loaded: Sequence[Tree],
        budgets: Sequence[int],
        capacity: Sequence[int | None],
    ) -> None:
        self._tree = tree
        self._workloads = len(loaded)
        finest = math.lcm(*(rate.numerator for rate in tree.distinct_rates))
        self._stepped = finest <= _FINEST
        self._step = Fraction(1, finest if self._stepped else 1)
        self._columns = 1 + 2 * len(loaded) * tree.n
        self._entries: list[tuple[int, int, float]] = []
        self._least: list[float] = []  # of every row: its value must be at least this
        self._lower = np.zeros(self._columns)
        self._upper = np.full(self._columns, np.inf)
        for t, one in enumerate(loaded):
            self._messages_of(t, one)
            self._at_most([self._blue(t, v) for v in range(tree.n)], budgets[t])
        for v in range(tree.n):
            self._row([(0, float(self._step * tree.rate[v])), *self._each(v, -1.0)], 0.0)
            limit = capacity[v]
            if limit is not None:
                self._at_most([self._blue(t, v) for t in range(len(loaded))], limit)

    def _blue(self, t: int, v: int) -> int:
        return 1 + t * self._tree.n + v

    def _sent(self, t: int, v: int) -> int:
        return 1 + (self._workloads + t) * self._tree.n + v

    def _each(self, v: int, factor: float) -> list[tuple[int, float]]:
        return [(self._sent(t, v), factor) for t in range(self._workloads)]

    def _row(self, entries: Sequence[tuple[int, float]], least: float) -> None:
        row = len(self._least)
        self._entries.extend((row, column, factor) for column, factor in entries)
        self._least.append(least)

    def _at_most(self, columns: Sequence[int], limit: int) -> None:
        self._row([(column, -1.0) for column in columns], -float(limit))

    def _messages_of(self, t: int, tree: Tree) -> None:
        below = tree.subtree_loads()
        for v in range(tree.n):
            useful = tree.available[v] and below[v] > 1
            self._upper[self._blue(t, v)] = float(useful)
            self._lower[self._sent(t, v)] = min(1, below[v])
            self._upper[self._sent(t, v)] = below[v]
            entries = [(self._sent(t, v), 1.0)]
            entries += [(self._sent(t, c), -1.0) for c in tree.children[v]]
            if useful:
                entries.append((self._blue(t, v), float(below[v] - 1)))
            self._row(entries, float(tree.load[v]))

    def solve(self, seconds: float) -> tuple[list[frozenset[int]], float]:
        """The blue set of every workload, and a lower bound on X."""
        # Here, since only this needs the solver and loading it takes most of a second.
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        rows, columns, factors = zip(*self._entries, strict=True)
        matrix = coo_array((factors, (rows, columns)), shape=(len(self._least), self._columns))
        integer = np.zeros(self._columns)
        integer[0] = self._stepped
        integer[1 : 1 + self._workloads * self._tree.n] = 1
        cost = np.zeros(self._columns)
        cost[0] = 1
        result = milp(
            cost,
            integrality=integer,
            bounds=Bounds(self._lower, self._upper),
            constraints=LinearConstraint(matrix.tocsr(), lb=np.array(self._least)),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        if result.x is None:
            raise PlacementError(
                f"the solver found no joint placement within {seconds:g} s; give it more seconds"
            )
        blue = [
            frozenset(v for v in range(self._tree.n) if result.x[self._blue(t, v)] > 0.5)
            for t in range(self._workloads)
        ]
        bound = result.fun if result.mip_dual_bound is None else result.mip_dual_bound
        return blue, float(bound) * float(self._step)
