"""The part of P4Info that the server works with, indexed by id and by name.

P4Runtime speaks in ids and byte strings; a device speaks in names and integers. Everything needed
to go from one to the other is read once, when a pipeline is pushed, and never changes after.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from finsy.proto import p4i

from softswitch.p4runtime.status import invalid


class MatchKind(enum.Enum):
    """Match kinds that have a P4Runtime encoding; the values are the names in P4 source."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"
    OPTIONAL = "optional"


_KINDS = {
    p4i.MatchField.EXACT: MatchKind.EXACT,
    p4i.MatchField.LPM: MatchKind.LPM,
    p4i.MatchField.TERNARY: MatchKind.TERNARY,
    p4i.MatchField.RANGE: MatchKind.RANGE,
    p4i.MatchField.OPTIONAL: MatchKind.OPTIONAL,
}

_PRIORITISED = frozenset({MatchKind.TERNARY, MatchKind.RANGE, MatchKind.OPTIONAL})


@dataclass(frozen=True, slots=True)
class Field:
    """A match field, an action parameter or a controller header field; `width` is in bits."""

    id: int
    name: str
    width: int


@dataclass(frozen=True, slots=True)
class KeyField(Field):
    """A match field of a table."""

    kind: MatchKind


@dataclass(frozen=True, slots=True)
class ActionInfo:
    """An action and its parameters in the order of their declaration."""

    id: int
    name: str
    params: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class ActionUse:
    """An action as one table may use it: in its entries, as its default, or both."""

    action: ActionInfo
    in_entries: bool
    as_default: bool


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table. `size` is in entries; `direct_counter` is that counter's id, or None."""

    id: int
    name: str
    fields: tuple[KeyField, ...]
    actions: Mapping[int, ActionUse]
    size: int
    const_entries: bool
    const_default: bool
    direct_counter: int | None

    @property
    def needs_priority(self) -> bool:
        """Whether entries carry a priority above 0 (P4Runtime specification, 9.1)."""
        return any(field.kind in _PRIORITISED for field in self.fields)


@dataclass(frozen=True, slots=True)
class CounterInfo:
    """An indirect counter of `size` cells."""

    id: int
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class PipelineInfo:
    """All of a P4Info that the server uses; maps by id, packet headers in field order."""

    tables: Mapping[int, TableInfo]
    actions: Mapping[int, ActionInfo]
    action_named: Mapping[str, ActionInfo]
    counters: Mapping[int, CounterInfo]
    packet_in: tuple[Field, ...]
    packet_out: tuple[Field, ...]

    @classmethod
    def read(cls, p4info: p4i.P4Info) -> PipelineInfo:
        """Index `p4info`.

        Raises RefusedError (INVALID_ARGUMENT) when it contradicts itself or uses what no encoding
        exists for here: a match kind of its own, a table whose actions come from an action profile.
        """
        actions = _by_id("action", (_action(message) for message in p4info.actions))
        counter_of = {counter.direct_table_id: counter for counter in p4info.direct_counters}
        return cls(
            tables=_by_id(
                "table",
                (
                    _table(message, actions, _id_of(counter_of.get(message.preamble.id)))
                    for message in p4info.tables
                ),
            ),
            actions=actions,
            action_named={action.name: action for action in actions.values()},
            counters=_by_id(
                "counter",
                (CounterInfo(m.preamble.id, m.preamble.name, m.size) for m in p4info.counters),
            ),
            packet_in=_header(p4info, "packet_in"),
            packet_out=_header(p4info, "packet_out"),
        )

    def table(self, table_id: int) -> TableInfo:
        """Return the table with this id; raises RefusedError when there is none."""
        return _known("table", self.tables, table_id)

    def counter(self, counter_id: int) -> CounterInfo:
        """Return the indirect counter with this id; raises RefusedError when there is none."""
        return _known("counter", self.counters, counter_id)


class _HasId(Protocol):
    @property
    def id(self) -> int: ...


_Thing = TypeVar("_Thing", bound=_HasId)
_Known = TypeVar("_Known")


def _known(what: str, things: Mapping[int, _Known], wanted: int) -> _Known:
    thing = things.get(wanted)
    if thing is None:
        raise invalid(f"Invalid P4 id: no {what} has id {wanted:#010x} in this pipeline's P4Info")
    return thing


def _by_id(what: str, things: Iterable[_Thing]) -> dict[int, _Thing]:
    by_id: dict[int, _Thing] = {}
    for thing in things:
        if thing.id in by_id:
            raise invalid(f"P4Info has two {what}s with id {thing.id:#010x}")
        by_id[thing.id] = thing
    return by_id


def _id_of(counter: p4i.DirectCounter | None) -> int | None:
    return None if counter is None else counter.preamble.id


def _action(message: p4i.Action) -> ActionInfo:
    params = tuple(Field(param.id, param.name, param.bitwidth) for param in message.params)
    return ActionInfo(message.preamble.id, message.preamble.name, params)


def _table(
    message: p4i.Table, actions: Mapping[int, ActionInfo], direct_counter: int | None
) -> TableInfo:
    name = message.preamble.name
    if message.implementation_id:
        raise invalid(f"table {name}: action profiles and selectors are not supported")
    uses = {}
    for ref in message.action_refs:
        action = actions.get(ref.id)
        if action is None:
            raise invalid(f"table {name}: P4Info has no action with id {ref.id:#010x}")
        uses[ref.id] = ActionUse(
            action,
            in_entries=ref.scope != p4i.ActionRef.DEFAULT_ONLY,
            as_default=ref.scope != p4i.ActionRef.TABLE_ONLY,
        )
    return TableInfo(
        id=message.preamble.id,
        name=name,
        fields=tuple(_key_field(name, field) for field in message.match_fields),
        actions=uses,
        size=message.size,
        const_entries=message.is_const_table,
        const_default=bool(message.const_default_action_id),
        direct_counter=direct_counter,
    )


def _key_field(table: str, message: p4i.MatchField) -> KeyField:
    kind = _KINDS.get(message.match_type)
    if kind is None:
        named = message.other_match_type or p4i.MatchField.MatchType.Name(message.match_type)
        raise invalid(f"table {table}, field {message.name}: match kind {named} is not supported")
    return KeyField(message.id, message.name, message.bitwidth, kind)


def _header(p4info: p4i.P4Info, name: str) -> tuple[Field, ...]:
    for message in p4info.controller_packet_metadata:
        if message.preamble.name == name:
            return tuple(Field(field.id, field.name, field.bitwidth) for field in message.metadata)
    return ()
