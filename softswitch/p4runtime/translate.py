"""P4Runtime messages <-> the device's values, by way of P4Info. Pure: no device, no RPC."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from finsy.proto import p4r

from softswitch.entries import CloneSession, CounterData, Match, Replica, TableEntry
from softswitch.errors import NotFound
from softswitch.p4runtime.actions import encode_action
from softswitch.p4runtime.p4info import CounterInfo, PipelineInfo, TableInfo
from softswitch.p4runtime.status import RefusedError, invalid, unimplemented
from softswitch.p4runtime.values import decode, decode_match, encode_match, match_anything

MAX_PORT = (1 << 32) - 1


def decode_key(table: TableInfo, entry: p4r.TableEntry) -> tuple[tuple[Match, ...], int]:
    """Return what identifies a (non-default) entry: a match per key field, and the priority.

    Raises RefusedError (INVALID_ARGUMENT) for unknown, repeated or missing fields, values that
    do not fit, and a priority where the table takes none or the lack of one where it needs one.
    """
    by_id = {match.field_id: match for match in entry.match}
    if len(by_id) != len(entry.match):
        raise invalid(f"table {table.name}: a match field is given twice")
    unknown = by_id.keys() - {field.id for field in table.fields}
    if unknown:
        raise invalid(f"table {table.name}: Unknown field in match key: id {min(unknown)}")
    matches = []
    for field in table.fields:
        what = f"table {table.name}, field {field.name}"
        match = by_id.get(field.id)
        matches.append(
            match_anything(field, what) if match is None else decode_match(match, field, what)
        )
    if table.needs_priority and entry.priority <= 0:
        raise invalid(
            f"table {table.name}: Zero priority for ternary match: it must be above 0, as the "
            "table has a ternary, range or optional field"
        )
    if not table.needs_priority and entry.priority != 0:
        raise invalid(
            f"table {table.name}: Non-zero priority for non-ternary match: leave it out, as all "
            "fields are exact or LPM"
        )
    return tuple(matches), entry.priority


def no_such_entry(error: NotFound) -> RefusedError:
    """Return the refusal of a direct resource whose entry is not there.

    INVALID_ARGUMENT, as in simple_switch_grpc: the entry is an argument of the request.
    """
    return invalid(f"Cannot map table entry to handle: {error}")


def encode_key(table: TableInfo, matches: Iterable[Match], priority: int) -> p4r.TableEntry:
    """Return a table entry message that holds only what identifies the entry."""
    message = p4r.TableEntry(table_id=table.id, priority=priority)
    for field, match in zip(table.fields, matches, strict=True):
        wire = encode_match(field, match)
        if wire is not None:
            message.match.append(wire)
    return message


def encode_entry(info: PipelineInfo, table: TableInfo, entry: TableEntry) -> p4r.TableEntry:
    """Return the message for an entry, without counter data, metadata and time since a hit."""
    message = encode_key(table, entry.matches, entry.priority)
    message.action.CopyFrom(encode_action(info, entry.action))
    message.is_const = entry.is_const
    message.idle_timeout_ns = entry.idle_timeout_ns
    return message


def decode_counter(message: p4r.CounterData) -> CounterData:
    """Return counter data; raises RefusedError for negative numbers."""
    if message.packet_count < 0 or message.byte_count < 0:
        raise invalid("counter data: packet_count and byte_count cannot be negative")
    return CounterData(message.packet_count, message.byte_count)


def encode_counter(data: CounterData) -> p4r.CounterData:
    """Return the message for counter data; counts wrap at 2^63, where the message's int64 ends.

    Packets and bytes both, whatever the unit of the counter is (as in simple_switch_grpc).
    """
    limit = (1 << 63) - 1
    return p4r.CounterData(packet_count=data.packets & limit, byte_count=data.bytes & limit)


def decode_replicas(what: str, replicas: Iterable[p4r.Replica]) -> tuple[Replica, ...]:
    """Return the replicas of a group or session.

    Either way to write a port is taken (a number, or bytes since P4Runtime 1.4). Raises
    RefusedError: no port, a replica that is there twice, backup replicas (unimplemented).
    """
    decoded = []
    for replica in replicas:
        if replica.backup_replicas:
            raise unimplemented(f"{what}: backup replicas are not supported")
        decoded.append(Replica(_decode_port(what, replica), replica.instance))
    if len(set(decoded)) != len(decoded):
        raise invalid(f"{what}: Duplicate replica: every (port, instance) may appear once")
    return tuple(decoded)


def _decode_port(what: str, replica: p4r.Replica) -> int:
    match replica.WhichOneof("port_kind"):
        case "egress_port":
            return replica.egress_port
        case "port":
            return decode(replica.port, MAX_PORT.bit_length(), f"{what}, replica port")
        case _:
            raise invalid(f"{what}: Missing port in replica")


def encode_group(group: int, replicas: Iterable[Replica]) -> p4r.Entity:
    """Return the message for a multicast group."""
    entity = p4r.Entity()
    message = entity.packet_replication_engine_entry.multicast_group_entry
    message.multicast_group_id = group
    for replica in replicas:
        message.replicas.add(egress_port=replica.port, instance=replica.instance)
    return entity


def decode_session(message: p4r.CloneSessionEntry) -> CloneSession:
    """Return a clone session; raises RefusedError for what is not supported or out of range."""
    what = f"clone session {message.session_id}"
    if message.class_of_service:
        raise unimplemented(f"{what}: COS for clone sessions not supported: leave it 0")
    if message.packet_length_bytes < 0:
        raise invalid(f"{what}: packet_length_bytes cannot be negative")
    return CloneSession(
        message.session_id,
        decode_replicas(what, message.replicas),
        message.packet_length_bytes,
    )


def encode_session(session: CloneSession) -> p4r.Entity:
    """Return the message for a clone session."""
    entity = p4r.Entity()
    message = entity.packet_replication_engine_entry.clone_session_entry
    message.session_id = session.session
    message.packet_length_bytes = session.max_length
    for replica in session.replicas:
        message.replicas.add(egress_port=replica.port, instance=replica.instance)
    return entity


def decode_index(counter: CounterInfo, index: p4r.Index) -> int:
    """Return the cell that an index names; raises RefusedError (OUT_OF_RANGE) if there is none."""
    if not 0 <= index.index < counter.size:
        raise RefusedError(
            grpc.StatusCode.OUT_OF_RANGE,
            f"counter {counter.name}: index {index.index} is outside 0..{counter.size - 1}",
        )
    return index.index
