"""Many workloads: each is placed when it arrives, on the switches that still have capacity.

Sec. V, "Multiple Workloads": switch s can aggregate for at most a(s) workloads at once, and
workload t is placed on Lambda_t = {s : a_t(s) > 0} before the next one is known. What all of them
put on a link adds up.

The paper's greedy gives every workload its whole budget k. These choices differ from it:

- `spend="needed"`: only the blue switches that the optimum of this workload needs, the fewest.
- `ties="residual"`: among equally good sets, one that spares the switches with the least residual
  capacity. `spread` says exactly what is guaranteed.
- `goal="total"`: the least congestion of all workloads together, not of the new one alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, get_args

from controller.placement.baselines import all_blue, all_red, max_load, top
from controller.placement.dynamic import smc_dp
from controller.placement.errors import PlacementError
from controller.placement.flips import smc
from controller.placement.level import level
from controller.placement.loads import Placement, loads, most_congested
from controller.placement.message_size import unit_sizes
from controller.placement.sized import fewest_within, smc_beside, smc_painted
from controller.placement.tree import Tree

__all__ = ["Admission", "Goal", "OnlineAllocator", "Spend", "Ties", "spread"]

Spend = Literal["needed", "budget"]
Ties = Literal["index", "residual"]
Goal = Literal["own", "total"]

_STRATEGIES = MappingProxyType(
    {
        "smc": smc,
        "smc-dp": smc_dp,
        "top": top,
        "max": max_load,
        "level": level,
        "all-red": all_red,
        "all-blue": all_blue,
    }
)
# A residual capacity that never runs out sorts after every number.
_Rank = tuple[bool, int]


@dataclass(frozen=True, slots=True)
class Admission:
    """One workload that is being served.

    Attributes:
        workload: its number; numbers rise from 0 and are never used again.
        load: L_t, its workers at every switch.
        placement: its blue switches, and the congestion that it alone causes.
        messages: what it puts on every link.
    """

    workload: int
    load: tuple[int, ...]
    placement: Placement
    messages: tuple[int, ...]


class OnlineAllocator:
    """Serves workloads one by one over a tree whose switches have aggregation capacities.

    All state changes are whole: a call that raises leaves everything as it was.
    """

    def __init__(self, tree: Tree, capacity: Sequence[int | None]) -> None:
        """Start with no workload.

        Args:
            tree: the switches, links and Lambda; its loads are not used, workloads bring theirs.
            capacity: a(s) of every switch, an integer >= 0, or None for no limit.

        Raises:
            PlacementError: another number of capacities than switches, or one that is no capacity.
        """
        if len(capacity) != tree.n:
            raise PlacementError(
                f"capacity has {len(capacity)} entries and the tree {tree.n} switches: "
                "give one a switch"
            )
        for v, limit in enumerate(capacity):
            if limit is not None and (
                isinstance(limit, bool) or not isinstance(limit, int) or limit < 0
            ):
                raise PlacementError(
                    f"capacity[{v}] is {limit!r}: write an integer >= 0, or None for no limit"
                )
        self._tree = tree
        self._residual: list[int | None] = list(capacity)
        self._messages = [0] * tree.n
        self._admitted: dict[int, Admission] = {}
        self._arrived = 0

    def admit(
        self,
        load: Sequence[int],
        k: int,
        strategy: str = "smc",
        *,
        spend: Spend = "needed",
        ties: Ties = "index",
        goal: Goal = "own",
    ) -> Admission:
        """Place a workload on the switches that have capacity left, and take what it uses.

        Args:
            load: its workers at every switch, L_t.
            k: its own budget.
            strategy: smc, smc-dp, top, max, level, all-red or all-blue, by Lambda_t.
            spend: of smc: "needed" takes the fewest blue switches that reach the optimum; "budget"
                spends up to k as the paper's greedy does, see `smc_painted`.
            ties: of smc: "index" leaves the choice among equal sets to the index; "residual" takes
                what `spread` takes; with spend="budget" it then adds available switches up to k,
                those of most residual capacity first, then the nearest to the root.
            goal: of smc: "own" makes the congestion that this workload alone causes least, as the
                paper does; "total" that of all workloads being served, see `smc_beside`, spending
                what is needed.

        Raises:
            PlacementError: an unknown word, a load that is not one integer >= 0 a switch, k
                negative or not an integer.
        """
        if strategy not in _STRATEGIES:
            raise PlacementError(f"strategy {strategy!r} is not one of {', '.join(_STRATEGIES)}")
        _check_choices(strategy, spend, ties, goal)
        tree = self._on_residual(load)
        if goal == "total":
            placement = smc_beside(tree, self._messages, k)
        elif ties == "residual":
            placement = spread(tree, k, self._residual)
            if spend == "budget":
                placement = _padded(tree, placement, self._residual)
        elif spend == "budget":
            placement = smc_painted(tree, k)
        else:
            placement = _STRATEGIES[strategy](tree, k)
        return self._take(tree, placement)

    def release(self, workload: int) -> None:
        """End a workload: its switches get their capacity back, its messages leave the links.

        Raises:
            PlacementError: there is no such workload now.
        """
        if workload not in self._admitted:
            raise PlacementError(f"workload {workload!r} is not being served: nothing to release")
        ended = self._admitted.pop(workload)
        for v in ended.placement.blue:
            limit = self._residual[v]
            self._residual[v] = None if limit is None else limit + 1
        for v, count in enumerate(ended.messages):
            self._messages[v] -= count

    @property
    def tree(self) -> Tree:
        """The tree that the allocator was made with."""
        return self._tree

    @property
    def workloads(self) -> Mapping[int, Admission]:
        """The workloads being served, by number, in order of arrival."""
        return MappingProxyType(self._admitted)

    @property
    def residual(self) -> tuple[int | None, ...]:
        """a_t(s): for how many more workloads each switch may aggregate; None is no limit."""
        return tuple(self._residual)

    @property
    def messages(self) -> tuple[int, ...]:
        """What all workloads together put on every link."""
        return tuple(self._messages)

    @property
    def link_congestion(self) -> tuple[Fraction, ...]:
        """messages / rate of every link, exact, over all workloads."""
        return tuple(m / w for m, w in zip(self._messages, self._tree.rate, strict=True))

    @property
    def congestion(self) -> Fraction:
        """The largest messages / rate over all links, of all workloads together."""
        return most_congested(self._tree, self._messages)

    def _on_residual(self, load: Sequence[int]) -> Tree:
        """The tree with this workload, and Lambda_t in place of Lambda."""
        available = [
            allowed and (limit is None or limit > 0)
            for allowed, limit in zip(self._tree.available, self._residual, strict=True)
        ]
        return Tree(self._tree.parent, self._tree.rate, load, available)

    def _take(self, tree: Tree, placement: Placement) -> Admission:
        alone = loads(tree, placement.blue)
        messages = alone.messages
        placement = replace(placement, congestion=alone.congestion)
        admission = Admission(self._arrived, tree.load, placement, messages)
        self._admitted[self._arrived] = admission
        self._arrived += 1
        for v in placement.blue:
            limit = self._residual[v]
            self._residual[v] = None if limit is None else limit - 1
        for v, count in enumerate(messages):
            self._messages[v] += count
        return admission


def _check_choices(strategy: str, spend: str, ties: str, goal: str) -> None:
    if spend not in get_args(Spend) or ties not in get_args(Ties) or goal not in get_args(Goal):
        raise PlacementError(
            f"spend {spend!r}, ties {ties!r}, goal {goal!r}: spend is needed or budget, "
            "ties are index or residual, goal is own or total"
        )
    if strategy != "smc" and (spend, ties, goal) != ("needed", "index", "own"):
        raise PlacementError(
            f"spend, ties and goal are choices of smc, leave them out of {strategy}"
        )
    if goal == "total" and (spend, ties) != ("needed", "index"):
        raise PlacementError("goal total spends what is needed and breaks ties by index")


def spread(tree: Tree, k: int, residual: Sequence[int | None]) -> Placement:
    """The optimum of `smc` that spares the scarcest switches.

    Like `smc` it has the least congestion, and the fewest blue switches that reach it. Among all
    such sets it is the one that is least in this order: list the available switches by rising
    residual capacity (equal ones by index), leaving out those with the most; of two sets the lesser
    is the one that leaves out the first switch on the list that only one of them uses. So

    - the least residual capacity that it uses is the largest possible, and
    - it uses a scarce switch only if every set that is as good on the scarcer ones uses it too.

    It does not minimise how many scarce switches are used, nor what later workloads suffer: those
    are not known.

    Cost: a pass of O(n log^2 n) for every distinct residual capacity but the largest, and for
    those of which some switch is needed, one for every switch in use that has it.

    Raises:
        PlacementError: as `smc`; or another number of capacities than switches.
    """
    if len(residual) != tree.n:
        raise PlacementError(
            f"residual has {len(residual)} entries and the tree {tree.n} switches: "
            "give one a switch"
        )
    optimum = smc(tree, k)
    bound, count = optimum.congestion, len(optimum.blue)
    allowed = list(tree.available)
    chosen = optimum.blue
    for members in _scarce_levels(tree, residual):
        without = _without(tree, allowed, members, chosen, bound, count)
        if without is not None:
            chosen = without
            continue
        for v in members:
            without = _without(tree, allowed, [v], chosen, bound, count)
            if without is not None:
                chosen = without
    return Placement(chosen, bound, "smc", optimum.k)


def _scarce_levels(tree: Tree, residual: Sequence[int | None]) -> list[list[int]]:
    """The available switches by rising residual capacity, without those that have the most."""
    levels: dict[_Rank, list[int]] = {}
    for v in range(tree.n):
        limit = residual[v]
        if tree.available[v]:
            levels.setdefault((limit is None, limit or 0), []).append(v)
    return [levels[rank] for rank in sorted(levels)[:-1]]


def _without(
    tree: Tree,
    allowed: list[bool],
    members: list[int],
    chosen: frozenset[int],
    bound: Fraction,
    count: int,
) -> frozenset[int] | None:
    """A set as good as `chosen` that uses none of `members`, which are then no longer allowed."""
    trial = list(allowed)
    for v in members:
        trial[v] = False
    if chosen.isdisjoint(members):
        found: frozenset[int] | None = chosen
    else:
        found = fewest_within(tree, unit_sizes(tree), bound, count, available=trial)
    if found is not None:
        allowed[:] = trial
    return found


def _padded(tree: Tree, placement: Placement, residual: Sequence[int | None]) -> Placement:
    """The placement with further available switches, up to its budget; it stays as good."""
    depth, below = tree.depths(), tree.subtree_loads()
    spare = [v for v in range(tree.n) if tree.available[v] and v not in placement.blue]

    def order(v: int) -> tuple[bool, int, int, int, int]:
        limit = residual[v]
        return limit is not None, -(limit or 0), depth[v], -below[v], v

    spare.sort(key=order)
    more = spare[: max(0, placement.k - len(placement.blue))]
    return replace(placement, blue=placement.blue.union(more))
