"""Table entries: what is taken, what is refused and how, what is read back."""

from __future__ import annotations

import pytest
from finsy.proto import p4r

from controller.p4rt import Schema
from controller.program import TableEntry
from tests.packet.p4runtime.messages import (
    DST,
    ME,
    delete,
    entry,
    insert,
    modify,
)
from tests.packet.targets import Target
from tests.packet.targets_stub import StubClient


def test_insert_modify_delete(primary: StubClient, schema: Schema) -> None:
    one, other = entry(schema, port=2), entry(schema, port=3)
    assert primary.write(ME, modify(one), delete(one)) == ["NOT_FOUND", "NOT_FOUND"]
    assert primary.write(ME, insert(one), insert(other)) == ["OK", "ALREADY_EXISTS"]
    assert primary.write(ME, modify(other), delete(one), delete(one)) == ["OK", "OK", "NOT_FOUND"]


def test_a_batch_goes_on_behind_a_refused_update(primary: StubClient, schema: Schema) -> None:
    updates = [insert(entry(schema, dst=dst)) for dst in (1, 1, 2)]
    assert primary.write(ME, *updates) == ["OK", "ALREADY_EXISTS", "OK"]
    request = p4r.Entity(table_entry=p4r.TableEntry(table_id=schema.table("forward").id))
    assert len(primary.read(request)) == 2


def test_a_full_table_refuses(primary: StubClient, schema: Schema, switch: Target) -> None:
    updates = [insert(entry(schema, dst=dst)) for dst in range(9)]
    *fit, last = primary.write(ME, *updates)
    assert fit == ["OK"] * 8
    # bmv2's server has one code for all that its data plane refuses.
    assert last == ("UNKNOWN" if switch.kind == "bmv2" else "RESOURCE_EXHAUSTED")


def changed(schema: Schema, name: str, kind: str) -> p4r.Entity:
    """Return a good entity with one thing wrong; `kind` says what."""
    good = {
        "acl": TableEntry.of("acl", {"src_addr": (2, 6)}, "drop", priority=1),
        "routes": TableEntry.of("routes", {"dst_addr": (1 << 47, 1)}, "drop"),
        "range": TableEntry.of("acl", {"ether_type": (1, 2)}, "drop", priority=1),
        "forward": TableEntry.of("forward", {"dst_addr": DST}, "to_port", {"port": 1}),
    }[name]
    entity = schema.entity(good)
    wire = entity.table_entry
    match kind:
        case "no priority":
            wire.priority = 0
        case "a priority":
            wire.priority = 1
        case "zero mask":
            wire.match[0].ternary.value = wire.match[0].ternary.mask = b"\0"
        case "value outside mask":
            wire.match[0].ternary.value = b"\x07"
        case "prefix 0":
            wire.match[0].lpm.prefix_len = 0
            wire.match[0].lpm.value = b"\0"
        case "prefix too long":
            wire.match[0].lpm.prefix_len = 49
        case "bits behind the prefix":
            wire.match[0].lpm.value = b"\x80\0\0\0\0\1"
        case "empty range":
            wire.match[0].range.low = b"\3"
        case "value too wide":
            wire.match[0].exact.value = b"\1" + bytes(6)
        case "parameter too wide":
            wire.action.action.params[0].value = b"\2\0"
        case "unknown table":
            wire.table_id = 0x02_FF_FF_FF
        case "unknown field":
            wire.match[0].field_id = 77
        case "missing field":
            del wire.match[:]
        case "wrong match type":
            wire.match[0].lpm.value = b"\1"
            wire.match[0].lpm.prefix_len = 48
        case "unknown action":
            wire.action.action.action_id = 0x01_FF_FF_FF
        case "action of another table":
            permit = schema.names.actions["permit"]
            wire.action.action.action_id = permit.id
            del wire.action.action.params[:]
        case "missing parameter":
            del wire.action.action.params[:]
        case "unknown parameter":
            wire.action.action.params[0].param_id = 9
        case "no action":
            wire.ClearField("action")
        case _:
            raise AssertionError(kind)
    return entity


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("acl", "no priority"),
        ("forward", "a priority"),
        ("acl", "zero mask"),
        ("acl", "value outside mask"),
        ("routes", "prefix 0"),
        ("routes", "prefix too long"),
        ("routes", "bits behind the prefix"),
        ("range", "empty range"),
        ("forward", "value too wide"),
        ("forward", "parameter too wide"),
        ("forward", "unknown table"),
        ("forward", "unknown field"),
        ("forward", "missing field"),
        ("forward", "wrong match type"),
        ("forward", "unknown action"),
        ("forward", "action of another table"),
        ("forward", "missing parameter"),
        ("forward", "unknown parameter"),
        ("forward", "no action"),
    ],
)
def test_a_bad_entry_is_an_invalid_argument(
    primary: StubClient, schema: Schema, name: str, kind: str
) -> None:
    good = insert(entry(schema, dst=DST + 1))
    bad = insert(changed(schema, name, kind))
    assert primary.write(ME, bad, good) == ["INVALID_ARGUMENT", "OK"]


def test_leading_zeros_are_taken_and_the_shortest_form_is_returned(
    primary: StubClient, schema: Schema
) -> None:
    padded = entry(schema, port=2, dst=5)
    padded.table_entry.match[0].exact.value = bytes(9) + b"\5"
    padded.table_entry.action.action.params[0].value = bytes(7) + b"\2"
    assert primary.write(ME, insert(padded)) == ["OK"]
    assert primary.write(ME, insert(entry(schema, port=2, dst=5))) == ["ALREADY_EXISTS"]
    (read,) = primary.read(
        p4r.Entity(table_entry=p4r.TableEntry(table_id=padded.table_entry.table_id))
    )
    assert read == entry(schema, port=2, dst=5)


def test_entries_with_one_match_differ_by_priority(primary: StubClient, schema: Schema) -> None:
    updates = [
        insert(schema.entity(TableEntry.of("acl", {"src_addr": (2, 6)}, action, priority=priority)))
        for action, priority in (("drop", 1), ("permit", 2), ("drop", 2))
    ]
    assert primary.write(ME, *updates) == ["OK", "OK", "ALREADY_EXISTS"]


def test_a_single_entry_is_read_by_its_key(primary: StubClient, schema: Schema) -> None:
    primary.write(ME, insert(entry(schema, dst=1)), insert(entry(schema, dst=2)))
    wanted = entry(schema, dst=2)
    wanted.table_entry.ClearField("action")
    assert primary.read(wanted) == [entry(schema, dst=2)]
    wanted.table_entry.match[0].exact.value = b"\3"
    assert primary.read(wanted) == []


def test_metadata_comes_back_with_the_entry(primary: StubClient, schema: Schema) -> None:
    marked = entry(schema)
    marked.table_entry.metadata = b"whose"
    marked.table_entry.controller_metadata = 42
    assert primary.write(ME, insert(marked)) == ["OK"]
    wildcard = p4r.Entity(table_entry=p4r.TableEntry(table_id=marked.table_entry.table_id))
    assert primary.read(wildcard) == [marked]
    assert primary.write(ME, modify(entry(schema))) == ["OK"]
    assert primary.read(wildcard) == [entry(schema)]


def test_default_entries(primary: StubClient, schema: Schema) -> None:
    default = entry(schema, port=3)
    default.table_entry.is_default_action = True
    del default.table_entry.match[:]
    request = p4r.Entity(
        table_entry=p4r.TableEntry(table_id=schema.table("forward").id, is_default_action=True)
    )
    (original,) = primary.read(request)
    assert primary.write(ME, insert(default), delete(default)) == ["INVALID_ARGUMENT"] * 2
    assert primary.write(ME, modify(default)) == ["OK"]
    assert primary.read(request) == [default]
    default.table_entry.ClearField("action")
    assert primary.write(ME, modify(default)) == ["OK"]
    assert primary.read(request) == [original]


def test_a_constant_default_is_refused(primary: StubClient, schema: Schema) -> None:
    default = schema.entity(TableEntry.of("acl", {}, "drop", priority=1))
    default.table_entry.priority = 0
    default.table_entry.is_default_action = True
    assert primary.write(ME, modify(default)) == ["PERMISSION_DENIED"]


def test_actions_keep_to_their_scope(primary: StubClient, schema: Schema) -> None:
    no_action = schema.names.actions["NoAction"].id
    in_entry = entry(schema)
    in_entry.table_entry.action.action.action_id = no_action
    del in_entry.table_entry.action.action.params[:]
    as_default = schema.entity(TableEntry.of("forward", {"dst_addr": 1}, "drop"))
    as_default.table_entry.is_default_action = True
    del as_default.table_entry.match[:]
    answers = primary.write(ME, insert(in_entry), modify(as_default))
    assert answers == ["PERMISSION_DENIED", "PERMISSION_DENIED"]


def test_an_update_needs_a_type_and_an_entity(primary: StubClient, schema: Schema) -> None:
    untyped = p4r.Update(entity=entry(schema))
    assert primary.write(ME, untyped)[0] == "INVALID_ARGUMENT"
    assert primary.write(ME, p4r.Update(type=p4r.Update.INSERT))[0] in (
        "INVALID_ARGUMENT",
        "UNKNOWN",
    )
