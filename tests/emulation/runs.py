"""Runs of the command over Mininet, and what they leave behind."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topologies.mininet_plan import FOLDER_PREFIX

DEADLINE_S = 120
_NAME = "a-switch-with-a-very-long-name-and-an-umlaut-ä"
TREE = {
    "format": "bluetree/tree-1",
    "switches": {
        "r": {"parent": None, "rate": 1, "workers": 1},
        _NAME: {"parent": "r", "rate": "3/2", "workers": 2},
        "b": {"parent": "r", "rate": 1, "workers": 3},
    },
}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "controller.cli", "run", *arguments]


def run(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [*command(*arguments), "--json"], capture_output=True, text=True, timeout=DEADLINE_S
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


@dataclass(frozen=True, slots=True)
class Traces:
    """What is on this machine of runs of a tree: all that a run must take away again."""

    interfaces: frozenset[str]
    processes: frozenset[int]
    folders: frozenset[str]


def traces(tree: str) -> Traces:
    """What is there now."""
    return Traces(frozenset(_interfaces()), frozenset(_processes(tree)), frozenset(_folders()))


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def host_process(name: str) -> set[int]:
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
