"""Runs over Mininet: real links, one process a switch, one a host; and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from controller.mininet_testbed import MininetTestbed
from controller.placement import Tree
from controller.planning import plan
from controller.rescue import Rescue
from controller.testbed import FailurePoint
from tests.emulation.isolated import run_isolated
from tests.emulation.runs import (
    DEADLINE_S,
    Process,
    command,
    descendants,
    eventually,
    run,
)
from tests.unit.controller.trees import topology_of
from topologies import Topology, WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.network import wire
from traffic.endpoint import Op
from traffic.workloads import exact_sums, synthetic


@pytest.mark.parametrize("op", ["reduce", "allreduce"])
def test_measured_is_predicted_on_real_links(target: str, tree: str, op: str) -> None:
    document = run(tree, "-k", "1", "--target", target, "--op", op, "--chunks", "50")
    assert document["target"] == target
    assert document["correct"] is True
    assert document["congestion"]["predicted"] == document["congestion"]["measured"]
    for link in document["links"]:
        assert link["predicted"] == link["measured"]


def test_training_reallocates_through_every_strategy(target: str) -> None:
    document = run(
        "fat-tree:k=2", "-k", "1", "--target", target, "--workload", "digits", "--rounds", "3",
    )  # fmt: skip
    assert document["training"]["identical"] is True
    for row in document["training"]["strategies"]:
        assert row["predicted"] == row["measured"]


def test_a_fat_tree_runs_within_a_minute_and_leaves_nothing(target: str, tmp_path: Path) -> None:
    arguments = command("fat-tree:k=4", "-k", "4", "--target", target, "--json")
    done = run_isolated(arguments, tmp_path, deadline=DEADLINE_S)
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["correct"] is True
    assert all(link["predicted"] == link["measured"] for link in document["links"])
    assert done.seconds < 60
    assert done.after == done.before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_after_a_kill(
    target: str, tree: str, tmp_path: Path, number: signal.Signals
) -> None:
    arguments = command(tree, "-k", "1", "--target", target, "--chunks", "100000")
    done = run_isolated(arguments, tmp_path, kill=number, deadline=DEADLINE_S)
    assert done.code != 0
    assert done.after == done.before


@pytest.mark.parametrize("victim", ["host w1", "switch b", "process Mininet"])
def test_a_process_that_dies_is_named(target: str, tree: str, victim: str) -> None:
    """Device 3 is switch b: ids follow the order in the file."""
    name = victim.split()[1]
    arguments = command(tree, "-k", "1", "--target", target, "--chunks", "20000")
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as one:
        found: list[int] = []

        def is_there() -> bool:
            found[:] = [
                pid
                for pid, process in descendants(one.pid).items()
                if process.name == name
                or (name == "b" and _is_device(3, process))
                or (name == "Mininet" and "topologies.mininet_net" in process.words)
            ]
            return bool(found)

        assert eventually(is_there, 60)
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        _, errors = one.communicate(timeout=DEADLINE_S)
    assert one.returncode == 4
    assert re.search(rf"\b{name}\b", errors.decode(), re.IGNORECASE)
    assert len(errors.splitlines()) == 1


def _is_device(number: int, process: Process) -> bool:
    words = list(process.words)
    return "--device-id" in words and words[words.index("--device-id") + 1] == str(number)


def test_two_runs_at_once_do_not_disturb_each_other(target: str, tree: str) -> None:
    arguments = [*command(tree, "-k", "1", "--target", target, "--chunks", "20"), "--json"]
    runs = [
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for one in runs:
        shown, errors = one.communicate(timeout=DEADLINE_S)
        assert one.returncode == 0, errors
        assert json.loads(shown)["correct"] is True


def test_several_jobs_share_the_links(target: str, tree: str) -> None:
    document = run(tree, "-k", "1", "--target", target, "--chunks", "20", "--jobs", "3")
    assert document["correct"] is True
    for link in document["links"]:
        assert link["predicted"] == link["measured"]


def test_a_switch_that_fails_cuts_workers_off(target: str, tree: str) -> None:
    arguments = command(tree, "-k", "1", "--target", target, "--chunks", "200", "--fail", "b@0.5")
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 4
    assert "switch b failed and cuts off w3, w4, w5" in done.stderr
    (chunk,) = re.findall(r"chunk (\d+) of job 1 waits for", done.stderr)
    assert 100 <= int(chunk) < 200


def test_a_run_goes_round_what_fails(target: str) -> None:
    """r, a and b stand in a ring with c; the tree has all links but that of b and c."""
    part = "a" if target == "bmv2" else "a-r"
    tree = Tree(parent=[-1, 0, 0, 1], rate=[1] * 4, load=[1, 0, 1, 2])
    overlay = replace(topology_of(tree).overlay, names=("r", "a", "b", "c"))
    links = (("a", "r"), ("b", "r"), ("c", "a"), ("b", "c"))
    network = wire(Topology("ring", overlay.names, overlay, links))
    rescue = Rescue(network, part, lambda topology: plan(topology, 2, "smc"), jobs=1)
    values = synthetic(4, 300, seed=1)
    with MininetTestbed(network, target) as testbed:
        plans = testbed.switches.install([frozenset({0, 1})], window=8)
        (outcome,) = testbed.reduce(
            plans, [values], Op.ALLREDUCE, failure=FailurePoint(part, 100, rescue)
        )
    assert rescue.continuation is not None
    assert 90 <= rescue.continuation.first < 300
    assert outcome.complete
    assert outcome.is_right(exact_sums(values))


def test_progress_is_told_on_the_way(target: str) -> None:
    """80 chunks of 4 messages over a link that carries 120 a second."""
    planned = plan(parse("binary-tree:levels=1", WorkloadOptions(workers="4")), 0, "all-red")
    values = synthetic(4, 80, seed=1)
    told: list[int] = []
    with MininetTestbed(wire(planned.topology), target, Conditions(base=182_400)) as testbed:
        (job,) = testbed.switches.install([planned.blue], window=8)
        testbed.reduce([job], [values], Op.REDUCE, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 80
    assert len({count for count in told if 0 < count < 80}) > 3
