"""Top, Max and Level on the paper's Fig. 1 and where the paper leaves a choice."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.placement import Tree, all_blue, all_red, greedy, level, loads, max_load, top
from tests.unit.placement.trees import FIG1, random_tree, trees

# Root 0; 1, 2, 3 below it; 4, 5 below 1; 6 below 3.
UNEVEN = Tree(
    parent=[-1, 0, 0, 0, 1, 1, 3],
    rate=[1] * 7,
    load=[0, 0, 4, 1, 3, 3, 9],
    available=[True, True, True, False, True, True, True],
)


def test_fig1_at_two_blue_switches() -> None:
    assert top(FIG1, 2).congestion == 8
    assert max_load(FIG1, 2).congestion == 9
    assert level(FIG1, 2).congestion == 6


@pytest.mark.parametrize(("k", "blue"), [(0, ""), (1, "0"), (2, "01"), (3, "012"), (4, "0126")])
def test_top_goes_down_level_by_level_busiest_subtree_first(k: int, blue: str) -> None:
    assert top(UNEVEN, k).blue == set(map(int, blue))


@pytest.mark.parametrize(("k", "blue"), [(0, ""), (1, "6"), (2, "26"), (3, "246"), (4, "2456")])
def test_max_takes_the_largest_loads_lowest_index_first(k: int, blue: str) -> None:
    assert max_load(UNEVEN, k).blue == set(map(int, blue))


@pytest.mark.parametrize(
    # At k = 2 the available part of level 1, {1, 2}, fits too, but leaves 12 on the root's link.
    ("k", "blue", "congestion"),
    [(0, "", 20), (1, "0", 10), (2, "0", 10), (3, "456", 8)],
)
def test_level_takes_the_best_whole_level_that_fits(k: int, blue: str, congestion: int) -> None:
    assert level(UNEVEN, k).blue == set(map(int, blue))
    assert level(UNEVEN, k).congestion == congestion


@settings(max_examples=500)
@given(tree=trees(most=14), k=st.integers(0, 14))
def test_level_is_the_best_of_all_levels_that_fit(tree: Tree, k: int) -> None:
    depth = tree.depths()
    choices = [(loads(tree, ()).congestion, 0, -1, frozenset[int]())]
    for d in range(max(depth) + 1):
        blue = frozenset(v for v in range(tree.n) if depth[v] == d and tree.available[v])
        if len(blue) <= k:
            choices.append((loads(tree, blue).congestion, len(blue), d, blue))
    best = min(choices, key=lambda choice: choice[:3])
    assert (level(tree, k).congestion, level(tree, k).blue) == (best[0], best[3])


@pytest.mark.parametrize(("k", "congestion"), [(0, 18), (1, 9), (2, 5), (3, 5), (4, 4)])
def test_greedy_on_fig1_misses_the_optimum_of_four(k: int, congestion: int) -> None:
    assert greedy(FIG1, k).congestion == congestion


@pytest.mark.parametrize("seed", range(20))
def test_greedy_is_what_trying_every_switch_gives(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        tree, k = random_tree(rng, rng.randint(1, 40)), rng.randint(0, 12)
        assert greedy(tree, k).blue == _greedy_by_trying(tree, k)


def _greedy_by_trying(tree: Tree, k: int) -> frozenset[int]:
    blue: frozenset[int] = frozenset()
    for _ in range(k):
        messages = loads(tree, blue).messages
        tried = [
            (loads(tree, blue | {v}).congestion, -messages[v], v)
            for v in range(tree.n)
            if tree.available[v] and messages[v] > 1
        ]
        if not tried:
            break
        blue |= {min(tried)[2]}
    return blue


def test_nothing_available_leaves_everything_red() -> None:
    bare = Tree(FIG1.parent, FIG1.rate, FIG1.load, [False] * 7)
    for strategy in (top, max_load, level, greedy, all_blue):
        assert strategy(bare, 3).blue == frozenset()
        assert strategy(bare, 3).congestion == 18


def test_all_blue_ignores_the_budget_and_all_red_does_not_spend_it() -> None:
    assert all_blue(UNEVEN, 0).blue == {0, 1, 2, 4, 5, 6}
    assert all_red(UNEVEN, 7).blue == frozenset()
