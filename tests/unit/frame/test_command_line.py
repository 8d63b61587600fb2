"""What a call of `bluetree` loads, and what its tables of names say."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from controller.cli import _EXIT_CODES, COMMANDS, cli
from tests.unit.frame.repository import ROOT

LARGE = frozenset(
    {
        "distributed",
        "finsy",
        "google.protobuf",
        "grpc",
        "matplotlib",
        "mininet",
        "networkx",
        "numba",
        "numpy",
        "rich",
        "scapy",
        "scipy",
        "sklearn",
        "torch",
    }
)
"""Each takes a good part of what a whole small command takes, or more."""

RUN = f"""
import json, sys
from controller.cli import invoke
code = invoke(sys.argv[1:])
print(json.dumps([code, sorted({set(LARGE)!r} & sys.modules.keys())]), file=sys.stderr)
"""


def _loaded(*words: str) -> tuple[int, set[str]]:
    """The exit code of a command line in a process of its own, and what it has loaded of LARGE."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    code, loaded = json.loads(done.stderr.splitlines()[-1])
    return code, set(loaded)


@pytest.mark.parametrize(
    ("words", "code", "allowed"),
    [
        (["--help"], 0, set()),
        (["plan", "docs/fig1.json", "-k", "2", "--json"], 0, set()),
        (["plan", "docs/fig1.json", "-k", "2"], 0, {"rich"}),
        (["plan", "fat-tree:k=4", "-k", "4", "--json"], 0, set()),
        (["doctor", "--json"], 0, {"mininet"}),
        (["run", "fat-tree:k=4", "-k", "4", "--fail", "core0"], 2, set()),
        (["up"], 2, set()),
        (["down"], 2, set()),
        (["status"], 2, {"grpc", "google.protobuf"}),
        (["counters", "--json"], 2, {"grpc", "google.protobuf"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_loads_only_what_it_needs(
    words: list[str], code: int, allowed: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLUETREE_STATE", str(tmp_path / "none"))
    found, loaded = _loaded(*words)
    assert found == code
    assert loaded <= allowed


def test_sees_what_is_loaded(tmp_path: Path) -> None:
    picture = tmp_path / "plan.svg"
    assert _loaded("plan", "docs/fig1.json", "-k", "2", "--picture", str(picture), "--json") == (
        0,
        {"matplotlib", "numpy"},
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_lists_commands_with_their_own_help(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").splitlines()[0] == COMMANDS[name][1]


@pytest.mark.parametrize("name", _EXIT_CODES)
def test_knows_errors_by_the_names_that_they_have(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    kind = getattr(importlib.import_module(module), attribute)
    assert issubclass(kind, Exception)
    assert f"{kind.__module__}.{kind.__qualname__}" == name
