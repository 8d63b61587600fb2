"""Placing k aggregation switches in a tree so that the most congested link is least congested.

Pure algorithms: no I/O, no clock, no randomness. Indices are switches, index 0 is the root.

    >>> from controller.placement import Tree, smc
    >>> tree = Tree(parent=[-1, 0, 0], rate=[1, 1, "3/2"], load=[0, 2, 6])
    >>> placement = smc(tree, k=1)
    >>> sorted(placement.blue), placement.congestion
    ([2], Fraction(3, 1))
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from controller.placement.baselines import all_blue, all_red, max_load, top
from controller.placement.distributed import DistributedPlacement, smc_distributed
from controller.placement.dynamic import smc_dp
from controller.placement.errors import PlacementError
from controller.placement.exhaustive import brute_force
from controller.placement.flips import smc
from controller.placement.greedy import greedy
from controller.placement.level import level
from controller.placement.loads import Loads, Placement, loads
from controller.placement.mixed_integer import milp
from controller.placement.tree import RateLike, Tree, as_rate

if TYPE_CHECKING:
    from controller.placement.arrays import TreeArrays, smc_arrays

__all__ = [
    "STRATEGIES",
    "DistributedPlacement",
    "Loads",
    "Placement",
    "PlacementError",
    "RateLike",
    "Tree",
    "TreeArrays",
    "all_blue",
    "all_red",
    "as_rate",
    "brute_force",
    "greedy",
    "level",
    "loads",
    "max_load",
    "milp",
    "smc",
    "smc_arrays",
    "smc_distributed",
    "smc_dp",
    "top",
]

STRATEGIES: Mapping[str, Callable[[Tree, int], Placement]] = MappingProxyType(
    {
        "smc": smc,
        "smc-dp": smc_dp,
        "smc-distributed": smc_distributed,
        "milp": milp,
        "greedy": greedy,
        "top": top,
        "max": max_load,
        "level": level,
        "all-red": all_red,
        "all-blue": all_blue,
        "brute-force": brute_force,
    }
)
"""Every strategy by the name that the command line takes."""


def __getattr__(name: str) -> object:
    """Load what works on arrays, and numpy with it, once it is asked for (PEP 562)."""
    if name not in ("TreeArrays", "smc_arrays"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from controller.placement import arrays

    return getattr(arrays, name)
