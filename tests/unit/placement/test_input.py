"""What is refused, and that the one line names the place and the remedy."""

from fractions import Fraction
from typing import Any

import pytest

from controller.placement import STRATEGIES, PlacementError, Tree, brute_force, smc
from tests.unit.placement.trees import FIG1

GOOD: dict[str, Any] = {
    "parent": [-1, 0, 0],
    "rate": [1, 1, 1],
    "load": [0, 1, 2],
    "available": [True, True, True],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": []}, "rate has 3 entries and parent has 0"),
        ({"parent": [0, 0, 0]}, r"parent\[0\] is 0: switch 0 is the root, write -1"),
        ({"parent": [-1, -1, 0]}, r"parent\[1\] is -1: only switch 0 is the root"),
        ({"parent": [-1, 3, 0]}, r"parent\[1\] is 3: parents lie in 0\.\.2"),
        ({"parent": [-1, 2, 1]}, "parent has a cycle, 1 -> 2 -> 1: "),
        ({"parent": [-1, 1, 0]}, "parent has a cycle, 1 -> 1: "),
        ({"parent": [-1, "a", 0]}, r"parent\[1\]: 'a' is not a switch"),
        ({"parent": [-1, 0.0, 0]}, r"parent\[1\]: 0\.0 is not a switch"),
        ({"rate": [1, 1]}, "rate has 2 entries and parent has 3"),
        ({"rate": [1, 0, 1]}, r"rate\[1\]: 0 is not a rate: write a number above 0"),
        ({"rate": [1, 1, "-1"]}, r"rate\[2\]: '-1' is not a rate"),
        ({"rate": [1, Fraction(-1, 2), 1]}, r"rate\[1\]: Fraction\(-1, 2\) is not a rate"),
        ({"rate": [float("nan"), 1, 1]}, r"rate\[0\]: nan is not a rate: write a finite number"),
        ({"rate": [float("inf"), 1, 1]}, r"rate\[0\]: inf is not a rate: write a finite number"),
        ({"rate": ["3/0", 1, 1]}, r"rate\[0\]: '3/0' is not a rate"),
        ({"rate": ["1e999999999", 1, 1]}, r"rate\[0\]: '1e999999999' is not a rate"),
        ({"rate": [None, 1, 1]}, r"rate\[0\]: None is not a rate"),
        ({"rate": [True, 1, 1]}, r"rate\[0\]: True is not a rate"),
        ({"load": [0, -1, 0]}, r"load\[1\]: -1 is not a number of workers: write an integer >= 0"),
        ({"load": [0, 1.5, 0]}, r"load\[1\]: 1\.5 is not a number of workers"),
        ({"available": [True, "no", True]}, r"available\[1\]: 'no' is not a flag"),
    ],
)
def test_a_bad_tree_is_refused_by_array_and_index(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlacementError, match=message) as refusal:
        Tree(**(GOOD | change))
    assert "\n" not in str(refusal.value)


def test_a_tree_needs_a_switch() -> None:
    with pytest.raises(PlacementError, match="no switch"):
        Tree([], [], [])


def test_rates_are_exact_however_they_are_written() -> None:
    tree = Tree([-1, 0, 0, 0], ["3/2", 0.1, "1.5", Fraction(1, 3)], [0] * 4)
    assert tree.rate == (Fraction(3, 2), Fraction(1, 10), Fraction(3, 2), Fraction(1, 3))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("k", [-1, 1.0, "2", None, True])
def test_a_bad_budget_is_refused_by_every_strategy(strategy: str, k: int) -> None:
    with pytest.raises(
        PlacementError, match=r"^k is .*: the budget of blue switches is an integer"
    ):
        STRATEGIES[strategy](FIG1, k)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_budget_above_n_is_the_whole_tree(strategy: str) -> None:
    assert STRATEGIES[strategy](FIG1, 1000).congestion == STRATEGIES[strategy](FIG1, 7).congestion


def test_brute_force_refuses_what_would_not_end() -> None:
    n = 40
    tree = Tree([-1] + [0] * (n - 1), [1] * n, [1] * n)
    with pytest.raises(PlacementError, match=r"choosing up to 20 of 40 available.*use smc"):
        brute_force(tree, 20)
    assert brute_force(tree, 2).congestion == smc(tree, 2).congestion
