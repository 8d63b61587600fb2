"""What a job may have: its number, its slots, and blue switches that still have capacity. Pure.

A switch aggregates for at most a(s) jobs at once (paper, Sec. V, "Multiple Workloads"); the online
allocator of `controller.placement.online` places each arriving job on what is left. A job keeps one
range of slots at every switch for its whole life. While a job is being reallocated its old and its
new blue switches overlap, but only for chunks that are under way; each counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from controller.placement import STRATEGIES, Placement, Tree, loads
from controller.placement.online import OnlineAllocator, Ties
from controller.service.errors import AdmissionError
from p4src.constants import JOBS, SLOTS
from topologies import Topology
from topologies.network import Network

BUDGET_FREE = ("all-red", "all-blue")
GIVEN = "given"
"""The strategy of an allocation whose blue switches were named."""
_ONLINE = ("smc", "smc-dp", "top", "max", "level", *BUDGET_FREE)


@dataclass(frozen=True, slots=True)
class Wish:
    """How to choose blue switches: a strategy and its budget, or names."""

    strategy: str = "smc"
    budget: int | None = None
    blue: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The blue switches of a job.

    Attributes:
        blue: tree indices.
        congestion: psi of this job alone.
        full: tree indices of available switches that have no capacity left.
    """

    strategy: str
    budget: int | None
    blue: frozenset[int]
    congestion: Fraction
    full: tuple[int, ...]


def free_job(taken: Iterable[int]) -> int:
    """The lowest job number that is free; AdmissionError where all are taken."""
    used = set(taken)
    number = next((n for n in range(1, JOBS + 1) if n not in used), None)
    if number is None:
        raise AdmissionError(f"{JOBS} jobs run, as many as the program was compiled for: stop one")
    return number


def free_slots(taken: Mapping[int, range], window: int) -> int:
    """The first slot of a free range of `window` slots; AdmissionError says how many are missing.

    Args:
        taken: the range of every job, by its number.
        window: a power of two.
    """
    if window < 1 or window & (window - 1):
        raise AdmissionError(f"--window {window}: choose a power of two, such as 64")
    at, largest = 0, 0
    for slots in sorted(taken.values(), key=lambda slots: slots.start):
        largest = max(largest, slots.start - at)
        if slots.start - at >= window:
            return at
        at = max(at, slots.stop)
    largest = max(largest, SLOTS - at)
    if SLOTS - at >= window:
        return at
    used = sum(len(slots) for slots in taken.values())
    holders = ", ".join(map(str, sorted(taken))) or "none"
    raise AdmissionError(
        f"every switch: {window} slots are needed in one piece and {largest} are free "
        f"({window - largest} too few; {used} of {SLOTS} are held by jobs {holders}): "
        "stop a job, or use a smaller --window"
    )


def job_tree(topology: Topology, members: Sequence[int] | None, network: Network) -> Tree:
    """The overlay tree with the workers of one job as its loads, L_t."""
    tree = topology.overlay.tree
    if members is None:
        return tree
    present = set(members)
    load = [
        sum(host.rank in present for host in network.workers_at[name])
        for name in topology.overlay.names
    ]
    return Tree(tree.parent, tree.rate, load, tree.available)


def choose(
    topology: Topology, tree: Tree, others: Mapping[int, frozenset[int]], wish: Wish
) -> Choice:
    """Choose the blue switches of a job beside all others.

    Args:
        topology: names and capacities.
        tree: with the job's own loads.
        others: the blue switches of every other job that runs, by its number.
        wish: what was asked for.

    Raises AdmissionError naming a switch that is unknown, not available or full; PlacementError for
    a strategy or budget that is none.
    """
    residual = _residual(topology, others)
    full = tuple(
        v for v, left in enumerate(residual) if left is not None and left <= 0 and tree.available[v]
    )
    if wish.blue is not None:
        blue = frozenset(_given(topology, tree, others, residual, name) for name in wish.blue)
        if wish.budget is not None and len(blue) > wish.budget:
            raise AdmissionError(f"--blue names {len(blue)} switches and -k allows {wish.budget}")
        return Choice(GIVEN, wish.budget, blue, loads(tree, blue).congestion, full)
    placement = _placed(tree, residual, wish)
    return Choice(
        wish.strategy, wish.budget, placement.blue, loads(tree, placement.blue).congestion, full
    )


def _placed(tree: Tree, residual: Sequence[int | None], wish: Wish) -> Placement:
    if wish.strategy not in STRATEGIES:
        raise AdmissionError(f"--strategy {wish.strategy}: choose one of {', '.join(STRATEGIES)}")
    budget = wish.budget
    if budget is None:
        if wish.strategy not in BUDGET_FREE:
            raise AdmissionError(
                f"-k: say how many switches {wish.strategy} may make blue, such as -k 4"
            )
        budget = tree.n
    if wish.strategy in _ONLINE:
        allocator = OnlineAllocator(tree, [_at_least_0(left) for left in residual])
        ties: Ties = "residual" if wish.strategy == "smc" else "index"
        return allocator.admit(tree.load, budget, wish.strategy, ties=ties).placement
    available = [
        allowed and (left is None or left > 0)
        for allowed, left in zip(tree.available, residual, strict=True)
    ]
    return STRATEGIES[wish.strategy](Tree(tree.parent, tree.rate, tree.load, available), budget)


def _residual(topology: Topology, others: Mapping[int, frozenset[int]]) -> list[int | None]:
    """a_t(s) of every switch: its capacity less the jobs that it aggregates for."""
    return [
        None if limit is None else limit - sum(v in blue for blue in others.values())
        for v, limit in enumerate(topology.overlay.capacity)
    ]


def _at_least_0(left: int | None) -> int | None:
    return None if left is None else max(0, left)


def _given(
    topology: Topology,
    tree: Tree,
    others: Mapping[int, frozenset[int]],
    residual: Sequence[int | None],
    name: str,
) -> int:
    names = topology.overlay.names
    if name not in names:
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise AdmissionError(f"--blue {name}: no such switch in the overlay; it has {shown}")
    v = names.index(name)
    if not tree.available[v]:
        raise AdmissionError(f"--blue {name}: the topology says that it is not available")
    left = residual[v]
    if left is not None and left <= 0:
        served = [str(job) for job, blue in sorted(others.items()) if v in blue]
        held = f"used by jobs {', '.join(served)}" if served else "none to begin with"
        raise AdmissionError(
            f"{name}: its capacity of {topology.overlay.capacity[v]} is {held} ({1 - left} too "
            "few): stop one of them, or choose another switch"
        )
    return v
