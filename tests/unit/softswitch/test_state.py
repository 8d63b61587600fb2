"""Registers, counters, meters, hashes, digests; indexes far out of range."""

import logging
from zlib import crc32

import pytest

from softswitch.entries import ActionCall, Digest, ExactMatch, MeterConfig, TableEntry
from softswitch.errors import InvalidArgument, NotFound, OutOfRange
from softswitch.switch import Switch
from tests.unit.softswitch.programs import load, one

FAR = (16, 1 << 31, (1 << 32) - 1)


@pytest.fixture
def switch() -> Switch:
    return load("state")


def ask(switch: Switch, code: int, index: int, value: int = 0, now_us: int = 0) -> int:
    packet = bytes([code]) + index.to_bytes(4) + value.to_bytes(4)
    return int.from_bytes(one(switch, packet, now_us=now_us)[5:9])


def test_registers_keep_values(switch: Switch) -> None:
    ask(switch, 2, 15, 0xDEADBEEF)
    assert ask(switch, 1, 15) == 0xDEADBEEF
    assert switch.register("cells", 15) == 0xDEADBEEF
    assert ask(switch, 1, 0, 77) == 0


@pytest.mark.parametrize("index", FAR)
def test_registers_out_of_range_change_nothing(switch: Switch, index: int) -> None:
    ask(switch, 2, index, 1)
    assert [switch.register("cells", i) for i in range(16)] == [0] * 16
    assert ask(switch, 1, index, 77) == 77
    with pytest.raises(OutOfRange, match=r"0\.\.15"):
        switch.register("cells", index)


def test_signed_cells(switch: Switch) -> None:
    assert ask(switch, 6, 0, 0x80) == 0xFFFFFF80
    assert ask(switch, 6, 0, 0x7F) == 0x7F
    assert switch.register("small", 1) == 0x7F


def test_set_register(switch: Switch) -> None:
    switch.device.set_register("IngressPipe.cells", 3, 9)
    assert ask(switch, 1, 3) == 9
    with pytest.raises(InvalidArgument, match="32 bits"):
        switch.device.set_register("IngressPipe.cells", 3, 1 << 32)
    with pytest.raises(NotFound, match="no register"):
        switch.device.register("nothing", 0)


def test_counters(switch: Switch) -> None:
    ask(switch, 3, 4)
    ask(switch, 3, 4)
    assert switch.counter("seen", 4) == (2, 18)
    for index in FAR:
        ask(switch, 3, index)
    assert sum(c.packets for c in switch.device.counters("IngressPipe.seen")) == 2
    with pytest.raises(OutOfRange):
        switch.counter("seen", 16)


def test_meter_colours(switch: Switch) -> None:
    assert ask(switch, 4, 2, 7) == 0
    config = MeterConfig(cir=1, cburst=1, pir=2, pburst=2)
    switch.device.set_meter("IngressPipe.pace", 2, config)
    assert switch.device.meter("IngressPipe.pace", 2) == config
    colours = [ask(switch, 4, 2, 7, now_us=t) for t in (0, 0, 0, 1_000_000)]
    assert colours == [0, 1, 2, 0]
    assert ask(switch, 4, 1 << 31, 7) == 7


def test_direct_meter(switch: Switch) -> None:
    match = (ExactMatch(5),)
    table = "IngressPipe.paced"
    switch.device.insert_entry(TableEntry(table, match, ActionCall("IngressPipe.colour_it")))
    switch.device.set_direct_meter(table, match, 0, MeterConfig(1, 1, 1, 1))
    assert [ask(switch, 13, 5), ask(switch, 13, 5)] == [0, 2]


def test_hashes(switch: Switch) -> None:
    data = (0x01020304).to_bytes(4)
    assert ask(switch, 7, 0x31323334) == 0x14BA  # CRC-16/ARC of "1234"
    assert ask(switch, 8, 0x01020304) == crc32(data)
    assert ask(switch, 9, 0x01020304) == 0xFFFF - (0x0102 + 0x0304)
    assert ask(switch, 10, 0x01020304) == 0x0102 ^ 0x0304
    assert ask(switch, 11, 0x01020304) == 100 + 4


def test_random_stays_in_range(switch: Switch) -> None:
    drawn = {ask(switch, 12, 0) for _ in range(300)}
    assert drawn == set(range(10, 21))


def test_digest(switch: Switch) -> None:
    told: list[Digest] = []
    switch.device.on_digest = told.append
    ask(switch, 5, 3, 4)
    assert [(d.name, d.members, d.widths) for d in told] == [("note_t", (3, 4), (32, 32))]


def test_a_load_clears_state_but_not_groups(switch: Switch) -> None:
    ask(switch, 2, 1, 5)
    ask(switch, 3, 1)
    switch.multicast_group(1, [(1, 1)])
    switch.mirror(3, 4)
    switch.device.load_pipeline(_bytes())
    assert switch.register("cells", 1) == 0
    assert switch.counter("seen", 1) == (0, 0)
    assert list(switch.device.multicast_groups()) == [1]
    assert list(switch.device.clone_sessions()) == [3]


def _bytes() -> bytes:
    from tests.unit.softswitch.programs import PROGRAMS

    return (PROGRAMS / "state.json").read_bytes()


def test_two_switches_share_code_but_not_state(
    switch: Switch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    other = load("state")
    ask(switch, 2, 1, 5)
    assert other.register("cells", 1) == 0
    assert other.program is switch.program
