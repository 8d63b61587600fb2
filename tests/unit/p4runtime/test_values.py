"""Byte strings and controller headers."""

from __future__ import annotations

import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from softswitch.entries import ExactMatch, LpmMatch, Match, RangeMatch, TernaryMatch
from softswitch.p4runtime.p4info import Field, KeyField, MatchKind
from softswitch.p4runtime.status import RefusedError
from softswitch.p4runtime.values import (
    decode,
    decode_match,
    encode,
    encode_match,
    match_anything,
    pack_header,
    unpack_header,
)

WIDTH = 12
FULL = (1 << WIDTH) - 1


@given(st.integers(0, 1 << 200), st.integers(0, 9))
def test_any_leading_zeros_in_the_shortest_form_out(value: int, zeros: int) -> None:
    wire = encode(value)
    assert wire == b"\0" or wire[0] != 0
    assert decode(bytes(zeros) + wire, 201, "x") == value


def test_values_are_checked_bit_by_bit() -> None:
    assert decode(b"\x0f\xff", WIDTH, "x") == FULL
    with pytest.raises(RefusedError, match=r"x: .*does not fit within 12 bits"):
        decode(b"\x10\x00", WIDTH, "x")
    with pytest.raises(RefusedError, match=r"x: .*empty"):
        decode(b"", WIDTH, "x")


@st.composite
def keyed_matches(draw: st.DrawFn) -> tuple[MatchKind, Match]:
    kind = draw(st.sampled_from(MatchKind))
    value = draw(st.integers(0, FULL))
    match kind:
        case MatchKind.EXACT:
            return kind, ExactMatch(value)
        case MatchKind.LPM:
            length = draw(st.integers(0, WIDTH))
            return kind, LpmMatch(value >> (WIDTH - length) << (WIDTH - length), length)
        case MatchKind.TERNARY:
            mask = draw(st.integers(0, FULL))
            return kind, TernaryMatch(value & mask, mask)
        case MatchKind.OPTIONAL:
            return kind, draw(st.sampled_from([TernaryMatch(value, FULL), TernaryMatch(0, 0)]))
    return kind, RangeMatch(value, draw(st.integers(value, FULL)))


@given(keyed_matches())
def test_matches_survive_the_wire(case: tuple[MatchKind, Match]) -> None:
    kind, match = case
    field = KeyField(3, "f", WIDTH, kind)
    wire = encode_match(field, match)
    if wire is None:
        assert match_anything(field, "f") == match
    else:
        assert wire.field_id == 3
        assert decode_match(wire, field, "f") == match


def test_an_exact_field_may_not_be_left_out() -> None:
    with pytest.raises(RefusedError, match="Missing non-ternary field"):
        match_anything(KeyField(1, "f", WIDTH, MatchKind.EXACT), "f")


HEADER = (Field(1, "egress_port", 9), Field(2, "flag", 1), Field(3, "tail", 3))


def test_headers_are_packed_without_gaps_and_padded_at_the_end() -> None:
    metadata = [
        p4r.PacketMetadata(metadata_id=3, value=b"\5"),
        p4r.PacketMetadata(metadata_id=1, value=b"\0\1\xff"),
    ]
    #   111111111 0 101 000
    assert pack_header(HEADER, metadata) == bytes([0b11111111, 0b10101000])
    assert pack_header(HEADER, []) == bytes(2)
    assert pack_header((), []) == b""


@given(st.tuples(st.integers(0, 511), st.integers(0, 1), st.integers(0, 7)), st.binary())
def test_headers_survive_a_round_trip(values: tuple[int, int, int], payload: bytes) -> None:
    metadata = [
        p4r.PacketMetadata(metadata_id=field.id, value=encode(value))
        for field, value in zip(HEADER, values, strict=True)
    ]
    message = unpack_header(HEADER, pack_header(HEADER, metadata) + payload)
    assert message == p4r.PacketIn(payload=payload, metadata=metadata)


def test_a_packet_shorter_than_its_header_is_none() -> None:
    assert unpack_header(HEADER, b"\1") is None
    assert unpack_header((), b"") == p4r.PacketIn()


def test_unknown_and_oversized_metadata_are_refused() -> None:
    with pytest.raises(RefusedError, match="Unknown metadata id in PacketOut message: 9"):
        pack_header(HEADER, [p4r.PacketMetadata(metadata_id=9, value=b"\1")])
    with pytest.raises(RefusedError, match=r"metadata flag: .*within 1 bits"):
        pack_header(HEADER, [p4r.PacketMetadata(metadata_id=2, value=b"\2")])
