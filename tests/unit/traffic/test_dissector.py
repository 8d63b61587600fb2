"""The committed Wireshark dissector is the one that the header gives."""

import re
from pathlib import Path

import pytest

from traffic.dissector import OUTPUT, generate, main
from traffic.message import HEADER


def test_committed_dissector_is_fresh() -> None:
    assert OUTPUT.read_text(encoding="utf-8") == generate()
    assert main(["--check"]) == 0


def test_every_field_is_shown_at_its_place() -> None:
    entries = re.findall(r'offset = (\d+), bytes = (\d+), .*?"bluetree\.(\w+)"', generate())
    at = 0
    expected = []
    for field in HEADER:
        expected.append((str(at), str(field.bits // 8), field.name))
        at += field.bits // 8
    assert entries == expected


def test_check_tells_a_stale_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bluetree.lua"
    assert main(["--check", str(path)]) == 1
    assert "stale" in capsys.readouterr().err
    assert main([str(path)]) == 0
    assert main(["--check", str(path)]) == 0
    path.write_text(generate() + "-- edited\n", encoding="utf-8")
    assert main(["--check", str(path)]) == 1
