"""Jobs as large as they must be: many workers below one blue switch, and in all, under loss too."""

from __future__ import annotations

import pytest
from rich.console import Console

from controller import run
from controller.placement import Tree
from controller.planning import plan
from controller.running import RunOptions
from tests.unit.controller.trees import topology_of


def _tree(leaves: int, each: int) -> Tree:
    return Tree(parent=[-1, *[0] * leaves], rate=[1] * (leaves + 1), load=[0, *[each] * leaves])


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize(
    ("leaves", "each"), [(1, 64), (16, 64)], ids=["64 below one switch", "1,024 in all"]
)
def test_a_large_job_sums_right(leaves: int, each: int, loss: float) -> None:
    planned = plan(topology_of(_tree(leaves, each)), leaves + 1, "all-blue")
    options = RunOptions(op="allreduce", chunks=2, window=2, loss=loss, seed=1)
    result = run.run_synthetic(planned, options, Console(quiet=True))
    assert result.correct
    assert result.workers == leaves * each
    if not loss:
        assert all(link.measured == 1 for link in result.measurement.links)
        assert result.retransmissions == 0
