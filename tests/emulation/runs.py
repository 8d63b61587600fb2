"""Runs of the command over Mininet, and what they leave behind."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def eventually(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@dataclass(frozen=True, slots=True)
class Process:
    """A process as it is listed."""

    name: str
    words: tuple[str, ...]


def descendants(pid: int) -> dict[int, Process]:
    """All processes that a process has started, directly or not, by their ids."""
    parents, words = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        one = int(stat.parent.name)
        with contextlib.suppress(OSError):
            parents[one] = int(stat.read_text().rpartition(")")[2].split()[1])
            line = stat.with_name("cmdline").read_bytes().decode(errors="replace")
            name = stat.with_name("comm").read_text().strip()
            words[one] = Process(name, tuple(line.split("\0")))
    found: dict[int, Process] = {}
    while more := {
        one: words[one]
        for one, parent in parents.items()
        if one not in found and (parent == pid or parent in found) and one in words
    }:
        found |= more
    return found
