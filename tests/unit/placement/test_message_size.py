"""Messages of different sizes, against a replay that moves the real contents link by link."""

import operator
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.placement import PlacementError, Tree, loads, smc
from controller.placement.message_size import (
    MessageSizes,
    message_sizes,
    sized_loads,
    unit_sizes,
)
from controller.placement.sized import smc_sized
from tests.unit.placement.trees import FIG1, trees

Contents = list[list[frozenset[int]]]


@st.composite
def _loaded(draw: st.DrawFn, most: int) -> tuple[Tree, Contents]:
    tree = draw(trees(most))
    load = [min(workers, 4) for workers in tree.load]
    tree = Tree(tree.parent, tree.rate, load, tree.available)
    keys = st.frozensets(st.integers(0, 9), max_size=6)
    return tree, [[draw(keys) for _ in range(workers)] for workers in load]


def _replayed(tree: Tree, contents: Contents, blue: frozenset[int]) -> list[list[frozenset[int]]]:
    """The messages on every link, by sending them: a red switch forwards, a blue one merges."""
    sent: list[list[frozenset[int]]] = [[] for _ in range(tree.n)]
    for v in tree.order:
        arriving = contents[v] + [message for c in tree.children[v] for message in sent[c]]
        sent[v] = [frozenset().union(*arriving)] if v in blue and arriving else arriving
    return sent


def _sizes(tree: Tree, contents: Contents) -> MessageSizes:
    return message_sizes(tree, contents, operator.or_, len)


@settings(max_examples=300)
@given(data=st.data(), loaded=_loaded(most=9))
def test_units_are_those_of_a_replay(data: st.DataObject, loaded: tuple[Tree, Contents]) -> None:
    tree, contents = loaded
    blue = data.draw(st.frozensets(st.integers(0, tree.n - 1)))
    sized = sized_loads(tree, _sizes(tree, contents), blue)
    sent = _replayed(tree, contents, blue)
    assert sized.messages == tuple(map(len, sent))
    assert sized.units == tuple(sum(map(len, messages)) for messages in sent)
    assert sized.congestion == max(u / w for u, w in zip(sized.units, tree.rate, strict=True))


@settings(max_examples=200)
@given(loaded=_loaded(most=8), k=st.integers(0, 5))
def test_the_optimum_by_size_is_the_least_of_all_sets(
    loaded: tuple[Tree, Contents], k: int
) -> None:
    tree, contents = loaded
    sizes = _sizes(tree, contents)
    switches = [v for v in range(tree.n) if tree.available[v]]
    best = min(
        (sized_loads(tree, sizes, blue).congestion, len(blue))
        for size in range(min(k, len(switches)) + 1)
        for blue in combinations(switches, size)
    )
    placement = smc_sized(tree, sizes, k)
    assert (placement.congestion, len(placement.blue)) == best
    assert placement.blue <= set(switches)
    assert sized_loads(tree, sizes, placement.blue).congestion == placement.congestion


@settings(max_examples=150)
@given(data=st.data(), tree=trees(most=20), k=st.integers(0, 8))
def test_units_of_one_are_the_papers_model(data: st.DataObject, tree: Tree, k: int) -> None:
    sizes = unit_sizes(tree)
    blue = data.draw(st.frozensets(st.integers(0, tree.n - 1)))
    assert sized_loads(tree, sizes, blue).units == loads(tree, blue).messages
    placement, expected = smc_sized(tree, sizes, k), smc(tree, k)
    assert placement.congestion == expected.congestion
    assert len(placement.blue) == len(expected.blue)


def test_an_aggregated_message_can_outgrow_its_parts_but_not_their_sum() -> None:
    tree = Tree([-1, 0, 0], [1, 1, 1], [0, 1, 1])
    contents = [[], [frozenset({1, 2})], [frozenset({2, 3})]]
    sized = sized_loads(tree, _sizes(tree, contents), [0])
    assert sized.units == (3, 2, 2)
    assert sized.congestion == Fraction(3)


def test_refuses_contents_that_do_not_fit() -> None:
    nothing: Contents = [[] for _ in range(7)]
    with pytest.raises(PlacementError, match=r"contents\[3\] has 0 messages: switch 3 has 2"):
        _sizes(FIG1, nothing)
    with pytest.raises(PlacementError, match="contents has 6 entries and the tree 7"):
        _sizes(FIG1, nothing[:6])
    with pytest.raises(PlacementError, match="size -1"):
        message_sizes(Tree([-1], [1], [1]), [["a"]], operator.add, lambda _: -1)


def test_refuses_sizes_of_another_tree_and_superadditive_ones() -> None:
    with pytest.raises(PlacementError, match="sizes are of 1 switches and the tree has 7"):
        sized_loads(FIG1, unit_sizes(Tree([-1], [1], [1])), [])
    with pytest.raises(PlacementError, match=r"merged\[0\] is 9 and its parts are 2 together"):
        smc_sized(Tree([-1], [1], [2]), MessageSizes((2,), (9,)), 1)
