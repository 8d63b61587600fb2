"""Hosts whose processes are killed over Mininet: jobs go on, or name them."""

from __future__ import annotations

import os
import signal

from controller.live.client import NetworkClient
from tests.emulation.runs import run
from tests.testbeds import Bluetree


def goes_on(bluetree: Bluetree) -> None:
    before = bluetree("status")["jobs"][0]["completed"]
    bluetree.until(lambda job: job["completed"] > before + 20)


def kill(bluetree: Bluetree, name: str) -> None:
    with NetworkClient(bluetree.folder) as network:
        os.kill(network.describe().pids[name], signal.SIGKILL)


def test_a_job_goes_on_without_hosts_or_fails_and_names_them(
    bluetree: Bluetree, target: str, tree: str
) -> None:
    bluetree("up", tree, "--target", target)
    bluetree("start", "--blue", "r,b", "--op", "allreduce", "--on-worker-loss", "continue")
    bluetree.until(lambda job: job["completed"] > 20)
    kill(bluetree, "w4")
    bluetree.until(lambda job: job["left_out"] == ["w4"] and job["phase"] == "running")
    goes_on(bluetree)
    # The destination is started anew, with all that it had completed.
    before = bluetree("status")["jobs"][0]["completed"]
    kill(bluetree, "destination")
    bluetree.until(lambda job: job["completed"] > before)
    goes_on(bluetree)
    change = bluetree("rejoin")
    assert change["came_back"] == ["w4"]
    bluetree.until(lambda job: job["completed"] > change["first_chunk"] + 20)
    (stopped,) = bluetree("stop")["jobs"]
    assert (stopped["correct"], stopped["workers"]) == (True, 6)
    bluetree("start", "--workers", "w0,w1", "--blue", "r")
    kill(bluetree, "w1")
    failed = bluetree.until(lambda job: job["phase"] == "failed")
    assert "host w1 was killed" in failed["detail"]


def test_a_run_goes_on_without_a_worker_and_has_it_again(target: str, tree: str) -> None:
    words = [tree, "--blue", "r,b", "--op", "allreduce", "--chunks", "2000", "--target", target]
    words += ["--fail-worker", "w3@0.1", "--on-worker-loss", "continue"]
    document = run(*words, "--rejoin-worker", "w3@0.2")
    failure = document["failure"]
    assert (document["correct"], failure["fate"], failure["cut_off"]) == (True, "went on", ["w3"])
    (job,) = failure["jobs"]
    everyone, others = job["sums"]
    assert (everyone["left_out"], others["left_out"]) == ([], ["w3"])
    assert everyone["chunks"][-1] == [job["back_at"], 1999]
    assert others["chunks"][-1][1] == job["back_at"] - 1
    assert 0 < job["without"] < 1800
    assert all(link["measured"] == link["predicted"] for link in document["links"])


def test_a_run_goes_on_with_a_destination_that_starts_anew(target: str, tree: str) -> None:
    words = [tree, "--blue", "r,b", "--op", "allreduce", "--chunks", "300", "--target", target]
    document = run(*words, "--fail", "destination@0.5")
    assert (document["correct"], document["failure"]["fate"]) == (True, "resumed")
    assert all(link["measured"] == link["predicted"] for link in document["links"])
