"""Runs of the command over Mininet, and what they leave behind."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
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
