"""Header unions and stacks of them, and whole-header comparison, on tests/programs/unions.p4."""

import json
from typing import Any

import pytest

from softswitch import Switch
from softswitch.errors import UnsupportedConstruct
from tests.unit.softswitch.programs import document, load, one

SMALL, OTHER = b"\x12", b"\x34"
LARGE = b"\x81\x23"


def run(what: int, *items: bytes, alone: bytes = b"") -> tuple[bytes, bytes]:
    """The report, and what follows the order."""
    order = bytes([what, len(items)])
    out = one(load("unions"), order + alone + b"".join(items) + b"rest")
    assert out[4:6] == order
    return out[:4], out[6:]


def test_members_are_extracted_to_the_next_element() -> None:
    assert run(0, SMALL, LARGE, OTHER) == (b"\0\5\0\3", SMALL + LARGE + OTHER + b"rest")
    assert run(0, LARGE) == (b"\0\2\0\1", LARGE + b"rest")


def test_a_full_stack_stops_the_parser() -> None:
    _, rest = run(0, SMALL, SMALL, SMALL, LARGE)
    assert rest == SMALL * 3 + LARGE + b"rest"


def test_a_union_is_valid_with_any_member() -> None:
    assert run(0x10, alone=SMALL) == (b"\1\0\0\0", SMALL + b"rest")
    assert run(0x20, alone=LARGE) == (b"\1\0\0\0", LARGE + b"rest")
    assert run(0) == (b"\0\0\0\0", b"rest")


def test_copies_take_the_valid_member_and_drop_the_other() -> None:
    assert run(0x21, SMALL, alone=LARGE)[1] == SMALL + SMALL + b"rest"
    assert run(0x11, LARGE, alone=SMALL)[1] == LARGE + LARGE + b"rest"
    assert run(2, LARGE, SMALL)[1] == LARGE + LARGE + b"rest"


def test_a_member_that_becomes_valid_replaces_the_other() -> None:
    assert run(3, LARGE, OTHER)[1] == b"\x55" + OTHER + b"rest"
    assert run(4, LARGE, OTHER)[1] == OTHER + b"rest"


def test_shifts_move_all_members() -> None:
    assert run(6, SMALL, LARGE, OTHER)[1] == SMALL + LARGE + b"rest"
    assert run(7, SMALL, LARGE, OTHER)[1] == LARGE + OTHER + b"rest"


@pytest.mark.parametrize(
    ("items", "equal"),
    [((SMALL, SMALL), 1), ((SMALL, OTHER), 0), ((SMALL, LARGE), 0), ((LARGE, LARGE), 1), ((), 1)],
)
def test_headers_compare_by_validity_and_fields(items: tuple[bytes, ...], equal: int) -> None:
    # both `small` members are invalid in the last two: equal by P4_16, section 8.17
    assert run(5, *items)[0][2] == equal


def header(name: str) -> dict[str, Any]:
    return {"type": "header", "value": name}


def union(name: str) -> dict[str, Any]:
    return {"type": "header_union", "value": name}


def compare(op: str, left: dict[str, Any], right: dict[str, Any]) -> Switch:
    """The program with the condition of its last choice replaced by a comparison."""
    program = document("unions")
    pipeline = program["pipelines"][0]
    first = next(
        c for c in pipeline["conditionals"] if "valid_union" in json.dumps(c["expression"])
    )
    first["expression"] = {
        "type": "expression",
        "value": {"op": op, "left": left, "right": right},
    }
    return Switch.load(json.dumps(program))


@pytest.mark.parametrize(
    ("items", "same"),
    [((SMALL, SMALL), 1), ((SMALL, OTHER), 0), ((SMALL, LARGE), 0), ((LARGE, LARGE), 0)],
)
def test_bmv2s_own_comparison_wants_both_headers_valid(items: tuple[bytes, ...], same: int) -> None:
    pair = header("items[0].small"), header("items[1].small")
    packet = bytes([0, len(items)]) + b"".join(items)
    assert (one(compare("==", *pair), packet)[0] == 1) == bool(same)
    assert (one(compare("!=", *pair), packet)[0] == 1) != bool(same)


def test_unions_compare_by_their_valid_member() -> None:
    switch = compare("==", union("items[0]"), union("items[1]"))
    for items, same in (((LARGE, LARGE), 1), ((LARGE, SMALL), 0), ((SMALL, SMALL), 1), ((), 0)):
        assert one(switch, bytes([0, len(items)]) + b"".join(items))[0] == same


def test_other_operations_on_whole_headers_are_refused() -> None:
    with pytest.raises(UnsupportedConstruct, match="operation '<' on a whole header"):
        compare("<", header("items[0].small"), header("items[1].small"))
