"""Runs over Mininet: real links, one process a switch, one a host; and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.emulation.isolated import run_isolated
from tests.emulation.runs import (
    DEADLINE_S,
    command,
    eventually,
    host_process,
    run,
)


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


def test_a_host_that_dies_is_named(target: str, tree: str) -> None:
    before = host_process("w1")
    arguments = command(tree, "-k", "1", "--target", target, "--chunks", "20000")
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as one:
        assert eventually(lambda: host_process("w1") - before != set(), 60)
        for pid in host_process("w1") - before:
            os.kill(pid, signal.SIGKILL)
        _, errors = one.communicate(timeout=DEADLINE_S)
    assert one.returncode == 4
    assert b"w1" in errors


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
