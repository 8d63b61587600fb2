"""Changes that meet: callers that go away in the middle, several commands at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import grpc
import pytest

from controller.live.client import NetworkClient, launch
from controller.p4rt import fleet_of
from controller.program import TableEntry
from controller.service import bluetree_pb2 as api
from controller.service.client import ControllerClient
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
