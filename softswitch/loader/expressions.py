"""Type-value objects of the JSON -> expressions."""

from softswitch.ir import (
    Binary,
    BoolConst,
    Cast,
    Const,
    ElementFieldRef,
    ElementRef,
    Expr,
    FieldRef,
    HeaderOperand,
    HeaderRef,
    HeaderType,
    LastFieldRef,
    LastIndex,
    Lookahead,
    LValue,
    Mux,
    ParamRef,
    SameHeader,
    SameUnion,
    StackSize,
    Unary,
    UnionValid,
    ValidRef,
)
from softswitch.loader.names import VALID, WIDEST, Names
from softswitch.loader.node import Node

_ARITHMETIC = ("+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^")
_COMPARISON = ("==", "!=", "<", "<=", ">", ">=", "and", "or")
_WHOLE = frozenset(["header", "header_union", "header_stack", "header_union_stack"])
_BINARY = frozenset((*_ARITHMETIC, *_COMPARISON))
_UNARY = frozenset(["~", "not", "d2b", "b2d"])
_CASTS = frozenset(["two_comp_mod", "sat_cast", "usat_cast"])


def expression(node: Node, names: Names) -> Expr:
    """An rvalue."""
    kind = node.get("type").text()
    value = node.get("value").at(node.where)
    match kind:
        case "hexstr":
            return Const(value.hex())
        case "bool":
            return BoolConst(value.truth())
        case "field":
            return _field(value, names)
        case "stack_field":
            owner, member = value.pair()
            stack = names.stack(owner)
            if all(f.name != member.text() for f in stack.type.fields):
                raise member.fail(f"a field of header stack '{stack.name}'")
            return LastFieldRef(stack.name, member.text())
        case "union_stack_field":
            parts = value.elements()
            if len(parts) != 3:
                raise value.fail("stack, member and field")
            stack = names.member_stack(parts[0], parts[1])
            if all(f.name != parts[2].text() for f in stack.type.fields):
                raise parts[2].fail(f"a field of header stack '{stack.name}'")
            return LastFieldRef(stack.name, parts[2].text())
        case "local" | "runtime_data":
            return ParamRef(value.number())
        case "lookahead":
            offset, width = value.pair()
            return Lookahead(offset.number(), width.number())
        case "expression":
            return _operation(value, names)
    raise node.unsupported(f"value type '{kind}'")


def _field(value: Node, names: Names) -> Expr:
    header, member = value.pair()
    if member.value == VALID:
        return ValidRef(names.header(header))
    return names.field(value)


def _operation(node: Node, names: Names) -> Expr:
    if not node.has("op"):
        return expression(node, names)
    op = node.get("op").text()
    if op in _BINARY:
        left = node.get("left").at(node.where)
        if left.value is None and op in ("+", "-"):
            operand = expression(node.get("right").at(node.where), names)
            return Unary("-", operand) if op == "-" else operand
        right = node.get("right").at(node.where)
        if _kind(left) in _WHOLE or _kind(right) in _WHOLE:
            return _comparison(op, left, right, names)
        return Binary(op, expression(left, names), expression(right, names))
    right = node.get("right").at(node.where)
    if op in _UNARY:
        return Unary(op, expression(right, names))
    if op in _CASTS:
        width = _constant(right, names)
        if not 0 < width <= WIDEST:
            raise node.fail(f"a cast to 1..{WIDEST} bits")
        return Cast(op, expression(node.get("left").at(node.where), names), width)
    if op == "?":
        cond, left = (node.get(k).at(node.where) for k in ("cond", "left"))
        return Mux(expression(cond, names), expression(left, names), expression(right, names))
    return _structural(op, node, right, names)


def _comparison(op: str, left: Node, right: Node, names: Names) -> Expr:
    """``==`` and ``!=`` of whole headers and header unions."""
    kind = _kind(left)
    if op not in ("==", "!=") or kind not in ("header", "header_union") or _kind(right) != kind:
        raise left.unsupported(f"operation '{op}' on a whole {kind or _kind(right)}")
    same: Expr
    if kind == "header":
        operands = [header_operand(side, names) for side in (left, right)]
        types = [header_type(operand, names) for operand in operands]
        if types[0] != types[1]:
            raise left.fail("headers of one type")
        same = SameHeader(operands[0], operands[1])
    else:
        first, second = (names.union(side.get("value").at(side.where)) for side in (left, right))
        if len(first) != len(second):
            raise left.fail("header unions of one type")
        same = SameUnion(first, second)
    return same if op == "==" else Unary("not", same)


def header_type(operand: HeaderOperand, names: Names) -> HeaderType:
    """The type of a header operand."""
    if isinstance(operand, ElementRef):
        return names.stacks[operand.stack].type
    return names.headers[operand.name].type


def _structural(op: str, node: Node, right: Node, names: Names) -> Expr:
    match op:
        case "valid":
            return Unary("d2b", ValidRef(names.header(right.get("value").at(node.where))))
        case "valid_union":
            return UnionValid(names.union(right.get("value").at(node.where)))
        case "last_stack_index":
            return LastIndex(names.stack(right.get("value").at(node.where)).name)
        case "size_stack":
            return StackSize(names.stack(right.get("value").at(node.where)).name)
        case "access_field":
            header = header_operand(node.get("left").at(node.where), names)
            return _member(header, right.number(), node, names)
    raise node.unsupported(f"expression operation '{op}'")


def _member(header: HeaderOperand, offset: int, node: Node, names: Names) -> LValue:
    if isinstance(header, ElementRef):
        fields = names.stacks[header.stack].type.fields
    else:
        fields = names.headers[header.name].type.fields
    if not 0 <= offset < len(fields):
        raise node.fail("the number of a field")
    if isinstance(header, ElementRef):
        return ElementFieldRef(header.stack, header.index, fields[offset].name)
    return FieldRef(header.name, fields[offset].name)


def header_operand(node: Node, names: Names) -> HeaderOperand:
    """A header by name, or a stack element with an index known at run time."""
    kind = _kind(node)
    if kind == "header":
        return HeaderRef(names.header(node.get("value").at(node.where)))
    if kind == "expression":
        inner = node.get("value").at(node.where)
        if not inner.has("op"):
            return header_operand(inner, names)
        op = inner.get("op").text()
        if op == "dereference_header_stack":
            stack = names.stack(inner.get("left").get("value").at(node.where))
            index = expression(inner.get("right").at(node.where), names)
            if isinstance(index, Const) and 0 <= index.value < len(stack.elements):
                return HeaderRef(stack.elements[index.value])
            return ElementRef(stack.name, index)
        raise node.unsupported(f"header expression '{op}'")
    raise node.unsupported(f"header operand of type '{kind}'")


def lvalue(node: Node, names: Names) -> LValue:
    """What an assignment may write."""
    found = expression(node, names)
    if isinstance(found, FieldRef | LastFieldRef | ElementFieldRef):
        return found
    raise node.fail("a field to write to")


def _constant(node: Node, names: Names) -> int:
    found = expression(node, names)
    if not isinstance(found, Const):
        raise node.fail("a constant")
    return found.value


def constant(node: Node, names: Names) -> int:
    """A constant operand, such as the id of a field list."""
    return _constant(node, names)


def _kind(node: Node) -> str:
    return node.get("type").text() if isinstance(node.value, dict) and node.has("type") else ""
