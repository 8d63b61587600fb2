"""The compiled path over arrays: the same placement as the Python path, ties and all."""

import random
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.placement import PlacementError, Tree, TreeArrays, smc, smc_arrays
from controller.placement.arrays import MOST_MESSAGES, arrays_of_tree
from controller.placement.flips import COMPILED_FROM
from controller.placement.rates import Rates, RateSpans
from tests.unit.placement.trees import random_tree, trees


def as_arrays(tree: Tree) -> TreeArrays:
    arrays = arrays_of_tree(tree)
    assert arrays is not None
    return arrays


@settings(max_examples=500)
@given(tree=trees(most=30), k=st.integers(0, 31))
def test_the_compiled_path_gives_the_same_placement(tree: Tree, k: int) -> None:
    assert smc_arrays(as_arrays(tree), k) == smc(tree, k)


@pytest.mark.parametrize("seed", range(10))
def test_the_compiled_path_gives_the_same_placement_on_larger_trees(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(300):
        tree = random_tree(rng, rng.randint(1, 250))
        k = rng.choice([0, 1, 2, 5, 16, 64, 300])
        assert smc_arrays(as_arrays(tree), k) == smc(tree, k)


def test_ties_go_to_the_lower_index_on_both_paths() -> None:
    # Equal worths everywhere: an unavailable hub takes the flips of its first leaves.
    star = Tree([-1] + [0] * 9, [1] * 10, [0] + [4] * 9, [False] + [True] * 9)
    assert smc(star, 3).blue == smc_arrays(as_arrays(star), 3).blue == {1, 2, 3}
    # Below a chain of hubs too, where the heaps meet in another order.
    two = Tree([-1, 0, 0, 2, 2, 1, 1], [1] * 7, [0, 0, 0, 4, 4, 4, 4], [False] * 3 + [True] * 4)
    assert smc(two, 2).blue == smc_arrays(as_arrays(two), 2).blue == {3, 4}


def test_the_pure_path_needs_no_compiler() -> None:
    program = (
        "import sys\n"
        "from controller.placement import Tree, smc\n"
        "n = 255\n"
        "smc(Tree([-1] + [(v - 1) // 2 for v in range(1, n)], [1] * n, [3] * n), 16)\n"
        "assert 'numba' not in sys.modules and 'scipy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_numbers_beyond_64_bits_take_the_python_path_whatever_the_size() -> None:
    n = COMPILED_FROM
    parent = [-1, *range(n - 1)]
    huge = Tree(
        parent, [Fraction(10**30 + 1, 10**30)] * n, [10**20] * n, [False] * (n - 1) + [True]
    )
    assert arrays_of_tree(huge) is None
    assert smc(huge, 1).congestion == Fraction(((n - 1) * 10**20 + 1) * 10**30, 10**30 + 1)
    loaded = Tree(parent, [1] * n, [MOST_MESSAGES // n + 1] * n)
    assert arrays_of_tree(loaded) is None


@settings(max_examples=300)
@given(data=st.data())
def test_floors_are_exact_up_to_the_limits(data: st.DataObject) -> None:
    """Also where the product is an integer, or within a rounding error of one."""
    large = st.one_of(
        st.integers(1, 50),
        st.integers(1, 2**63 - 1),
        st.integers(0, 10**6).map(lambda i: 10**12 + i),
        st.integers(0, 10**6).map(lambda i: 2**63 - 1 - i),
    )
    count = data.draw(st.integers(1, 80))
    numerator = data.draw(st.lists(large, min_size=count, max_size=count))
    denominator = data.draw(st.lists(large, min_size=count, max_size=count))
    most = data.draw(
        st.lists(
            st.one_of(st.integers(0, 9), st.integers(0, 2**62)), min_size=count, max_size=count
        )
    )
    rates = Rates(*(np.array(values, np.int64) for values in (numerator, denominator, most)))
    which = data.draw(st.integers(0, count - 1))
    messages = data.draw(st.one_of(st.integers(0, 2**62), st.integers(0, 100)))
    bound = Fraction(messages * denominator[which], numerator[which])
    floors, exact = rates.floors(bound)
    for i in range(count):
        product = bound * Fraction(numerator[i], denominator[i])
        assert floors[i] == min(product.__floor__(), most[i])
        assert exact[i] == (product.denominator == 1 and product <= most[i])
    assert rates.largest(rates.most) == max(
        Fraction(m * b, a) for m, a, b in zip(most, numerator, denominator, strict=True)
    )


def test_the_search_over_arrays_splits_rates_that_doubles_cannot_tell_apart() -> None:
    count = 20_000
    numerator = 10**12 + np.arange(count)
    rates = Rates(numerator, numerator + 1, np.full(count, 1))
    candidates = RateSpans.of(rates).above(Fraction(0))
    assert candidates.count() == count
    turns = 0
    while candidates.count():
        bound = candidates.typical(turns)
        candidates = candidates.above(bound) if turns % 2 else candidates.below(bound)
        turns += 1
    assert turns < 40


GOOD: dict[str, Any] = {
    "parent": [-1, 0, 0],
    "rate_numerator": [1, 1, 1],
    "rate_denominator": [1, 1, 1],
    "load": [0, 1, 2],
    "available": [True, True, True],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parent": []}, "the tree has no switch"),
        ({"parent": [0, 0, 0]}, r"parent\[0\] is 0: switch 0 is the root, write -1"),
        ({"parent": [-1, -1, 0]}, r"parent\[1\] is -1: only switch 0 is the root"),
        ({"parent": [-1, 3, 0]}, r"parent\[1\] is 3: parents lie in 0\.\.2"),
        ({"parent": [-1, -2, 0]}, r"parent\[1\] is -2: parents lie in 0\.\.2"),
        ({"parent": [-1, 2, 1]}, r"parent has a cycle through switch [12]: every switch must"),
        ({"parent": [-1, 1, 0]}, "parent has a cycle through switch 1: "),
        ({"parent": [-1.0, 0.0, 0.0]}, "parent is an array of float64: give integers"),
        ({"parent": ["a", "b", "c"]}, "parent is an array of <U1: give integers"),
        ({"parent": [[-1, 0, 0]]}, "parent has 2 dimensions"),
        ({"rate_numerator": [1, 1]}, "rate_numerator has 2 entries and parent has 3"),
        ({"rate_numerator": [1, 0, 1]}, r"rate_numerator\[1\] is 0: must be above 0"),
        ({"rate_denominator": [1, 1, -1]}, r"rate_denominator\[2\] is -1: must be above 0"),
        ({"rate_numerator": [1.5, 1, 1]}, "rate_numerator is an array of float64"),
        ({"rate_numerator": [float("nan"), 1, 1]}, "rate_numerator is an array of float64"),
        (
            {"rate_numerator": np.array([2**63, 1, 1], np.uint64)},
            r"rate_numerator\[0\] is 9223372036854775808: must be below 2\^63",
        ),
        ({"rate_numerator": [2**70, 1, 1]}, "rate_numerator is an array of object"),
        ({"load": [0, -1, 0]}, r"load\[1\] is -1: must be 0 or more"),
        ({"load": [0, 2**62, 1]}, "load adds up to more than 4611686018427387904 workers"),
        ({"load": [2**62, 2**62, 2**62]}, "load adds up to more than 4611686018427387904 workers"),
        ({"available": [1, 1, 1]}, "available is an array of int64: give True or False"),
        ({"available": [True]}, "available has 1 entries and parent has 3"),
    ],
)
def test_bad_arrays_are_refused_by_name_and_index(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlacementError, match=message) as refusal:
        TreeArrays(**(GOOD | change))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("k", [-1, 1.0, "2", None, True])
def test_a_bad_budget_is_refused(k: int) -> None:
    with pytest.raises(
        PlacementError, match=r"^k is .*: the budget of blue switches is an integer"
    ):
        smc_arrays(TreeArrays(**GOOD), k)


def test_loads_at_the_limit_do_not_wrap_around() -> None:
    tree = Tree([-1, 0, 1], [1, 3, 2**61], [0, 1, 2**62 - 1], [True, True, False])
    assert smc_arrays(as_arrays(tree), 1) == smc(tree, 1)
    assert smc_arrays(as_arrays(tree), 0).congestion == 2**62
