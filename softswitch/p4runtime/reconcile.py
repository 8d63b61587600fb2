"""RECONCILE_AND_COMMIT: another program, with what the controller wrote to the one before.

All of it is written to a device that nobody uses, which then takes the place of the one in use, in
one step: packets see no empty table, and a push that cannot take everything over is refused with
nothing changed. Counters, meters, registers and ages are not copied but go on (`Device.succeed`).
simple_switch_grpc does not take over counters and meters, and refuses programs that have any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import grpc
from finsy.proto import p4r

from softswitch.device import Device
from softswitch.entries import ActionCall
from softswitch.p4runtime import reads, writes
from softswitch.p4runtime.p4info import TableInfo
from softswitch.p4runtime.status import RefusedError
from softswitch.p4runtime.writes import Pipeline


def held(device: Device, pipeline: Pipeline) -> list[p4r.Update]:
    """Return the updates that make an empty device hold what `device` holds, in their order.

    Registers and direct counters of default entries are not among it.
    """
    return [
        *_updates(p4r.Update.INSERT, device, pipeline, _inserted()),
        *_updates(p4r.Update.MODIFY, device, pipeline, _defaults(device, pipeline)),
        *_updates(p4r.Update.MODIFY, device, pipeline, _modified()),
    ]


def take_over(device: Device, pipeline: Pipeline, updates: Iterable[p4r.Update]) -> None:
    """Carry out `updates`; raises RefusedError (UNKNOWN, as there) naming the first that fails."""
    for update in updates:
        try:
            writes.apply(device, pipeline, update)
        except RefusedError as refused:
            raise RefusedError(
                grpc.StatusCode.UNKNOWN,
                f"Error when reconciling config: {refused.code.name}: {refused.text}",
            ) from refused


def _inserted() -> Iterator[p4r.Entity]:
    """Yield requests for all that is inserted; what others refer to comes first."""
    yield p4r.Entity(action_profile_member=p4r.ActionProfileMember())
    yield p4r.Entity(action_profile_group=p4r.ActionProfileGroup())
    everything = p4r.TableEntry()
    everything.counter_data.SetInParent()
    everything.meter_config.SetInParent()
    yield p4r.Entity(table_entry=everything)
    yield p4r.Entity(digest_entry=p4r.DigestEntry())


def _defaults(device: Device, pipeline: Pipeline) -> Iterator[p4r.Entity]:
    """Yield requests for the default entries that are not those of the program."""
    for table in pipeline.info.tables.values():
        if device.default_action(table.name) != _declared_default(device, table):
            yield p4r.Entity(table_entry=p4r.TableEntry(table_id=table.id, is_default_action=True))


def _declared_default(device: Device, table: TableInfo) -> ActionCall | None:
    program = device.program
    declared = program.tables[table.name].default
    if declared is None:
        return None
    return ActionCall(program.actions[declared.action].name, declared.params)


def _modified() -> Iterator[p4r.Entity]:
    yield p4r.Entity(counter_entry=p4r.CounterEntry())
    yield p4r.Entity(meter_entry=p4r.MeterEntry())
    yield p4r.Entity(value_set_entry=p4r.ValueSetEntry())


def _updates(
    kind: p4r.Update.Type.ValueType,
    device: Device,
    pipeline: Pipeline,
    requests: Iterable[p4r.Entity],
) -> Iterator[p4r.Update]:
    for request in requests:
        for entity in reads.answer(device, pipeline, request):
            if not _is_given(entity):
                yield p4r.Update(type=kind, entity=entity)


def _is_given(entity: p4r.Entity) -> bool:
    """Say whether an entity is there without anybody having written it."""
    match entity.WhichOneof("entity"):
        case "table_entry":
            return entity.table_entry.is_const
        case "counter_entry":
            return bool(entity.counter_entry.data == p4r.CounterData())
        case "meter_entry":
            return not entity.meter_entry.HasField("config")
        case "value_set_entry":
            return not entity.value_set_entry.members
    return False
