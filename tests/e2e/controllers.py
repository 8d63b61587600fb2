"""Controllers of a network that lives, in this process and without their API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from controller.live.client import NetworkClient
from controller.p4rt import fleet_of
from controller.service.engine import Engine
from controller.service.store import Phase, Store
from controller.service.switchboard import Switchboard
from p4src import artefacts

DEADLINE_S = 60


@dataclass(slots=True)
class Controller:
    """A controller without its API."""

    engine: Engine
    board: Switchboard
    store: Store
    network: NetworkClient


@asynccontextmanager
async def running_controller(network: NetworkClient, term: int) -> AsyncIterator[Controller]:
    """What `python -m controller.service` does, up to serving."""
    description = await asyncio.to_thread(network.describe)
    # One database as long as the network lives: epochs must rise.
    store = Store(network.state / "state.db")
    async with fleet_of(description.addresses, artefacts.load(), election_id=term * 1000) as fleet:
        board = Switchboard(fleet, (term + 1) * 1000, lambda error: None)
        engine = Engine(description.network, store, board, network)
        await engine.recover()
        await board.adopt(engine.programs(), lambda name: fleet.promote(name, term * 1000))
        await engine.resume()
        try:
            yield Controller(engine, board, store, network)
        finally:
            await board.close()
            store.close()


@asynccontextmanager
async def watched(network: NetworkClient, term: int) -> AsyncIterator[Controller]:
    """A controller that looks after jobs until the context is left."""
    async with running_controller(network, term) as controller:
        tasks = [
            asyncio.create_task(each)
            for each in (controller.engine.watch(), controller.engine.watchdog.watch())
        ]
        try:
            yield controller
        finally:
            for task in tasks:
                task.cancel()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for it, within the deadline of `run_limited`."""
    while not condition():
        await asyncio.sleep(0.02)


def run_limited(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run it to its end, or fail after DEADLINE_S."""

    async def limited() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await scenario()

    asyncio.run(limited())


async def goes_on(controller: Controller, number: int) -> None:
    """Wait until some more chunks of a job are complete everywhere."""
    before = (await controller.engine.progress(number)).completed
    while (await controller.engine.progress(number)).completed < before + 20:
        await asyncio.sleep(0.02)


def runs(controller: Controller, number: int) -> Callable[[], bool]:
    """Whether a job runs, for `until`."""

    def holds() -> bool:
        job = controller.store.job(number)
        return job is not None and job.phase is Phase.RUNNING

    return holds


async def stop_all(controller: Controller, *, exact: bool = True) -> None:
    """End all jobs: every sum was right, and the links of those in which nothing was repeated are
    as predicted, unless a switch with counters of them has started anew."""
    ended = await controller.engine.stop(None)
    for job in ended:
        result = json.loads(job.result)
        assert result["correct"] is True, result
        links = result.get("links", {})
        if exact and not result.get("retransmissions"):
            assert all(messages == expected for messages, expected in links.values()), links
    assert links
