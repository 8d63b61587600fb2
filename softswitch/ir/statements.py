"""Statements: the body of an action, one node a primitive of the JSON."""

from dataclasses import dataclass

from softswitch.ir.expressions import Expr, FieldRef, HeaderOperand, LValue


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
class AssignUnion:
    """Copy a header union, member by member."""

    target: tuple[str, ...]
    source: tuple[str, ...]


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
    """egress_spec := the program's drop port, mcast_grp := 0."""


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
    | AssignUnion
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
