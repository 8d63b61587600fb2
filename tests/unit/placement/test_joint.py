"""The joint optimum of several workloads: legal, never above online, and right by enumeration."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.placement import PlacementError, Tree, loads
from controller.placement.joint import joint_optimum
from controller.placement.online import OnlineAllocator
from tests.unit.placement.test_online import VARIANTS
from tests.unit.placement.trees import FIG1, trees


def _congestion(tree: Tree, workloads: list[list[int]], blue: list[frozenset[int]]) -> Fraction:
    total = [0] * tree.n
    for load, chosen in zip(workloads, blue, strict=True):
        for v, count in enumerate(loads(Tree(tree.parent, tree.rate, load), chosen).messages):
            total[v] += count
    return max(count / rate for count, rate in zip(total, tree.rate, strict=True))


def _sets(tree: Tree, k: int) -> Iterator[frozenset[int]]:
    switches = [v for v in range(tree.n) if tree.available[v]]
    for size in range(min(k, len(switches)) + 1):
        yield from map(frozenset, combinations(switches, size))


@st.composite
def _cases(draw: st.DrawFn, most: int, workloads: int) -> tuple[Tree, list[list[int]], list[int]]:
    tree = draw(trees(most))
    # Rates as networks have them: the solver works in floating point.
    rates: list[Fraction] = draw(
        st.lists(
            st.sampled_from([Fraction(1), Fraction(2), Fraction(3, 2)]),
            min_size=tree.n,
            max_size=tree.n,
        )
    )
    tree = Tree(tree.parent, rates, tree.load, tree.available)
    load = st.lists(st.integers(0, 6), min_size=tree.n, max_size=tree.n)
    return (
        tree,
        draw(st.lists(load, min_size=workloads, max_size=workloads)),
        draw(st.lists(st.integers(0, 3), min_size=workloads, max_size=workloads)),
    )


@settings(max_examples=40)
@given(case=_cases(most=5, workloads=2), limit=st.sampled_from([0, 1, 2, None]))
def test_is_the_least_of_all_choices(
    case: tuple[Tree, list[list[int]], list[int]], limit: int | None
) -> None:
    tree, workloads, budgets = case
    joint = joint_optimum(tree, workloads, budgets, [limit] * tree.n)
    choices = [
        list(blue)
        for blue in product(*(_sets(tree, k) for k in budgets))
        if limit is None or all(sum(v in one for one in blue) <= limit for v in range(tree.n))
    ]
    assert joint.congestion == min(_congestion(tree, workloads, blue) for blue in choices)
    assert list(joint.blue) in choices
    assert joint.congestion == _congestion(tree, workloads, list(joint.blue))


@settings(max_examples=40)
@given(case=_cases(most=9, workloads=3), limit=st.sampled_from([1, 2]))
def test_online_is_never_better(case: tuple[Tree, list[list[int]], list[int]], limit: int) -> None:
    tree, workloads, budgets = case
    joint = joint_optimum(tree, workloads, budgets, [limit] * tree.n)
    for spend, ties, goal in VARIANTS:
        allocator = OnlineAllocator(tree, [limit] * tree.n)
        for load, k in zip(workloads, budgets, strict=True):
            allocator.admit(load, k, spend=spend, ties=ties, goal=goal)
        assert joint.congestion <= allocator.congestion


def test_one_workload_is_the_single_optimum() -> None:
    assert joint_optimum(FIG1, [FIG1.load], [2], [None] * 7).congestion == 5


def test_knows_of_the_workload_that_is_still_to_come() -> None:
    tree = Tree([-1, 0, 0], [1, 1, 1], [0, 0, 0], [False, True, True])
    workloads = [[0, 5, 5], [0, 9, 0]]
    allocator = OnlineAllocator(tree, [1] * 3)
    for load in workloads:
        allocator.admit(load, 1)
    # Online, the first takes switch 1, which the second alone could use.
    assert allocator.congestion == (1 + 5) + 9
    joint = joint_optimum(tree, workloads, [1, 1], [1] * 3)
    assert joint.congestion == (5 + 1) + 1
    assert joint.blue == (frozenset({2}), frozenset({1}))


@pytest.mark.parametrize("workloads", [[], [[0] * 7]])
def test_nothing_to_send_is_no_congestion(workloads: list[list[int]]) -> None:
    joint = joint_optimum(FIG1, workloads, [1] * len(workloads), [1] * 7)
    assert joint.congestion == 0
    assert joint.messages == (0,) * 7


def test_refuses_what_does_not_fit_together() -> None:
    with pytest.raises(PlacementError, match="1 workloads, 2 budgets and 7 capacities"):
        joint_optimum(FIG1, [FIG1.load], [2, 2], [1] * 7)


def test_says_when_the_time_was_too_short() -> None:
    tree = Tree([-1, *((v - 1) // 2 for v in range(1, 63))], [1] * 63, [0] * 31 + [7] * 32)
    loads_of = [[0] * 31 + [1 + (7 * v + t) % 9 for v in range(32)] for t in range(6)]
    with pytest.raises(PlacementError, match=r"within 0\.2 s"):
        joint_optimum(tree, loads_of, [5] * 6, [1] * 63, seconds=0.2)
