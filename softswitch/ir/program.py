"""Controls, externs, and the whole program."""

from collections.abc import Mapping
from dataclasses import dataclass

from softswitch.ir.expressions import Expr, FieldRef, ValidRef
from softswitch.ir.packet import Calculation, Checksum, FieldDecl, Header, Parser, Stack
from softswitch.ir.statements import Statement

DROP_PORT = 511
"""The drop port of v1model, if nothing else is said: bmv2's ``--drop-port``."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action; names need not be unique, ids are."""

    id: int
    name: str
    param_names: tuple[str, ...]
    param_widths: tuple[int, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table: `kind` is exact, lpm, ternary or range (optional keys are ternary).

    `mask` is a static mask applied to the field before matching, or None.
    """

    name: str
    expr: FieldRef | ValidRef
    width: int
    kind: str
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class ConstEntry:
    """An entry of the program itself. `priority` is P4Runtime's: larger wins.

    `matches` has a pair of integers a key: (value, all-ones) exact, (value, prefix_len) lpm,
    (value, mask) ternary, (low, high) range.
    """

    matches: tuple[tuple[int, int], ...]
    action: int
    params: tuple[int, ...]
    priority: int


@dataclass(frozen=True, slots=True)
class DefaultEntry:
    """The default action; `const_action` forbids another action, `const_entry` any change."""

    action: int
    params: tuple[int, ...]
    const_action: bool
    const_entry: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A match-action table; `kind` is exact, lpm, ternary or range.

    `next_by_action` gives the node that follows each action id; `next_hit` / `next_miss` are used
    instead when `by_hit` is set. `profile` names the action profile that its entries refer to.
    """

    name: str
    kind: str
    keys: tuple[Key, ...]
    actions: tuple[int, ...]
    size: int
    next_by_action: Mapping[int, str | None]
    by_hit: bool
    next_hit: str | None
    next_miss: str | None
    default: DefaultEntry | None
    const_entries: tuple[ConstEntry, ...]
    is_const: bool
    has_counter: bool
    meter: str | None
    supports_timeout: bool
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class ActionProfile:
    """Actions that entries of several tables share; `selector` hashes a packet to a member."""

    name: str
    size: int
    selector: Calculation | None


@dataclass(frozen=True, slots=True)
class Conditional:
    """An ``if`` of a control."""

    name: str
    cond: Expr
    next_true: str | None
    next_false: str | None


@dataclass(frozen=True, slots=True)
class ActionNode:
    """A direct call of a parameterless action."""

    name: str
    action: int
    next_node: str | None


ControlNode = Table | Conditional | ActionNode


@dataclass(frozen=True, slots=True)
class Pipeline:
    """``ingress`` or ``egress``: a directed acyclic graph of nodes by name."""

    name: str
    init: str | None
    nodes: Mapping[str, ControlNode]


@dataclass(frozen=True, slots=True)
class Register:
    """`size` cells of `width` bits."""

    name: str
    size: int
    width: int


@dataclass(frozen=True, slots=True)
class Counter:
    """Indirect (`table` None) or direct."""

    name: str
    size: int
    table: str | None


@dataclass(frozen=True, slots=True)
class Meter:
    """Indirect, or direct with the field that takes the colour. `unit`: packets or bytes."""

    name: str
    size: int
    unit: str
    table: str | None
    target: FieldRef | None


@dataclass(frozen=True, slots=True)
class FieldList:
    """Metadata kept over clone, resubmit and recirculate."""

    id: int
    name: str
    fields: tuple[FieldRef, ...]


@dataclass(frozen=True, slots=True)
class LearnList:
    """Members of a digest."""

    id: int
    name: str
    members: tuple[Expr, ...]
    widths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A parser value set."""

    name: str
    width: int


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program. `digest` tells the JSON and the drop port: equal programs have equal ones.

    `drop_port` is the egress_spec that drops, and that mark_to_drop sets. `standard` maps bmv2's
    names (``standard_metadata.ingress_port``) to fields of this program.
    """

    digest: str
    headers: Mapping[str, Header]
    stacks: Mapping[str, Stack]
    errors: Mapping[str, int]
    parser: Parser
    value_sets: Mapping[str, ValueSet]
    calculations: Mapping[str, Calculation]
    checksums: tuple[Checksum, ...]
    deparser: tuple[str, ...]
    actions: Mapping[int, Action]
    tables: Mapping[str, Table]
    profiles: Mapping[str, ActionProfile]
    ingress: Pipeline
    egress: Pipeline
    registers: Mapping[str, Register]
    counters: Mapping[str, Counter]
    meters: Mapping[str, Meter]
    field_lists: Mapping[int, FieldList]
    learn_lists: Mapping[int, LearnList]
    standard: Mapping[str, FieldRef]
    drop_port: int = DROP_PORT

    def field_decl(self, ref: FieldRef) -> FieldDecl:
        """Declaration of a field reference."""
        return self.headers[ref.header].field(ref.field)
