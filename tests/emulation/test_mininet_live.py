"""A network in Mininet that lives: a job moves under traffic; a killed daemon takes all with it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from controller.compile import JobPlan, compile_programs
from controller.live.client import NetworkClient, launch
from controller.p4rt import connect_blocking
from p4src import artefacts
from tests.emulation.runs import descendants, eventually
from topologies.marks import ALIAS, identity
from traffic.endpoint import Op
from traffic.stream import Stream


def _owned_by(pids: set[int]) -> list[str]:
    """Interfaces that bear the mark of one of these processes."""
    marks = {f"{ALIAS}:{identity(pid)}" for pid in pids}
    found = []
    for alias in Path("/sys/class/net").glob("*/ifalias"):
        with suppress(OSError):  # gone between the listing and the look
            if alias.read_text().strip() in marks:
                found.append(alias.parent.name)
    return found


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _wait(condition: Callable[[], bool]) -> None:
    assert eventually(condition, 60)


def test_a_job_moves_on_real_links_and_a_killed_daemon_leaves_nothing(
    target: str, tree: str, tmp_path: Path
) -> None:
    client = launch(tmp_path / "s", tree, target=target)
    description = client.describe()
    network = description.network
    assert {*network.topology.switches, "w0", "destination"} < description.pids.keys()
    workers = len(network.workers)
    old = JobPlan(1, 1, frozenset({0}), slot_base=0, window=4)
    new = JobPlan(1, 2, frozenset({1, 2}), slot_base=0, window=4)
    with connect_blocking(description.addresses, artefacts.load()) as fleet:
        fleet.push()
        fleet.reconcile(compile_programs(network, [old]))
        client.attach(old, Op.ALLREDUCE, Stream(seed=1, workers=workers))
        client.start(1)
        _wait(lambda: client.progress(1).drained_below > 20)
        fleet.reconcile(compile_programs(network, [old, new]))
        asked = time.monotonic_ns()
        first = client.hold(1)
        client.move(new, first)
        _wait(lambda: client.progress(1).drained_below > first + 8)
        answered = client.progress(1).first_answer(2)
        assert answered is not None
        assert asked < answered < time.monotonic_ns()
        fleet.reconcile(compile_programs(network, [new]))
        end = client.stop(1)
        _wait(lambda: client.progress(1).done)
        progress = client.progress(1)
        assert (progress.mismatches, progress.drained_below) == (0, end)
        # A switch that was killed comes back without a program.
        client.kill("b")
        assert client.describe().down == {"b"}
        client.restart("b")
    with connect_blocking(description.addresses, artefacts.load(), election_id=2) as fleet:
        assert fleet.push() == {"b"}
    _kill_daemon(client)


def _kill_daemon(client: NetworkClient) -> None:
    daemon = client.describe().pids["daemon"]
    processes = descendants(daemon)
    assert len(processes) > 10
    interfaces = _owned_by(set(processes))
    assert interfaces
    os.kill(daemon, signal.SIGKILL)
    _wait(lambda: not any(_is_there(pid) for pid in processes))
    assert not any(Path(f"/sys/class/net/{name}").exists() for name in interfaces)
