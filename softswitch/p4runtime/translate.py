"""P4Runtime messages <-> the device's values, by way of P4Info. Pure: no device, no RPC."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
from finsy.proto import p4r

from softswitch.entries import ActionCall, CloneSession, CounterData, Match, Replica, TableEntry
from softswitch.p4runtime.p4info import CounterInfo, PipelineInfo, TableInfo
from softswitch.p4runtime.status import RefusedError, invalid, unimplemented
from softswitch.p4runtime.values import decode, decode_match, encode, encode_match, match_anything

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


def decode_action(table: TableInfo, message: p4r.TableAction, *, as_default: bool) -> ActionCall:
    """Return the action of an entry, or of the default entry, of `table`.

    Raises RefusedError: INVALID_ARGUMENT for an action that the table does not have, or other
    parameters than it takes; PERMISSION_DENIED for one that the program keeps for the other use.
    """
    if message.WhichOneof("type") != "action":
        raise invalid(f"table {table.name}: Cannot provide indirect action for direct table")
    use = table.actions.get(message.action.action_id)
    if use is None:
        raise invalid(
            f"table {table.name}: Invalid action for table: id {message.action.action_id:#010x}"
        )
    if as_default and not use.as_default:
        raise RefusedError(
            grpc.StatusCode.PERMISSION_DENIED,
            f"table {table.name}: Cannot use TABLE_ONLY action {use.action.name} as default action",
        )
    if not as_default and not use.in_entries:
        raise RefusedError(
            grpc.StatusCode.PERMISSION_DENIED,
            f"table {table.name}: Cannot use DEFAULT_ONLY action {use.action.name} in an entry",
        )
    return _decode_call(table, use.action.id, message.action)


def _decode_call(table: TableInfo, action_id: int, message: p4r.Action) -> ActionCall:
    action = table.actions[action_id].action
    what = f"table {table.name}, action {action.name}"
    given = {param.param_id: param.value for param in message.params}
    wanted = {param.id for param in action.params}
    if len(message.params) != len(wanted) or given.keys() != wanted:
        raise invalid(
            f"{what}: Unexpected action parameters: ids {sorted(given)} given, "
            f"{sorted(wanted)} wanted"
        )
    return ActionCall(
        action.name,
        tuple(
            decode(given[param.id], param.width, f"{what}, parameter {param.name}")
            for param in action.params
        ),
    )


def encode_action(info: PipelineInfo, call: ActionCall) -> p4r.TableAction:
    """Return the message for an action call."""
    action = info.action_named[call.name]
    message = p4r.TableAction()
    message.action.action_id = action.id
    for param, value in zip(action.params, call.params, strict=True):
        message.action.params.add(param_id=param.id, value=encode(value))
    return message


def encode_key(table: TableInfo, matches: Iterable[Match], priority: int) -> p4r.TableEntry:
    """Return a table entry message that holds only what identifies the entry."""
    message = p4r.TableEntry(table_id=table.id, priority=priority)
    for field, match in zip(table.fields, matches, strict=True):
        wire = encode_match(field, match)
        if wire is not None:
            message.match.append(wire)
    return message


def encode_entry(info: PipelineInfo, table: TableInfo, entry: TableEntry) -> p4r.TableEntry:
    """Return the message for an entry, without counter data and metadata."""
    message = encode_key(table, entry.matches, entry.priority)
    message.action.CopyFrom(encode_action(info, entry.action))
    message.is_const = entry.is_const
    return message


def decode_counter(message: p4r.CounterData) -> CounterData:
    """Return counter data; raises RefusedError for negative numbers."""
    if message.packet_count < 0 or message.byte_count < 0:
        raise invalid("counter data: packet_count and byte_count cannot be negative")
    return CounterData(message.packet_count, message.byte_count)


def encode_counter(data: CounterData) -> p4r.CounterData:
    """Return the message for counter data; counts wrap at 2^63, where the message's int64 ends."""
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
