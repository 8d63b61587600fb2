"""The exact algorithms agree on everything that can be compared, on any tree.

`make campaign-placement` runs the comparison with brute force on 20,000 trees; here it runs on
fewer. CAMPAIGN_TREES says on how many.
"""

import os
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.placement import (
    STRATEGIES,
    Placement,
    Tree,
    brute_force,
    loads,
    milp,
    smc,
    smc_arrays,
    smc_distributed,
    smc_dp,
)
from controller.placement.arrays import arrays_of_tree
from tests.unit.placement.trees import FIG1, trees

ANY_TREE = settings(max_examples=400)
CAMPAIGN_TREES = int(os.environ.get("CAMPAIGN_TREES", "400"))


@pytest.mark.parametrize("solve", [smc, smc_dp, smc_distributed, milp, brute_force])
@pytest.mark.parametrize(
    ("k", "optimum"), [(0, 18), (1, 9), (2, 5), (3, 5), (4, 3), (7, 1), (99, 1)]
)
def test_fig1_for_every_budget(solve: object, k: int, optimum: int) -> None:
    assert callable(solve)
    assert solve(FIG1, k).congestion == optimum


def test_fig1_spends_no_third_switch_where_two_are_enough() -> None:
    assert smc(FIG1, 3).blue == smc(FIG1, 2).blue
    assert len(smc_dp(FIG1, 3).blue) == 2


@settings(max_examples=CAMPAIGN_TREES)
@given(tree=trees(most=10), k=st.integers(0, 10), order=st.integers(0, 2**32))
def test_campaign(tree: Tree, k: int, order: int) -> None:
    """All exact algorithms against brute force; whatever differs is shrunk to a small tree."""
    judge = brute_force(tree, k)
    arrays = arrays_of_tree(tree)
    assert arrays is not None
    chance = random.Random(order)
    direct, dynamic = smc(tree, k), smc_dp(tree, k)
    by_messages = smc_distributed(tree, k, lambda under_way: chance.randrange(under_way))
    for placement in (direct, dynamic, by_messages, milp(tree, k)):
        assert placement.congestion == judge.congestion, placement
        assert len(placement.blue) == len(judge.blue), placement
        _check_legal(tree, placement, k)
    assert smc_arrays(arrays, k) == direct
    assert by_messages.blue == dynamic.blue


@ANY_TREE
@given(tree=trees(most=14), k=st.integers(0, 15))
def test_no_strategy_beats_smc_and_all_keep_the_rules(tree: Tree, k: int) -> None:
    optimum = smc(tree, k).congestion
    for name, strategy in STRATEGIES.items():
        placement = strategy(tree, k)
        assert placement.strategy == name
        _check_legal(tree, placement, tree.n if name == "all-blue" else k)
        if name == "all-blue":
            assert placement.congestion <= optimum
        else:
            assert placement.congestion >= optimum


@ANY_TREE
@given(tree=trees(most=14), k=st.integers(0, 15))
def test_more_budget_is_never_worse_and_the_same_input_gives_the_same_set(
    tree: Tree, k: int
) -> None:
    again = Tree(list(tree.parent), list(tree.rate), list(tree.load), list(tree.available))
    assert smc(tree, k) == smc(again, k)
    assert smc_dp(tree, k) == smc_dp(again, k)
    assert smc(tree, k + 1).congestion <= smc(tree, k).congestion


@ANY_TREE
@given(
    tree=trees(), k=st.integers(0, 9), factor=st.fractions(min_value=Fraction(1, 99), max_value=99)
)
def test_scaling_every_rate_scales_the_optimum_and_keeps_the_set(
    tree: Tree, k: int, factor: Fraction
) -> None:
    if factor == 0:
        return
    scaled = Tree(tree.parent, [w * factor for w in tree.rate], tree.load, tree.available)
    assert smc(scaled, k).congestion == smc(tree, k).congestion / factor
    assert smc(scaled, k).blue == smc(tree, k).blue


def test_rates_of_twelve_digits_and_loads_of_a_billion_stay_exact() -> None:
    near = Fraction(999_999_999_989, 999_999_999_961)
    tree = Tree(
        parent=[-1, 0, 0, 1, 1, 2],
        rate=[Fraction(10**12 - 11, 7), near, 1 / near, "123456789012/98765432101", 3, near],
        load=[0, 10**9, 10**9 + 1, 10**9 - 1, 5, 7],
        available=[True, False, True, True, True, True],
    )
    for k in range(7):
        assert smc(tree, k).congestion == brute_force(tree, k).congestion
    assert smc_dp(tree, 2).congestion == smc(tree, 2).congestion


def _check_legal(tree: Tree, placement: Placement, most: int) -> None:
    assert len(placement.blue) <= most
    assert all(tree.available[v] for v in placement.blue)
    assert loads(tree, placement.blue).congestion == placement.congestion
