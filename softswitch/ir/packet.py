"""What a program knows of packets: headers, parser, calculations and checksums."""

from collections.abc import Mapping
from dataclasses import dataclass

from softswitch.ir.expressions import Expr, FieldRef
from softswitch.ir.statements import Statement


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
    """A header stack; `elements` are instance names in order.

    A stack of header unions is one stack for each member of the union. They share their next
    index, which goes by the name `index`; of other stacks it is their own name.
    """

    name: str
    type: HeaderType
    elements: tuple[str, ...]
    index: str


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
    """Taken if the key, under `masks` if given, is a member of parser value set `value_set`."""

    value_set: str
    next_state: str | None
    masks: tuple[int, ...] | None = None


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
