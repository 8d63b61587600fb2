"""The load of every link against the model's own words, told message by message."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.placement import PlacementError, Tree, loads
from tests.unit.placement.trees import FIG1, trees


def messages_of(tree: Tree, v: int, blue: set[int]) -> list[frozenset[int]]:
    """The messages on link v, each as the set of workers whose values it carries.

    The model as a simulation, from the top down, where the library counts from the bottom up.
    """
    arriving = [frozenset({v * 1000 + worker}) for worker in range(tree.load[v])]
    for child in range(1, tree.n):
        if tree.parent[child] == v:
            arriving += messages_of(tree, child, blue)
    return [frozenset().union(*arriving)] if arriving and v in blue else arriving


@settings(max_examples=400)
@given(tree=trees(most=12), data=st.data())
def test_loads_count_the_messages_of_a_simulated_reduce(tree: Tree, data: st.DataObject) -> None:
    blue = data.draw(st.sets(st.integers(0, tree.n - 1)))
    result = loads(tree, blue)
    simulated = [messages_of(tree, v, blue) for v in range(tree.n)]
    assert result.messages == tuple(map(len, simulated))
    assert result.link_congestion == tuple(
        Fraction(len(simulated[v])) * (1 / tree.rate[v]) for v in range(tree.n)
    )
    assert result.congestion == max(result.link_congestion)
    assert sum(map(len, simulated[0])) == sum(tree.load)


@pytest.mark.parametrize(
    ("blue", "messages"),
    [
        ((), (18, 8, 10, 2, 6, 5, 5)),
        ((0, 2), (1, 8, 1, 2, 6, 5, 5)),
        ((2, 4), (4, 3, 1, 2, 1, 5, 5)),
        (range(7), (1, 1, 1, 1, 1, 1, 1)),
    ],
)
def test_fig1_link_by_link(blue: tuple[int, ...], messages: tuple[int, ...]) -> None:
    assert loads(FIG1, blue).messages == messages


def test_a_blue_switch_with_nothing_below_sends_nothing() -> None:
    assert loads(Tree([-1, 0], [1, 1], [1, 0]), {1}).messages == (1, 0)


@pytest.mark.parametrize("stranger", [-1, 7, True, "a"])
def test_blue_outside_the_tree_is_refused(stranger: int) -> None:
    with pytest.raises(PlacementError, match=r"blue names .*0\.\.6"):
        loads(FIG1, [stranger])
