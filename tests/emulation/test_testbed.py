"""A testbed that stays up, over Mininet: real links, a process a switch and a host."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from controller.cli_shell import SHELL_PYTHON
from controller.live.client import NetworkClient
from tests.emulation.runs import eventually
from tests.testbeds import Bluetree, shell

DEADLINE_S = 100


def test_the_life_of_a_testbed_on_real_links(bluetree: Bluetree, target: str, tree: str) -> None:
    up = bluetree("up", tree, "--target", target, "--backup")
    assert up["target"] == target
    bluetree("start", "-k", "1", "--op", "allreduce")
    moved = bluetree("reallocate", "--blue", "b")
    assert moved["first_chunk_after"] > 0

    # The standby takes over; the job does not notice.
    os.kill(up["controller"], signal.SIGKILL)
    status = bluetree("status")
    assert status["controller"]["pid"] == up["standbys"][0]
    assert {switch["state"] for switch in status["switches"]} == {"up"}
    bluetree("reallocate", "--blue", "r,b")
    (job,) = bluetree("stop")["jobs"]
    assert (job["correct"], job["reallocations"]) == (True, 2)
    for link in job["links"]:
        assert link["messages"] == link["expected"], link

    # A switch that starts anew gets its program and entries back, and the job goes on.
    bluetree("start", "-k", "1")
    with NetworkClient(bluetree.folder) as network:
        os.kill(bluetree("up")["processes"]["b"], signal.SIGKILL)
        assert eventually(lambda: _state(bluetree, "b") == "down", DEADLINE_S)
        said = bluetree("start", "-k", "1", exit_code=4)["stderr"]
        assert "`bluetree restart b`" in said
        assert "ipv4" not in said
        process = bluetree("restart", "b")["process"]
        processes = network.describe().pids.values()
    assert process in processes
    assert "it runs" in bluetree("restart", "b", exit_code=2)["stderr"]
    assert eventually(lambda: _state(bluetree, "b") == "up", DEADLINE_S)
    completed = bluetree("status")["jobs"][0]["completed"]
    assert eventually(lambda: bluetree("status")["jobs"][0]["completed"] > completed, DEADLINE_S)
    (job,) = bluetree("stop")["jobs"]
    assert job["correct"] is True

    bluetree("down")
    assert not bluetree.folder.exists()
    assert not any(map(_runs, processes))


@pytest.mark.skipif(
    not SHELL_PYTHON.exists(),
    reason="p4runtime-shell is absent (`make shell-env`): `bluetree shell` was not tried",
)
def test_a_shell_reads_while_a_job_runs(bluetree: Bluetree, target: str, tree: str) -> None:
    bluetree("up", tree, "--target", target)
    bluetree("start", "-k", "1", "--op", "allreduce")
    before = bluetree("status")
    said = shell(
        bluetree.folder, 'print("entries:", len(list(TableEntry("upstream").read())))\n', "r"
    )
    assert "only have read access" in said
    assert "entries: 4" in said
    after = bluetree("status")
    assert after["controller"]["election_id"] == before["controller"]["election_id"]
    assert after["jobs"][0]["completed"] > before["jobs"][0]["completed"]
    log = (bluetree.folder / "controller.log").read_text()
    assert "is primary" not in log
    # The controller may write still.
    bluetree("reallocate", "--blue", "b")
    (job,) = bluetree("stop")["jobs"]
    assert job["correct"] is True


def _state(bluetree: Bluetree, name: str) -> str:
    switches = bluetree("status")["switches"]
    return next(str(switch["state"]) for switch in switches if switch["name"] == name)


def _runs(pid: int) -> bool:
    """Whether a process is there, and not just its entry that nobody has read yet."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False
