"""What several tests from end to end start from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.testbeds import Bluetree

TREE = {
    "format": "bluetree/tree-1",
    "switches": {
        "r": {"parent": None, "rate": 1, "workers": 1},
        "a": {"parent": "r", "rate": 1, "workers": 2},
        "b": {"parent": "r", "rate": 1, "workers": 3},
    },
}
"""w0 at r; w1, w2 at a; w3, w4, w5 at b."""


@pytest.fixture
def tree(tmp_path: Path) -> str:
    """The path of a file with the tree."""
    path = tmp_path / "tree.json"
    path.write_text(json.dumps(TREE))
    return str(path)


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody subscribes to a channel's state: gRPC's thread raises where it is closed meanwhile."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the channel's state is watched, and the channel may be closed")

    with grpc.insecure_channel("unix:nowhere") as channel:
        monkeypatch.setattr(type(channel), "subscribe", refuse)


@pytest.fixture
def bluetree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], unwatched: None
) -> Iterator[Bluetree]:
    """The command line against a folder of the test; whatever is up in it is taken down."""
    command = Bluetree(tmp_path / "s", capsys)
    yield command
    command.clean_up()
