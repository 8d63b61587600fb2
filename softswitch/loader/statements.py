"""Primitives of the JSON -> statements."""

from collections.abc import Callable

from softswitch import ir
from softswitch.loader.expressions import constant, expression, header_operand, lvalue
from softswitch.loader.names import Names
from softswitch.loader.node import Node


def statement(node: Node, names: Names) -> ir.Statement:
    """One primitive call; UnsupportedConstruct names a primitive that the switch lacks."""
    op = node.get("op").text()
    args = [a.at(node.where) for a in node.items("parameters")]
    if op not in _PRIMITIVES:
        raise node.unsupported(f"primitive '{op}'")
    count, build = _PRIMITIVES[op]
    if len(args) != count:
        raise node.fail(f"{count} parameters of primitive '{op}'")
    return build(args, names)


_Args = list[Node]


def _value(node: Node) -> Node:
    return node.get("value").at(node.where)


def _assign(args: _Args, names: Names) -> ir.Statement:
    return ir.Assign(lvalue(args[0], names), expression(args[1], names))


def _assign_varbit(args: _Args, names: Names) -> ir.Statement:
    target, source = (expression(a, names) for a in args)
    if not isinstance(target, ir.FieldRef) or not isinstance(source, ir.FieldRef):
        raise args[0].unsupported("varbit assignment to other than a plain field")
    return ir.AssignVarbit(target, source)


def _assign_header(args: _Args, names: Names) -> ir.Statement:
    target, source = (header_operand(a, names) for a in args)
    if _type(target, names) != _type(source, names):
        raise args[0].fail("headers of one type")
    return ir.AssignHeader(target, source)


def _type(operand: ir.HeaderOperand, names: Names) -> tuple[ir.HeaderType, bool]:
    if isinstance(operand, ir.ElementRef):
        return names.stacks[operand.stack].type, False
    header = names.headers[operand.name]
    return header.type, header.metadata


def _assign_stack(args: _Args, names: Names) -> ir.Statement:
    target, source = (names.stack(_value(a)) for a in args)
    if len(target.elements) != len(source.elements) or target.type != source.type:
        raise args[0].fail("stacks of the same size and type")
    return ir.AssignStack(target.name, source.name)


def _assign_union(args: _Args, names: Names) -> ir.Statement:
    target, source = (names.union(_value(a)) for a in args)
    types = [tuple(names.headers[h].type for h in members) for members in (target, source)]
    if types[0] != types[1]:
        raise args[0].fail("header unions of one type")
    return ir.AssignUnion(target, source)


def _set_valid(args: _Args, names: Names) -> ir.Statement:
    return ir.SetValidity(header_operand(args[0], names), True)


def _set_invalid(args: _Args, names: Names) -> ir.Statement:
    return ir.SetValidity(header_operand(args[0], names), False)


def _push(args: _Args, names: Names) -> ir.Statement:
    return ir.ShiftStack(names.stack(_value(args[0])).name, constant(args[1], names), True)


def _pop(args: _Args, names: Names) -> ir.Statement:
    return ir.ShiftStack(names.stack(_value(args[0])).name, constant(args[1], names), False)


def _drop(args: _Args, names: Names) -> ir.Statement:
    return ir.MarkToDrop()


def _register_read(args: _Args, names: Names) -> ir.Statement:
    register = names.declared(_value(args[1]), "register", names.registers)
    return ir.RegisterRead(lvalue(args[0], names), register, expression(args[2], names))


def _register_write(args: _Args, names: Names) -> ir.Statement:
    register = names.declared(_value(args[0]), "register", names.registers)
    return ir.RegisterWrite(register, expression(args[1], names), expression(args[2], names))


def _count(args: _Args, names: Names) -> ir.Statement:
    counter = names.declared(_value(args[0]), "counter", names.counters)
    return ir.Count(counter, expression(args[1], names))


def _meter(args: _Args, names: Names) -> ir.Statement:
    meter = names.declared(_value(args[0]), "meter", names.meters)
    return ir.ExecuteMeter(meter, expression(args[1], names), lvalue(args[2], names))


def _hash(args: _Args, names: Names) -> ir.Statement:
    calculation = names.declared(_value(args[2]), "calculation", names.calculations)
    target, base, limit = lvalue(args[0], names), expression(args[1], names), args[3]
    return ir.Hash(target, base, calculation, expression(limit, names))


def _random(args: _Args, names: Names) -> ir.Statement:
    low, high = expression(args[1], names), expression(args[2], names)
    return ir.Random(lvalue(args[0], names), low, high)


def _list_id(node: Node, names: Names, known: set[int]) -> int:
    found = constant(node, names)
    if found not in known:
        raise node.fail("the id of a list of fields")
    return found


def _digest(args: _Args, names: Names) -> ir.Statement:
    return ir.SendDigest(_list_id(args[1], names, names.learn_lists))


def _clone_ingress(args: _Args, names: Names) -> ir.Statement:
    kept = _list_id(args[1], names, names.field_lists)
    return ir.Clone(expression(args[0], names), kept, egress=False)


def _clone_egress(args: _Args, names: Names) -> ir.Statement:
    kept = _list_id(args[1], names, names.field_lists)
    return ir.Clone(expression(args[0], names), kept, egress=True)


def _resubmit(args: _Args, names: Names) -> ir.Statement:
    return ir.Resubmit(_list_id(args[0], names, names.field_lists))


def _recirculate(args: _Args, names: Names) -> ir.Statement:
    return ir.Recirculate(_list_id(args[0], names, names.field_lists))


def _truncate(args: _Args, names: Names) -> ir.Statement:
    return ir.Truncate(expression(args[0], names))


def _exit(args: _Args, names: Names) -> ir.Statement:
    return ir.Exit()


def _assert(args: _Args, names: Names) -> ir.Statement:
    return ir.Check("assert", expression(args[0], names))


def _assume(args: _Args, names: Names) -> ir.Statement:
    return ir.Check("assume", expression(args[0], names))


def _log(args: _Args, names: Names) -> ir.Statement:
    values = tuple(expression(v.at(args[1].where), names) for v in _value(args[1]).elements())
    return ir.LogMessage(_value(args[0]).text(), values)


def _jump(args: _Args, names: Names) -> ir.Statement:
    return ir.Jump(constant(args[0], names))


def _jump_if_zero(args: _Args, names: Names) -> ir.Statement:
    return ir.JumpIfZero(expression(args[0], names), constant(args[1], names))


def _no_op(args: _Args, names: Names) -> ir.Statement:
    return ir.LogMessage("", ())


_PRIMITIVES: dict[str, tuple[int, Callable[[_Args, Names], ir.Statement]]] = {
    "assign": (2, _assign),
    "modify_field": (2, _assign),
    "set": (2, _assign),
    "assign_VL": (2, _assign_varbit),
    "assign_header": (2, _assign_header),
    "copy_header": (2, _assign_header),
    "assign_header_stack": (2, _assign_stack),
    "assign_union": (2, _assign_union),
    "assign_union_stack": (2, _assign_stack),
    "add_header": (1, _set_valid),
    "remove_header": (1, _set_invalid),
    "push": (2, _push),
    "pop": (2, _pop),
    "drop": (0, _drop),
    "mark_to_drop": (1, _drop),
    "register_read": (3, _register_read),
    "register_write": (3, _register_write),
    "count": (2, _count),
    "execute_meter": (3, _meter),
    "modify_field_with_hash_based_offset": (4, _hash),
    "modify_field_rng_uniform": (3, _random),
    "generate_digest": (2, _digest),
    "clone_ingress_pkt_to_egress": (2, _clone_ingress),
    "clone_egress_pkt_to_egress": (2, _clone_egress),
    "resubmit": (1, _resubmit),
    "recirculate": (1, _recirculate),
    "truncate": (1, _truncate),
    "exit": (0, _exit),
    "assert": (1, _assert),
    "assume": (1, _assume),
    "log_msg": (2, _log),
    "_jump": (1, _jump),
    "_jump_if_zero": (2, _jump_if_zero),
    "no_op": (0, _no_op),
}
