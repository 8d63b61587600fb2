"""Workers that come back into jobs that went on without them, on the fabric."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from controller.errors import BadInputError, RunFailedError
from controller.live.client import NetworkClient, launch
from controller.service import ledger
from controller.service.admission import Wish
from controller.service.errors import NotNowError
from controller.service.moments import Stopwatch
from controller.service.planner import Order
from controller.service.rejoining import Rejoining
from controller.service.store import Job, OnLoss, Phase
from tests.e2e.conftest import TREE
from tests.e2e.controllers import Controller, run_limited, running_controller, until
from tests.testbeds import Bluetree
from traffic.commands import Progress

ORDER = Order(
    op="allreduce",
    chunks=None,
    seed=3,
    wish=Wish(blue=("r", "b")),
    window=8,
    workers=(),
    on_loss=OnLoss.CONTINUE,
)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkClient]:
    """One network for all tests; each leaves it without jobs, and with all its hosts."""
    folder = tmp_path_factory.mktemp("n")
    tree = folder / "tree.json"
    tree.write_text(json.dumps(TREE))
    client = launch(folder, str(tree), target="fabric")
    yield client
    client.down()


def test_workers_come_back_under_their_ranks(bluetree: Bluetree, tree: str) -> None:
    said = bluetree("rejoin", exit_code=2)["stderr"]
    assert "no testbed is up" in said
    bluetree("up", tree, "--target", "fabric")
    assert "no job runs" in bluetree("rejoin", exit_code=2)["stderr"]
    bluetree("start", "--blue", "r,b", "--op", "allreduce", "--on-worker-loss", "continue")
    with NetworkClient(bluetree.folder) as network:
        for name in ("w4", "w1"):
            network.kill(name)
    bluetree.until(lambda job: job["left_out"] == ["w1", "w4"] and job["phase"] == "running")
    change = bluetree("rejoin", "w4")
    assert (change["came_back"], change["blue"]) == (["w4"], ["b", "r"])
    assert change["first_chunk_after"] is not None
    shown = bluetree.until(lambda job: job["completed"] > change["first_chunk"] + 20)
    assert (shown["workers"], shown["left_out"]) == (5, ["w1"])
    assert shown["came_back"] == [{"worker": "w4", "first_chunk": change["first_chunk"]}]
    assert f"w4 from chunk {change['first_chunk']} on" in bluetree.text("status")
    # It may go again, and others come back beside it.
    with NetworkClient(bluetree.folder) as network:
        network.kill("w4")
    bluetree.until(lambda job: job["left_out"] == ["w1", "w4"] and job["phase"] == "running")
    change = bluetree("rejoin")
    assert change["came_back"] == ["w1", "w4"]
    bluetree("reallocate", "--blue", "a")
    bluetree.until(lambda job: job["completed"] > change["first_chunk"] + 40)
    (stopped,) = bluetree("stop")["jobs"]
    assert (stopped["correct"], stopped["workers"], stopped["left_out"]) == (True, 6, [])


def _gone(network: NetworkClient, *names: str) -> None:
    for name in names:
        network.kill(name)


async def _started(controller: Controller, order: Order, *gone: str) -> tuple[Job, int]:
    """A job that has gone on without some workers; and how far it is."""
    await controller.engine.start(order)
    number = controller.engine.jobs()[-1].id
    await asyncio.to_thread(_gone, controller.network, *gone)
    await until(lambda: len(_job(controller, number).current.absent) == len(gone))
    await until(lambda: _job(controller, number).phase is Phase.RUNNING)
    return _job(controller, number), _completed(controller, number)


def _job(controller: Controller, number: int = 1) -> Job:
    job = controller.store.job(number)
    assert job is not None
    return job


def _completed(controller: Controller, number: int = 1) -> int:
    destination = controller.network.progress(number).destination
    assert destination is not None
    return destination.completed


Crash = Callable[[Controller, Job], Awaitable[None]]
"""Steps of a return, as far as the controller came."""


async def _written_down(first: Controller, job: Job) -> None:
    await first.engine._reallocation.readmit(job, ())


async def _installed(first: Controller, job: Job) -> None:
    await _written_down(first, job)
    await first.board.change(first.engine.programs())


async def _about_to_move(first: Controller, job: Job) -> None:
    await _installed(first, job)
    first.store.set_phase(job.id, Phase.MOVING)


async def _attached(first: Controller, job: Job) -> None:
    await _about_to_move(first, job)
    chunk = first.network.hold(job.id)
    await first.engine._reallocation._rejoining.attach(_job(first), chunk)


async def _moved(first: Controller, job: Job) -> None:
    await _attached(first, job)
    now = _job(first)
    plan = ledger.plan_of(first.network.network, now, now.allocations[-1])
    first.network.move(plan, first.network.progress(job.id).workers[0].next_chunk)


async def _noted(first: Controller, job: Job) -> None:
    await _about_to_move(first, job)
    await first.engine._reallocation.move(_job(first), Stopwatch(), again=False)


async def _sending(first: Controller, job: Job) -> None:
    await _noted(first, job)
    await first.engine._reallocation._rejoining.start(_job(first))


@pytest.mark.parametrize(
    ("crash", "is_back"),
    [
        (_installed, False),
        (_about_to_move, True),
        (_attached, True),
        (_moved, True),
        (_noted, True),
        (_sending, True),
    ],
)
def test_the_next_controller_brings_them_back_or_leaves_them_out(
    network: NetworkClient, crash: Crash, is_back: bool
) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            watch = asyncio.create_task(first.engine.watch())
            job, _ = await _started(first, ORDER, "w4", "w1")
            watch.cancel()
            await crash(first, job)
        async with running_controller(network, 3) as second:
            watch = asyncio.create_task(second.engine.watch())
            await until(lambda: _job(second).phase is Phase.RUNNING)
            assert _job(second).current.absent == (() if is_back else (1, 4))
            if not is_back:
                await second.engine.rejoin(None, ())
            done = _completed(second)
            await until(lambda: _completed(second) > done + 20)
            (ended,) = await second.engine.stop(None)
            watch.cancel()
        result = json.loads(ended.result)
        assert (result["correct"], result["completed"] > done) == (True, True)

    run_limited(scenario)


def test_who_has_not_begun_yet_is_left_out_where_another_one_goes(network: NetworkClient) -> None:
    """Chunks before its first are summed anew then, and it has no values for them."""

    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            watch = asyncio.create_task(first.engine.watch())
            job, _ = await _started(first, ORDER, "w4")
            watch.cancel()
            await _noted(first, job)
            assert _job(first).returning == (4,)
            network.kill("w0")
            watch = asyncio.create_task(first.engine.watch())
            await until(lambda: _job(first).current.absent == (0, 4))
            await until(lambda: _job(first).phase is Phase.RUNNING)
            done = _completed(first)
            await until(lambda: _completed(first) > done + 20)
            with pytest.raises(RunFailedError, match="w4 has no part in job 1"):
                network.tell([("w4", Progress(1))])
            changed = await first.engine.rejoin(1, ())
            assert changed.came_back == ("w0", "w4")
            (ended,) = await first.engine.stop(1)
            watch.cancel()
        assert json.loads(ended.result)["correct"]

    run_limited(scenario)


@pytest.mark.parametrize("step", [_noted, _sending])
def test_a_job_that_is_stopped_while_workers_come_back_is_right(
    network: NetworkClient, step: Crash
) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            watch = asyncio.create_task(first.engine.watch())
            job, _ = await _started(first, ORDER, "w4")
            watch.cancel()
            await step(first, job)
            (ended,) = await first.engine.stop(1)
        result = json.loads(ended.result)
        assert (ended.phase, result["correct"], result["detail"]) == (
            Phase.FINISHED,
            True,
            "stopped",
        )

    run_limited(scenario)


def test_what_cannot_come_back_is_refused_and_the_job_goes_on(
    network: NetworkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(first: Controller, kind: type[Exception], text: str, *words: str) -> None:
        with pytest.raises(kind, match=text):
            await first.engine.rejoin(1, words)
        assert _job(first).phase is Phase.RUNNING

    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            watch = asyncio.create_task(first.engine.watch())
            order = replace(ORDER, workers=("w0", "w1", "w4", "w5"))
            await _started(first, order, "w4")
            await refused(first, BadInputError, "^w9: no such worker; there are w0 to w5$", "w9")
            await refused(first, BadInputError, "^w2 has no part in job 1", "w4", "w2")
            await refused(first, BadInputError, "^w0 is not left out of job 1; ", "w0")
            network.kill("b")
            await until(lambda: "b" in first.board.troubles)
            await refused(first, NotNowError, "^w4: switch b on its way .* `bluetree restart b`")
            network.restart("b")
            await until(lambda: "b" not in first.board.troubles)
            # Its host dies between the look at it and the job's being given to it.
            network.restart("w4")
            with monkeypatch.context() as patch:
                patch.setattr(Rejoining, "revive", lambda *_: asyncio.sleep(0))
                network.kill("w4")
                await refused(first, NotNowError, "goes on as before: w4: the host was killed")
            done = _completed(first)
            await until(lambda: _completed(first) > done + 20)
            (ended,) = await first.engine.stop(1)
            network.restart("w4")
            await first.engine.start(replace(order, on_loss=OnLoss.FAIL))
            await refused(
                first, BadInputError, "^job 1 has all its workers; it fails where it loses one"
            )
            await first.engine.stop(1)
            watch.cancel()
        assert json.loads(ended.result)["correct"]

    run_limited(scenario)


def test_a_job_with_an_end_has_the_same_with_a_worker_that_came_back(
    network: NetworkClient,
) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            watch = asyncio.create_task(first.engine.watch())
            _, done = await _started(first, replace(ORDER, op="reduce", chunks=4_000), "w4", "w5")
            changed = await first.engine.rejoin(None, ("w5",))
            assert done <= changed.first_chunk < 4_000
            await until(lambda: _job(first).phase is Phase.FINISHED)
            (ended,) = await first.engine.stop(None)
            watch.cancel()
            network.restart("w4")
        result = json.loads(ended.result)
        assert (result["correct"], result["completed"]) == (True, 4_000)

    run_limited(scenario)
