"""Switches that die below running jobs, on the fabric, with and without a controller there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from controller.live.client import NetworkClient, launch
from controller.service import healing, ledger
from controller.service.admission import Wish
from controller.service.planner import Order, Planner
from controller.service.store import Job, OnLoss, Phase
from tests.e2e.controllers import (
    Controller,
    goes_on,
    run_limited,
    running_controller,
    runs,
    stop_all,
    until,
    watched,
)
from traffic.endpoint import Op
from traffic.stream import Stream

ORDER = Order(op="allreduce", chunks=None, seed=3, wish=Wish(budget=3), window=4, workers=())
DEAD = "agg0-0"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkClient]:
    """A fat-tree for all tests; each leaves it whole and without jobs."""
    options = ["--root", "core3", "--workers", "1"]
    client = launch(tmp_path_factory.mktemp("n"), "fat-tree:k=4", options, target="fabric")
    yield client
    client.down()


async def _mend(controller: Controller) -> None:
    """Start all switches anew that were killed, and wait for them."""
    for name in (await asyncio.to_thread(controller.network.describe)).down:
        await asyncio.to_thread(controller.network.restart, name)
    await until(lambda: not controller.board.troubles)


async def _kill(controller: Controller, name: str) -> None:
    await asyncio.to_thread(controller.network.kill, name)


def test_jobs_go_round_switches_that_die(network: NetworkClient) -> None:
    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(ORDER)
            await goes_on(up, 1)
            await _kill(up, DEAD)
            await until(runs(up, 2))
            await until(lambda: up.engine.jobs()[0].phase is Phase.FINISHED)
            first, second = up.engine.jobs()
            assert first.successor == 2
            assert (second.root, second.avoids) == (None, (DEAD,))
            await goes_on(up, 2)
            assert (await up.engine.reallocate(2, Wish(budget=5))).job.id == 2
            # The next one too, which takes the destination along.
            await _kill(up, "core0")
            await until(runs(up, 3))
            third = up.engine.jobs()[2]
            assert (third.root, third.avoids) == ("core3", (DEAD, "core0"))
            await goes_on(up, 3)
            await _mend(up)
            # Home again, now that all are there.
            back = await up.engine.reallocate(3, None, "core0")
            assert (back.was, back.root, back.job.avoids) == (3, "core0", ())
            await goes_on(up, back.job.id)
            await stop_all(up)

    run_limited(scenario)


def test_a_job_that_drains_before_another_root_goes_round_too(network: NetworkClient) -> None:
    """What it lacks goes on under a third number, up to where the other root begins."""

    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(ORDER)
            await goes_on(up, 1)
            await _kill(up, "core0")
            changed = await up.engine.reallocate(1, None, "core3")
            assert (changed.job.id, changed.was, changed.root) == (2, 1, "core3")
            await until(lambda: up.engine.jobs()[2].phase is Phase.FINISHED)
            first, second, third = up.engine.jobs()
            assert (first.phase, first.successor) == (Phase.FINISHED, 3)
            assert (third.successor, third.avoids, third.root) == (2, ("core0",), "core3")
            assert (second.phase, second.avoids) == (Phase.RUNNING, ())
            # Every chunk before the other root's first is of the one or the other.
            ends = [json.loads(one.result)["completed"] for one in (first, third)]
            assert ends == [third.begins, second.begins]
            assert (first.chunks, third.chunks, second.chunks) == (*ends, None)
            await goes_on(up, 2)
            await stop_all(up, exact=False)
            await _mend(up)

    run_limited(scenario)


def test_a_job_that_drains_before_another_root_goes_on_without_a_worker(
    network: NetworkClient,
) -> None:
    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(replace(ORDER, on_loss=OnLoss.CONTINUE))
            await goes_on(up, 1)
            # It has a chunk under way for long; the other root's tree is whole.
            await _kill(up, "edge0-0-agg0-0")
            await until(lambda: 1 in up.engine.watchdog.stuck)
            change = asyncio.create_task(up.engine.reallocate(1, None, "core3"))
            await until(lambda: up.engine.jobs()[0].phase is Phase.DRAINING)
            await _kill(up, "w0")
            changed = await change
            assert (changed.job.id, changed.was) == (2, 1)
            await until(lambda: up.engine.jobs()[1].current.absent == (0,))
            first, second = up.engine.jobs()
            assert (first.phase, first.current.absent) == (Phase.FINISHED, (0,))
            assert json.loads(first.result)["completed"] == second.begins
            await goes_on(up, 2)
            ended = await up.engine.stop(None)
            assert [json.loads(one.result)["correct"] for one in ended] == [True, True]
            for part in ("w0", "edge0-0-agg0-0"):
                await asyncio.to_thread(network.restart, part)

    run_limited(scenario)


def test_a_job_goes_on_without_those_that_a_switch_cuts_off(network: NetworkClient) -> None:
    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(replace(ORDER, on_loss=OnLoss.CONTINUE))
            await goes_on(up, 1)
            await _kill(up, "edge0-0")
            await until(lambda: up.engine.jobs()[0].current.absent == (0,))
            await until(runs(up, 1))
            await goes_on(up, 1)
            # One that cuts off some, and that others go round.
            await _kill(up, "agg1-0")
            await _kill(up, "edge1-1")
            await until(runs(up, 2))
            second = up.engine.jobs()[1]
            assert second.current.absent == (0, 3)
            assert second.avoids == ("agg1-0", "edge0-0", "edge1-1")
            await goes_on(up, 2)
            await stop_all(up)
            await _mend(up)

    run_limited(scenario)


def test_a_job_that_needs_all_workers_fails_and_names_them(
    network: NetworkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "GIVE_UP_S", 0.5)

    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(ORDER)
            await _kill(up, "edge2-1")
            await until(lambda: up.engine.jobs()[0].phase is Phase.FAILED)
            detail = json.loads(up.engine.jobs()[0].result)["detail"]
            assert detail.startswith("switch edge2-1 has not answered for 0.5 s and cuts off w5: ")
            await up.engine.stop(None)
            await _mend(up)

    run_limited(scenario)


def test_what_fails_without_a_controller_is_repaired_by_the_next(network: NetworkClient) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            await first.engine.start(ORDER)
            await first.engine.start(replace(ORDER, chunks=200, seed=4))
        # A job needs no controller to get to its end.
        while not network.progress(2).done:
            await asyncio.sleep(0.02)
        # A blue switch starts anew, without registers, entries or a program.
        network.kill("core0")
        network.restart("core0")
        stood = network.progress(1).completed
        await asyncio.sleep(0.3)
        assert network.progress(1).completed <= stood + ORDER.window
        async with watched(network, 3) as second:
            await goes_on(second, 1)
        network.kill(DEAD)
        async with watched(network, 4) as third:
            await until(lambda: any(job.avoids == (DEAD,) for job in third.engine.jobs()))
            await until(runs(third, third.engine.jobs()[-1].id))
            await goes_on(third, third.engine.jobs()[-1].id)
            await stop_all(third, exact=False)
            await _mend(third)

    run_limited(scenario)


async def _installed(first: Controller, job: Job, new: Job) -> None:
    first.store.follow(job.id, new)
    await first.board.change(first.engine.programs())


async def _about_to_move(first: Controller, job: Job, new: Job) -> None:
    await _installed(first, job, new)
    first.store.set_phase(job.id, Phase.MOVING)


async def _attached(first: Controller, job: Job, new: Job) -> None:
    await _about_to_move(first, job, new)
    begins = first.network.progress(job.id).drained_below
    first.store.begin_at(new.id, begins)
    first.network.attach(
        ledger.plan_of(first.network.network, new, new.current),
        Op(new.op),
        Stream(new.seed, len(first.network.network.workers)),
        first_chunk=begins,
        avoids=new.avoids,
    )


async def _handed_over(first: Controller, job: Job, new: Job) -> None:
    await _attached(first, job, new)
    first.network.start(new.id)
    first.store.hand_over(job.id, new.id)


async def _noted(first: Controller, job: Job, new: Job) -> None:
    await _handed_over(first, job, new)
    first.store.set_phase(job.id, Phase.FINISHED, json.dumps({"correct": True}))


@pytest.mark.parametrize("crash", [_installed, _attached, _noted])
def test_the_next_controller_takes_a_job_round(
    network: NetworkClient, crash: Callable[[Controller, Job, Job], Awaitable[None]]
) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            await first.engine.start(ORDER)
            await goes_on(first, 1)
            await _kill(first, DEAD)
            await until(lambda: DEAD in first.board.troubles)
            (job,) = first.engine.jobs()
            planner = Planner(network.network, first.store)
            new, _ = planner.succeed(job, "core0", None, [DEAD])
            await crash(first, job, new)
        async with watched(network, 3) as second:
            await until(runs(second, 2))
            await until(lambda: second.engine.jobs()[0].phase is Phase.FINISHED)
            while [one.job for one in await asyncio.to_thread(network.jobs)] != [2]:
                await asyncio.sleep(0.02)
            await goes_on(second, 2)
            await stop_all(second)
            await _mend(second)

    run_limited(scenario)
