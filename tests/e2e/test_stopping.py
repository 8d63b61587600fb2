"""Jobs that are stopped while much of what they have sent is not answered, on the fabric."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from controller.live.client import launch
from controller.service import closing
from controller.service.admission import Wish
from controller.service.planner import Order
from controller.service.store import Phase
from tests.e2e.conftest import TREE
from tests.e2e.controllers import goes_on, run_limited, running_controller

STALL_S = 2.0
ORDER = Order(op="allreduce", chunks=None, seed=3, wish=Wish(budget=0), window=1024, workers=())


def test_a_slow_job_is_waited_for_as_long_as_answers_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loss makes the end of a large window last longer than it may stand still."""
    monkeypatch.setattr(closing, "FINISH_S", STALL_S)
    tree = tmp_path / "tree.json"
    tree.write_text(json.dumps(TREE))
    network = launch(tmp_path, str(tree), ["--loss", "0.1"], target="fabric")

    async def scenario() -> None:
        async with running_controller(network, 2) as up:
            await up.engine.start(ORDER)
            await goes_on(up, 1)
            began = time.monotonic()
            (ended,) = await up.engine.stop(1)
            assert time.monotonic() - began > STALL_S
            result = json.loads(ended.result)
            assert (ended.phase, result["detail"]) == (Phase.FINISHED, "stopped")
            assert (result["correct"], result["completed"] >= ORDER.window) == (True, True)

    try:
        run_limited(scenario)
    finally:
        network.down()
