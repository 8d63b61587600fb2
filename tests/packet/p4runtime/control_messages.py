"""Messages for the program of tests/programs/control.p4, and updates made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from finsy.proto import p4r

from controller.p4rt import Schema
from tests.packet.targets_sentinels import control

NAMES = Schema(control()).names
NO_ID = 0x02_FF_FF_FF

Limits = tuple[int, int, int, int]
"""Of a meter: cir, cburst, pir, pburst."""


def updates(*steps: tuple[str, p4r.Entity]) -> list[p4r.Update]:
    """Return updates from pairs of their type, in lower case, and entity."""
    return [p4r.Update(type=p4r.Update.Type.Value(kind.upper()), entity=e) for kind, e in steps]


def action(name: str = "to_port", **params: int) -> p4r.Action:
    """Return an action with its parameters."""
    info = NAMES.actions[name]
    message = p4r.Action(action_id=info.id)
    for param in info.params:
        if param.name in params:
            value = params[param.name]
            data = value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
            message.params.add(param_id=param.id, value=data)
    return message


def entry(
    table: str,
    key: int,
    does: p4r.Action | p4r.TableAction | None,
    change: Callable[[p4r.TableEntry], object] = lambda _: None,
) -> p4r.Entity:
    """Return an entry of a table with one exact key of 48 bits, changed by `change`."""
    message = p4r.TableEntry(table_id=NAMES.tables[table].id)
    match = message.match.add(field_id=1)
    match.exact.value = key.to_bytes(6, "big").lstrip(b"\0") or b"\0"
    if isinstance(does, p4r.Action):
        message.action.action.CopyFrom(does)
    elif does is not None:
        message.action.CopyFrom(does)
    change(message)
    return p4r.Entity(table_entry=message)


def to_member(number: int) -> p4r.TableAction:
    return p4r.TableAction(action_profile_member_id=number)


def to_group(number: int) -> p4r.TableAction:
    return p4r.TableAction(action_profile_group_id=number)


def one_shot(*parts: tuple[p4r.Action, int]) -> p4r.TableAction:
    """Return a one-shot set of (action, weight)."""
    message = p4r.TableAction()
    message.action_profile_action_set.SetInParent()
    for does, weight in parts:
        message.action_profile_action_set.action_profile_actions.add(action=does, weight=weight)
    return message


def member(number: int, does: p4r.Action, profile: str = "ways") -> p4r.Entity:
    return p4r.Entity(
        action_profile_member=p4r.ActionProfileMember(
            action_profile_id=NAMES.action_profiles[profile].id, member_id=number, action=does
        )
    )


def group(
    number: int, members: Iterable[tuple[int, int]] = (), max_size: int = 0, profile: str = "ways"
) -> p4r.Entity:
    """Return a group of (member, weight)."""
    message = p4r.ActionProfileGroup(
        action_profile_id=NAMES.action_profiles[profile].id, group_id=number, max_size=max_size
    )
    for one, weight in members:
        message.members.add(member_id=one, weight=weight)
    return p4r.Entity(action_profile_group=message)


def config(limits: Limits) -> p4r.MeterConfig:
    cir, cburst, pir, pburst = limits
    return p4r.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)


def meter(index: int | None, limits: Limits | None) -> p4r.Entity:
    """Return a cell of `rates`, all cells for None; no limits leave the configuration out."""
    message = p4r.MeterEntry(meter_id=NAMES.meters["rates"].id)
    if index is not None:
        message.index.index = index
    if limits is not None:
        message.config.CopyFrom(config(limits))
    return p4r.Entity(meter_entry=message)


def direct_meter(key: int, limits: Limits | None, table: str = "watched") -> p4r.Entity:
    """Return the meter of an entry."""
    message = p4r.DirectMeterEntry(table_entry=entry(table, key, None).table_entry)
    if limits is not None:
        message.config.CopyFrom(config(limits))
    return p4r.Entity(direct_meter_entry=message)


def direct_counter(key: int, packets: int, table: str = "watched") -> p4r.Entity:
    """Return the counter of an entry."""
    message = p4r.DirectCounterEntry(table_entry=entry(table, key, None).table_entry)
    message.data.packet_count = packets
    return p4r.Entity(direct_counter_entry=message)


def digest(max_timeout_ns: int = 0, max_list_size: int = 0, ack_timeout_ns: int = 0) -> p4r.Entity:
    """Return a configuration of the digest."""
    return p4r.Entity(
        digest_entry=p4r.DigestEntry(
            digest_id=NAMES.digests["learned_t"].id,
            config=p4r.DigestEntry.Config(
                max_timeout_ns=max_timeout_ns,
                max_list_size=max_list_size,
                ack_timeout_ns=ack_timeout_ns,
            ),
        )
    )


def value_set(*values: int) -> p4r.Entity:
    """Return the members of `known_types`."""
    message = p4r.ValueSetEntry(value_set_id=NAMES.value_sets["known_types"].id)
    for value in values:
        match = message.members.add().match.add(field_id=1)
        match.exact.value = value.to_bytes(2, "big")
    return p4r.Entity(value_set_entry=message)
