"""What one switch must hold: table entries, multicast groups, and the updates that change them.

These values cross every border of the control plane: `controller.compile` produces them,
`controller.p4rt` writes them to switches and reads them back as the same values. They carry the
names of the P4 program, never ids, and integers, never bytes. Nothing here does I/O.

A match value is an int ("exactly this", for any match kind) or a pair, as in `softswitch.Switch`:

    exact     value
    lpm       (value, prefix_len)
    ternary   (value, mask)
    optional  (value, mask), where the mask is all ones
    range     (low, high)

A field left out of an entry matches anything, where its kind allows that.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

MatchValue: TypeAlias = int | tuple[int, int]
EntryKey: TypeAlias = tuple[str, tuple[tuple[str, MatchValue], ...], int]


class ProgramError(ValueError):
    """A switch program contradicts itself; the text names the part and the remedy."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """One entry of a match-action table.

    `match` and `params` are pairs sorted by name; the constructor sorts them, so that equal entries
    compare and hash equal whatever order they were written in. A larger priority wins; it is 0
    for tables whose keys are all exact or LPM, and above 0 for all others.
    """

    table: str
    match: tuple[tuple[str, MatchValue], ...]
    action: str
    params: tuple[tuple[str, int], ...] = ()
    priority: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "match", _by_name(self.table, "match field", self.match))
        object.__setattr__(self, "params", _by_name(self.table, "parameter", self.params))

    @classmethod
    def of(
        cls,
        table: str,
        match: Mapping[str, MatchValue],
        action: str,
        params: Mapping[str, int] | None = None,
        priority: int = 0,
    ) -> TableEntry:
        """Return the entry written with mappings: `of("t", {"f": 1}, "a", {"p": 2})`."""
        return cls(table, tuple(match.items()), action, tuple((params or {}).items()), priority)

    @property
    def key(self) -> EntryKey:
        """What identifies the entry in its switch: table, match and priority."""
        return (self.table, self.match, self.priority)

    def __str__(self) -> str:
        match = ", ".join(f"{name}={_shown(value)}" for name, value in self.match)
        params = ", ".join(f"{name}={value}" for name, value in self.params)
        priority = f" priority {self.priority}" if self.priority else ""
        return f"{self.table}[{match}]{priority} -> {self.action}({params})"


@dataclass(frozen=True, slots=True)
class MulticastGroup:
    """A multicast group: its id (above 0) and its replicas, pairs of (egress port, instance).

    The constructor sorts the replicas. A replica listed twice is refused, as switches do.
    """

    id: int
    replicas: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if self.id <= 0:
            raise ProgramError(f"multicast group {self.id}: ids start at 1 (0 means no group)")
        replicas = tuple(sorted(self.replicas))
        object.__setattr__(self, "replicas", replicas)
        twice = _first_repeated(replicas)
        if twice is not None:
            raise ProgramError(
                f"multicast group {self.id}: port {twice[0]} with instance {twice[1]} is listed "
                "twice; give each copy its own instance"
            )

    def __str__(self) -> str:
        copies = ", ".join(f"{port}.{instance}" for port, instance in self.replicas)
        return f"multicast group {self.id} {{{copies}}}"


@dataclass(frozen=True, slots=True)
class CloneSession:
    """A clone (mirror) session: its id (above 0), its copies, bytes kept (0: all)."""

    id: int
    replicas: tuple[tuple[int, int], ...]
    packet_length: int = 0

    def __post_init__(self) -> None:
        if self.id <= 0:
            raise ProgramError(f"clone session {self.id}: ids start at 1")
        object.__setattr__(self, "replicas", tuple(sorted(self.replicas)))

    def __str__(self) -> str:
        return f"clone session {self.id}"


@dataclass(frozen=True, slots=True)
class SwitchProgram:
    """Everything the switch `name` must hold, beside the pipeline itself.

    `entries` and `groups` are sets in meaning: their order says nothing, and two entries with one
    key, or two groups with one id, are refused.
    """

    name: str
    entries: tuple[TableEntry, ...] = ()
    groups: tuple[MulticastGroup, ...] = ()

    def __post_init__(self) -> None:
        entry_key = _first_repeated(entry.key for entry in self.entries)
        if entry_key is not None:
            clash = [str(entry) for entry in self.entries if entry.key == entry_key]
            raise ProgramError(f"{self.name}: entries with one key: " + "; ".join(clash))
        group = _first_repeated(group.id for group in self.groups)
        if group is not None:
            raise ProgramError(f"{self.name}: multicast group {group} is listed twice")


Entity: TypeAlias = TableEntry | MulticastGroup | CloneSession


class Op(enum.Enum):
    """What a write does with an entity. There is no upsert in P4Runtime."""

    INSERT = "insert"
    MODIFY = "modify"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Update:
    """One change of one switch."""

    op: Op
    entity: Entity

    def __str__(self) -> str:
        return f"{self.op.value} {self.entity}"


_Item = TypeVar("_Item")
_Pair = tuple[str, MatchValue]


def _by_name(table: str, what: str, pairs: tuple[_Pair, ...]) -> tuple[_Pair, ...]:
    ordered = tuple(sorted(pairs, key=lambda pair: pair[0]))
    twice = _first_repeated(name for name, _ in ordered)
    if twice is not None:
        raise ProgramError(f"table {table}: {what} {twice} is given twice")
    return ordered


def _first_repeated(items: Iterable[_Item]) -> _Item | None:
    seen: set[_Item] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def _shown(value: MatchValue) -> str:
    return str(value) if isinstance(value, int) else f"({value[0]}, {value[1]})"
