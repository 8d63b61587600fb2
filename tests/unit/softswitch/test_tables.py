"""Every match kind, priorities, sizes, const entries, default actions, direct counters."""

import pytest

from softswitch.entries import ActionCall, ExactMatch, OptionalMatch, TableEntry, TernaryMatch
from softswitch.errors import (
    AlreadyExists,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)
from softswitch.switch import Switch
from tests.unit.softswitch.programs import load

MISS = 0xFFFF


@pytest.fixture
def switch() -> Switch:
    return load("tables")


def verdict(switch: Switch, which: int, a: int = 0, b: int = 0, c: int = 0) -> int:
    """What table `which` says of a probe."""
    head = bytes([which, a]) + b.to_bytes(2) + c.to_bytes(4)
    ((_, out),) = switch.process(0, head + b"\0\0" + b"rest")
    assert out[:1] == bytes([which])
    assert out[10:] == b"rest"
    return int.from_bytes(out[8:10])


def send(number: int) -> dict[str, int]:
    return {"port": 2, "verdict": number}


def test_exact_one_key(switch: Switch) -> None:
    switch.insert("exact_one", {"b": 7}, "send", send(1))
    assert verdict(switch, 1, b=7) == 1
    assert verdict(switch, 1, b=8) == MISS


def test_exact_two_keys(switch: Switch) -> None:
    switch.insert("exact_two", {"a": 1, "b": 2}, "send_counted", send(5))
    assert verdict(switch, 2, a=1, b=2) == 5
    assert verdict(switch, 2, a=2, b=1) == MISS


def test_modify_and_delete(switch: Switch) -> None:
    switch.insert("exact_one", {"b": 7}, "send", send(1))
    switch.modify("exact_one", {"b": 7}, "send", send(2))
    assert verdict(switch, 1, b=7) == 2
    switch.delete("exact_one", {"b": 7})
    assert verdict(switch, 1, b=7) == MISS


def test_status_of_writes(switch: Switch) -> None:
    switch.insert("exact_one", {"b": 7}, "send", send(1))
    with pytest.raises(AlreadyExists, match="exact_one"):
        switch.insert("exact_one", {"b": 7}, "send", send(2))
    with pytest.raises(NotFound):
        switch.modify("exact_one", {"b": 8}, "send", send(2))
    with pytest.raises(NotFound):
        switch.delete("exact_one", {"b": 8})
    assert verdict(switch, 1, b=7) == 1


def test_table_size_is_enforced(switch: Switch) -> None:
    for key in range(4):
        switch.insert("exact_one", {"b": key}, "send", send(key))
    with pytest.raises(ResourceExhausted, match="4 entries"):
        switch.insert("exact_one", {"b": 4}, "send", send(4))
    switch.delete("exact_one", {"b": 0})
    switch.insert("exact_one", {"b": 4}, "send", send(4))
    assert verdict(switch, 1, b=4) == 4


def test_longest_prefix_wins(switch: Switch) -> None:
    for length in (0, 8, 16, 32):
        value = 0x0A0B0C0D >> 32 - length << 32 - length
        switch.insert("longest", {"a": 1, "c": (value, length)}, "send", send(length))
    assert verdict(switch, 3, a=1, c=0x0A0B0C0D) == 32
    assert verdict(switch, 3, a=1, c=0x0A0B0C0E) == 16
    assert verdict(switch, 3, a=1, c=0x0AFF0C0D) == 8
    assert verdict(switch, 3, a=1, c=0xFF000000) == 0
    assert verdict(switch, 3, a=2, c=0x0A0B0C0D) == MISS
    switch.delete("longest", {"a": 1, "c": (0x0A0B0000, 16)})
    assert verdict(switch, 3, a=1, c=0x0A0B0C0E) == 8


def test_larger_priority_wins(switch: Switch) -> None:
    switch.insert("ternaries", {"b": (0x1200, 0xFF00)}, "send", send(1), priority=10)
    switch.insert("ternaries", {"c": (1, 1)}, "send", send(2), priority=20)
    switch.insert("ternaries", {}, "send", send(3), priority=1)
    assert verdict(switch, 4, b=0x12AB) == 1
    assert verdict(switch, 4, b=0x12AB, c=3) == 2
    assert verdict(switch, 4, b=0x1300) == 3
    switch.delete("ternaries", {"c": (1, 1)}, priority=20)
    assert verdict(switch, 4, b=0x12AB, c=3) == 1


def test_same_match_at_two_priorities_is_two_entries(switch: Switch) -> None:
    switch.insert("ternaries", {"b": 5}, "send", send(1), priority=1)
    switch.insert("ternaries", {"b": 5}, "send", send(2), priority=2)
    assert verdict(switch, 4, b=5) == 2
    switch.modify("ternaries", {"b": 5}, "send", send(9), priority=2)
    assert verdict(switch, 4, b=5) == 9


def test_ranges(switch: Switch) -> None:
    switch.insert("ranges", {"b": (10, 20), "a": 1}, "send", send(1), priority=5)
    switch.insert("ranges", {"b": (15, 15), "a": 1}, "send", send(2), priority=6)
    switch.insert("ranges", {"a": 2}, "send", send(3), priority=6)
    assert [verdict(switch, 5, a=1, b=b) for b in (9, 10, 15, 20, 21)] == [MISS, 1, 2, 1, MISS]
    assert verdict(switch, 5, a=2, b=0xFFFF) == 3


def test_optional_keys(switch: Switch) -> None:
    switch.insert("optionals", {"b": 3}, "send", send(1), priority=2)
    switch.insert("optionals", {"a": (4, 0xFF)}, "send", send(2), priority=1)
    assert verdict(switch, 6, a=4, b=3) == 1
    assert verdict(switch, 6, a=4, b=9) == 2
    assert verdict(switch, 6, a=5, b=9) == MISS
    entry = TableEntry(
        switch.program.tables["IngressPipe.optionals"].name,
        (OptionalMatch(8), OptionalMatch(None)),
        ActionCall("IngressPipe.send", (2, 4)),
        3,
    )
    switch.device.insert_entry(entry)
    assert verdict(switch, 6, a=0, b=8) == 4
    found = switch.device.read_entry(entry.table, entry.matches, 3)
    assert found.matches == (TernaryMatch(8, 0xFFFF), TernaryMatch(0, 0))


def test_const_entries_in_order_of_the_source(switch: Switch) -> None:
    assert verdict(switch, 7, b=0x1234) == 1
    assert verdict(switch, 7, b=0xFF34) == 3
    assert verdict(switch, 7, b=0xFF35) == MISS
    with pytest.raises(PermissionDenied, match="const entries"):
        switch.insert("constants", {"b": 1}, "send", send(1), priority=1)
    with pytest.raises(PermissionDenied, match="const"):
        switch.set_default("constants", "send", send(1))
    read = switch.device.read_entries("IngressPipe.constants")
    assert [e.is_const for e in read] == [True] * 3
    assert sorted((e.priority for e in read), reverse=True) == [e.priority for e in read]


def test_default_action(switch: Switch) -> None:
    switch.set_default("exact_one", "send", send(0x11))
    assert verdict(switch, 1, b=1) == 0x11
    switch.device.reset_default_action("IngressPipe.exact_one")
    assert verdict(switch, 1, b=1) == MISS


def test_hit_and_miss_branches(switch: Switch) -> None:
    switch.insert("hit_or_miss", {"b": 1}, "send", send(1))
    hit = switch.process(0, bytes([8, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
    miss = switch.process(0, bytes([8, 0, 0, 2, 0, 0, 0, 0, 0, 0]))
    assert (hit[0][0], hit[0][1][1]) == (2, 1)
    assert (miss[0][0], miss[0][1][1]) == (1, 2)


def test_direct_counters_of_entries_and_of_the_default(switch: Switch) -> None:
    switch.insert("exact_two", {"a": 1, "b": 2}, "send_counted", send(5))
    for _ in range(3):
        verdict(switch, 2, a=1, b=2)
    verdict(switch, 2, a=9, b=9)
    assert switch.direct_counter("exact_two", {"a": 1, "b": 2}) == (3, 3 * 14)
    assert switch.direct_counter("exact_two", None) == (1, 14)
    switch.modify("exact_two", {"a": 1, "b": 2}, "send_counted", send(6))
    assert switch.direct_counter("exact_two", {"a": 1, "b": 2}) == (3, 3 * 14)


@pytest.mark.parametrize(
    ("table", "match", "priority", "message"),
    [
        ("exact_one", {"b": 0x10000}, 0, "does not fit in 16 bits"),
        ("exact_one", {"b": -1}, 0, "does not fit"),
        ("exact_one", {}, 0, "is missing"),
        ("exact_one", {"b": (1, 2)}, 0, "takes one value"),
        ("exact_one", {"b": 1}, 5, "takes no priority"),
        ("longest", {"a": 1, "c": (0, 33)}, 0, "not in 0..32"),
        ("ternaries", {"b": 1}, 0, "needs a priority"),
        ("ternaries", {"b": 1}, -1, "needs a priority"),
        ("ranges", {"b": (20, 10), "a": 1}, 1, "is empty"),
    ],
)
def test_bad_matches_are_named(
    switch: Switch, table: str, match: dict[str, int], priority: int, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        switch.insert(table, match, "send", send(1), priority=priority)


def test_value_outside_mask_is_refused(switch: Switch) -> None:
    matches = (TernaryMatch(3, 1), TernaryMatch(0, 0))
    entry = TableEntry("IngressPipe.ternaries", matches, ActionCall("IngressPipe.miss"), 1)
    with pytest.raises(InvalidArgument, match="outside its mask"):
        switch.device.insert_entry(entry)


def test_bad_actions_are_named(switch: Switch) -> None:
    with pytest.raises(NotFound, match="send_counted"):
        switch.insert("exact_one", {"b": 1}, "send_counted", send(1))
    with pytest.raises(InvalidArgument, match="port, verdict"):
        switch.insert("exact_one", {"b": 1}, "send", {"port": 1})
    with pytest.raises(InvalidArgument, match="does not fit in 9 bits"):
        switch.insert("exact_one", {"b": 1}, "send", {"port": 512, "verdict": 1})
    with pytest.raises(NotFound, match="no table"):
        switch.device.read_entries("nowhere")
    with pytest.raises(NotFound, match=r"did you mean 'IngressPipe\.longest'") as unknown:
        switch.set_default("IngressPipe.longst", "miss")
    assert "tbl_" not in str(unknown.value)
    with pytest.raises(InvalidArgument, match="bits outside its prefix of length 8"):
        switch.insert("longest", {"a": 1, "c": (1, 8)}, "miss")
    with pytest.raises(InvalidArgument, match="bits outside its mask 0xf0"):
        switch.insert("ternaries", {"b": (0x1F, 0xF0)}, "miss", priority=1)


@pytest.mark.parametrize("port", [-1, 512, 100_000])
def test_a_port_that_cannot_be_is_refused(switch: Switch, port: int) -> None:
    for run in (switch.process, switch.enqueue):
        with pytest.raises(InvalidArgument, match=f"port {port} is outside 0..511"):
            run(port, bytes(64))


def test_wrong_kind_of_match_is_named(switch: Switch) -> None:
    entry = TableEntry(
        "IngressPipe.longest", (ExactMatch(1), ExactMatch(2)), ActionCall("IngressPipe.miss")
    )
    with pytest.raises(InvalidArgument, match="is lpm, not ExactMatch"):
        switch.device.insert_entry(entry)
