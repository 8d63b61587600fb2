"""Links between live switches that are cut below running jobs, on the fabric: found, gone round.

Nor is anything taken for a cut link that is none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from controller.live.client import NetworkClient, launch
from controller.service.admission import Wish
from controller.service.planner import Order
from tests.e2e.controllers import (
    Controller,
    goes_on,
    run_limited,
    runs,
    stop_all,
    watched,
)

ORDER = Order(op="allreduce", chunks=None, seed=3, wish=Wish(budget=3), window=4, workers=())
LINK = "agg0-0-core0"
BOUND_S = 10.0
"""Within which a cut link is found and gone round, on a machine with other work."""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkClient]:
    """A fat-tree for several tests; each leaves it whole and without jobs."""
    folder = tmp_path_factory.mktemp("n")
    client = launch(folder, "fat-tree:k=4", ["--workers", "1"], target="fabric")
    yield client
    client.down()


async def _cut(controller: Controller, link: str, *, one_way: bool = False) -> None:
    await asyncio.to_thread(controller.network.kill, link, one_way=one_way)


@pytest.mark.parametrize("link", ["agg0-0-core0", "core0-agg0-0"])
def test_jobs_go_round_a_link_that_loses_one_way(network: NetworkClient, link: str) -> None:
    """Both ends answer, and what goes the other way arrives."""

    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(ORDER)
            await goes_on(up, 1)
            await _cut(up, link, one_way=True)
            began = time.monotonic()
            found: set[tuple[str, str]] = set()
            said = set()
            while not runs(up, 2)():
                found |= {(cut.sender, cut.receiver) for cut in up.engine.watchdog.links.cut}
                said |= {stuck.text for stuck in up.engine.watchdog.stuck.values()}
                await asyncio.sleep(0.02)
            assert time.monotonic() - began < BOUND_S
            sender, receiver = link[:6], link[-6:]
            sender, receiver = ("agg0-0", "core0") if link == LINK else ("core0", "agg0-0")
            assert found == {(sender, receiver)}
            text = f" waits for w0, w1: nothing that {sender} sends to {receiver} arrives"
            assert any(line.endswith(text) for line in said), said
            second = up.engine.jobs()[1]
            assert (second.root, second.avoids) == (None, (LINK,))
            await goes_on(up, 2)
            # It is known as long as nobody can tell; whole again, it carries the job once more.
            (known,) = up.engine.watchdog.links.known
            assert known.link == LINK
            await asyncio.to_thread(network.restart, link)
            back = await up.engine.reallocate(2, None, "core0")
            assert (back.was, back.job.avoids) == (2, ())
            await goes_on(up, back.job.id)
            await asyncio.sleep(1)
            assert not up.engine.watchdog.stuck
            await stop_all(up)

    run_limited(scenario)
