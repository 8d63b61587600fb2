"""The README's commands do what the README says.

A ```console block whose fence is preceded by the line <!-- checked --> is run: each line
"$ command" in turn, from the root of the project, as a user would. Every line of output that the
block shows must come out, in that order; a line "..." stands for any number of others. Durations
and rates vary from machine to machine, so a number before "s" or a unit ending in "/s" is not
compared; nor is the width of tables.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.frame.repository import ROOT, markdown_files

DEADLINE_S = 120


@dataclass(frozen=True, slots=True)
class Example:
    """A command in a document, and the lines that it is said to print."""

    document: str
    command: str
    shown: tuple[str, ...]


def _examples(document: Path) -> Iterator[Example]:
    text = document.read_text(encoding="utf-8")
    for block in re.findall(r"^<!-- checked -->\n```console\n(.*?)^```", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            yield Example(document.relative_to(ROOT).as_posix(), command, tuple(shown))


def _comparable(line: str) -> str:
    line = re.sub(r"[\d.,]+(?= ?(?:ms|s|min)\b| ?\w*/s\b)", "#", line)
    line = re.sub(r"([━─])\1+", r"\1", line)
    return " ".join(line.split())


def _run(command: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        # As on a machine without bmv2, which is what the README shows.
        "BLUETREE_TARGET": "fabric",
        # What runs the tests is set up: make shall not install anything under them.
        "MAKEFLAGS": "--old-file=.venv/.set-up",
    }
    return subprocess.run(
        command,
        shell=True,
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


EXAMPLES = [example for document in markdown_files() for example in _examples(document)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.command)
def test_example_prints_what_is_shown(example: Example) -> None:
    result = _run(example.command)
    assert result.returncode == 0, result.stderr
    printed = iter([_comparable(line) for line in result.stdout.splitlines()])
    for line in example.shown:
        wanted = _comparable(line)
        if wanted not in ("", "..."):
            # The iterator goes on from the last match: the order counts.
            assert wanted in printed, f"{example.document} shows {line!r}:\n{result.stdout}"


def test_readme_has_examples() -> None:
    assert any(example.document == "README.md" for example in EXAMPLES)
