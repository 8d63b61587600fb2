"""Parser: mid-byte selects, lookahead, varbit, stacks, value sets, errors; checksums."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softswitch.switch import Switch
from tests.unit.softswitch.programs import load, one

TOO_SHORT, STACK, NOT_FOUR, HEADER = 1, 2, 3, 4
LABELS, IPV4, PEEK, SKIP, MEMBERS, ODD = 0, 1, 2, 3, 4, 5


@pytest.fixture
def switch() -> Switch:
    return load("parsing")


def kind(middle: int, high: int = 0, low: int = 0) -> bytes:
    return bytes([high << 4 | middle << 1 | low])


def parse(switch: Switch, packet: bytes) -> tuple[tuple[int, int, int, int], bytes]:
    """(error, bad checksum, path, depth), and the packet after the report."""
    out = one(switch, packet)
    return (out[0], out[1], out[2], out[3]), out[4:]


def checksum(data: bytes) -> int:
    total = sum(int.from_bytes(data[i : i + 2]) for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def ipv4(options: bytes = b"", ttl: int = 64, version: int = 4, wrong: int = 0) -> bytes:
    first = bytes([version << 4 | 5 + len(options) // 4, 0])
    head = first + bytes(6) + bytes([ttl, 17, 0, 0]) + b"\n\0\0\1\n\0\0\2" + options
    return head[:10] + (checksum(head) ^ wrong).to_bytes(2) + head[12:]


@pytest.mark.parametrize("high", [0, 15])
@pytest.mark.parametrize("low", [0, 1])
def test_a_key_in_the_middle_of_a_byte_takes_none_of_its_neighbours(
    switch: Switch, high: int, low: int
) -> None:
    assert parse(switch, kind(ODD, high, low))[0] == (0, 0, 5, 0)
    assert parse(switch, kind(7, high, low))[0] == (0, 0, 5, 0)
    assert parse(switch, kind(6, high, low))[0] == (0, 0, 0, 0)


def test_stack(switch: Switch) -> None:
    labels = [bytes([0, 0, i, 64]) for i in (0, 2, 1)]
    packet = kind(LABELS) + b"".join(labels) + b"rest"
    assert parse(switch, packet) == ((0, 0, 0, 3), packet)


def test_stack_overflow_keeps_what_was_extracted(switch: Switch) -> None:
    packet = kind(LABELS) + bytes(16)
    assert parse(switch, packet) == ((STACK, 0, 0, 3), packet)


def test_push_and_pop(switch: Switch) -> None:
    label = bytes([0, 0, 1, 9])
    new = (0xABCDE << 12 | 64).to_bytes(4)
    assert parse(switch, kind(LABELS, 1) + label)[1] == kind(LABELS, 1) + new + label
    assert parse(switch, kind(LABELS, 2) + label)[1] == kind(LABELS, 2)
    full = kind(LABELS, 1) + bytes(4) + bytes(4) + label
    assert parse(switch, full)[1] == kind(LABELS, 1) + new + bytes(8)


def test_lookahead_reads_without_taking(switch: Switch) -> None:
    packet = kind(PEEK) + b"\1\2\3more"
    assert parse(switch, packet) == ((0, 0, 2, 0), packet)
    other = kind(PEEK) + b"\1\2\4more"
    assert parse(switch, other) == ((0, 0, 0, 0), other)
    assert parse(switch, kind(PEEK) + b"\1\2")[0][0] == TOO_SHORT


def test_advance_skips(switch: Switch) -> None:
    assert parse(switch, kind(SKIP) + b"abcDEf") == ((0, 0, 2, 0), kind(SKIP) + b"DEf")
    assert parse(switch, kind(SKIP) + b"ab") == ((TOO_SHORT, 0, 0, 0), kind(SKIP) + b"ab")


def test_value_set(switch: Switch) -> None:
    packet = kind(MEMBERS) + b"\0\7"
    assert parse(switch, packet)[0] == (0, 0, 0, 0)
    switch.device.set_value_set("Parse.tails", frozenset([7]))
    assert parse(switch, packet)[0] == (0, 0, 9, 0)


@given(words=st.integers(0, 10), data=st.binary(min_size=40, max_size=40), ttl=st.integers(1, 255))
def test_checksum_with_options(words: int, data: bytes, ttl: int) -> None:
    switch = load("parsing")
    options = data[: 4 * words]
    report, out = parse(switch, kind(IPV4) + ipv4(options, ttl) + b"tail")
    assert report == (0, 0, 4, 0)
    assert out == kind(IPV4) + ipv4(options, ttl - 1) + b"tail"
    assert parse(switch, kind(IPV4) + ipv4(options, ttl, wrong=1))[0] == (0, 1, 4, 0)


def test_a_checksum_of_ffff_is_not_0(switch: Switch) -> None:
    """RFC 1624: the sum of a header that is not all zero is never 0 before complement."""
    for ident in range(0x10000):
        head = bytes([0x45, 0, 0, 0]) + ident.to_bytes(2) + bytes([0, 0, 64, 17, 0, 0]) + bytes(8)
        value = checksum(head)
        if value in (0, 0xFFFF):
            good = head[:10] + value.to_bytes(2) + head[12:]
            bad = head[:10] + (value ^ 0xFFFF).to_bytes(2) + head[12:]
            assert parse(switch, kind(IPV4) + good)[0][1] == 0
            assert parse(switch, kind(IPV4) + bad)[0][1] == 1
            return
    raise AssertionError("no such header")


def test_verify_stops_the_parser_but_keeps_the_header(switch: Switch) -> None:
    report, out = parse(switch, kind(IPV4) + ipv4(version=5))
    assert report == (NOT_FOUR, 0, 0, 0)
    assert out[9] == 63


@pytest.mark.parametrize("size", range(20))
def test_truncated_headers_stay_invalid(switch: Switch, size: int) -> None:
    packet = kind(IPV4) + ipv4()[:size]
    assert parse(switch, packet) == ((TOO_SHORT, 0, 0, 0), packet)


def test_options_cut_short(switch: Switch) -> None:
    packet = kind(IPV4) + ipv4(bytes(8))[:-1]
    assert parse(switch, packet) == ((TOO_SHORT, 0, 0, 0), packet)


def test_empty_packet(switch: Switch) -> None:
    assert parse(switch, b"") == ((TOO_SHORT, 0, 0, 0), b"")
