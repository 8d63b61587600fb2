"""Stuck jobs over Mininet: a worker's process that is stopped is named within two seconds."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np

from controller.live.client import NetworkClient
from controller.mininet_testbed import MininetTestbed
from controller.watchdog import Cause, Stuck
from p4src.constants import LANES
from tests.emulation.runs import eventually
from tests.testbeds import Bluetree
from topologies import WorkloadOptions, parse
from topologies.network import wire
from traffic.endpoint import Op

DEADLINE_S = 60
REPORT_S = 2.0


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _first_report(folder: Path) -> float:
    """When the controller's log first tells of a stuck job, in seconds since the epoch."""
    log = (folder / "controller.log").read_text().splitlines()
    line = next(line for line in log if "is stuck: chunk" in line and "w4" in line)
    return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp()


def test_status_names_a_worker_whose_process_is_stopped(
    bluetree: Bluetree, target: str, tree: str
) -> None:
    bluetree("up", tree, "--target", target)
    bluetree("start", "--blue", "r,b", "--op", "allreduce", "--on-worker-loss", "continue")
    with NetworkClient(bluetree.folder) as network:
        pid = network.describe().pids["w4"]
    with _stopped(pid):
        began = time.time()
        assert eventually(lambda: bluetree("status")["jobs"][0]["stuck"] is not None, DEADLINE_S)
        assert _first_report(bluetree.folder) - began < REPORT_S
        stuck = bluetree("status")["jobs"][0]["stuck"]
        assert (stuck["switch"], stuck["workers"], stuck["cause"]) == ("b", ["w4"], "workers")
        assert bluetree("status")["cut_links"] == []
    assert eventually(lambda: bluetree("status")["jobs"][0]["stuck"] is None, DEADLINE_S)
    # Stopped most of the time it is slow: named whenever it holds the others up, and waited for.
    for _ in range(3):
        with _stopped(pid):
            stuck = bluetree.until(lambda job: job["stuck"] is not None)["stuck"]
            assert (stuck["workers"], stuck["cause"]) == (["w4"], "workers")
        bluetree.until(lambda job: job["stuck"] is None)
    status = bluetree("status")
    assert status["cut_links"] == []
    assert (status["jobs"][0]["left_out"], status["jobs"][0]["phase"]) == ([], "running")
    (job,) = bluetree("stop")["jobs"]
    assert job["correct"] is True
    # Six workers, four chunks in flight: a few times for each second.
    assert job["retransmissions"] < 300


def test_a_run_tells_of_a_worker_whose_process_is_stopped(target: str, tree: str) -> None:
    network = wire(parse(tree, WorkloadOptions()))
    chunks = 3000
    told: list[tuple[Stuck, float]] = []
    with MininetTestbed(network, target) as testbed:
        plans = testbed.switches.install([frozenset({0})], window=4)
        pid = testbed.running.pids()["w0"]
        stops: list[float] = []

        def progress(completed: int) -> None:
            if completed and not stops:
                os.kill(pid, signal.SIGSTOP)
                stops.append(time.monotonic())

        def on_stuck(stuck: Stuck) -> None:
            told.append((stuck, time.monotonic()))
            os.kill(pid, signal.SIGCONT)

        values = np.ones((len(network.workers), chunks, LANES), dtype=np.int32)
        (outcome,) = testbed.reduce(
            plans, [values], Op.ALLREDUCE, progress=progress, on_stuck=on_stuck
        )
    assert outcome.is_right(np.full((chunks, LANES), len(network.workers)))
    stuck, when = told[0]
    assert (stuck.switch, stuck.workers, stuck.cause) == ("r", ("w0",), Cause.WORKERS)
    assert when - stops[0] < REPORT_S
