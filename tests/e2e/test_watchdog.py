"""Stuck jobs on the fabric: named with chunk, switch and workers within two seconds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from controller.cli import invoke
from controller.fabric_testbed import FabricTestbed
from controller.live.client import NetworkClient
from controller.testbed import FailurePoint
from controller.watchdog import Cause, Stuck
from p4src.constants import LANES
from tests.testbeds import Bluetree
from topologies import WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.network import wire
from traffic.commands import Hold, Release
from traffic.endpoint import Op

REPORT_S = 2.0


def _reported(bluetree: Bluetree) -> dict[str, Any]:
    """The stuck chunk, from now on; it must be known within REPORT_S."""
    began = asked = time.monotonic()

    def is_stuck(job: dict[str, Any]) -> bool:
        nonlocal asked
        if job["stuck"] is None:
            # What is asked from here on is the first to see it, perhaps.
            asked = time.monotonic()
        return job["stuck"] is not None

    job = bluetree.until(is_stuck)
    assert asked - began < REPORT_S
    return dict(job["stuck"])


def test_a_worker_that_sends_no_more_is_named_and_forgotten_when_it_goes_on(
    bluetree: Bluetree, tree: str
) -> None:
    bluetree("up", tree, "--target", "fabric")
    bluetree("start", "--blue", "r,a", "--op", "allreduce")
    assert bluetree("status")["jobs"][0]["stuck"] is None
    with NetworkClient(bluetree.folder) as network:
        (held,) = network.tell([("w2", Hold(1))])
        stuck = _reported(bluetree)
        assert (stuck["chunk"], stuck["switch"], stuck["workers"]) == (held, "a", ["w2"])
        assert stuck["cause"] == "workers"
        assert stuck["text"] in bluetree.text("status").replace("\n", " ")
        assert stuck["text"] in (bluetree.folder / "controller.log").read_text()
        network.tell([("w2", Release(1))])
    goes_on = bluetree.until(lambda job: job["stuck"] is None)
    assert goes_on["correct"] is True
    (stopped,) = bluetree("stop")["jobs"]
    assert stopped["correct"] is True
    assert stopped["completed"] > held


def test_a_killed_switch_is_named_with_the_workers_below_it(bluetree: Bluetree, tree: str) -> None:
    bluetree("up", tree, "--target", "fabric")
    bluetree("start", "--blue", "r")
    with NetworkClient(bluetree.folder) as network:
        network.kill("b")
        stuck = _reported(bluetree)
        assert (stuck["switch"], stuck["workers"]) == ("b", ["w3", "w4", "w5"])
        assert stuck["cause"] in ("switch", "answer")
        network.restart("b")
        bluetree.until(lambda job: job["stuck"] is None)
    assert bluetree("stop")["jobs"][0]["correct"] is True


def test_a_killed_worker_is_named_before_its_job_is_given_up(bluetree: Bluetree, tree: str) -> None:
    bluetree("up", tree, "--target", "fabric")
    bluetree("start", "--blue", "b")
    with NetworkClient(bluetree.folder) as network:
        network.kill("w4")
    stuck = _reported(bluetree)
    assert (stuck["switch"], stuck["workers"]) == ("b", ["w4"])
    ended = bluetree.until(lambda job: job["phase"] == "failed")
    assert ended["stuck"] is None
    assert "w4 was killed" in ended["detail"]


def test_a_job_with_another_root_is_told_of_by_its_own_tree(bluetree: Bluetree, tree: str) -> None:
    bluetree("up", tree, "--target", "fabric", "--root", "b")
    bluetree("start", "--blue", "r", "--op", "allreduce")
    moved = bluetree("reallocate", "--root", "b", "--blue", "r")
    with NetworkClient(bluetree.folder) as network:
        # Below r no longer: b is the root, and not blue.
        (held,) = network.tell([("w3", Hold(moved["job"]))])
        stuck = _reported(bluetree)
        assert (stuck["chunk"], stuck["switch"], stuck["workers"]) == (held, "", ["w3"])
        network.tell([("w3", Release(moved["job"]))])
        bluetree.until(lambda job: job["stuck"] is None)
        (held,) = network.tell([("w0", Hold(moved["job"]))])
        stuck = _reported(bluetree)
        assert (stuck["chunk"], stuck["switch"], stuck["workers"]) == (held, "r", ["w0"])
        network.tell([("w0", Release(moved["job"]))])
        bluetree.until(lambda job: job["stuck"] is None)
    *_, stopped = bluetree("stop")["jobs"]
    assert stopped["correct"] is True


def test_a_run_tells_of_a_dead_switch(tree: str) -> None:
    told: list[Stuck] = []
    network = wire(parse(tree, WorkloadOptions()))
    with FabricTestbed(network, Conditions()) as testbed:
        plans = testbed.switches.install([frozenset({0})], window=8)
        values = np.ones((len(network.workers), 64, LANES), dtype=np.int32)
        (outcome,) = testbed.reduce(
            plans, [values], Op.REDUCE, failure=FailurePoint("b", 20), on_stuck=told.append
        )
    assert not outcome.complete
    assert told[-1].cause in (Cause.SWITCH, Cause.ANSWER)
    assert (told[-1].switch, told[-1].workers) == ("b", ("w3", "w4", "w5"))
    assert told[-1].chunk >= 20


def test_bluetree_run_says_it_on_stderr(tree: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", tree, "--blue", "r", "--target", "fabric", "--chunks", "64"]
    assert invoke([*words, "--fail", "a@0.5"]) == 4
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    said = line.partition("job 1 is stuck: chunk ")[2]
    assert "switch a" in said
    assert "w1, w2" in said
    assert shown.out == ""
    assert invoke(words) == 0
    assert "stuck" not in capsys.readouterr().err


def test_a_run_that_goes_on_says_where_it_stood(capsys: pytest.CaptureFixture[str]) -> None:
    # Half of all frames are lost; whether a chunk takes so long is the seed's to say.
    words = ["docs/fig1.json", "-k", "2", "--op", "allreduce", "--chunks", "4", "--loss", "0.5"]
    lines: list[str] = []
    for seed in range(1, 11):
        assert invoke(["run", *words, "--seed", str(seed), "--target", "fabric"]) == 0
        said = capsys.readouterr().err.splitlines()
        lines += [line for line in said if "is stuck" in line]
        if lines:
            break
    assert lines
    for line in lines:
        assert line.startswith("job 1 is stuck: chunk ")
        assert line.endswith("; it went on")
