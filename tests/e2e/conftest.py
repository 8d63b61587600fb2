"""What several tests from end to end start from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbeds import Bluetree


@pytest.fixture
def bluetree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Bluetree]:
    """The command line against a folder of the test; whatever is up in it is taken down."""
    command = Bluetree(tmp_path / "s", capsys)
    yield command
    command.clean_up()
