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
def test_runs_without_the_program_of_debians_package(tree: str) -> None:
    reason = targets.why_not(targets.SOFTSWITCH)
    if reason is not None:
        pytest.skip(reason)
    document = run(tree, "-k", "1", "--target", targets.SOFTSWITCH, "--chunks", "10")
    assert document["correct"] is True


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces")
def test_our_mnexec_enters_a_network_of_its_own() -> None:
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


def test_an_ordinary_user_gets_one_line_and_the_fabric(tree: str) -> None:
    if subprocess.run([*ORDINARY, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody be another user in a namespace of users")
    for target in targets.TARGETS_OVER_MININET:
        refused = _as_ordinary(tree, "-k", "1", "--target", target)
        assert refused.returncode == 3
        assert refused.stderr.splitlines() == [
            f"bluetree: --target {target}: needs root for network namespaces; "
            "--target fabric works without"
        ]
    done = _as_ordinary(tree, "-k", "1", "--target", "fabric")
    assert done.returncode == 0, done.stderr


def _as_ordinary(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ORDINARY, *command(*arguments)], capture_output=True, text=True, timeout=DEADLINE_S
    )
