"""One entity of a Read request, answered from a device.

A field left at its zero value is a wildcard: table 0 is all tables, no match all entries of a
table, counter 0 all counters, no index all cells, group 0 all groups.
"""

from __future__ import annotations

from collections.abc import Iterator

import grpc
from finsy.proto import p4r

from softswitch.device import Device
from softswitch.entries import TableEntry
from softswitch.errors import NotFound, SoftswitchError
from softswitch.p4runtime import meters, profiles, translate, value_sets
from softswitch.p4runtime.actions import encode_action
from softswitch.p4runtime.p4info import CounterInfo, TableInfo
from softswitch.p4runtime.status import RefusedError, invalid, not_found, refusal, unimplemented
from softswitch.p4runtime.writes import MAX_GROUP, EntryId, Pipeline


def answer(device: Device, pipeline: Pipeline, request: p4r.Entity) -> Iterator[p4r.Entity]:
    """Yield the entities that `request` stands for; raises RefusedError for a bad request.

    A table entry that is asked for by its key and is not there yields nothing; a multicast group or
    clone session that is not there is NOT_FOUND (both as in simple_switch_grpc).
    """
    kind = request.WhichOneof("entity")
    try:
        match kind:
            case "table_entry":
                yield from _table_entries(device, pipeline, request.table_entry)
            case "counter_entry":
                yield from _counters(device, pipeline, request.counter_entry)
            case "direct_counter_entry":
                yield from _direct_counters(device, pipeline, request.direct_counter_entry)
            case "packet_replication_engine_entry":
                yield from _replication(device, request.packet_replication_engine_entry)
            case "action_profile_member":
                yield from profiles.read_members(
                    device, pipeline.info, request.action_profile_member
                )
            case "action_profile_group":
                yield from profiles.read_groups(device, pipeline.info, request.action_profile_group)
            case "meter_entry":
                yield from meters.read(device, pipeline.info, request.meter_entry)
            case "direct_meter_entry":
                meter = request.direct_meter_entry
                yield from meters.read_direct(
                    device, pipeline.info, meter, _keyed(device, pipeline, meter.table_entry)
                )
            case "value_set_entry":
                yield from value_sets.read(device, pipeline.info, request.value_set_entry)
            case "digest_entry":
                yield from pipeline.digests.read(request.digest_entry)
            case None:
                raise invalid("the request has an empty entity")
            case _:
                raise unimplemented(f"{kind} reads are not supported")
    except SoftswitchError as error:
        raise refusal(error) from error


def _tables(pipeline: Pipeline, table_id: int) -> list[TableInfo]:
    if table_id == 0:
        return list(pipeline.info.tables.values())
    return [pipeline.info.table(table_id)]


def _selected(device: Device, table: TableInfo, request: p4r.TableEntry) -> tuple[TableEntry, ...]:
    """Return the entries of one table that the key in `request` selects, all when it is empty."""
    if not request.match:
        return device.read_entries(table.name)
    matches, priority = translate.decode_key(table, request)
    try:
        return (device.read_entry(table.name, matches, priority),)
    except NotFound:
        return ()


def _keyed(
    device: Device, pipeline: Pipeline, request: p4r.TableEntry
) -> Iterator[tuple[TableInfo, TableEntry]]:
    for table in _tables(pipeline, request.table_id):
        for entry in _selected(device, table, request):
            yield table, entry


def _table_entries(
    device: Device, pipeline: Pipeline, request: p4r.TableEntry
) -> Iterator[p4r.Entity]:
    if request.match and request.table_id == 0:
        raise invalid("a match needs a table_id: fields are numbered per table")
    for table in _tables(pipeline, request.table_id):
        _check_wishes(table, request)
        if request.is_default_action:
            message = _default_entry(device, pipeline, table)
            if request.HasField("counter_data") and table.direct_counter:
                counter = device.direct_counter(table.name, None)
                message.counter_data.CopyFrom(translate.encode_counter(counter))
            yield p4r.Entity(table_entry=message)
            continue
        for entry in _selected(device, table, request):
            message = translate.encode_entry(pipeline.info, table, entry)
            _attach_metadata(pipeline, message, (table.name, entry.matches, entry.priority))
            _attach_wishes(device, table, request, message, entry)
            yield p4r.Entity(table_entry=message)


def _check_wishes(table: TableInfo, request: p4r.TableEntry) -> None:
    if not request.HasField("time_since_last_hit"):
        return
    if request.is_default_action:
        raise invalid("Default table entries do not support entry ageing")
    if not table.ages:
        raise invalid(
            f"table {table.name}: Do not set time_since_last_hit for a ReadRequest if the table "
            "does not support idle timeout"
        )


def _attach_wishes(
    device: Device,
    table: TableInfo,
    request: p4r.TableEntry,
    message: p4r.TableEntry,
    entry: TableEntry,
) -> None:
    """Add what the request asks for by having the field set: counter, meter, age."""
    key = (table.name, entry.matches, entry.priority)
    if request.HasField("counter_data") and table.direct_counter:
        counter = device.direct_counter(*key)
        message.counter_data.CopyFrom(translate.encode_counter(counter))
    if request.HasField("meter_config") and table.direct_meter:
        config = device.direct_meter(*key)
        if config is not None:
            message.meter_config.CopyFrom(meters.encode_config(config))
    if request.HasField("time_since_last_hit"):
        message.time_since_last_hit.elapsed_ns = device.idle_us(*key) * 1000


def _default_entry(device: Device, pipeline: Pipeline, table: TableInfo) -> p4r.TableEntry:
    message = p4r.TableEntry(table_id=table.id, is_default_action=True)
    action = device.default_action(table.name)
    if action is not None:
        message.action.CopyFrom(encode_action(pipeline.info, action))
    message.is_const = table.const_default
    _attach_metadata(pipeline, message, (table.name, None, 0))
    return message


def _counters(
    device: Device, pipeline: Pipeline, request: p4r.CounterEntry
) -> Iterator[p4r.Entity]:
    counters: list[CounterInfo]
    if request.counter_id:
        counters = [pipeline.info.counter(request.counter_id)]
    else:
        counters = list(pipeline.info.counters.values())
    for counter in counters:
        if request.HasField("index"):
            index = translate.decode_index(counter, request.index)
            cells = [(index, device.counter(counter.name, index))]
        else:
            cells = list(enumerate(device.counters(counter.name)))
        for index, data in cells:
            entity = p4r.Entity()
            entity.counter_entry.counter_id = counter.id
            entity.counter_entry.index.index = index
            entity.counter_entry.data.CopyFrom(translate.encode_counter(data))
            yield entity


def _direct_counters(
    device: Device, pipeline: Pipeline, request: p4r.DirectCounterEntry
) -> Iterator[p4r.Entity]:
    if not request.HasField("table_entry"):
        raise invalid("Missing table_entry field in DirectCounterEntry")
    wanted = request.table_entry
    for table in _tables(pipeline, wanted.table_id):
        if not table.direct_counter:
            if wanted.table_id:
                raise invalid(f"table {table.name}: Table has no direct counters")
            continue
        if wanted.is_default_action:
            yield _direct_counter(device, table, None)
            continue
        for entry in _selected(device, table, wanted):
            yield _direct_counter(device, table, entry)


def _direct_counter(device: Device, table: TableInfo, entry: TableEntry | None) -> p4r.Entity:
    entity = p4r.Entity()
    message = entity.direct_counter_entry
    if entry is None:
        message.table_entry.table_id = table.id
        message.table_entry.is_default_action = True
        data = device.direct_counter(table.name, None)
    else:
        message.table_entry.CopyFrom(translate.encode_key(table, entry.matches, entry.priority))
        data = device.direct_counter(table.name, entry.matches, entry.priority)
    message.data.CopyFrom(translate.encode_counter(data))
    return entity


def _replication(device: Device, request: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.Entity]:
    match request.WhichOneof("type"):
        case "multicast_group_entry":
            wanted = request.multicast_group_entry.multicast_group_id
            if wanted > MAX_GROUP:
                raise RefusedError(
                    grpc.StatusCode.OUT_OF_RANGE, f"Group id value is too high: {wanted}"
                )
            groups = device.multicast_groups()
            if wanted and wanted not in groups:
                raise not_found(f"Multicast group does not exist: {wanted}")
            for group in [wanted] if wanted else sorted(groups):
                yield translate.encode_group(group, groups[group])
        case "clone_session_entry":
            wanted = request.clone_session_entry.session_id
            sessions = device.clone_sessions()
            if wanted and wanted not in sessions:
                raise not_found(f"Clone session id does not exist: {wanted}")
            for session in [wanted] if wanted else sorted(sessions):
                yield translate.encode_session(sessions[session])
        case _:
            raise invalid("Invalid PRE operation: neither a multicast group nor a clone session")


def _attach_metadata(pipeline: Pipeline, message: p4r.TableEntry, entry_id: EntryId) -> None:
    kept = pipeline.metadata.get(entry_id)
    if kept is not None:
        message.controller_metadata, message.metadata = kept
