"""Meters over P4Runtime, indirect and direct, written and read."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
from finsy.proto import p4r

from softswitch.device import Device
from softswitch.entries import MeterConfig, TableEntry
from softswitch.errors import NotFound
from softswitch.p4runtime import translate
from softswitch.p4runtime.p4info import MeterInfo, PipelineInfo, TableInfo
from softswitch.p4runtime.status import RefusedError, invalid, unimplemented

_RATE_LIMIT = 1 << 64
_BURST_LIMIT = 1 << 32


def decode_config(message: p4r.MeterConfig) -> MeterConfig | None:
    """Return a configuration; None for one that leaves every packet green.

    -1 means no limit, as in simple_switch_grpc. Raises RefusedError: INVALID_ARGUMENT for other
    negative numbers and a PIR below the CIR, UNIMPLEMENTED for bursts of 2^32 or more (as there).
    """
    values = (message.cir, message.cburst, message.pir, message.pburst)
    for name, value in zip(("CIR", "CBurst", "PIR", "PBurst"), values, strict=True):
        if value < -1:
            raise invalid(f"Negative meter {name}: {value}")
    for name, value in (("CBurst", message.cburst), ("PBurst", message.pburst)):
        if value >= _BURST_LIMIT:
            raise unimplemented(f"{name} too large: {value} is above {_BURST_LIMIT - 1}")
    if all(value == -1 for value in values):
        return None
    config = MeterConfig(
        message.cir % _RATE_LIMIT,
        message.cburst % _BURST_LIMIT,
        message.pir % _RATE_LIMIT,
        message.pburst % _BURST_LIMIT,
    )
    if config.pir < config.cir:
        raise invalid(f"meter PIR {message.pir} is below its CIR {message.cir} (RFC 2698)")
    return config


def encode_config(config: MeterConfig) -> p4r.MeterConfig:
    """Return the message for a configuration."""
    return p4r.MeterConfig(
        cir=_signed(config.cir, _RATE_LIMIT),
        cburst=_signed(config.cburst, _BURST_LIMIT),
        pir=_signed(config.pir, _RATE_LIMIT),
        pburst=_signed(config.pburst, _BURST_LIMIT),
    )


def _signed(value: int, limit: int) -> int:
    return -1 if value == limit - 1 else value


def _config_of(
    kind: p4r.Update.Type.ValueType, entry: p4r.MeterEntry | p4r.DirectMeterEntry
) -> MeterConfig | None:
    """Return what a write sets; raises RefusedError for anything but MODIFY."""
    if kind != p4r.Update.MODIFY:
        name = p4r.Update.Type.Name(kind)
        raise invalid(f"{name} update type not supported for meters: use MODIFY")
    return decode_config(entry.config) if entry.HasField("config") else None


def write(
    device: Device,
    info: PipelineInfo,
    kind: p4r.Update.Type.ValueType,
    entry: p4r.MeterEntry,
) -> None:
    """Configure one cell of an indirect meter; raises RefusedError."""
    meter = info.meter(entry.meter_id)
    if not entry.HasField("index"):
        raise unimplemented(
            f"meter {meter.name}: Wildcard write is not supported for indirect meters: write cell "
            "by cell"
        )
    index = _index(meter, entry.index)
    device.set_meter(meter.name, index, _config_of(kind, entry))


def _index(meter: MeterInfo, index: p4r.Index) -> int:
    if index.index < 0:
        raise invalid(f"meter {meter.name}: A negative number is not a valid index value")
    if index.index >= meter.size:
        raise RefusedError(
            grpc.StatusCode.OUT_OF_RANGE,
            f"meter {meter.name}: index {index.index} is outside 0..{meter.size - 1}",
        )
    return index.index


def write_direct(
    device: Device,
    info: PipelineInfo,
    kind: p4r.Update.Type.ValueType,
    entry: p4r.DirectMeterEntry,
) -> None:
    """Configure the meter of a table entry; raises RefusedError."""
    table = _metered(info, entry)
    matches, priority = translate.decode_key(table, entry.table_entry)
    config = _config_of(kind, entry)
    try:
        device.set_direct_meter(table.name, matches, priority, config)
    except NotFound as error:
        raise translate.no_such_entry(error) from error


def _metered(info: PipelineInfo, entry: p4r.DirectMeterEntry) -> TableInfo:
    if not entry.HasField("table_entry"):
        raise invalid("Missing table_entry field in DirectMeterEntry")
    table = info.table(entry.table_entry.table_id)
    if not table.direct_meter:
        raise invalid(f"table {table.name}: Table has no direct meters")
    if entry.table_entry.is_default_action:
        raise unimplemented(f"table {table.name}: the default entry has no meter of its own")
    return table


def read(device: Device, info: PipelineInfo, request: p4r.MeterEntry) -> Iterator[p4r.Entity]:
    """Yield the cells asked for; meter 0 is all meters, no index all cells."""
    meters = [info.meter(request.meter_id)] if request.meter_id else list(info.meters.values())
    for meter in meters:
        indexes = [_index(meter, request.index)] if request.HasField("index") else range(meter.size)
        for index in indexes:
            message = p4r.MeterEntry(meter_id=meter.id, index=p4r.Index(index=index))
            config = device.meter(meter.name, index)
            if config is not None:
                message.config.CopyFrom(encode_config(config))
            yield p4r.Entity(meter_entry=message)


def read_direct(
    device: Device,
    info: PipelineInfo,
    request: p4r.DirectMeterEntry,
    selected: Iterator[tuple[TableInfo, TableEntry]],
) -> Iterator[p4r.Entity]:
    """Yield the direct meters of the entries `selected`, which is lazy: checks come first."""
    if request.table_entry.table_id or not request.HasField("table_entry"):
        _metered(info, request)
    for table, entry in selected:
        if not table.direct_meter:
            continue
        message = p4r.DirectMeterEntry()
        key = translate.encode_key(table, entry.matches, entry.priority)
        message.table_entry.CopyFrom(key)
        config = device.direct_meter(table.name, entry.matches, entry.priority)
        if config is not None:
            message.config.CopyFrom(encode_config(config))
        yield p4r.Entity(direct_meter_entry=message)
