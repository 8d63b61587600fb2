"""The typed intermediate form of one v1model program.

The loader makes it from p4c's bmv2 JSON; code generators read only this. It holds no raw JSON:
names are resolved, constants are integers, byte-padded select values are split by key part.
Arithmetic has bmv2's meaning: expressions are exact on integers of any size, and a value is cut
to the width of the field when it is stored.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# --- expressions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    """An integer literal, of any sign."""

    value: int


@dataclass(frozen=True, slots=True)
class BoolConst:
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True, slots=True)
class FieldRef:
    """Field `field` of the header or metadata instance `header`."""

    header: str
    field: str


@dataclass(frozen=True, slots=True)
class ValidRef:
    """Validity of a header instance, as data: 0 or 1."""

    header: str


@dataclass(frozen=True, slots=True)
class LastFieldRef:
    """Field of the element of a header stack that was extracted last (``stack.last.field``)."""

    stack: str
    field: str


@dataclass(frozen=True, slots=True)
class ElementFieldRef:
    """Field of a stack element whose index is known only at run time."""

    stack: str
    index: "Expr"
    field: str


@dataclass(frozen=True, slots=True)
class LastIndex:
    """``stack.lastIndex``."""

    stack: str


@dataclass(frozen=True, slots=True)
class StackSize:
    """Number of valid elements at the front of a stack."""

    stack: str


@dataclass(frozen=True, slots=True)
class ParamRef:
    """Parameter number `index` of the enclosing action."""

    index: int


@dataclass(frozen=True, slots=True)
class UnionValid:
    """True when some member of the header union is valid."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lookahead:
    """`width` bits of the packet, `offset` bits past the parser's position."""

    offset: int
    width: int


@dataclass(frozen=True, slots=True)
class Unary:
    """`op` is one of ``- ~ not d2b b2d``."""

    op: str
    operand: "Expr"


@dataclass(frozen=True, slots=True)
class Binary:
    """`op` is one of ``+ - * / % << >> & | ^ == != < <= > >= and or``."""

    op: str
    left: "Expr"
    right: "Expr"


@dataclass(frozen=True, slots=True)
class Cast:
    """`kind` is ``two_comp_mod``, ``sat_cast`` or ``usat_cast``, to `width` bits."""

    kind: str
    operand: "Expr"
    width: int


@dataclass(frozen=True, slots=True)
class Mux:
    """``cond ? left : right``."""

    cond: "Expr"
    left: "Expr"
    right: "Expr"


Expr = (
    Const
    | BoolConst
    | FieldRef
    | ValidRef
    | LastFieldRef
    | ElementFieldRef
    | LastIndex
    | StackSize
    | ParamRef
    | UnionValid
    | Lookahead
    | Unary
    | Binary
    | Cast
    | Mux
)
LValue = FieldRef | LastFieldRef | ElementFieldRef


@dataclass(frozen=True, slots=True)
class HeaderRef:
    """A header instance by name."""

    name: str


@dataclass(frozen=True, slots=True)
class ElementRef:
    """A stack element whose index is known only at run time."""

    stack: str
    index: Expr


HeaderOperand = HeaderRef | ElementRef

# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """Store `value`, cut to the width of `target`."""

    target: LValue
    value: Expr


@dataclass(frozen=True, slots=True)
class AssignVarbit:
    """Copy a variable-length field, value and length."""

    target: FieldRef
    value: FieldRef


@dataclass(frozen=True, slots=True)
class AssignHeader:
    """Copy a header: fields and validity."""

    target: HeaderOperand
    source: HeaderOperand


@dataclass(frozen=True, slots=True)
class AssignStack:
    """Copy a header stack, element by element, and its next index."""

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class SetValidity:
    """``setValid()`` (fields become 0 if it was invalid) or ``setInvalid()``."""

    header: HeaderOperand
    valid: bool


@dataclass(frozen=True, slots=True)
class ShiftStack:
    """``push_front(count)`` when `push`, else ``pop_front(count)``."""

    stack: str
    count: int
    push: bool


@dataclass(frozen=True, slots=True)
class MarkToDrop:
    """egress_spec := 511, mcast_grp := 0."""


@dataclass(frozen=True, slots=True)
class RegisterRead:
    """An index out of range leaves `target` as it is."""

    target: LValue
    register: str
    index: Expr


@dataclass(frozen=True, slots=True)
class RegisterWrite:
    """An index out of range changes nothing."""

    register: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Count:
    """Add one packet to a cell of an indirect counter; out of range counts nothing."""

    counter: str
    index: Expr


@dataclass(frozen=True, slots=True)
class ExecuteMeter:
    """Colour of the packet at a meter cell; out of range leaves `target` as it is."""

    meter: str
    index: Expr
    target: LValue


@dataclass(frozen=True, slots=True)
class Hash:
    """target := base + calculation % max(limit, 1)."""

    target: LValue
    base: Expr
    calculation: str
    limit: Expr


@dataclass(frozen=True, slots=True)
class Random:
    """target := uniform in [low, high]; unchanged if low > high."""

    target: LValue
    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class SendDigest:
    """Send learn list `list_id` at the end of ingress."""

    list_id: int


@dataclass(frozen=True, slots=True)
class Clone:
    """Copy to a clone session; `egress` tells E2E from I2E; `list_id` names what is kept."""

    session: Expr
    list_id: int
    egress: bool


@dataclass(frozen=True, slots=True)
class Resubmit:
    """Ingress once more with the packet as it came."""

    list_id: int


@dataclass(frozen=True, slots=True)
class Recirculate:
    """Ingress once more with the packet as it would leave."""

    list_id: int


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the packet to `length` bytes when it leaves."""

    length: Expr


@dataclass(frozen=True, slots=True)
class Exit:
    """End the pipeline after this action."""


@dataclass(frozen=True, slots=True)
class Check:
    """``assert`` or ``assume``: a packet that fails it is reported and goes on."""

    kind: str
    cond: Expr


@dataclass(frozen=True, slots=True)
class LogMessage:
    """``log_msg``: `template` has one ``{}`` an argument."""

    template: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Jump:
    """Go on at statement `target` of the action."""

    target: int


@dataclass(frozen=True, slots=True)
class JumpIfZero:
    """Go on at statement `target` of the action if `cond` is false."""

    cond: Expr
    target: int


Statement = (
    Assign
    | AssignVarbit
    | AssignHeader
    | AssignStack
    | SetValidity
    | ShiftStack
    | MarkToDrop
    | RegisterRead
    | RegisterWrite
    | Count
    | ExecuteMeter
    | Hash
    | Random
    | SendDigest
    | Clone
    | Resubmit
    | Recirculate
    | Truncate
    | Exit
    | Check
    | LogMessage
    | Jump
    | JumpIfZero
)

# --- headers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldDecl:
    """A field; `width` in bits, of a varbit its largest width."""

    name: str
    width: int
    signed: bool = False
    varbit: bool = False


@dataclass(frozen=True, slots=True)
class HeaderType:
    """Fields in order of the wire."""

    name: str
    fields: tuple[FieldDecl, ...]

    @property
    def fixed_bits(self) -> int:
        """Width without the varbit field."""
        return sum(f.width for f in self.fields if not f.varbit)

    @property
    def varbit(self) -> FieldDecl | None:
        return next((f for f in self.fields if f.varbit), None)


@dataclass(frozen=True, slots=True)
class Header:
    """A header or metadata instance; `union` lists its fellow members when it is in a union."""

    name: str
    type: HeaderType
    metadata: bool
    union: tuple[str, ...] = ()

    def field(self, name: str) -> FieldDecl:
        """The declaration of field `name`; KeyError if there is none."""
        for decl in self.type.fields:
            if decl.name == name:
                return decl
        raise KeyError(f"{self.name}.{name}")


@dataclass(frozen=True, slots=True)
class Stack:
    """A header stack; `elements` are instance names in order."""

    name: str
    type: HeaderType
    elements: tuple[str, ...]


# --- parser --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Extract:
    """Extract a fixed header, or with `varbit_bits` one with a varbit field of that length."""

    header: str
    varbit_bits: Expr | None = None


@dataclass(frozen=True, slots=True)
class ExtractNext:
    """Extract to the next element of a stack."""

    stack: str
    varbit_bits: Expr | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """Skip `bits` of the packet."""

    bits: Expr


@dataclass(frozen=True, slots=True)
class Verify:
    """Stop with parser error `error` unless `cond`."""

    cond: Expr
    error: Expr


ParserOp = Extract | ExtractNext | Advance | Verify | Statement


@dataclass(frozen=True, slots=True)
class Case:
    """Taken if ``part & mask == value`` for every key part; `next_state` None accepts."""

    values: tuple[int, ...]
    masks: tuple[int, ...]
    next_state: str | None


@dataclass(frozen=True, slots=True)
class ValueSetCase:
    """Taken if the key is a member of parser value set `value_set`."""

    value_set: str
    next_state: str | None


@dataclass(frozen=True, slots=True)
class State:
    """One parser state. `key` and `widths` go together; no case matches: `default`."""

    name: str
    ops: tuple[ParserOp, ...]
    key: tuple[Expr, ...]
    widths: tuple[int, ...]
    cases: tuple[Case | ValueSetCase, ...]
    default: str | None


@dataclass(frozen=True, slots=True)
class Parser:
    """States by name, from `init`."""

    init: str | None
    states: Mapping[str, State]


# --- calculations --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CalcField:
    """A field (skipped while its header is invalid)."""

    ref: FieldRef


@dataclass(frozen=True, slots=True)
class CalcConst:
    """A constant of `width` bits."""

    value: int
    width: int


@dataclass(frozen=True, slots=True)
class CalcHeader:
    """A whole header, if valid."""

    header: str


@dataclass(frozen=True, slots=True)
class CalcPayload:
    """What follows the headers."""


CalcInput = CalcField | CalcConst | CalcHeader | CalcPayload


@dataclass(frozen=True, slots=True)
class Calculation:
    """A hash or checksum over a list of inputs, joined bit by bit."""

    name: str
    algorithm: str
    inputs: tuple[CalcInput, ...]


@dataclass(frozen=True, slots=True)
class Checksum:
    """Verify after the parser, or update before the deparser, `target` if `cond`."""

    name: str
    target: FieldRef
    calculation: str
    verify: bool
    update: bool
    cond: Expr | None


# --- controls ------------------------------------------------------------------------------------


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
    instead when `by_hit` is set.
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


# --- externs -------------------------------------------------------------------------------------


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
    """A whole program. `digest` is the SHA-256 of the JSON, in hex.

    `standard` maps bmv2's names (``standard_metadata.ingress_port``) to fields of this program.
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
    ingress: Pipeline
    egress: Pipeline
    registers: Mapping[str, Register]
    counters: Mapping[str, Counter]
    meters: Mapping[str, Meter]
    field_lists: Mapping[int, FieldList]
    learn_lists: Mapping[int, LearnList]
    standard: Mapping[str, FieldRef]

    def field_decl(self, ref: FieldRef) -> FieldDecl:
        """Declaration of a field reference."""
        return self.headers[ref.header].field(ref.field)
