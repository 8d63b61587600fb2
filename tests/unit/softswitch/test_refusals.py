"""A program that the switch cannot run is refused by name, and the old one keeps running."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from softswitch.device import Device
from softswitch.errors import FailedPrecondition, InvalidPipeline, UnsupportedConstruct
from softswitch.switch import Switch
from tests.unit.softswitch.programs import PROGRAMS, document, load

Edit = Callable[[dict[str, Any]], None]


def action(program: dict[str, Any], op: str) -> dict[str, Any]:
    for item in program["actions"]:
        for primitive in item["primitives"]:
            if primitive["op"] == op:
                found: dict[str, Any] = primitive
                return found
    raise AssertionError(op)


def rename_primitive(program: dict[str, Any]) -> None:
    action(program, "register_read")["op"] = "register_peek"


def rename_operation(program: dict[str, Any]) -> None:
    for item in program["pipelines"][0]["conditionals"]:
        item["expression"]["value"]["op"] = "<=>"


def rename_algorithm(program: dict[str, Any]) -> None:
    program["calculations"][0]["algo"] = "sha3"


def rename_table_kind(program: dict[str, Any]) -> None:
    program["pipelines"][0]["tables"][0]["match_type"] = "fuzzy"


def rename_key_kind(program: dict[str, Any]) -> None:
    for table in program["pipelines"][0]["tables"]:
        for key in table["key"]:
            key["match_type"] = "regex"


def table_type(program: dict[str, Any]) -> None:
    program["pipelines"][0]["tables"][0]["type"] = "telepathic"


def parser_op(program: dict[str, Any]) -> None:
    program["parsers"][0]["parse_states"][0]["parser_ops"][0]["op"] = "rewind"


def transition(program: dict[str, Any]) -> None:
    program["parsers"][0]["parse_states"][0]["transitions"][0]["type"] = "lottery"


def extern(program: dict[str, Any]) -> None:
    program["extern_instances"].append({"name": "x", "id": 0, "type": "Oracle"})


def section(program: dict[str, Any]) -> None:
    program["wormholes"] = []


def version(program: dict[str, Any]) -> None:
    program["__meta__"]["version"] = [3, 0]


def value_type(program: dict[str, Any]) -> None:
    action(program, "register_read")["parameters"][2]["type"] = "qubit"


UNSUPPORTED: list[tuple[Edit, str]] = [
    (rename_primitive, "primitive 'register_peek' in action 'IngressPipe.read'"),
    (rename_operation, "expression operation '<=>' in conditional 'node_"),
    (rename_algorithm, "hash algorithm 'sha3' in calculation 'calc'"),
    (rename_table_kind, "match kind 'fuzzy' in table 'tbl_state"),
    (rename_key_kind, "match kind 'regex' in table 'IngressPipe."),
    (table_type, "table type 'telepathic' in table"),
    (parser_op, "parser operation 'rewind' in parser state 'start'"),
    (transition, "parser transition type 'lottery' in parser state 'start'"),
    (extern, "extern 'Oracle'"),
    (section, "section 'wormholes'"),
    (version, "JSON format version 3"),
    (value_type, "value type 'qubit' in action 'IngressPipe.read'"),
]


@pytest.mark.parametrize(("edit", "message"), UNSUPPORTED, ids=lambda v: getattr(v, "__name__", ""))
def test_unknown_constructs_are_named(edit: Edit, message: str) -> None:
    program = document("state")
    edit(program)
    with pytest.raises(UnsupportedConstruct) as caught:
        Switch.load(json.dumps(program))
    assert message in str(caught.value)


def dangling_next(program: dict[str, Any]) -> None:
    program["pipelines"][0]["conditionals"][0]["true_next"] = "nowhere"


def dangling_field(program: dict[str, Any]) -> None:
    action(program, "register_read")["parameters"][0]["value"] = ["request", "nothing"]


def dangling_header(program: dict[str, Any]) -> None:
    action(program, "register_read")["parameters"][0]["value"] = ["nothing", "value"]


def dangling_action(program: dict[str, Any]) -> None:
    program["pipelines"][0]["tables"][0]["action_ids"] = [99]


def no_ingress(program: dict[str, Any]) -> None:
    program["pipelines"] = program["pipelines"][1:]


def no_metadata(program: dict[str, Any]) -> None:
    for header_type in program["header_types"]:
        if header_type["name"] == "standard_metadata":
            fields = header_type["fields"]
            header_type["fields"] = [f for f in fields if f[0] != "egress_port"]


def bad_width(program: dict[str, Any]) -> None:
    program["header_types"][1]["fields"][0][1] = 0


@pytest.mark.parametrize(
    "edit",
    [
        dangling_next,
        dangling_field,
        dangling_header,
        dangling_action,
        no_ingress,
        no_metadata,
        bad_width,
    ],
)
def test_malformed_programs_are_refused(edit: Edit) -> None:
    program = document("state")
    edit(program)
    with pytest.raises(InvalidPipeline, match=r"\w"):
        Switch.load(json.dumps(program))


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b'{"a": 1}', b"\xff\xfe", b"{}"])
def test_what_is_no_pipeline_is_refused(text: bytes) -> None:
    with pytest.raises((InvalidPipeline, UnsupportedConstruct)):
        Device().load_pipeline(text)


def test_a_loop_in_a_control_is_refused() -> None:
    program = document("state")
    for item in program["pipelines"][0]["conditionals"]:
        item["false_next"] = item["name"]
    with pytest.raises(UnsupportedConstruct, match="loop through"):
        Switch.load(json.dumps(program))


def test_a_failed_load_leaves_the_old_program_running() -> None:
    switch = load("state")
    switch.process(0, bytes([2, 0, 0, 0, 1, 0, 0, 0, 9]))
    program = document("state")
    rename_primitive(program)
    with pytest.raises(UnsupportedConstruct):
        switch.device.load_pipeline(json.dumps(program).encode())
    assert switch.register("cells", 1) == 9
    assert switch.process(0, bytes(9))


def test_check_does_not_install() -> None:
    device = Device(3)
    program = device.check_pipeline((PROGRAMS / "state.json").read_bytes())
    assert "IngressPipe.cells" in program.registers
    assert not device.has_pipeline
    assert device.process(1, b"packet") == []
    with pytest.raises(FailedPrecondition, match="device 3"):
        device.read_entries("IngressPipe.choose")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InvalidPipeline, match="no-such-file"):
        Switch.load("no-such-file.json")
