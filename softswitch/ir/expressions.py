"""Expressions of the intermediate form; exact on integers of any size and sign."""

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class SameHeader:
    """True when both headers are valid and equal field by field (as bmv2 compares headers)."""

    left: "HeaderOperand"
    right: "HeaderOperand"


@dataclass(frozen=True, slots=True)
class SameUnion:
    """True when the same member of both header unions is valid, and equal."""

    left: tuple[str, ...]
    right: tuple[str, ...]


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
    | SameHeader
    | SameUnion
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
