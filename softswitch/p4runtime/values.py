"""Values on the P4Runtime wire: big-endian byte strings, in and out (specification, 8.4).

Any number of leading zero bytes is accepted; what goes out is the shortest string (one zero byte
for zero), so that a value read equals the value written whatever form it was written in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from finsy.proto import p4r

from softswitch.entries import (
    ExactMatch,
    LpmMatch,
    Match,
    OptionalMatch,
    RangeMatch,
    TernaryMatch,
)
from softswitch.p4runtime.p4info import Field, KeyField, MatchKind
from softswitch.p4runtime.status import invalid


def decode(data: bytes, width: int, what: str) -> int:
    """Return the value in `data`; raises RefusedError if it is empty or over `width` bits."""
    if not data:
        raise invalid(f"{what}: the value is an empty byte string; zero is one zero byte")
    value = int.from_bytes(data, "big")
    if value.bit_length() > width:
        raise invalid(f"{what}: Bytestring provided does not fit within {width} bits: {value:#x}")
    return value


def encode(value: int) -> bytes:
    """Return the shortest byte string for `value`."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def decode_match(match: p4r.FieldMatch, field: KeyField, what: str) -> Match:
    """Return the device's form of a field match.

    Raises RefusedError for a match of the wrong kind, for bits set outside the mask or prefix,
    and for a match that matches anything: that one is to be left out.
    """
    given = match.WhichOneof("field_match_type")
    if given != field.kind.value:
        raise invalid(
            f"{what}: Invalid match type: {given}, where the table has {field.kind.value}"
        )
    if field.kind is MatchKind.EXACT:
        return ExactMatch(decode(match.exact.value, field.width, what))
    if field.kind is MatchKind.OPTIONAL:
        return _optional(decode(match.optional.value, field.width, what), field.width)
    if field.kind is MatchKind.LPM:
        return _decode_lpm(match.lpm, field.width, what)
    if field.kind is MatchKind.TERNARY:
        return _decode_ternary(match.ternary, field.width, what)
    return _decode_range(match.range, field.width, what)


def match_anything(field: KeyField, what: str) -> Match:
    """Return the match of a field that the client left out; an exact one may not be left out."""
    match field.kind:
        case MatchKind.EXACT:
            raise invalid(f"{what}: Missing non-ternary field in match key")
        case MatchKind.LPM:
            return LpmMatch(0, 0)
        case MatchKind.TERNARY | MatchKind.OPTIONAL:
            return TernaryMatch(0, 0)
        case MatchKind.RANGE:
            return RangeMatch(0, (1 << field.width) - 1)


def _optional(value: int, width: int) -> Match:
    """Return an optional match as the device reads it back: a ternary one (see `OptionalMatch`)."""
    return TernaryMatch(value, (1 << width) - 1)


def _decode_lpm(match: p4r.FieldMatch.LPM, width: int, what: str) -> Match:
    value = decode(match.value, width, what)
    length = match.prefix_len
    if not 0 <= length <= width:
        raise invalid(f"{what}: prefix length {length} is outside 0..{width}")
    if length == 0:
        raise invalid(f'{what}: prefix length 0 is "don\'t care": omit the field instead')
    if value & ((1 << (width - length)) - 1):
        raise invalid(f"{what}: Invalid LPM value: bits are set below prefix length {length}")
    return LpmMatch(value, length)


def _decode_ternary(match: p4r.FieldMatch.Ternary, width: int, what: str) -> Match:
    value = decode(match.value, width, what)
    mask = decode(match.mask, width, what)
    if mask == 0:
        raise invalid(f'{what}: a zero mask is "don\'t care": omit the field instead')
    if value & ~mask:
        raise invalid(f"{what}: Invalid ternary value: bits are set outside the mask {mask:#x}")
    return TernaryMatch(value, mask)


def _decode_range(match: p4r.FieldMatch.Range, width: int, what: str) -> Match:
    low = decode(match.low, width, what)
    high = decode(match.high, width, what)
    if low > high:
        raise invalid(f"{what}: Invalid range value: low {low} is above high {high}")
    if low == 0 and high == (1 << width) - 1:
        raise invalid(f'{what}: the full range is "don\'t care": omit the field instead')
    return RangeMatch(low, high)


def encode_match(field: KeyField, match: Match) -> p4r.FieldMatch | None:
    """Return the field match on the wire, or None for one that matches anything.

    A device reads optional keys back as ternary ones (see `OptionalMatch`); P4Info knows better.
    """
    wire = p4r.FieldMatch(field_id=field.id)
    match match:
        case ExactMatch(value):
            wire.exact.value = encode(value)
        case LpmMatch(value, length):
            if length == 0:
                return None
            wire.lpm.value = encode(value)
            wire.lpm.prefix_len = length
        case TernaryMatch(value, mask):
            if mask == 0:
                return None
            if field.kind is MatchKind.OPTIONAL:
                wire.optional.value = encode(value)
            else:
                wire.ternary.value = encode(value)
                wire.ternary.mask = encode(mask)
        case RangeMatch(low, high):
            if low == 0 and high == (1 << field.width) - 1:
                return None
            wire.range.low = encode(low)
            wire.range.high = encode(high)
        case OptionalMatch(value):
            if value is None:
                return None
            wire.optional.value = encode(value)
    return wire


def pack_header(fields: Sequence[Field], metadata: Iterable[p4r.PacketMetadata]) -> bytes:
    """Return the controller header in front of a packet-out, from its metadata.

    Fields are laid out in the order of P4Info, without gaps, padded with zero bits at the end to
    a whole byte; a field that is not given is zero (as in simple_switch_grpc). Raises RefusedError
    for an unknown metadata id or a value that does not fit.
    """
    by_id = {field.id: field for field in fields}
    given: dict[int, int] = {}
    for item in metadata:
        field = by_id.get(item.metadata_id)
        if field is None:
            raise invalid(f"Unknown metadata id in PacketOut message: {item.metadata_id}")
        given[field.id] = decode(item.value, field.width, f"packet-out metadata {field.name}")
    header = 0
    width = 0
    for field in fields:
        header = header << field.width | given.get(field.id, 0)
        width += field.width
    length = (width + 7) // 8
    return (header << (length * 8 - width)).to_bytes(length, "big")


def unpack_header(fields: Sequence[Field], packet: bytes) -> p4r.PacketIn | None:
    """Return the packet-in whose controller header is in front of `packet`.

    None when the packet is shorter than the header: the P4 program has not emitted it.
    """
    width = sum(field.width for field in fields)
    length = (width + 7) // 8
    if len(packet) < length:
        return None
    header = int.from_bytes(packet[:length], "big") >> (length * 8 - width)
    message = p4r.PacketIn(payload=packet[length:])
    for field in fields:
        width -= field.width
        value = header >> width & ((1 << field.width) - 1)
        message.metadata.add(metadata_id=field.id, value=encode(value))
    return message
