"""The P4 program as the control plane sees it: names instead of ids, ints instead of bytes.

A name may be the full one of P4Info ("BluetreeIngress.upstream.upstream") or its alias, P4Info's
shortest unique form of it ("upstream"). What is read back from a switch carries aliases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from finsy import (
    P4CloneSessionEntry,
    P4CounterEntry,
    P4MulticastGroupEntry,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.p4entity import P4Replica, decode_entity
from finsy.p4schema import P4MatchField, P4MatchType, P4Table
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from controller.p4rt.errors import SchemaError
from controller.program import (
    CloneSession,
    Entity,
    MatchValue,
    MulticastGroup,
    Op,
    ProgramError,
    TableEntry,
    Update,
)

_OPS = {
    Op.INSERT: p4r.Update.INSERT,
    Op.MODIFY: p4r.Update.MODIFY,
    Op.DELETE: p4r.Update.DELETE,
}


class Artefacts(Protocol):
    """A compiled program: p4c's bmv2 JSON, its P4Info as protobuf text, and a name for both.

    `cookie` is any 64-bit number; equal cookies mean the same program.
    """

    @property
    def json(self) -> bytes: ...

    @property
    def p4info(self) -> str: ...

    @property
    def cookie(self) -> int: ...


class Schema:
    """Translates between `controller.program` values and P4Runtime messages, for one program."""

    def __init__(self, artefacts: Artefacts) -> None:
        """Read the P4Info; raises SchemaError where it is not one."""
        p4info = p4i.P4Info()
        try:
            text_format.Parse(artefacts.p4info, p4info)
            self._names = P4Schema(p4info)
        except (text_format.ParseError, ValueError) as error:
            raise SchemaError("", f"the P4Info is not usable: {error}") from error
        self.cookie = artefacts.cookie
        self.pipeline = p4r.ForwardingPipelineConfig(
            p4info=p4info,
            p4_device_config=artefacts.json,
            cookie=p4r.ForwardingPipelineConfig.Cookie(cookie=artefacts.cookie),
        )

    @property
    def names(self) -> P4Schema:
        """Finsy's schema of the program, for those who speak finsy directly."""
        return self._names

    def update(self, update: Update) -> p4r.Update:
        """Return the message for one update; raises SchemaError for what the program lacks."""
        return p4r.Update(type=_OPS[update.op], entity=self.entity(update.entity))

    def entity(self, entity: Entity) -> p4r.Entity:
        """Return the message for an entry, group or session; raises SchemaError."""
        try:
            match entity:
                case TableEntry():
                    return self._entry(entity)
                case MulticastGroup(group, replicas):
                    return P4MulticastGroupEntry(group, replicas=replicas).encode(self._names)
                case CloneSession(session, replicas, length):
                    return P4CloneSessionEntry(
                        session, replicas=replicas, packet_length_bytes=length
                    ).encode(self._names)
        except ValueError as error:
            raise SchemaError("", f"{entity}: {error}") from error

    def value(self, message: p4r.Entity) -> Entity:
        """Return the value of an entity read from a switch, aliases for names."""
        try:
            decoded = decode_entity(message, self._names)
            match decoded:
                case P4TableEntry():
                    return _table_entry(decoded)
                case P4MulticastGroupEntry():
                    replicas = _replicas(decoded.replicas)
                    return MulticastGroup(decoded.multicast_group_id, replicas)
                case P4CloneSessionEntry():
                    return CloneSession(
                        decoded.session_id,
                        _replicas(decoded.replicas),
                        decoded.packet_length_bytes,
                    )
        except (ValueError, ProgramError) as error:
            raise SchemaError("", f"the switch holds what the program lacks: {error}") from error
        raise SchemaError("", f"the switch answered with a {type(decoded).__name__}")

    def canonical(self, entry: TableEntry) -> TableEntry:
        """Return the entry as it would be read back: aliases, nothing that matches anything.

        Entries are comparable only in this form. Raises SchemaError as `entity`.
        """
        value = self.value(self.entity(entry))
        if not isinstance(value, TableEntry):
            raise TypeError(f"{entry} was encoded as {value}")
        return value

    def is_const(self, message: p4r.Entity) -> bool:
        """Say whether an entity read from a switch is an entry that the program fixes.

        Switches before P4Runtime 1.4 do not say so of an entry; P4Info says so of its table.
        """
        if message.WhichOneof("entity") != "table_entry":
            return False
        table = self._names.tables.get(message.table_entry.table_id)
        return message.table_entry.is_const or (table is not None and table.is_const)

    def table(self, name: str) -> P4Table:
        """Return the table of this name; raises SchemaError."""
        try:
            return self._names.tables[name]
        except ValueError as error:
            raise SchemaError("", str(error)) from error

    def counter_request(self, name: str, index: int | None = None) -> p4r.Entity:
        """Return the request for a cell of an indirect counter, or all; raises SchemaError."""
        try:
            return P4CounterEntry(name, index=index).encode(self._names)
        except ValueError as error:
            raise SchemaError("", str(error)) from error

    def _entry(self, entry: TableEntry) -> p4r.Entity:
        table = self._names.tables[entry.table]
        return P4TableEntry(
            entry.table,
            match=P4TableMatch(_match(table, dict(entry.match))),
            action=_action(table, entry),
            priority=entry.priority,
        ).encode(self._names)


def _match(table: P4Table, match: Mapping[str, MatchValue]) -> dict[str, Any]:
    """Return a match for finsy: checked, and without fields that match anything."""
    given: dict[str, Any] = {}
    for name, value in match.items():
        field = table.match_fields[name]
        wanted = _field_value(field, value)
        if wanted is not None:
            given[name] = wanted
    present = {table.match_fields[name].id for name in given}
    for field in table.match_fields:
        if field.match_type is P4MatchType.EXACT and field.id not in present:
            raise ValueError(f"field {field.alias} is exact and has to be given")
    return given


def _field_value(field: P4MatchField, value: MatchValue) -> Any:
    """Return the value as finsy takes it, or None for one that matches anything."""
    full = (1 << field.bitwidth) - 1
    value_parts = value if isinstance(value, tuple) else (value,)
    for part in value_parts:
        _check_fits(f"field {field.alias}", part, field.bitwidth)
    match field.match_type, value:
        case P4MatchType.OPTIONAL, (exact, mask):
            if mask not in (0, full):
                raise ValueError(f"field {field.alias}: an optional match has mask 0 or {full:#x}")
            return exact if mask else None
        case P4MatchType.TERNARY, (_, 0):
            return None
        case P4MatchType.TERNARY, (bits, mask) if bits & ~mask:
            raise ValueError(f"field {field.alias}: {bits:#x} has bits outside mask {mask:#x}")
        case P4MatchType.RANGE, int():
            return (value, value)
        case P4MatchType.RANGE, (low, high) if low > high:
            raise ValueError(f"field {field.alias}: the range {low}..{high} is empty")
        case P4MatchType.RANGE, (0, high) if high == full:
            return None
        case P4MatchType.EXACT, (_, _):
            raise ValueError(f"field {field.alias} is exact: give one integer, not a pair")
    return value


def _action(table: P4Table, entry: TableEntry) -> P4TableAction:
    params = table.actions[entry.action].params
    wanted = {param.name for param in params}
    given = {name for name, _ in entry.params}
    if given != wanted:
        raise ValueError(
            f"action {entry.action} takes the parameters {sorted(wanted)}, not {sorted(given)}"
        )
    for name, value in entry.params:
        _check_fits(f"parameter {name}", value, params[name].bitwidth)
    return P4TableAction(entry.action, **dict(entry.params))


def _check_fits(what: str, value: int, width: int) -> None:
    if not 0 <= value < 1 << width:
        raise ValueError(f"{what}: {value} does not fit its {width} bits")


def _table_entry(decoded: P4TableEntry) -> TableEntry:
    if not isinstance(decoded.action, P4TableAction):
        raise ValueError(f"table {decoded.table_id}: an entry without a direct action")
    return TableEntry.of(
        decoded.table_id,
        {name: _as_ints(value) for name, value in (decoded.match or {}).items()},
        decoded.action.name,
        {name: int(value) for name, value in decoded.action.args.items()},
        decoded.priority,
    )


def _as_ints(value: Any) -> MatchValue:
    # Fields annotated with @format come back as address objects.
    if isinstance(value, tuple):
        first, second = value
        return (int(first), int(second))
    network = getattr(value, "network_address", None)
    if network is not None:
        return (int(network), value.prefixlen)
    return int(value)


def _replicas(replicas: Any) -> tuple[tuple[int, int], ...]:
    pairs = []
    for replica in replicas:
        if isinstance(replica, P4Replica):
            pairs.append((replica.port, replica.instance))
        else:
            pairs.append((int(replica), 0))
    return tuple(pairs)
