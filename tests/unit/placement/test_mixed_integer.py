"""milp: exact where HiGHS can be exact, and a refusal where it cannot."""

import pytest

from controller.placement import PlacementError, Tree, milp, smc
from controller.placement.mixed_integer import MOST_WORKERS
from tests.unit.placement.trees import FIG1


def test_it_agrees_with_smc_on_a_tree_of_63_switches() -> None:
    n = 63
    tree = Tree(
        [-1] + [(v - 1) // 2 for v in range(1, n)],
        [("1", "3/2", "7/3")[v % 3] for v in range(n)],
        [(v * 7) % 10 if v >= n // 2 else 0 for v in range(n)],
        [v % 5 != 0 for v in range(n)],
    )
    for k in (0, 1, 2, 4, 8, 16):
        one, other = milp(tree, k), smc(tree, k)
        assert (one.congestion, len(one.blue)) == (other.congestion, len(other.blue))


def test_it_spends_no_switch_that_the_optimum_does_not_need() -> None:
    assert len(milp(FIG1, 3).blue) == 2


def test_loads_beyond_the_solvers_tolerances_are_refused() -> None:
    tree = Tree([-1, 0], [1, 1], [0, MOST_WORKERS + 1])
    with pytest.raises(PlacementError, match=r"milp: 200001 workers, .* allow 200000: use smc"):
        milp(tree, 1)
