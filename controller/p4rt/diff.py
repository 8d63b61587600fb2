"""What to write to a switch so that it holds what it should. Pure."""

from __future__ import annotations

from controller.program import MulticastGroup, Op, SwitchProgram, TableEntry, Update


def diff(desired: SwitchProgram, actual: SwitchProgram) -> tuple[Update, ...]:
    """Return the updates that turn `actual` into `desired`, in the order to write them.

    Entries must be in one form on both sides (`Schema.canonical`). Groups come first and go last,
    for entries refer to them; entries are deleted before others are inserted, so that a full
    table has room; an entry or group that is there with another value is modified, never
    inserted again. Within each of these steps updates are sorted, so that equal inputs give equal
    outputs.
    """
    groups_wanted = {group.id: group for group in desired.groups}
    groups_there = {group.id: group for group in actual.groups}
    entries_wanted = {entry.key: entry for entry in desired.entries}
    entries_there = {entry.key: entry for entry in actual.entries}

    group_changes = [
        Update(Op.MODIFY if group.id in groups_there else Op.INSERT, group)
        for group in _sorted_groups(desired.groups)
        if groups_there.get(group.id) != group
    ]
    # What stays as it is, nearly all, is not sorted.
    gone = [entry for key, entry in entries_there.items() if key not in entries_wanted]
    new = [entry for key, entry in entries_wanted.items() if key not in entries_there]
    other = [
        entry for key, entry in entries_wanted.items() if entries_there.get(key, entry) != entry
    ]
    deletes = [Update(Op.DELETE, entry) for entry in sorted(gone, key=_order)]
    modifies = [Update(Op.MODIFY, entry) for entry in sorted(other, key=_order)]
    inserts = [Update(Op.INSERT, entry) for entry in sorted(new, key=_order)]
    group_deletes = [
        Update(Op.DELETE, group)
        for group in _sorted_groups(actual.groups)
        if group.id not in groups_wanted
    ]
    return (*group_changes, *deletes, *modifies, *inserts, *group_deletes)


def _sorted_groups(groups: tuple[MulticastGroup, ...]) -> list[MulticastGroup]:
    return sorted(groups, key=lambda group: group.id)


def _order(entry: TableEntry) -> tuple[object, ...]:
    # A match value is an int or a pair; as pairs they compare.
    match = tuple(
        (name, (value, -1) if isinstance(value, int) else value) for name, value in entry.match
    )
    return (entry.table, entry.priority, match)
