"""What several tests over Mininet start from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller import targets
from tests.emulation.runs import TREE
from tests.testbeds import Bluetree

TARGETS = [
    targets.SOFTSWITCH,
    pytest.param(targets.BMV2, marks=pytest.mark.bmv2),
]


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


@pytest.fixture
def bluetree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Bluetree]:
    """The command line against a folder of the test; whatever is up in it is taken down."""
    command = Bluetree(tmp_path / "s", capsys)
    yield command
    command.clean_up()
