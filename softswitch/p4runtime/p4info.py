"""The part of P4Info that the server works with, indexed by id and by name.

P4Runtime speaks in ids and byte strings; a device speaks in names and integers. Everything needed
to go from one to the other is read once, when a pipeline is pushed, and never changes after.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
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
    """A table. `size` is in entries; `direct_counter` and `direct_meter` say whether it has them.

    `profile` is the id of the action profile that its entries refer to, or None; `ages` says
    whether they may have an idle timeout.
    """

    id: int
    name: str
    fields: tuple[KeyField, ...]
    actions: Mapping[int, ActionUse]
    size: int
    const_entries: bool
    const_default: bool
    direct_counter: bool
    direct_meter: bool
    profile: int | None
    ages: bool

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
class MeterInfo:
    """An indirect meter of `size` cells."""

    id: int
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """An action profile; `max_group_size` > 0 bounds the weights of a group and of a one-shot."""

    id: int
    name: str
    actions: Mapping[int, ActionInfo]
    max_group_size: int


@dataclass(frozen=True, slots=True)
class ValueSetInfo:
    """A parser value set of `size` members, each with a value for every field."""

    id: int
    name: str
    fields: tuple[KeyField, ...]
    size: int


@dataclass(frozen=True, slots=True)
class DigestInfo:
    """A digest: `shape` is how P4Info packs its members (bitstring, tuple or struct)."""

    id: int
    name: str
    shape: str


@dataclass(frozen=True, slots=True)
class PipelineInfo:
    """All of a P4Info that the server uses; maps by id, packet headers in field order."""

    tables: Mapping[int, TableInfo]
    actions: Mapping[int, ActionInfo]
    action_named: Mapping[str, ActionInfo]
    counters: Mapping[int, CounterInfo]
    meters: Mapping[int, MeterInfo]
    profiles: Mapping[int, ProfileInfo]
    value_sets: Mapping[int, ValueSetInfo]
    digests: Mapping[int, DigestInfo]
    packet_in: tuple[Field, ...]
    packet_out: tuple[Field, ...]

    @classmethod
    def read(cls, p4info: p4i.P4Info) -> PipelineInfo:
        """Index `p4info`.

        Raises RefusedError (INVALID_ARGUMENT) when it contradicts itself or uses what no encoding
        exists for here: a match kind of its own.
        """
        actions = _by_id("action", (_action(message) for message in p4info.actions))
        return cls(
            tables=_by_id(
                "table",
                _tables(p4info, actions),
            ),
            actions=actions,
            action_named={action.name: action for action in actions.values()},
            counters=_by_id(
                "counter",
                (CounterInfo(m.preamble.id, m.preamble.name, m.size) for m in p4info.counters),
            ),
            meters=_by_id(
                "meter",
                (MeterInfo(m.preamble.id, m.preamble.name, m.size) for m in p4info.meters),
            ),
            profiles=_by_id("action profile", _profiles(p4info, actions)),
            value_sets=_by_id("value set", map(_value_set, p4info.value_sets)),
            digests=_by_id("digest", map(_digest, p4info.digests)),
            packet_in=_header(p4info, "packet_in"),
            packet_out=_header(p4info, "packet_out"),
        )

    def table(self, table_id: int) -> TableInfo:
        """Return the table with this id; raises RefusedError when there is none."""
        return _known("table", self.tables, table_id)

    def counter(self, counter_id: int) -> CounterInfo:
        """Return the indirect counter with this id; raises RefusedError when there is none."""
        return _known("counter", self.counters, counter_id)

    def meter(self, meter_id: int) -> MeterInfo:
        """Return the indirect meter with this id; raises RefusedError when there is none."""
        return _known("meter", self.meters, meter_id)

    def profile(self, profile_id: int) -> ProfileInfo:
        """Return the action profile with this id; raises RefusedError when there is none."""
        return _known("action profile", self.profiles, profile_id)

    def value_set(self, value_set_id: int) -> ValueSetInfo:
        """Return the value set with this id; raises RefusedError when there is none."""
        return _known("value set", self.value_sets, value_set_id)


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


def _action(message: p4i.Action) -> ActionInfo:
    params = tuple(Field(param.id, param.name, param.bitwidth) for param in message.params)
    return ActionInfo(message.preamble.id, message.preamble.name, params)


def _tables(p4info: p4i.P4Info, actions: Mapping[int, ActionInfo]) -> Iterator[TableInfo]:
    counted = {m.direct_table_id for m in p4info.direct_counters}
    metered = {m.direct_table_id for m in p4info.direct_meters}
    for message in p4info.tables:
        number = message.preamble.id
        yield _table(message, actions, number in counted, number in metered)


def _table(
    message: p4i.Table,
    actions: Mapping[int, ActionInfo],
    direct_counter: bool,
    direct_meter: bool,
) -> TableInfo:
    name = message.preamble.name
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
        fields=tuple(_key_field(f"table {name}", field) for field in message.match_fields),
        actions=uses,
        size=message.size,
        const_entries=message.is_const_table,
        const_default=bool(message.const_default_action_id),
        direct_counter=direct_counter,
        direct_meter=direct_meter,
        profile=message.implementation_id or None,
        ages=message.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
    )


def _profiles(p4info: p4i.P4Info, actions: Mapping[int, ActionInfo]) -> Iterator[ProfileInfo]:
    for message in p4info.action_profiles:
        usable = {
            ref.id: actions[ref.id]
            for table in p4info.tables
            if table.implementation_id == message.preamble.id
            for ref in table.action_refs
        }
        yield ProfileInfo(
            message.preamble.id, message.preamble.name, usable, message.max_group_size
        )


def _value_set(message: p4i.ValueSet) -> ValueSetInfo:
    name = message.preamble.name
    fields = tuple(_key_field(f"value set {name}", field) for field in message.match)
    return ValueSetInfo(message.preamble.id, name, fields, message.size)


def _digest(message: p4i.Digest) -> DigestInfo:
    shape = message.type_spec.WhichOneof("type_spec")
    if shape not in ("bitstring", "tuple", "struct"):
        raise invalid(f"digest {message.preamble.name}: a {shape} cannot be packed")
    return DigestInfo(message.preamble.id, message.preamble.name, shape)


def _key_field(what: str, message: p4i.MatchField) -> KeyField:
    kind = _KINDS.get(message.match_type)
    if kind is None:
        # a number that is no kind at all comes as it is, and has no name
        known = p4i.MatchField.MatchType.DESCRIPTOR.values_by_number.get(message.match_type)
        named = message.other_match_type or (known.name if known else str(message.match_type))
        raise invalid(f"{what}, field {message.name}: match kind {named} is not supported")
    return KeyField(message.id, message.name, message.bitwidth, kind)


def _header(p4info: p4i.P4Info, name: str) -> tuple[Field, ...]:
    for message in p4info.controller_packet_metadata:
        if message.preamble.name == name:
            return tuple(Field(field.id, field.name, field.bitwidth) for field in message.metadata)
    return ()
