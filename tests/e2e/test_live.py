"""A network that lives in a process of its own, and several that talk to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from controller.compile import JobPlan, compile_programs, merge_programs
from controller.errors import BadInputError, RunFailedError
from controller.live import state as folder
from controller.live.client import NetworkClient, launch
from controller.live.progress import JobProgress
from controller.live.state import NetworkDownError
from controller.p4rt import BlockingFleet, SwitchUnreachableError, connect_blocking
from controller.program import SwitchProgram
from p4src import artefacts
from topologies.network import Network, NetworkError
from traffic.commands import Detach, Hold
from traffic.endpoint import Op
from traffic.stream import Stream

TOPOLOGY = "fat-tree:k=2"
OPTIONS = ("--workers", "2", "--loss", "0.02", "--duplicate", "0.02", "--root", "agg1-0")
DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkClient]:
    """A lossy fabric, up for all tests of this module."""
    client = launch(tmp_path_factory.mktemp("live"), TOPOLOGY, OPTIONS, target="fabric")
    yield client
    client.down()


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def plan_of(job: int, epoch: int, blue: set[int]) -> JobPlan:
    return JobPlan(job, epoch, frozenset(blue), slot_base=16 * job, window=4)


def programs(network: Network, *plans: JobPlan) -> tuple[SwitchProgram, ...]:
    return compile_programs(network, plans)


def fleet_of(client: NetworkClient, election_id: int) -> Iterator[BlockingFleet]:
    with connect_blocking(
        client.describe().addresses, artefacts.load(), election_id=election_id
    ) as fleet:
        fleet.push()
        yield fleet


@pytest.fixture
def fleet(client: NetworkClient) -> Iterator[BlockingFleet]:
    yield from fleet_of(client, election_id=1)


def passed(client: NetworkClient, job: int, chunk: int) -> JobProgress:
    eventually(lambda: client.progress(job).drained_below >= chunk)
    return client.progress(job)


def is_done(client: NetworkClient, job: int) -> bool:
    return client.progress(job).done


def test_it_says_what_is_up(client: NetworkClient) -> None:
    description = client.describe()
    assert description.target == "fabric"
    assert [at.name for at in description.addresses] == list(description.network.topology.switches)
    assert len(description.network.workers) == 4
    assert description.pids.keys() == {"daemon"}
    assert 0 < description.start_seconds < DEADLINE_S
    assert description.memory > 1 << 20


def test_a_job_moves_under_traffic_while_others_come_and_go(
    client: NetworkClient, fleet: BlockingFleet
) -> None:
    network = client.network
    old, other = plan_of(1, 1, {0, 1}), plan_of(2, 2, set())
    fleet.reconcile(programs(network, old))
    client.attach(old, Op.ALLREDUCE, Stream(seed=1, workers=4))
    client.start(1)
    passed(client, 1, 20)
    # Another job joins, of two workers only, told by another client.
    other = JobPlan(2, 2, frozenset({0}), slot_base=32, window=4, members=frozenset({1, 3}))
    fleet.reconcile(programs(network, old, other))
    with NetworkClient(client.state) as second:
        second.attach(other, Op.REDUCE, Stream(seed=2, workers=2))
        second.start(2)
        assert [(job.job, job.workers) for job in second.jobs()] == [
            (1, ("w0", "w1", "w2", "w3")),
            (2, ("w1", "w3")),
        ]
        new = plan_of(1, 5, {2, 3})
        fleet.reconcile(programs(network, old, new, other))
        asked = time.monotonic_ns()
        first = client.hold(1)
        client.move(new, first)
        progress = passed(client, 1, first + 8)
        when = progress.first_answer(5)
        assert when is not None
        assert asked < when < time.monotonic_ns()
        client.move(new, first)
        fleet.reconcile(programs(network, new, other))
        passed(second, 2, 20)
    ends = {job: client.stop(job) for job in (1, 2)}
    for job, end in ends.items():
        progress = passed(client, job, end)
        eventually(partial(is_done, client, job))
        assert (progress.mismatches, progress.failure) == (0, "")
        assert client.report(job).complete
        client.detach(job)
    assert client.jobs() == ()


def test_a_hold_is_released(client: NetworkClient, fleet: BlockingFleet) -> None:
    plan = plan_of(3, 7, {0})
    fleet.reconcile(programs(client.network, plan))
    client.attach(plan, Op.ALLREDUCE, Stream(seed=3, workers=4))
    client.start(3)
    held = client.hold(3)
    before = client.progress(3)

    def is_still() -> bool:
        """All is answered, or what is not (others have not sent it) is being repeated."""
        now = client.progress(3)
        return now.resent > before.resent or all(one.in_flight == 0 for one in now.workers)

    eventually(is_still)
    assert max(one.next_chunk for one in client.progress(3).workers) == held
    client.release(3)
    passed(client, 3, held + 10)
    client.stop(3)
    eventually(lambda: client.progress(3).done)
    client.detach(3)


def test_a_job_goes_on_with_another_root(client: NetworkClient, fleet: BlockingFleet) -> None:
    stream = Stream(seed=4, workers=4)
    old, new = plan_of(4, 11, {0}), plan_of(5, 12, {1})
    fleet.reconcile(programs(client.network, old))
    client.attach(old, Op.ALLREDUCE, stream)
    client.start(4)
    passed(client, 4, 10)
    turned = client.rooted("agg1-0")
    fleet.reconcile(merge_programs(programs(client.network, old), compile_programs(turned, [new])))
    first = client.hold(4)
    client.attach(new, Op.ALLREDUCE, stream, first_chunk=first, root="agg1-0")
    client.finish(4, first)
    client.start(new.job)
    eventually(partial(is_done, client, 4))
    assert client.progress(4).drained_below == first
    client.detach(4)
    fleet.reconcile(compile_programs(turned, [new]))
    passed(client, 5, first + 10)
    assert [job.destination for job in client.jobs()] == ["destination2"]
    client.stop(5)
    eventually(partial(is_done, client, 5))
    assert client.progress(5).mismatches == 0
    client.detach(5)
    with pytest.raises(NetworkError, match="edge0-0: no destination is attached to it"):
        client.rooted("edge0-0")


def test_a_job_goes_on_without_a_worker(client: NetworkClient, fleet: BlockingFleet) -> None:
    old = plan_of(6, 21, {0, 2})
    fleet.reconcile(programs(client.network, old))
    client.attach(old, Op.ALLREDUCE, Stream(seed=6, workers=4))
    client.start(6)
    passed(client, 6, 20)
    new = replace(old, epoch=22, absent=frozenset({3}))
    fleet.reconcile(programs(client.network, old, new))
    # The worker that is left out does not know it, and goes on sending.
    term = client.exclude(new)
    assert term == client.exclude(new)
    assert term.absent == {3}
    eventually(lambda: all(one.drained for one in client.progress(6).workers))
    fleet.reconcile(programs(client.network, new))
    progress = passed(client, 6, term.from_chunk + 20)
    assert [one.name for one in progress.workers] == ["w0", "w1", "w2"]
    client.stop(6)
    eventually(partial(is_done, client, 6))
    assert client.progress(6).mismatches == 0
    assert [job.workers for job in client.jobs()] == [("w0", "w1", "w2")]
    client.detach(6)
    client.tell([("w3", Detach(6))])


def test_a_killed_switch_is_gone_until_it_is_restarted(client: NetworkClient) -> None:
    root = client.network.topology.overlay.names[0]
    client.kill(root)
    assert client.describe().down == {root}
    with pytest.raises(SwitchUnreachableError, match=root):
        next(fleet_of(client, election_id=2))
    with pytest.raises(BadInputError, match="core9: the network has no such switch"):
        client.kill("core9")
    client.restart(root)
    assert client.describe().down == frozenset()
    for fleet in fleet_of(client, election_id=2):
        assert fleet.read(root).entries == ()
    with pytest.raises(BadInputError, match="it runs, and only what is dead is started anew"):
        client.restart(root)


def test_a_killed_host_has_no_part_in_the_next_job_of_a_number(client: NetworkClient) -> None:
    plan = plan_of(3, 40, set())
    client.attach(plan, Op.ALLREDUCE, Stream(seed=1, workers=4))
    client.kill("w0")
    client.kill(client.network.destination.name)
    assert set(client.progress(3).gone) == {"destination", "w0"}
    client.detach(3)
    assert client.jobs() == ()
    # It goes on with no job either, for it was told of the end of none.
    client.restart(client.network.destination.name)
    assert client.jobs() == ()
    plan = replace(plan, epoch=41, members=frozenset({1, 2}))
    client.attach(plan, Op.ALLREDUCE, Stream(seed=1, workers=2))
    assert [job.workers for job in client.jobs()] == [("w1", "w2")]
    assert client.progress(3).gone == ()
    client.detach(3)
    client.restart("w0")


def test_what_cannot_be_is_refused_in_one_line(client: NetworkClient) -> None:
    for act, text in (
        (lambda: client.hold(9), "job 9: no host takes part in it"),
        (lambda: client.tell([("w0", Hold(9))]), "host w0 has no part in job 9"),
        (lambda: client.tell([("w9", Hold(9))]), "w9: the network has no such host"),
    ):
        with pytest.raises(RunFailedError, match=text):
            act()


def test_two_networks_do_not_share_a_folder(client: NetworkClient) -> None:
    with pytest.raises(BadInputError, match=rf"a network is up here \(process {_pid(client)}\)"):
        launch(client.state, TOPOLOGY, target="fabric")
    words = ["-m", "controller.live.daemon", "--state", str(client.state), TOPOLOGY]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "a network is up here" in done.stderr
    assert client.describe().target == "fabric"


def _pid(client: NetworkClient) -> int:
    return client.describe().pids["daemon"]


def test_folders_that_cannot_be_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError, match="name another folder"):
        launch(tmp_path / "file", TOPOLOGY)
    with pytest.raises(BadInputError, match="too long for a socket's name"):
        launch(tmp_path / ("x" * 120), TOPOLOGY)
    with pytest.raises(NetworkDownError, match="no network is up here"):
        NetworkClient(tmp_path)
    with pytest.raises(BadInputError, match="no-such-tree"):
        launch(tmp_path, "no-such-tree", target="fabric")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_network_that_is_killed_leaves_room_for_the_next(
    tmp_path: Path, number: signal.Signals
) -> None:
    client = launch(tmp_path, "fat-tree:k=2", target="fabric")
    os.kill(_pid(client), number)
    eventually(lambda: not folder.is_locked(tmp_path))
    text = "has been killed" if number == signal.SIGKILL else "no network is up here"
    with pytest.raises(NetworkDownError, match=text):
        client.jobs()
    with pytest.raises(NetworkDownError, match=text):
        NetworkClient(tmp_path)
    with launch(tmp_path, "fat-tree:k=2", target="fabric") as again:
        assert again.jobs() == ()
        again.down()
