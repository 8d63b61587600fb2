"""Changes that meet: callers that go away in the middle, several commands at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
import pytest

from controller.live.client import NetworkClient, launch
from controller.p4rt import fleet_of
from controller.program import TableEntry
from controller.service import bluetree_pb2 as api
from controller.service.client import ControllerClient
from controller.service.errors import NotNowError, UnknownJobError
from controller.service.folder import Folder
from controller.service.launch import end_controllers, start_controller
from controller.service.rpc import caller
from p4src import artefacts

DEADLINE_S = 30
TREE = {
    "format": "bluetree/tree-1",
    "switches": {
        "r": {"parent": None, "rate": 1, "workers": 1},
        "a": {"parent": "r", "rate": 1, "workers": 2},
        "b": {"parent": "r", "rate": "3/2", "workers": 3},
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    """One testbed for all tests; each leaves it without jobs."""
    state = tmp_path_factory.mktemp("n")
    tree = state / "tree.json"
    tree.write_text(json.dumps(TREE))
    network = launch(state, str(tree), ["--root", "a"], target="fabric")
    found = Folder(state)
    start_controller(found, None)
    yield found
    end_controllers(found)
    network.down()


@pytest.fixture
def client(folder: Folder) -> Iterator[ControllerClient]:
    with ControllerClient(folder) as client:
        yield client
        client.stop(None)


def test_a_change_goes_on_without_whoever_asked_for_it(
    folder: Folder, client: ControllerClient
) -> None:
    started = client.start(api.StartJobRequest(op="allreduce", choice=api.Choice(k=1)))
    address = f"unix:{folder.controller_socket.absolute()}"
    epoch = started.epoch
    for milliseconds in (0, 2, 4, 6, 8, 12, 16):
        blue = ["a", "b"] if milliseconds % 4 else ["r"]
        request = api.ReallocateRequest(choice=api.Choice(blue=blue, given=True))
        with grpc.insecure_channel(address) as channel:
            call = caller(channel, "Reallocate").future(request)
            time.sleep(milliseconds / 1e3)
            call.cancel()
        deadline = time.monotonic() + DEADLINE_S
        # It may have been cancelled before the controller heard of it: then nothing changes.
        while (job := client.status().jobs[0]).phase != "running":
            assert time.monotonic() < deadline, job
        assert list(job.blue) in (blue, list(started.blue)), milliseconds
        started = client.reallocate(api.ReallocateRequest(choice=api.Choice(k=1)))
        assert started.epoch > epoch
        epoch = started.epoch
    (job,) = client.stop(None).jobs
    assert job.correct, job.detail
    for link in job.links:
        assert link.messages == link.expected, link
    assert asyncio.run(_entries_of_jobs(folder)) == {"r": [], "a": [], "b": []}


async def _entries_of_jobs(folder: Folder) -> dict[str, list[TableEntry]]:
    """What switches hold for any job."""
    with NetworkClient(folder.path) as network:
        addresses = network.describe().addresses
    async with fleet_of(addresses, artefacts.load()) as fleet:
        await fleet.open(standby=True)
        return {
            name: [one for one in (await fleet.read(name)).entries if "job" in dict(one.match)]
            for name in fleet.names
        }


def _in_threads(*calls: Callable[[], object]) -> list[object]:
    """What calls come to that are made at the same time; errors in place of what they return."""
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(call) for call in calls]
        return [future.exception() or future.result() for future in futures]


def _reallocate(folder: Folder, job: int, *blue: str, root: str = "") -> Callable[[], api.Change]:
    def call() -> api.Change:
        choice = api.Choice(blue=blue, given=True)
        with ControllerClient(folder) as own:
            return own.reallocate(api.ReallocateRequest(job=job, choice=choice, root=root))

    return call


def _start(folder: Folder) -> api.Change:
    with ControllerClient(folder) as own:
        return own.start(api.StartJobRequest(op="allreduce", choice=api.Choice(k=1)))


def _stop(folder: Folder, job: int) -> api.StopJobReply:
    with ControllerClient(folder) as own:
        return own.stop(job)


def _assert_right(jobs: Iterable[api.JobStatus]) -> None:
    for job in jobs:
        assert job.correct, job.detail
        for link in job.links:
            assert link.messages == link.expected, (job.job, link)


def test_jobs_come_and_go_while_another_changes(folder: Folder, client: ControllerClient) -> None:
    for _ in range(3):
        client.start(api.StartJobRequest(op="allreduce", choice=api.Choice(k=1)))
    added, changed, turned, stopped = _in_threads(
        partial(_start, folder),
        _reallocate(folder, 1, "a", "b"),
        _reallocate(folder, 2, "b", root="a"),
        partial(_stop, folder, 3),
    )
    assert isinstance(added, api.Change), added
    assert isinstance(changed, api.Change), changed
    assert isinstance(turned, api.Change), turned
    assert isinstance(stopped, api.StopJobReply), stopped
    assert list(changed.blue) == ["a", "b"]
    assert (turned.was, turned.root) == (2, "a")
    # Who came later has waited for its turn, and says so; nobody waited for others to drain.
    assert all(change.steps[0].name == "turn" for change in (added, changed, turned))
    _assert_right([*stopped.jobs, *client.stop(None).jobs])
    assert asyncio.run(_entries_of_jobs(folder)) == {"r": [], "a": [], "b": []}


def test_two_changes_of_a_job_at_once_are_one_after_the_other_or_refused(
    folder: Folder, client: ControllerClient
) -> None:
    client.start(api.StartJobRequest(op="allreduce", choice=api.Choice(k=1)))
    for _ in range(5):
        answers = _in_threads(_reallocate(folder, 1, "a"), _reallocate(folder, 1, "b", "r"))
        carried_out = [answer for answer in answers if isinstance(answer, api.Change)]
        for refused in (answer for answer in answers if not isinstance(answer, api.Change)):
            assert isinstance(refused, NotNowError), refused
            assert "job 1: is draining; wait until it runs" in str(refused)
        assert carried_out
        newest = max(carried_out, key=lambda change: change.epoch)
        assert list(client.status().jobs[0].blue) == list(newest.blue)
    _assert_right(client.stop(None).jobs)


def test_a_job_is_stopped_while_it_changes(folder: Folder, client: ControllerClient) -> None:
    for root in ("", "a", "", "a"):
        started = client.start(api.StartJobRequest(op="allreduce", choice=api.Choice(k=1)))
        change, reply = _in_threads(
            _reallocate(folder, started.job, "b", "r", root=root),
            partial(_stop, folder, started.job),
        )
        # Either was first. A change that is cut short says so, in one line.
        if not isinstance(change, api.Change):
            assert isinstance(change, NotNowError | UnknownJobError), change
            assert f"job {started.job}" in str(change)
        assert isinstance(reply, api.StopJobReply), reply
        _assert_right([*reply.jobs, *client.stop(None).jobs])
        assert client.status().jobs == []
        assert asyncio.run(_entries_of_jobs(folder)) == {"r": [], "a": [], "b": []}
