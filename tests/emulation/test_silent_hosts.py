"""Commands where a host's process is stopped: they end within a bound, and leave all consistent."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from controller import targets
from controller.live.client import NetworkClient
from tests.emulation.runs import eventually
from tests.testbeds import Bluetree
from topologies.network import DESTINATION_NAME

DEADLINE_S = 60
HOST_S = 0.5
BOUND_S = 10.0
"""Of a command where it waits HOST_S for a host: the rest is for a machine with other work."""


@contextmanager
def _stopped(bluetree: Bluetree, host: str) -> Iterator[int]:
    with NetworkClient(bluetree.folder) as network:
        pid = network.describe().pids[host]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGCONT)


def _job(bluetree: Bluetree) -> dict[str, Any]:
    (job,) = bluetree("status")["jobs"]
    assert isinstance(job, dict)
    return job


def _goes_on(bluetree: Bluetree) -> bool:
    """Whether further chunks become complete."""
    done = _job(bluetree)["completed"]
    return eventually(lambda: int(_job(bluetree)["completed"]) > done, DEADLINE_S)


def test_a_stopped_host_holds_no_command_up(bluetree: Bluetree, tree: str) -> None:
    """One target says it for all: hosts are the same processes everywhere."""
    reason = targets.why_not(targets.SOFTSWITCH)
    if reason is not None:
        pytest.skip(reason)
    bluetree(
        "up", tree, *("--target", targets.SOFTSWITCH, "--root", "b", "--host-seconds", str(HOST_S))
    )
    bluetree("start", "--blue", "r", "--op", "allreduce")
    epoch = _job(bluetree)["epoch"]

    # Neither a worker nor the destination: the job goes on as it was, once they do.
    for host, change in (
        ("w4", ["--blue", "b"]),
        (DESTINATION_NAME, ["--blue", "b"]),
        ("w0", ["--root", "b"]),
    ):
        with _stopped(bluetree, host) as pid:
            began = time.monotonic()
            refused = bluetree("reallocate", *change, exit_code=4)["stderr"]
            assert HOST_S < time.monotonic() - began < BOUND_S
            assert refused.count("\n") == 1
            assert "job 1: goes on as before" in refused
            assert f"host {host} has not answered for {HOST_S:g} s" in refused
            assert f"kill -CONT {pid}" in refused
        now = _job(bluetree)
        assert (now["job"], now["phase"], now["epoch"]) == (1, "running", epoch)
        assert _goes_on(bluetree)
    bluetree("reallocate", "--blue", "b")

    # What cannot be ended in order is ended all the same, and says why.
    with _stopped(bluetree, "w4") as pid:
        began = time.monotonic()
        failed = bluetree("stop", exit_code=1)["stderr"]
        assert time.monotonic() - began < BOUND_S
        assert failed.count("\n") == 1
        assert f"host w4 has not answered for {HOST_S:g} s" in failed
        assert f"kill -CONT {pid}" in failed
        assert bluetree("status")["jobs"] == []
    # It has forgotten the job by now, like all others, and is free for the next.
    bluetree("start", "-k", "1", "--op", "allreduce", "--chunks", "50")
    assert eventually(lambda: _job(bluetree)["phase"] == "finished", DEADLINE_S)
    (job,) = bluetree("stop")["jobs"]
    assert job["correct"] is True
