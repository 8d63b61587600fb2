"""Runs over Mininet: real links, one process a switch, one a host; and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller import targets
from topologies.mininet_net import FOLDER_PREFIX

DEADLINE_S = 120
TARGETS = [
    targets.SOFTSWITCH,
    pytest.param(targets.BMV2, marks=pytest.mark.bmv2),
]
_NAME = "a-switch-with-a-very-long-name-and-an-umlaut-ä"
TREE = {
    "format": "bluetree/tree-1",
    "switches": {
        "r": {"parent": None, "rate": 1, "workers": 1},
        _NAME: {"parent": "r", "rate": "3/2", "workers": 2},
        "b": {"parent": "r", "rate": 1, "workers": 3},
    },
}


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    """Each target that runs over Mininet here; the others are skipped with what is missing."""
    name: str = request.param
    reason = targets.why_not(name)
    if reason is not None:
        pytest.skip(reason)
    return name


@pytest.fixture
def tree(tmp_path: Path) -> str:
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(TREE))
    return str(path)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "controller.cli", "run", *arguments]


def _run(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [*_command(*arguments), "--json"], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _interfaces() -> set[str]:
    """Interfaces that bear the product's mark."""
    marked = set()
    for alias in Path("/sys/class/net").glob("*/ifalias"):
        try:
            if alias.read_text().startswith("bluetree:"):
                marked.add(alias.parent.name)
        except OSError:  # gone between the listing and the look
            continue
    return marked


def _processes(tree: str) -> set[int]:
    """Processes of networks and hosts of ours, and the switches that they started."""
    found = set()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "topologies.mininet_net" in words or "traffic.process" in words or tree in words:
            found.add(int(command.parent.name))
    return found


def _folders() -> set[str]:
    """Folders of runs."""
    return {path.name for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*")}


def _eventually(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("op", ["reduce", "allreduce"])
def test_measured_is_predicted_on_real_links(target: str, tree: str, op: str) -> None:
    document = _run(tree, "-k", "1", "--target", target, "--op", op, "--chunks", "50")
    assert document["target"] == target
    assert document["correct"] is True
    assert document["congestion"]["predicted"] == document["congestion"]["measured"]
    for link in document["links"]:
        assert link["predicted"] == link["measured"]


def test_training_reallocates_through_every_strategy(target: str) -> None:
    document = _run(
        "fat-tree:k=2", "-k", "1", "--target", target, "--workload", "digits", "--rounds", "3",
    )  # fmt: skip
    assert document["training"]["identical"] is True
    for row in document["training"]["strategies"]:
        assert row["predicted"] == row["measured"]


def test_nothing_is_left_after_a_run(target: str, tree: str) -> None:
    interfaces, processes, folders = _interfaces(), _processes(tree), _folders()
    _run(tree, "-k", "1", "--target", target, "--chunks", "4")
    assert _interfaces() == interfaces
    assert _processes(tree) == processes
    assert _folders() == folders


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_after_a_kill(target: str, tree: str, number: signal.Signals) -> None:
    interfaces, processes, folders = _interfaces(), _processes(tree), _folders()
    arguments = _command(tree, "-k", "1", "--target", target, "--chunks", "100000")
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        assert _eventually(lambda: bool(_interfaces() - interfaces), 60)
        os.kill(run.pid, number)
        run.wait(60)
    assert _eventually(
        lambda: (_interfaces(), _processes(tree), _folders()) == (interfaces, processes, folders)
    )


def test_a_host_that_dies_is_named(target: str, tree: str) -> None:
    before = _processes(tree)
    arguments = _command(tree, "-k", "1", "--target", target, "--chunks", "20000")
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
        assert _eventually(lambda: _host_process("w1") - before != set(), 60)
        for pid in _host_process("w1") - before:
            os.kill(pid, signal.SIGKILL)
        _, errors = run.communicate(timeout=DEADLINE_S)
    assert run.returncode == 4
    assert b"w1" in errors


def _host_process(name: str) -> set[int]:
    """Processes of the host of that name."""
    found = set()
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "traffic.process" in words and name in words:
            found.add(int(command.parent.name))
    return found


def test_two_runs_at_once_do_not_disturb_each_other(target: str, tree: str) -> None:
    arguments = [*_command(tree, "-k", "1", "--target", target, "--chunks", "20"), "--json"]
    runs = [
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for run in runs:
        shown, errors = run.communicate(timeout=DEADLINE_S)
        assert run.returncode == 0, errors
        assert json.loads(shown)["correct"] is True
