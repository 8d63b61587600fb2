"""One update of a Write request, carried out on a device."""

from __future__ import annotations

from dataclasses import dataclass, field

import grpc
from finsy.proto import p4r

from softswitch.device import Device
from softswitch.entries import Match, TableEntry
from softswitch.errors import SoftswitchError
from softswitch.p4runtime import translate
from softswitch.p4runtime.p4info import PipelineInfo, TableInfo
from softswitch.p4runtime.status import RefusedError, invalid, refusal, unimplemented

MAX_GROUP = (1 << 15) - 1
"""The largest multicast group and clone session id, as in simple_switch_grpc."""

EntryId = tuple[str, tuple[Match, ...] | None, int]
"""Table, matches (None: the default entry) and priority."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a pushed pipeline adds to the device: the index of its P4Info, and client metadata.

    `metadata` holds, per entry, the (controller_metadata, metadata) that its writer attached: they
    mean nothing to the device, and go back to the client with the entry.
    """

    info: PipelineInfo
    metadata: dict[EntryId, tuple[int, bytes]] = field(default_factory=dict)


def apply(device: Device, pipeline: Pipeline, update: p4r.Update) -> None:
    """Carry out one update; raises RefusedError when it is refused, and then changes nothing."""
    if update.type not in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE):
        raise invalid("Update type is not set: it must be INSERT, MODIFY or DELETE")
    entity = update.entity
    kind = entity.WhichOneof("entity")
    try:
        match kind:
            case "table_entry":
                _table_entry(device, pipeline, update.type, entity.table_entry)
            case "counter_entry":
                _counter(device, pipeline, update.type, entity.counter_entry)
            case "direct_counter_entry":
                _direct_counter(device, pipeline, update.type, entity.direct_counter_entry)
            case "packet_replication_engine_entry":
                _replication(device, update.type, entity.packet_replication_engine_entry)
            case None:
                raise invalid("the update has no entity")
            case _:
                raise unimplemented(f"{kind} writes are not supported")
    except SoftswitchError as error:
        raise refusal(error) from error


def _table_entry(
    device: Device, pipeline: Pipeline, kind: p4r.Update.Type.ValueType, entry: p4r.TableEntry
) -> None:
    table = pipeline.info.table(entry.table_id)
    _refuse_ageing_and_meters(table, entry)
    if entry.HasField("counter_data") and table.direct_counter is None:
        raise invalid(f"table {table.name}: Table has no direct counters")
    if entry.is_default_action:
        _default_entry(device, pipeline, table, kind, entry)
        return
    matches, priority = translate.decode_key(table, entry)
    entry_id: EntryId = (table.name, matches, priority)
    if kind == p4r.Update.DELETE:
        device.delete_entry(table.name, matches, priority)
        pipeline.metadata.pop(entry_id, None)
        return
    if not entry.HasField("action"):
        raise invalid(f"table {table.name}: 'action' field must be set")
    action = translate.decode_action(table, entry.action, as_default=False)
    counter = translate.decode_counter(entry.counter_data)
    if kind == p4r.Update.INSERT:
        device.insert_entry(TableEntry(table.name, matches, action, priority))
    else:
        device.modify_entry(TableEntry(table.name, matches, action, priority))
    if entry.HasField("counter_data"):
        device.set_direct_counter(table.name, matches, priority, counter)
    _keep_metadata(pipeline, entry_id, entry)


def _default_entry(
    device: Device,
    pipeline: Pipeline,
    table: TableInfo,
    kind: p4r.Update.Type.ValueType,
    entry: p4r.TableEntry,
) -> None:
    """Set a table's default action, or reset it to the program's when no action is given."""
    if kind != p4r.Update.MODIFY:
        name = p4r.Update.Type.Name(kind)
        raise invalid(f"table {table.name}: Cannot use {name} for default entry, only MODIFY")
    if entry.match or entry.priority:
        raise invalid(f"table {table.name}: the default entry has neither match nor priority")
    if table.const_default:
        raise RefusedError(
            grpc.StatusCode.PERMISSION_DENIED,
            f"table {table.name}: Cannot set / reset default action: it is const in the program",
        )
    entry_id: EntryId = (table.name, None, 0)
    if not entry.HasField("action"):
        device.reset_default_action(table.name)
        pipeline.metadata.pop(entry_id, None)
        return
    action = translate.decode_action(table, entry.action, as_default=True)
    counter = translate.decode_counter(entry.counter_data)
    device.set_default_action(table.name, action)
    if entry.HasField("counter_data"):
        device.set_direct_counter(table.name, None, 0, counter)
    _keep_metadata(pipeline, entry_id, entry)


def _refuse_ageing_and_meters(table: TableInfo, entry: p4r.TableEntry) -> None:
    if entry.HasField("time_since_last_hit"):
        raise invalid("has_time_since_last_hit must not be set in WriteRequest")
    if entry.idle_timeout_ns:
        raise invalid(f"table {table.name}: idle_timeout_ns must be 0: entries do not age here")
    if entry.HasField("meter_config") or entry.HasField("meter_counter_data"):
        raise unimplemented(f"table {table.name}: direct meters are not supported")


def _keep_metadata(pipeline: Pipeline, entry_id: EntryId, entry: p4r.TableEntry) -> None:
    if entry.controller_metadata or entry.metadata:
        pipeline.metadata[entry_id] = (entry.controller_metadata, entry.metadata)
    else:
        pipeline.metadata.pop(entry_id, None)


def _modify_only(kind: p4r.Update.Type.ValueType) -> None:
    if kind != p4r.Update.MODIFY:
        name = p4r.Update.Type.Name(kind)
        raise invalid(f"{name} update type not supported for counters: use MODIFY")


def _counter(
    device: Device, pipeline: Pipeline, kind: p4r.Update.Type.ValueType, entry: p4r.CounterEntry
) -> None:
    counter = pipeline.info.counter(entry.counter_id)
    if not entry.HasField("index"):
        raise unimplemented(
            f"counter {counter.name}: Wildcard write is not supported for indirect counters: "
            "write cell by cell"
        )
    _modify_only(kind)
    device.set_counter(
        counter.name,
        translate.decode_index(counter, entry.index),
        translate.decode_counter(entry.data),
    )


def _direct_counter(
    device: Device,
    pipeline: Pipeline,
    kind: p4r.Update.Type.ValueType,
    entry: p4r.DirectCounterEntry,
) -> None:
    if not entry.HasField("table_entry"):
        raise invalid("Missing table_entry field in DirectCounterEntry")
    table = pipeline.info.table(entry.table_entry.table_id)
    if table.direct_counter is None:
        raise invalid(f"table {table.name}: Table has no direct counters")
    _modify_only(kind)
    value = translate.decode_counter(entry.data)
    if entry.table_entry.is_default_action:
        device.set_direct_counter(table.name, None, 0, value)
        return
    matches, priority = translate.decode_key(table, entry.table_entry)
    device.set_direct_counter(table.name, matches, priority, value)


def _replication(
    device: Device,
    kind: p4r.Update.Type.ValueType,
    entry: p4r.PacketReplicationEngineEntry,
) -> None:
    match entry.WhichOneof("type"):
        case "multicast_group_entry":
            _group(device, kind, entry.multicast_group_entry)
        case "clone_session_entry":
            _session(device, kind, entry.clone_session_entry)
        case _:
            raise invalid("Invalid PRE operation: neither a multicast group nor a clone session")


def _group(device: Device, kind: p4r.Update.Type.ValueType, entry: p4r.MulticastGroupEntry) -> None:
    group = entry.multicast_group_id
    if group == 0:
        raise invalid("0 is not a valid group id: it means no multicast")
    if group > MAX_GROUP:
        raise RefusedError(
            grpc.StatusCode.OUT_OF_RANGE, f"Group id value is too high: {group} > {MAX_GROUP}"
        )
    if kind == p4r.Update.DELETE:
        device.delete_multicast_group(group)
        return
    replicas = translate.decode_replicas(f"multicast group {group}", entry.replicas)
    if kind == p4r.Update.INSERT:
        device.create_multicast_group(group, replicas)
    else:
        device.modify_multicast_group(group, replicas)


def _session(device: Device, kind: p4r.Update.Type.ValueType, entry: p4r.CloneSessionEntry) -> None:
    if not 0 < entry.session_id <= MAX_GROUP:
        raise invalid(f"Clone session id out-of-range: {entry.session_id} is not in 1..{MAX_GROUP}")
    if kind == p4r.Update.DELETE:
        device.delete_clone_session(entry.session_id)
        return
    session = translate.decode_session(entry)
    if kind == p4r.Update.INSERT:
        device.create_clone_session(session)
    else:
        device.modify_clone_session(session)
