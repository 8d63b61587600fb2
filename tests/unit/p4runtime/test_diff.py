"""What to write: pairs of programs in, updates out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.p4rt import diff
from controller.program import Entity, MulticastGroup, Op, SwitchProgram, TableEntry, Update


def entry(key: int, action: str = "a", priority: int = 0) -> TableEntry:
    return TableEntry.of("t", {"f": key}, action, priority=priority)


def group(group_id: int, *ports: int) -> MulticastGroup:
    return MulticastGroup(group_id, tuple((port, 1) for port in ports))


def program(*entities: Entity) -> SwitchProgram:
    return SwitchProgram(
        "s",
        tuple(e for e in entities if isinstance(e, TableEntry)),
        tuple(e for e in entities if isinstance(e, MulticastGroup)),
    )


def test_equal_programs_need_nothing() -> None:
    assert diff(program(entry(1), group(1, 2)), program(group(1, 2), entry(1))) == ()


def test_order_is_groups_deletes_modifies_inserts_groups() -> None:
    actual = program(entry(1), entry(2), entry(3), group(1, 1), group(3, 1))
    desired = program(entry(4), entry(2, "b"), entry(3), group(2, 2), group(1, 5))
    assert diff(desired, actual) == (
        Update(Op.MODIFY, group(1, 5)),
        Update(Op.INSERT, group(2, 2)),
        Update(Op.DELETE, entry(1)),
        Update(Op.MODIFY, entry(2, "b")),
        Update(Op.INSERT, entry(4)),
        Update(Op.DELETE, group(3, 1)),
    )


def test_another_priority_is_another_entry() -> None:
    assert diff(program(entry(1, priority=2)), program(entry(1, priority=1))) == (
        Update(Op.DELETE, entry(1, priority=1)),
        Update(Op.INSERT, entry(1, priority=2)),
    )


def test_mixed_match_values_have_an_order() -> None:
    mixed = [TableEntry.of("t", match, "a") for match in ({"f": (1, 2)}, {"f": 1}, {}, {"e": 9})]
    once = diff(program(*mixed), program())
    assert once == diff(program(*reversed(mixed)), program())
    assert {update.entity for update in once} == set(mixed)


entities = st.lists(
    st.one_of(
        st.builds(entry, st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 1)),
        st.builds(lambda i, ports: group(i, *ports), st.integers(1, 3), st.sets(st.integers(1, 3))),
    ),
    unique_by=lambda e: e.key if isinstance(e, TableEntry) else e.id,
)


@given(entities, entities)
def test_the_updates_lead_from_one_to_the_other(wanted: list[Entity], there: list[Entity]) -> None:
    def key(entity: Entity) -> object:
        return entity.key if isinstance(entity, TableEntry) else entity.id

    held = {key(entity): entity for entity in there}
    for update in diff(program(*wanted), program(*there)):
        # As a switch would: no upsert, and nothing to modify or delete that is not there.
        assert (key(update.entity) in held) is (update.op is not Op.INSERT)
        assert held.get(key(update.entity)) != update.entity or update.op is Op.DELETE
        if update.op is Op.DELETE:
            del held[key(update.entity)]
        else:
            held[key(update.entity)] = update.entity
    assert set(held.values()) == set(wanted)
