"""The committed p4c output of the programs in tests/programs is what p4c makes of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.packet.targets_sentinels import PROGRAMS

COMPILER = "p4c-bm2-ss"
COMPILE_DEADLINE_S = 120


def without_source_info(value: Any) -> Any:
    """Return the JSON without line numbers and source lines, which say nothing of the program."""
    if isinstance(value, dict):
        return {k: without_source_info(v) for k, v in value.items() if k != "source_info"}
    if isinstance(value, list):
        return [without_source_info(item) for item in value]
    return value


@pytest.mark.skipif(
    shutil.which(COMPILER) is None,
    reason=f"{COMPILER} is not on PATH: the test programs were not checked against their output",
)
@pytest.mark.parametrize("source", sorted(PROGRAMS.glob("*.p4")), ids=lambda path: path.stem)
def test_compiled_output_is_fresh(source: Path, tmp_path: Path) -> None:
    compiled = tmp_path / "out.json"
    p4info = tmp_path / "out.p4info.txtpb"
    subprocess.run(
        [COMPILER, "--p4runtime-files", str(p4info), "-o", str(compiled), source.name],
        cwd=source.parent,
        check=True,
        capture_output=True,
        timeout=COMPILE_DEADLINE_S,
    )
    committed = json.loads(source.with_suffix(".json").read_text())
    assert without_source_info(json.loads(compiled.read_text())) == without_source_info(committed)
    assert p4info.read_text() == source.with_suffix(".p4info.txtpb").read_text()
