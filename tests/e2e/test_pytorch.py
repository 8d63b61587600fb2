"""The DistributedDataParallel hook: gradients and losses are those of gloo, as documented."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest

from tests.unit.frame.repository import ROOT

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None,
    reason="torch is not installed: .venv/bin/pip install -c constraints.txt -e '.[torch]'",
)
LOSS_TOLERANCE = 1e-4
"""Of a loss after 30 steps, as docs/collectives.md says."""


def launch(*program: str) -> str:
    """What the ranks printed: four of them, three switches, one of which is blue."""
    tree = ("binary-tree:levels=2", "--workers", "2", "-k", "1", "--target", "fabric")
    done = subprocess.run(
        [sys.executable, "-m", "controller.cli", "launch", *tree, "--", sys.executable, *program],
        capture_output=True,
        text=True,
        timeout=280,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_gradients_and_losses_are_those_of_gloo() -> None:
    first, *_ = launch("-m", "tests.e2e.ddp_program").splitlines()
    found: dict[str, Any] = json.loads(first)
    # Two buckets a step, once the first has shown in what order gradients are ready.
    assert found["buckets"] > len(found["gloo"])
    assert 0 < found["worst"] <= 1
    assert len(found["bluetree"]) == len(found["gloo"]) == 30
    for ours, theirs in zip(found["bluetree"], found["gloo"], strict=True):
        assert abs(ours - theirs) <= LOSS_TOLERANCE * theirs
    assert found["bluetree"][-1] < 0.1 * found["bluetree"][0]


def test_the_example_learns() -> None:
    printed = launch("examples/train_digits.py", "--steps", "25", "--json").splitlines()[0]
    found = json.loads(printed)
    assert len(found["losses"]) == 25
    assert found["accuracy"] > 0.85
