"""smc_distributed: agents that know one switch each, and count what they say."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.placement import Placement, Tree, loads, smc_distributed, smc_dp
from tests.unit.placement.trees import FIG1, random_tree, trees


def test_fig1_with_its_messages() -> None:
    result = smc_distributed(FIG1, 2)
    assert isinstance(result, Placement)
    assert result.blue == {2, 4}
    assert result.congestion == 5
    # One census and one budget a switch, a bound and a beta a switch in every attempt.
    assert result.messages == 7 * (2 + 2 * result.attempts)


@settings(max_examples=200)
@given(tree=trees(most=25), k=st.integers(0, 26), data=st.data())
def test_the_order_of_arrival_changes_nothing(tree: Tree, k: int, data: st.DataObject) -> None:
    in_order = smc_distributed(tree, k)
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    shuffled = smc_distributed(tree, k, lambda under_way: chance.randrange(under_way))
    assert shuffled == in_order
    latest_first = smc_distributed(tree, k, lambda under_way: under_way - 1)
    assert latest_first == in_order
    assert in_order.blue == smc_dp(tree, k).blue
    assert in_order.messages == tree.n * (2 + 2 * in_order.attempts)


@pytest.mark.parametrize("n", [60, 255])
def test_it_agrees_with_the_central_algorithm_on_larger_trees(n: int) -> None:
    rng = random.Random(n)
    tree = random_tree(rng, n)
    for k in (0, 1, 5, 20):
        result = smc_distributed(tree, k)
        assert result.blue == smc_dp(tree, k).blue
        assert loads(tree, result.blue).congestion == result.congestion


def test_an_idle_tree_needs_no_attempt_but_the_last() -> None:
    idle = smc_distributed(Tree([-1, 0, 0], [1, 2, 3], [0, 0, 0]), 2)
    assert idle.congestion == 0
    assert not idle.blue
    assert idle.attempts == 1
