"""Random table entries, groups and members for a program, as P4Runtime messages."""

import random
from collections.abc import Iterator

from finsy.proto import p4i, p4r

from softswitch import ir
from tests.differential.packets import Domains
from tests.packet.targets import PORTS

GROUPS = (1, 2, 3)
SESSIONS = (5, 6)
_MEMBERS = range(1, 7)
_PROFILE_GROUPS = range(1, 4)
_ENTRIES = 12
_HOUR_NS = 3600 * 10**9


def shortest(value: int) -> bytes:
    """P4Runtime's canonical form of a value."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8))


class EntryMaker:
    """Makes the updates that fill a switch; all of them are legal."""

    def __init__(
        self, program: ir.Program, p4info: p4i.P4Info, rng: random.Random, domains: Domains
    ) -> None:
        self._program = program
        self._info = p4info
        self._rng = rng
        self._domains = domains
        self._actions = {action.preamble.id: action for action in p4info.actions}
        self._profiles = {p.preamble.id: p for p in p4info.action_profiles}
        self._one_shot = {p: bool(rng.getrandbits(1)) for p in self._profiles}

    def updates(self) -> list[p4r.Update]:
        """Groups, sessions, members and entries, in an order in which each can be written."""
        entities = [*self._replication(), *self._members(), *self._entries()]
        return [p4r.Update(type=p4r.Update.INSERT, entity=entity) for entity in entities]

    def _replication(self) -> Iterator[p4r.Entity]:
        for group in GROUPS:
            entity = p4r.Entity()
            entry = entity.packet_replication_engine_entry.multicast_group_entry
            entry.multicast_group_id = group
            pairs = {(self._rng.choice(PORTS), self._rng.randint(1, 9)) for _ in range(4)}
            for port, instance in sorted(pairs):
                entry.replicas.add(egress_port=port, instance=instance)
            yield entity
        for session in SESSIONS:
            entity = p4r.Entity()
            clone = entity.packet_replication_engine_entry.clone_session_entry
            clone.session_id = session
            clone.replicas.add(egress_port=self._rng.choice(PORTS), instance=1)
            yield entity

    # --- action profiles ------------------------------------------------------------------------

    def _uses(self, profile: p4i.ActionProfile) -> p4i.Table:
        """A table that takes its actions from a profile."""
        return next(t for t in self._info.tables if t.implementation_id == profile.preamble.id)

    def _members(self) -> Iterator[p4r.Entity]:
        for number, profile in self._profiles.items():
            if profile.with_selector and self._one_shot[number]:
                continue
            for member in _MEMBERS:
                entity = p4r.Entity()
                entity.action_profile_member.action_profile_id = number
                entity.action_profile_member.member_id = member
                entity.action_profile_member.action.CopyFrom(self._action(self._uses(profile)))
                yield entity
            if not profile.with_selector:
                continue
            for group in _PROFILE_GROUPS:
                entity = p4r.Entity()
                entity.action_profile_group.action_profile_id = number
                entity.action_profile_group.group_id = group
                for member in sorted(self._rng.sample(_MEMBERS, self._rng.randint(1, 4))):
                    weight = self._rng.randint(1, 3)
                    entity.action_profile_group.members.add(member_id=member, weight=weight)
                yield entity

    def _target(self, table: p4i.Table) -> p4r.TableAction:
        target = p4r.TableAction()
        profile = self._profiles.get(table.implementation_id)
        if profile is None:
            target.action.CopyFrom(self._action(table))
        elif not profile.with_selector:
            target.action_profile_member_id = self._rng.choice(_MEMBERS)
        elif self._one_shot[table.implementation_id]:
            for _ in range(self._rng.randint(1, 4)):
                part = target.action_profile_action_set.action_profile_actions.add()
                part.action.CopyFrom(self._action(table))
                part.weight = self._rng.randint(1, 3)
        elif self._rng.random() < 0.3:
            target.action_profile_member_id = self._rng.choice(_MEMBERS)
        else:
            target.action_profile_group_id = self._rng.choice(_PROFILE_GROUPS)
        return target

    # --- tables ---------------------------------------------------------------------------------

    def _entries(self) -> Iterator[p4r.Entity]:
        for table in self._info.tables:
            if table.is_const_table or not table.match_fields:
                continue
            seen: set[bytes] = set()
            for _ in range(min(_ENTRIES, table.size)):
                entry = self._entry(table)
                key = p4r.TableEntry(match=entry.match, priority=entry.priority)
                text = key.SerializeToString(deterministic=True)
                if text not in seen:
                    seen.add(text)
                    yield p4r.Entity(table_entry=entry)

    def _entry(self, table: p4i.Table) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=table.preamble.id)
        keys = {k.name: k for k in self._program.tables[table.preamble.name].keys}
        ordered = False
        for declared in table.match_fields:
            ordered |= declared.match_type not in (p4i.MatchField.EXACT, p4i.MatchField.LPM)
            match = self._match(declared, keys[declared.name])
            if match is not None:
                entry.match.append(match)
        if ordered:
            # all different: which of two equal priorities wins is each switch's own business
            entry.priority = self._rng.randint(1, 1 << 20)
        entry.action.CopyFrom(self._target(table))
        if table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL and self._rng.random() < 0.5:
            entry.idle_timeout_ns = _HOUR_NS
        return entry

    def _match(self, declared: p4i.MatchField, key: ir.Key) -> p4r.FieldMatch | None:
        width, rng = declared.bitwidth, self._rng
        full = (1 << width) - 1
        owner, name = (
            (key.expr.header, key.expr.field)
            if isinstance(key.expr, ir.FieldRef)
            else (key.expr.header, "valid")
        )
        value = self._domains.draw(owner, name, width)
        match = p4r.FieldMatch(field_id=declared.id)
        kinds = p4i.MatchField
        if declared.match_type == kinds.EXACT:
            match.exact.value = shortest(value)
        elif declared.match_type == kinds.LPM:
            length = rng.choice([0, 1, width // 2, width - 1, width])
            if not length:
                return None
            match.lpm.value = shortest(value & (full ^ full >> length))
            match.lpm.prefix_len = length
        elif declared.match_type == kinds.TERNARY:
            mask = rng.choice([0, full, full & ~1, rng.getrandbits(width)])
            if not mask:
                return None
            match.ternary.value, match.ternary.mask = shortest(value & mask), shortest(mask)
        elif declared.match_type == kinds.RANGE:
            low, high = sorted((value, self._domains.draw(owner, name, width)))
            if (low, high) == (0, full):
                return None
            match.range.low, match.range.high = shortest(low), shortest(high)
        else:
            if rng.random() < 0.3:
                return None
            match.optional.value = shortest(value)
        return match

    def _action(self, table: p4i.Table) -> p4r.Action:
        allowed = [r.id for r in table.action_refs if r.scope != p4i.ActionRef.DEFAULT_ONLY]
        action = self._actions[self._rng.choice(allowed)]
        call = p4r.Action(action_id=action.preamble.id)
        for param in action.params:
            if param.name == "port":
                value = self._rng.choice(PORTS)
            else:
                value = self._domains.draw(action.preamble.name, param.name, param.bitwidth)
            call.params.add(param_id=param.id, value=shortest(value))
        return call
