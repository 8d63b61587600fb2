"""The online allocator: what it takes, gives back and counts; what ties and spending promise."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.placement import Placement, PlacementError, Tree, loads, smc
from controller.placement.online import Goal, OnlineAllocator, Spend, Ties, spread
from controller.placement.sized import smc_beside, smc_painted
from tests.unit.placement.trees import FIG1, trees

VARIANTS: list[tuple[Spend, Ties, Goal]] = [
    ("needed", "index", "own"),
    ("budget", "index", "own"),
    ("needed", "residual", "own"),
    ("budget", "residual", "own"),
    ("needed", "index", "total"),
]
CAPACITY = st.sampled_from([0, 1, 1, 2, 3, None])


def _state(allocator: OnlineAllocator) -> tuple[object, ...]:
    return allocator.residual, allocator.messages, allocator.congestion, dict(allocator.workloads)


def _available(tree: Tree, residual: Sequence[int | None]) -> list[bool]:
    return [allowed and left != 0 for allowed, left in zip(tree.available, residual, strict=True)]


@settings(max_examples=150)
@given(data=st.data(), tree=trees(most=12))
def test_any_sequence_keeps_the_books(data: st.DataObject, tree: Tree) -> None:
    capacity = data.draw(st.lists(CAPACITY, min_size=tree.n, max_size=tree.n))
    allocator = OnlineAllocator(tree, capacity)
    start = _state(allocator)
    for _ in range(data.draw(st.integers(1, 6))):
        served = list(allocator.workloads)
        ends = data.draw(st.booleans())
        if served and ends:
            allocator.release(data.draw(st.sampled_from(served)))
        else:
            _admit_any(data, allocator)
        _check_books(allocator, capacity)
    for workload in list(allocator.workloads):
        allocator.release(workload)
    assert _state(allocator) == start


def _admit_any(data: st.DataObject, allocator: OnlineAllocator) -> None:
    tree, before = allocator.tree, allocator.residual
    load = data.draw(st.lists(st.integers(0, 9), min_size=tree.n, max_size=tree.n))
    k = data.draw(st.integers(0, 5))
    strategy = data.draw(st.sampled_from(["smc", "smc", "smc", "top", "max", "level", "all-red"]))
    spend, ties, goal = data.draw(st.sampled_from(VARIANTS)) if strategy == "smc" else VARIANTS[0]
    admission = allocator.admit(load, k, strategy, spend=spend, ties=ties, goal=goal)
    blue = admission.placement.blue
    assert len(blue) <= k
    assert all(tree.available[v] and before[v] != 0 for v in blue)
    here = Tree(tree.parent, tree.rate, load, _available(tree, before))
    assert admission.messages == loads(here, blue).messages
    assert admission.placement.congestion == loads(here, blue).congestion
    if strategy == "smc" and goal == "own":
        best = smc(here, k)
        assert admission.placement.congestion == best.congestion
        if spend == "needed":
            assert len(blue) == len(best.blue)
        elif ties == "residual":
            assert len(blue) == min(k, sum(here.available))


def _check_books(allocator: OnlineAllocator, capacity: list[int | None]) -> None:
    served = allocator.workloads.values()
    for v, (limit, left) in enumerate(zip(capacity, allocator.residual, strict=True)):
        used = sum(v in admission.placement.blue for admission in served)
        assert left == (None if limit is None else limit - used)
        assert left is None or left >= 0
        assert allocator.messages[v] == sum(admission.messages[v] for admission in served)
    assert allocator.congestion == max(allocator.link_congestion)


def test_two_workloads_add_up_on_every_link() -> None:
    allocator = OnlineAllocator(FIG1, [1] * 7)
    first = allocator.admit(FIG1.load, 2)
    second = allocator.admit(FIG1.load, 2)
    assert first.placement.congestion == 5
    assert not first.placement.blue & second.placement.blue
    expected = [a + b for a, b in zip(first.messages, second.messages, strict=True)]
    assert allocator.messages == tuple(expected)
    assert allocator.congestion == max(map(Fraction, expected))


def test_numbers_of_workloads_are_not_used_again() -> None:
    allocator = OnlineAllocator(FIG1, [None] * 7)
    allocator.release(allocator.admit(FIG1.load, 1).workload)
    assert allocator.admit(FIG1.load, 1).workload == 1


def test_each_workload_has_its_own_budget() -> None:
    allocator = OnlineAllocator(FIG1, [None] * 7)
    assert [allocator.admit(FIG1.load, k).placement.congestion for k in (0, 1, 2, 4)] == [
        18,
        9,
        5,
        3,
    ]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda a: a.admit([0] * 6, 1), "load has 6 entries and parent has 7"),
        (lambda a: a.admit(FIG1.load, -1), "k is -1"),
        (lambda a: a.admit(FIG1.load, 1, "greedily"), "strategy 'greedily' is not one of smc, "),
        (lambda a: a.admit(FIG1.load, 1, "top", spend="budget"), "leave them out of top"),
        (lambda a: a.admit(FIG1.load, 1, spend="all"), "spend is needed or budget"),
        (lambda a: a.admit(FIG1.load, 1, spend="budget", goal="total"), "goal total spends what"),
        (lambda a: a.release(9), "workload 9 is not being served"),
    ],
)
def test_a_refused_call_changes_nothing(call: object, line: str) -> None:
    allocator = OnlineAllocator(FIG1, [2] * 7)
    allocator.admit(FIG1.load, 2)
    before = _state(allocator)
    assert callable(call)
    with pytest.raises(PlacementError, match=line):
        call(allocator)
    assert _state(allocator) == before


@pytest.mark.parametrize(
    ("capacity", "line"),
    [([1] * 6, "capacity has 6 entries"), ([1] * 6 + [-1], r"capacity\[6\] is -1")],
)
def test_refuses_capacities(capacity: list[int | None], line: str) -> None:
    with pytest.raises(PlacementError, match=line):
        OnlineAllocator(FIG1, capacity)


def _optimal_sets(tree: Tree, placement: Placement) -> list[frozenset[int]]:
    """All sets with the placement's congestion and number of switches, by enumeration."""
    switches = [v for v in range(tree.n) if tree.available[v]]
    return [
        frozenset(chosen)
        for chosen in combinations(switches, len(placement.blue))
        if loads(tree, chosen).congestion == placement.congestion
    ]


@settings(max_examples=300)
@given(data=st.data(), tree=trees(most=8), k=st.integers(0, 5))
def test_spread_is_the_least_of_all_optimal_sets(data: st.DataObject, tree: Tree, k: int) -> None:
    residual = data.draw(st.lists(CAPACITY, min_size=tree.n, max_size=tree.n))
    placement = spread(tree, k, residual)
    best = smc(tree, k)
    assert (placement.congestion, len(placement.blue)) == (best.congestion, len(best.blue))
    rank = [float("inf") if left is None else left for left in residual]
    most = max((rank[v] for v in range(tree.n) if tree.available[v]), default=0)
    scarce = sorted(
        (v for v in range(tree.n) if tree.available[v] and rank[v] < most),
        key=lambda v: (rank[v], v),
    )
    optimal = _optimal_sets(tree, best)
    assert placement.blue in optimal
    assert [v in placement.blue for v in scarce] == min(
        [v in blue for v in scarce] for blue in optimal
    )
    assert min((rank[v] for v in placement.blue), default=most) == max(
        min((rank[v] for v in blue), default=most) for blue in optimal
    )


@settings(max_examples=200)
@given(tree=trees(most=7), k=st.integers(0, 5))
def test_painting_takes_every_switch_that_some_optimal_set_allows(tree: Tree, k: int) -> None:
    switches = [v for v in range(tree.n) if tree.available[v]]
    optimum = smc(tree, k).congestion
    optimal = [
        frozenset(chosen)
        for size in range(min(k, len(switches)) + 1)
        for chosen in combinations(switches, size)
        if loads(tree, chosen).congestion == optimum
    ]
    depth = tree.depths()
    expected: frozenset[int] = frozenset()
    for v in sorted(switches, key=lambda v: (depth[v], v)):
        if any(expected | {v} <= blue for blue in optimal):
            expected |= {v}
    placement = smc_painted(tree, k)
    assert placement.blue == expected
    assert placement.congestion == optimum


@settings(max_examples=200)
@given(data=st.data(), tree=trees(most=7), k=st.integers(0, 5))
def test_beside_other_traffic_the_total_is_the_least_there_is(
    data: st.DataObject, tree: Tree, k: int
) -> None:
    carried = data.draw(st.lists(st.integers(0, 12), min_size=tree.n, max_size=tree.n))
    switches = [v for v in range(tree.n) if tree.available[v]]

    def total(blue: Iterable[int]) -> Fraction:
        own = loads(tree, blue).messages
        return max((a + b) / w for a, b, w in zip(own, carried, tree.rate, strict=True))

    best = min(
        (total(chosen), size)
        for size in range(min(k, len(switches)) + 1)
        for chosen in combinations(switches, size)
    )
    placement = smc_beside(tree, carried, k)
    assert (placement.congestion, len(placement.blue)) == best
    assert total(placement.blue) == placement.congestion
    assert placement.blue <= set(switches)


def test_beside_refuses_traffic_of_another_tree() -> None:
    with pytest.raises(PlacementError, match="carried has 1 entries and the tree 7 links"):
        smc_beside(FIG1, [0], 1)
