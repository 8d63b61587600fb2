"""A controller that dies in the middle of a change, at every step; the next one puts it right."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from controller.compile import compile_programs
from controller.live.client import NetworkClient, launch
from controller.program import Op, TableEntry, Update
from controller.service import ledger
from controller.service.admission import Wish
from controller.service.errors import ChangeRefusedError, NotNowError
from controller.service.planner import Order, Planner
from controller.service.store import Allocation, Job, Phase, Role
from tests.e2e.controllers import Controller, run_limited, running_controller, until
from traffic.endpoint import Op as TrafficOp
from traffic.stream import Stream

TREE = {
    "format": "bluetree/tree-1",
    "switches": {
        "r": {"parent": None, "rate": 1, "workers": 1},
        "a": {"parent": "r", "rate": 1, "workers": 2},
        "b": {"parent": "r", "rate": "3/2", "workers": 3},
    },
}
ORDER = Order(op="allreduce", chunks=None, seed=3, wish=Wish(budget=1), window=8, workers=())


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkClient]:
    """One network for all tests; each leaves it without jobs."""
    folder = tmp_path_factory.mktemp("n")
    tree = folder / "tree.json"
    tree.write_text(json.dumps(TREE))
    client = launch(folder, str(tree), ["--root", "a"], target="fabric")
    yield client
    client.down()


Crash = Callable[[Controller, Job, Allocation], Awaitable[None]]
"""Steps of a reallocation of a job to an allocation, as far as the controller came."""


async def _written_down(first: Controller, job: Job, new: Allocation) -> None:
    first.store.propose(job.id, new)


async def _installed(first: Controller, job: Job, new: Allocation) -> None:
    await _written_down(first, job, new)
    await first.board.change(first.engine.programs())


async def _installed_in_part(first: Controller, job: Job, new: Allocation) -> None:
    await _written_down(first, job, new)
    before = compile_programs(
        first.network.network, [ledger.plan_of(first.network.network, job, job.current)]
    )
    await first.board.change([first.engine.programs()[0], *before[1:]])


async def _about_to_move(first: Controller, job: Job, new: Allocation) -> None:
    await _installed(first, job, new)
    first.store.set_phase(job.id, Phase.MOVING)


async def _held(first: Controller, job: Job, new: Allocation) -> None:
    await _about_to_move(first, job, new)
    first.network.hold(job.id)


async def _moved(first: Controller, job: Job, new: Allocation) -> None:
    await _about_to_move(first, job, new)
    plan = ledger.plan_of(first.network.network, job, new)
    first.network.move(plan, first.network.hold(job.id))


async def _noted(first: Controller, job: Job, new: Allocation) -> None:
    await _moved(first, job, new)
    first.store.turn(job.id, first.network.progress(job.id).workers[0].moved_at)


@pytest.mark.parametrize(
    ("crash", "goes_on"),
    [
        (_written_down, False),
        (_installed_in_part, False),
        (_installed, False),
        (_about_to_move, True),
        (_held, True),
        (_moved, True),
        (_noted, True),
    ],
)
def test_the_next_controller_finishes_or_takes_back(
    network: NetworkClient, crash: Crash, goes_on: bool
) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            await first.engine.start(ORDER)
            (job,) = first.engine.jobs()
            epoch = first.store.next_number("epoch")
            new = Allocation(epoch, "given", None, ("a", "r"), 0, Role.NEW)
            await crash(first, job, new)
        async with running_controller(network, 3) as second:
            watch = asyncio.create_task(second.engine.watch())
            await until(lambda: second.engine.jobs()[0].phase is Phase.RUNNING)
            (after,) = second.engine.jobs()
            assert after.current.epoch == (new.epoch if goes_on else job.current.epoch)
            # It goes on, and can be reallocated again.
            change = await second.engine.reallocate(1, Wish(blue=("b",)))
            assert change.job.current.blue == ("b",)
            (ended,) = await second.engine.stop(None)
            watch.cancel()
        result = json.loads(ended.result)
        assert result["correct"] is True
        assert result["completed"] > change.first_chunk
        for name, (messages, expected) in result["links"].items():
            assert messages == expected, name

    run_limited(scenario)


async def _to_follow(first: Controller, job: Job, new: Job) -> None:
    first.store.follow(job.id, new)


async def _beside(first: Controller, job: Job, new: Job) -> None:
    await _to_follow(first, job, new)
    await first.board.change(first.engine.programs())


async def _beside_in_part(first: Controller, job: Job, new: Job) -> None:
    before = first.engine.programs()
    await _to_follow(first, job, new)
    await first.board.change([first.engine.programs()[0], *before[1:]])


async def _about_to_turn(first: Controller, job: Job, new: Job) -> None:
    await _beside(first, job, new)
    first.store.set_phase(job.id, Phase.MOVING)


async def _held_to_turn(first: Controller, job: Job, new: Job) -> None:
    await _about_to_turn(first, job, new)
    first.store.begin_at(new.id, first.network.hold(job.id))


async def _attached(first: Controller, job: Job, new: Job) -> None:
    await _held_to_turn(first, job, new)
    first.network.attach(
        ledger.plan_of(first.network.network, new, new.current),
        TrafficOp(new.op),
        Stream(new.seed, len(first.network.network.workers)),
        first_chunk=_begin(first, new),
        root=new.root,
    )


async def _ended(first: Controller, job: Job, new: Job) -> None:
    await _attached(first, job, new)
    first.network.finish(job.id, _begin(first, new))


async def _turned(first: Controller, job: Job, new: Job) -> None:
    await _ended(first, job, new)
    first.network.start(new.id)


async def _handed_over(first: Controller, job: Job, new: Job) -> None:
    await _turned(first, job, new)
    first.store.hand_over(job.id, new.id)


def _begin(first: Controller, new: Job) -> int:
    found = first.store.job(new.id)
    assert found is not None
    return found.begins


@pytest.mark.parametrize(
    ("crash", "goes_on"),
    [
        (_to_follow, False),
        (_beside_in_part, False),
        (_beside, False),
        (_about_to_turn, True),
        (_held_to_turn, True),
        (_attached, True),
        (_ended, True),
        (_turned, True),
        (_handed_over, True),
    ],
)
def test_the_next_controller_finishes_a_change_of_the_root_or_takes_it_back(
    network: NetworkClient,
    crash: Callable[[Controller, Job, Job], Awaitable[None]],
    goes_on: bool,
) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            await first.engine.start(ORDER)
            (job,) = first.engine.jobs()
            planner = Planner(network.network, first.store)
            new, _ = planner.succeed(job, "a", Wish(blue=("a", "r")))
            await crash(first, job, new)
        async with running_controller(network, 3) as second:
            watch = asyncio.create_task(second.engine.watch())
            last = 2 if goes_on else 1
            await until(lambda: _phases(second)[last] is Phase.RUNNING)
            await until(lambda: not goes_on or _phases(second)[1] is Phase.FINISHED)
            assert set(_phases(second)) == ({1, 2} if goes_on else {1})
            assert [one.job for one in await asyncio.to_thread(network.jobs)] == [last]
            # It goes on, under the root that it has, and may have the other one again.
            change = await second.engine.reallocate(last, Wish(blue=("b",)))
            assert change.root == ("a" if goes_on else "r")
            back = await second.engine.reallocate(last, None, "r" if goes_on else "a")
            assert (back.was, back.job.current.blue) == (last, ("b",))
            ended = await second.engine.stop(None)
            watch.cancel()
        for one in ended:
            result = json.loads(one.result)
            assert result["correct"] is True
            assert result["completed"] > one.begins
            for name, (messages, expected) in result["links"].items():
                assert messages == expected, (one.id, name)

    run_limited(scenario)


def test_a_switch_that_refuses_leaves_the_root_where_it_was(network: NetworkClient) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            await first.engine.start(ORDER)
            (job,) = first.engine.jobs()
            before = first.engine.programs()
            # Somebody has written the very entry that the job's next number needs at switch b.
            clash = TableEntry.of(
                "upstream", {"job": 2, "phase": 0, "resent": 0}, "to_parent", {"port": 1, "mac": 1}
            )
            await first.board._fleet.write("b", [Update(Op.INSERT, clash)])
            with pytest.raises(ChangeRefusedError, match=r"b: refused .* as it was before"):
                await first.engine.reallocate(None, None, "a")
            assert first.engine.jobs() == (job,)
            assert first.engine.programs() == before
            assert (await first.engine.reallocate(None, None, "a")).root == "a"
            ended = await first.engine.stop(None)
        assert [json.loads(one.result)["correct"] for one in ended] == [True, True]

    run_limited(scenario)


def _phases(controller: Controller) -> dict[int, Phase]:
    return {job.id: job.phase for job in controller.engine.jobs()}


def test_a_start_that_did_not_end_is_taken_back(network: NetworkClient) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            await first.engine.start(ORDER)
            first.store.set_phase(1, Phase.STARTING)
        async with running_controller(network, 3) as second:
            assert second.engine.jobs() == ()
            assert await asyncio.to_thread(network.jobs) == ()
            held = await second.board.link_counts()
            assert set(map(len, held.values())) == {0}

    run_limited(scenario)


def test_a_stop_that_did_not_end_is_finished(network: NetworkClient) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            await first.engine.start(ORDER)
            first.store.set_phase(1, Phase.STOPPING)
        async with running_controller(network, 3) as second:
            (job,) = second.engine.jobs()
            assert job.phase is Phase.FINISHED
            assert await asyncio.to_thread(network.jobs) == ()
            # One that is over is forgotten when it is stopped.
            await second.engine.stop(1)
            assert second.engine.jobs() == ()

    run_limited(scenario)


def test_a_new_database_begins_above_the_epochs_of_the_network(network: NetworkClient) -> None:
    """Switches hold sums and answers of the job before, in the same slots under the same number."""

    async def run(controller: Controller, seed: int) -> tuple[Job, bool]:
        started = await controller.engine.start(replace(ORDER, chunks=40, seed=seed))
        watch = asyncio.create_task(controller.engine.watch())
        await until(lambda: controller.engine.jobs()[0].phase is Phase.FINISHED)
        watch.cancel()
        (ended,) = await controller.engine.stop(None)
        result = json.loads(ended.result)
        assert result["completed"] == 40
        assert all(messages == expected for messages, expected in result["links"].values())
        return started.job, result["correct"]

    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            # Further ahead than any clock.
            first.store.reach_number("epoch", 2**31)
            before, correct = await run(first, 3)
            assert correct
        for file in network.state.glob("state.db*"):
            file.unlink()
        async with running_controller(network, 3) as second:
            after, correct = await run(second, 4)
        assert correct
        assert (after.id, after.slot_base) == (before.id, before.slot_base)
        assert after.current.epoch > before.current.epoch > 2**31

    run_limited(scenario)


def test_a_switch_that_refuses_leaves_the_job_as_it_was(network: NetworkClient) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            await first.engine.start(ORDER)
            (job,) = first.engine.jobs()
            # Somebody has written the very entry that the next epoch needs at switch a.
            epoch = job.current.epoch + 1
            ahead = Allocation(epoch, "given", None, ("a",), 0, Role.NEW)
            plan = ledger.plan_of(network.network, job, ahead)
            clash: TableEntry = next(
                entry
                for entry in compile_programs(network.network, [plan])[1].entries
                if entry.table == "blue_sources"
            )
            await first.board._fleet.write("a", [Update(Op.INSERT, clash)])
            with pytest.raises(ChangeRefusedError, match=r"a: refused .* as it was before"):
                await first.engine.reallocate(None, Wish(blue=("a", "r")))
            assert first.engine.jobs() == (job,)
            await first.engine.reallocate(None, Wish(blue=("a", "r")))
            (ended,) = await first.engine.stop(1)
        assert json.loads(ended.result)["correct"] is True

    run_limited(scenario)


def test_a_job_that_changes_is_not_changed_again(network: NetworkClient) -> None:
    async def scenario() -> None:
        async with running_controller(network, 2) as first:
            await first.engine.start(ORDER)
            first.store.set_phase(1, Phase.DRAINING)
            with pytest.raises(NotNowError, match="job 1: is draining"):
                await first.engine.reallocate(1, Wish(budget=0))
            await first.engine.stop(1)

    run_limited(scenario)
