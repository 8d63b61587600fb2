"""Parser value sets over P4Runtime; simple_switch_grpc does not serve them."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
from finsy.proto import p4r

from softswitch.device import Device
from softswitch.entries import ExactMatch
from softswitch.p4runtime.p4info import MatchKind, PipelineInfo, ValueSetInfo
from softswitch.p4runtime.status import RefusedError, invalid, unimplemented
from softswitch.p4runtime.values import decode_match, encode


def write(
    device: Device,
    info: PipelineInfo,
    kind: p4r.Update.Type.ValueType,
    entry: p4r.ValueSetEntry,
) -> None:
    """Replace the members of a value set (P4Runtime, section 9.6: MODIFY only).

    Raises RefusedError: RESOURCE_EXHAUSTED for more members than the set has room for,
    UNIMPLEMENTED for a set whose fields are not all exact.
    """
    value_set = info.value_set(entry.value_set_id)
    if kind != p4r.Update.MODIFY:
        name = p4r.Update.Type.Name(kind)
        raise invalid(f"{name} update type not supported for value sets: use MODIFY")
    if any(field.kind is not MatchKind.EXACT for field in value_set.fields):
        raise unimplemented(f"value set {value_set.name}: only exact fields are supported")
    if len(entry.members) > value_set.size:
        raise RefusedError(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"value set {value_set.name} has room for {value_set.size} members, not "
            f"{len(entry.members)}",
        )
    members = [_decode(value_set, member) for member in entry.members]
    if len(set(members)) != len(members):
        raise invalid(f"value set {value_set.name}: a member is given twice")
    device.set_value_set(value_set.name, frozenset(members))


def read(device: Device, info: PipelineInfo, request: p4r.ValueSetEntry) -> Iterator[p4r.Entity]:
    """Yield the value sets asked for, members in rising order; id 0 is all sets."""
    wanted = request.value_set_id
    for value_set in [info.value_set(wanted)] if wanted else info.value_sets.values():
        message = p4r.ValueSetEntry(value_set_id=value_set.id)
        for member in sorted(device.value_set(value_set.name)):
            message.members.append(_encode(value_set, member))
        yield p4r.Entity(value_set_entry=message)


def _decode(value_set: ValueSetInfo, member: p4r.ValueSetMember) -> int:
    """Return a member as the device has it: its fields joined, the first in the highest bits."""
    by_id = {match.field_id: match for match in member.match}
    if len(member.match) != len(by_id) or by_id.keys() != {f.id for f in value_set.fields}:
        raise invalid(f"value set {value_set.name}: a member needs a match for every field, once")
    value = 0
    for field in value_set.fields:
        what = f"value set {value_set.name}, field {field.id}"
        match = decode_match(by_id[field.id], field, what)
        if not isinstance(match, ExactMatch):
            raise invalid(f"{what}: Invalid match type")
        value = value << field.width | match.value
    return value


def _encode(value_set: ValueSetInfo, member: int) -> p4r.ValueSetMember:
    message = p4r.ValueSetMember()
    shift = sum(field.width for field in value_set.fields)
    for field in value_set.fields:
        shift -= field.width
        match = message.match.add(field_id=field.id)
        match.exact.value = encode(member >> shift & ((1 << field.width) - 1))
    return message
