"""What is there of Mininet: its program `mnexec` or not, root or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from controller import targets
from tests.emulation.runs import DEADLINE_S, command, run
from topologies.mnexec import PROGRAM

ORDINARY = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""An ordinary user, who may read what root may."""


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All programs but mnexec: what an installation of PyPI's mininet comes to."""
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            link = tmp_path / program.name
            if program.name != PROGRAM and not link.is_symlink():
                link.symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("bare_path")
def test_runs_without_the_program_of_debians_package(target: str, tree: str) -> None:
    document = run(tree, "-k", "1", "--target", target, "--chunks", "10")
    assert document["correct"] is True


def test_our_mnexec_enters_a_network_of_its_own(target: str, tmp_path: Path) -> None:
    """`target` stands for root and Mininet."""
    program = [sys.executable, "-m", "topologies.mnexec"]
    listing = ["sh", "-c", "ls /sys/class/net; exec ip -o link"]
    done = subprocess.run([*program, "-cdnp", *listing], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pid, *lines = done.stdout.splitlines()
    assert pid.startswith("\x01")
    assert lines[0] == "lo"
    assert all("lo:" in line for line in lines[1:])


def test_our_mnexec_says_what_is_wrong() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "topologies.mnexec", "-a", "0", "true"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("mnexec: ")


@pytest.mark.parametrize("target", targets.TARGETS_OVER_MININET)
def test_an_ordinary_user_gets_one_line_and_the_fabric(target: str, tree: str) -> None:
    if subprocess.run([*ORDINARY, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody be another user in a namespace of users")
    refused = subprocess.run(
        [*ORDINARY, *command(tree, "-k", "1", "--target", target)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert refused.returncode == 3
    assert refused.stderr.splitlines() == [
        f"bluetree: --target {target}: needs root for network namespaces; "
        "--target fabric works without"
    ]
    done = subprocess.run(
        [*ORDINARY, *command(tree, "-k", "1", "--target", "fabric")],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
