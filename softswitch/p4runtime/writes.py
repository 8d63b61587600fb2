"""One update of a Write request, carried out on a device."""

from __future__ import annotations

from dataclasses import dataclass, field

import grpc
from finsy.proto import p4r

from softswitch.device import Device
from softswitch.entries import CounterData, Match, MeterConfig, TableEntry
from softswitch.errors import NotFound, SoftswitchError
from softswitch.p4runtime import meters, profiles, translate, value_sets
from softswitch.p4runtime.actions import decode_action, decode_default
from softswitch.p4runtime.notices import Digests
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
    mean nothing to the device, and go back to the client with the entry. `digests` are those that
    the controller has asked for.
    """

    info: PipelineInfo
    digests: Digests
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
            case "action_profile_member":
                profiles.write_member(
                    device, pipeline.info, update.type, entity.action_profile_member
                )
            case "action_profile_group":
                profiles.write_group(
                    device, pipeline.info, update.type, entity.action_profile_group
                )
            case "meter_entry":
                meters.write(device, pipeline.info, update.type, entity.meter_entry)
            case "direct_meter_entry":
                meters.write_direct(device, pipeline.info, update.type, entity.direct_meter_entry)
            case "value_set_entry":
                value_sets.write(device, pipeline.info, update.type, entity.value_set_entry)
            case "digest_entry":
                pipeline.digests.write(update.type, entity.digest_entry)
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
    if entry.HasField("time_since_last_hit"):
        raise invalid("has_time_since_last_hit must not be set in WriteRequest")
    if entry.idle_timeout_ns and not table.ages:
        raise invalid(
            f"table {table.name}: idle_timeout_ns must be set to 0 for tables which do not support "
            "idle timeout"
        )
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
    action = decode_action(pipeline.info, table, entry.action)
    resources = _direct_resources(table, entry)
    stored = TableEntry(
        table.name, matches, action, priority, idle_timeout_ns=entry.idle_timeout_ns
    )
    try:
        if kind == p4r.Update.INSERT:
            device.insert_entry(stored)
        else:
            device.modify_entry(stored)
    except NotFound as error:
        raise _missing(table, kind, stored, device, error) from error
    _set_direct(device, resources, matches, priority)
    _keep_metadata(pipeline, entry_id, entry)


def _missing(
    table: TableInfo,
    kind: p4r.Update.Type.ValueType,
    entry: TableEntry,
    device: Device,
    error: NotFound,
) -> RefusedError:
    """Return the refusal of an entry that is not there, or whose member or group is not."""
    if table.profile is None:
        return refusal(error)
    if kind == p4r.Update.MODIFY:
        try:
            device.read_entry(entry.table, entry.matches, entry.priority)
        except NotFound:
            return refusal(error)
    return invalid(f"table {table.name}: Invalid member / group id: {error}")


@dataclass(frozen=True, slots=True)
class _Resources:
    """The direct resources that a write gives an entry; None: those it has."""

    table: str
    counter: CounterData | None
    meter: MeterConfig | None
    sets_meter: bool


def _direct_resources(table: TableInfo, entry: p4r.TableEntry) -> _Resources:
    """Return what to set beside an entry; raises RefusedError if the table has no such thing."""
    counter = None
    if entry.HasField("counter_data"):
        if not table.direct_counter:
            raise invalid(f"table {table.name}: Table has no direct counters")
        counter = translate.decode_counter(entry.counter_data)
    sets_meter = entry.HasField("meter_config")
    if sets_meter and not table.direct_meter:
        raise invalid(f"table {table.name}: Table has no direct meters")
    meter = meters.decode_config(entry.meter_config) if sets_meter else None
    return _Resources(table.name, counter, meter, sets_meter)


def _set_direct(
    device: Device, resources: _Resources, matches: tuple[Match, ...] | None, priority: int
) -> None:
    if resources.counter is not None:
        device.set_direct_counter(resources.table, matches, priority, resources.counter)
    if resources.sets_meter and matches is not None:
        device.set_direct_meter(resources.table, matches, priority, resources.meter)


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
    if table.profile is not None:
        raise invalid(f"table {table.name}: Cannot set / reset default action for indirect table")
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
    if entry.HasField("meter_config"):
        raise unimplemented(f"table {table.name}: the default entry has no meter of its own")
    action = decode_default(table, entry.action)
    resources = _direct_resources(table, entry)
    device.set_default_action(table.name, action)
    _set_direct(device, resources, None, 0)
    _keep_metadata(pipeline, entry_id, entry)


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
    if not table.direct_counter:
        raise invalid(f"table {table.name}: Table has no direct counters")
    _modify_only(kind)
    value = translate.decode_counter(entry.data)
    if entry.table_entry.is_default_action:
        device.set_direct_counter(table.name, None, 0, value)
        return
    matches, priority = translate.decode_key(table, entry.table_entry)
    try:
        device.set_direct_counter(table.name, matches, priority, value)
    except NotFound as error:
        raise translate.no_such_entry(error) from error


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
