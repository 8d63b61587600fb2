"""The command line against a testbed of a test's own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.cli import invoke

SHELL_DEADLINE_S = 60
DEADLINE_S = 60


class Bluetree:
    """The command line against one folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, command: str, *words: str, exit_code: int = 0) -> dict[str, Any]:
        """The JSON document of a command; of one that fails, its errors as "stderr"."""
        self._capsys.readouterr()
        code = invoke([command, *words, "--state", str(self.folder), "--json"])
        shown = self._capsys.readouterr()
        assert code == exit_code, shown.err
        if code:
            return {"stderr": shown.err}
        document: dict[str, Any] = json.loads(shown.out)
        return document

    def until(
        self, condition: Callable[[dict[str, Any]], bool], number: int | None = None
    ) -> dict[str, Any]:
        """A job's status, once a condition holds of it; by default that of the newest job."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            jobs = [one for one in self("status")["jobs"] if number in (None, one["job"])]
            if condition(jobs[-1]):
                return dict(jobs[-1])
            assert time.monotonic() < deadline, jobs
            time.sleep(0.05)

    def text(self, command: str, *words: str) -> str:
        """What people see of a command."""
        self._capsys.readouterr()
        assert invoke([command, *words, "--state", str(self.folder)]) == 0
        return self._capsys.readouterr().out

    def clean_up(self) -> None:
        """Take down whatever is up in the folder."""
        invoke(["down", "--state", str(self.folder)])


def shell(folder: Path, words: str, *arguments: str) -> str:
    """What p4runtime-shell prints when `bluetree shell` is told some words."""
    command = [sys.executable, "-m", "controller.cli", "shell", *arguments, "--state", str(folder)]
    done = subprocess.run(
        command, input=words, capture_output=True, text=True, timeout=SHELL_DEADLINE_S, check=True
    )
    return done.stdout
