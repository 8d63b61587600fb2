"""Ranks as threads over the fabric, the real switch program in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.fabric_testbed import FabricTestbed
from controller.ranks.fabric_ranks import FabricRanks
from controller.ranks.mininet_ranks import MininetRanks
from controller.ranks.serving import serve
from topologies import WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.network import wire
from traffic import CollectiveError, Communicator

NETWORK = wire(parse("binary-tree:levels=3", WorkloadOptions(workers="1", rates=None, seed=0)))
RANKS = len(NETWORK.workers)
BLUE = frozenset({0, 2})
CLEAN = Conditions()
LOSSY = Conditions(loss=0.05, duplicate=0.05, reorder=0.1, seed=3)
Array = NDArray[Any]


@contextmanager
def network(
    folder: Path, conditions: Conditions = CLEAN, jobs: int = 1, patience: float = 20.0
) -> Iterator[FabricRanks | MininetRanks]:
    """A fabric that serves jobs at `folder`/ranks."""
    with FabricTestbed(NETWORK, conditions) as testbed:
        plans = testbed.switches.install([BLUE] * jobs, 16)
        with serve(testbed, plans, folder / "ranks", patience) as (_, served):
            yield served


def together(
    folder: Path, do: Callable[[Communicator], Any], job: int = 1, on_rank_loss: str = "fail"
) -> list[Any]:
    """What `do` returns, or raises, at every rank of a job, each in a thread."""

    def one(rank: int) -> Any:
        try:
            with Communicator(folder / "ranks", rank, job, on_rank_loss=on_rank_loss) as comm:
                return do(comm)
        except CollectiveError as error:
            return error

    with ThreadPoolExecutor(RANKS) as pool:
        return list(pool.map(one, range(RANKS)))


def of_rank(rank: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Values of a rank, each row of another magnitude; small whole numbers for int32."""
    rng = np.random.default_rng(rank)
    if dtype is np.int32:
        return rng.integers(-1000, 1000, shape, dtype=np.int32)
    # The same for every rank, one for each row.
    powers = np.random.default_rng(99).integers(-15, 15, shape[:1] or None)
    rows = np.reshape(powers, (*shape[:1], *[1] * (len(shape) - 1)))
    return np.asarray(rng.uniform(-1, 1, shape) * 10.0**rows).astype(dtype)
