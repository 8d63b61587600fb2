"""The headers of the compiled program, of the Python code and of docs/protocol.md are the same."""

import json
import re
from typing import Any

import pytest
from scapy.fields import BitField, Field, _FieldContainer

from p4src import artefacts
from p4src.constants import LANES, Flag, Kind, Outcome
from tests.unit.frame.repository import ROOT
from traffic.message import HEADER
from traffic.wire import Aggregation

COMPILED = json.loads(artefacts.load().json)
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


def _compiled(header: str) -> list[tuple[str, int]]:
    """Names and widths of a compiled header's fields."""
    (fields,) = (kind["fields"] for kind in COMPILED["header_types"] if kind["name"] == header)
    return [(name, width) for name, width, *_ in fields]


def _scapy_bits(field: Field[Any, Any] | _FieldContainer) -> int:
    assert isinstance(field, Field)
    return int(field.size) if isinstance(field, BitField) else field.sz * 8


def _rows(heading: str) -> list[list[str]]:
    """Cells of the first table under a heading of docs/protocol.md, its head left out."""
    section = re.split(rf"^#+ {re.escape(heading)}$", PROTOCOL, flags=re.MULTILINE)[1]
    rows = re.search(r"(?:^\|.*\n)+", section, flags=re.MULTILINE)
    assert rows is not None, heading
    lines = rows.group().splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_scapy_layer_is_the_compiled_header() -> None:
    fields = [(field.name, _scapy_bits(field)) for field in Aggregation.fields_desc]
    assert fields == _compiled("agg_h")


def test_fast_path_is_the_compiled_header() -> None:
    assert [(field.name, field.bits) for field in HEADER] == _compiled("agg_h")


def test_lanes_are_one_word() -> None:
    assert _compiled("lanes_h") == [("word", LANES * 32)]


def test_documented_header_is_the_compiled_one() -> None:
    documented, at = [], 0
    for offset, size, name, _ in _rows("Aggregation header"):
        assert int(offset) == at, name
        documented.append((name, int(size) * 8))
        at += int(size)
    assert documented == _compiled("agg_h")


@pytest.mark.parametrize(
    ("heading", "numbers"),
    [
        ("Kinds", {kind.name: kind.value for kind in Kind}),
        ("Flags", {str(flag.name): flag.value for flag in Flag}),
        ("Outcomes", {outcome.name: outcome.value for outcome in Outcome}),
    ],
)
def test_documented_numbers_are_the_compiled_ones(heading: str, numbers: dict[str, int]) -> None:
    assert {name: int(value, 0) for value, name, *_ in _rows(heading)} == numbers
