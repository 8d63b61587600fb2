"""Headers, parser, calculations and checksums of the JSON."""

from softswitch import ir
from softswitch.hashes import STATEFUL
from softswitch.loader.expressions import expression
from softswitch.loader.names import WIDEST, Names
from softswitch.loader.node import Node
from softswitch.loader.statements import statement

CHECKSUMS = ("csum16", "cksum16", "xor16", "xor32")
CRCS = ("crc16", "crcCCITT", "crc32")
ALGORITHMS = frozenset((*CHECKSUMS, *CRCS, *STATEFUL, "identity", "random"))
_PARSER_OPS = {
    "extract": 1,
    "extract_VL": 2,
    "set": 2,
    "verify": 2,
    "shift": 1,
    "advance": 1,
    "primitive": 1,
}
CORE_ERRORS = {
    "NoError": 0,
    "PacketTooShort": 1,
    "NoMatch": 2,
    "StackOutOfBounds": 3,
    "HeaderTooShort": 4,
    "ParserTimeout": 5,
    "ParserInvalidArgument": 6,
}


def load_headers(root: Node, names: Names) -> None:
    """Header types, instances, stacks and unions, into `names`."""
    types: dict[str, ir.HeaderType] = {}
    for node in root.items("header_types"):
        node = node.at(f"header type '{node.name()}'")
        types[node.name()] = _header_type(node)
    by_id: dict[int, str] = {}
    unions: dict[str, tuple[str, ...]] = {}
    for node in root.items("headers"):
        name = node.name()
        by_id[node.get("id").number()] = name
        type_name = node.get("header_type").text()
        if type_name not in types:
            raise node.get("header_type").fail("the name of a header type")
        metadata = node.flag("metadata", False)
        if not metadata and types[type_name].fixed_bits % 8:
            raise node.unsupported(f"header '{name}' of a width that is no multiple of 8 bits")
        names.headers[name] = ir.Header(name, types[type_name], metadata)
    for node in root.items("header_unions"):
        members = _instances(node, by_id)
        unions[node.name()] = members
        for member in members:
            old = names.headers[member]
            names.headers[member] = ir.Header(member, old.type, old.metadata, members)
    names.unions.update(unions)
    for node in root.items("header_stacks"):
        elements = _instances(node, by_id)
        if not elements:
            raise node.fail("a stack with elements")
        header_type = names.headers[elements[0]].type
        if any(names.headers[e].type != header_type or names.headers[e].metadata for e in elements):
            raise node.fail("a stack of headers of one type")
        names.stacks[node.name()] = ir.Stack(node.name(), header_type, elements, node.name())
    _load_union_stacks(root, names)


def _load_union_stacks(root: Node, names: Names) -> None:
    members = {
        t.name(): [h.pair()[0].text() for h in t.items("headers")]
        for t in root.items("header_union_types")
    }
    by_id = {u.get("id").number(): u for u in root.items("header_unions")}
    for node in root.items("header_union_stacks"):
        name = node.name()
        where = node.at(f"header union stack '{name}'")
        rows: list[tuple[str, ...]] = []
        for item in node.get("header_union_ids").elements():
            if item.number() not in by_id:
                raise item.fail("the id of a header union")
            rows.append(names.unions[by_id[item.number()].name()])
        kinds = members.get(node.get("union_type").text(), [])
        if not rows or not kinds or any(len(r) != len(kinds) for r in rows):
            raise where.fail("a stack of header unions of one type")
        names.union_stacks[name] = {}
        for kind, elements in zip(kinds, zip(*rows, strict=True), strict=True):
            header_type = names.headers[elements[0]].type
            if any(names.headers[e].type != header_type for e in elements):
                raise where.fail("a stack of header unions of one type")
            full = f"{name}.{kind}"
            names.stacks[full] = ir.Stack(full, header_type, elements, name)
            names.union_stacks[name][kind] = full


def _instances(node: Node, by_id: dict[int, str]) -> tuple[str, ...]:
    found: list[str] = []
    for item in node.get("header_ids").elements():
        if item.number() not in by_id:
            raise item.fail("the id of a header")
        found.append(by_id[item.number()])
    return tuple(found)


def _header_type(node: Node) -> ir.HeaderType:
    fields: list[ir.FieldDecl] = []
    fixed = 0
    for item in node.get("fields").elements():
        parts = item.elements()
        if len(parts) not in (2, 3):
            raise item.fail("name, width and signedness")
        name, width = parts[0].text(), parts[1]
        signed = len(parts) == 3 and parts[2].value in (True, 1)
        if width.value == "*":
            if any(f.varbit for f in fields):
                raise item.unsupported("header with two varbit fields")
            fields.append(ir.FieldDecl(name, 0, False, True))
        else:
            if not 0 < width.number() <= WIDEST:
                raise width.fail(f"a width of 1..{WIDEST} bits")
            fields.append(ir.FieldDecl(name, width.number(), signed))
            fixed += width.number()
    if any(f.varbit for f in fields):
        widest = node.get("max_length").number() * 8 - fixed
        if not 0 < widest <= WIDEST:
            raise node.get("max_length").fail("the most bytes that the header can have")
        fields = [ir.FieldDecl(f.name, widest, False, True) if f.varbit else f for f in fields]
    return ir.HeaderType(node.name(), tuple(fields))


def load_errors(root: Node) -> dict[str, int]:
    """Error names and numbers; core errors that the program leaves out keep distinct numbers."""
    errors = {pair.pair()[0].text(): pair.pair()[1].number() for pair in root.items("errors")}
    spare = max([*errors.values(), -1]) + 1
    for name, number in CORE_ERRORS.items():
        if name not in errors:
            errors[name] = number if number not in errors.values() else spare
            spare = max(spare, errors[name] + 1)
    return errors


def load_parser(root: Node, names: Names) -> ir.Parser:
    """The one parser."""
    parsers = list(root.items("parsers"))
    if len(parsers) != 1:
        raise root.unsupported(f"number of parsers {len(parsers)}")
    node = parsers[0]
    sets = {v.name() for v in root.items("parse_vsets")}
    states: dict[str, ir.State] = {}
    for item in node.items("parse_states"):
        states[item.name()] = _state(item.at(f"parser state '{item.name()}'"), names, sets)
    init = node.get("init_state").optional_text()
    for state in states.values():
        for target in [state.default, *(c.next_state for c in state.cases)]:
            if target is not None and target not in states:
                raise node.fail(f"a declared parser state, not '{target}'")
    if init is not None and init not in states:
        raise node.get("init_state").fail("a declared parser state")
    return ir.Parser(init, states)


def _state(node: Node, names: Names, sets: set[str]) -> ir.State:
    ops = tuple(_parser_op(o.at(node.where), names) for o in node.items("parser_ops"))
    key = tuple(expression(k.at(node.where), names) for k in node.items("transition_key"))
    widths = tuple(_key_width(k, node, names) for k in key)
    cases: list[ir.Case | ir.ValueSetCase] = []
    default: str | None = None
    for item in (t.at(node.where) for t in node.items("transitions")):
        following = item.get("next_state").optional_text()
        kind = item.get("type").text() if item.has("type") else "default"
        if kind == "default":
            default = following
            break
        if kind == "hexstr":
            cases.append(_case(item, widths, following))
        elif kind == "parse_vset":
            name = names.declared(item.get("value"), "parser value set", sets)
            cases.append(ir.ValueSetCase(name, following, _vset_masks(item, widths)))
        else:
            raise item.unsupported(f"parser transition type '{kind}'")
    return ir.State(node.name(), ops, key, widths, tuple(cases), default)


def _key_width(key: ir.Expr, node: Node, names: Names) -> int:
    match key:
        case ir.FieldRef():
            return names.declaration(key, node).width
        case ir.Lookahead(width=width):
            return width
        case ir.ValidRef():
            return 1
        case ir.LastFieldRef(stack=stack, field=field):
            return names.headers[names.stacks[stack].elements[0]].field(field).width
    raise node.unsupported("parser transition key that is an expression")


def _vset_masks(item: Node, widths: tuple[int, ...]) -> tuple[int, ...] | None:
    """Masks of the key parts, padded to whole bytes as in `_case`."""
    if not item.has("mask"):
        return None
    mask = item.get("mask").hex()
    masks: list[int] = []
    for width in reversed(widths):
        masks.append(mask & ((1 << width) - 1))
        mask >>= (width + 7) // 8 * 8
    return tuple(reversed(masks))


def _case(item: Node, widths: tuple[int, ...], following: str | None) -> ir.Case:
    value = item.get("value").hex()
    mask = item.get("mask").hex() if item.has("mask") else None
    values: list[int] = []
    masks: list[int] = []
    # each key part is padded to whole bytes: see docs/JSON_format.md, "parsers"
    for width in reversed(widths):
        padded = (width + 7) // 8 * 8
        full = (1 << width) - 1
        part = full if mask is None else mask & full
        values.append(value & part)
        masks.append(part)
        value >>= padded
        mask = None if mask is None else mask >> padded
    return ir.Case(tuple(reversed(values)), tuple(reversed(masks)), following)


def _parser_op(node: Node, names: Names) -> ir.ParserOp:
    op = node.get("op").text()
    args = [a.at(node.where) for a in node.items("parameters")]
    if len(args) != _PARSER_OPS.get(op, len(args)):
        raise node.fail(f"{_PARSER_OPS[op]} parameters of parser operation '{op}'")
    match op:
        case "extract":
            return _extract(args[0], None, names)
        case "extract_VL":
            return _extract(args[0], expression(args[1], names), names)
        case "set":
            return statement(node, names)
        case "verify":
            return ir.Verify(expression(args[0], names), expression(args[1], names))
        case "shift":
            return ir.Advance(ir.Const(8 * args[0].number()))
        case "advance":
            return ir.Advance(expression(args[0], names))
        case "primitive":
            return statement(args[0], names)
    raise node.unsupported(f"parser operation '{op}'")


def _extract(node: Node, length: ir.Expr | None, names: Names) -> ir.ParserOp:
    kind = node.get("type").text()
    value = node.get("value").at(node.where)
    if kind == "regular":
        return ir.Extract(names.packet_header(value), length)
    if kind == "stack":
        return ir.ExtractNext(names.stack(value).name, length)
    if kind == "union_stack":
        return ir.ExtractNext(names.member_stack(*value.pair()).name, length)
    raise node.unsupported(f"extraction to a '{kind}'")


def load_calculations(root: Node, names: Names) -> dict[str, ir.Calculation]:
    """Named calculations: checksums and hashes."""
    found: dict[str, ir.Calculation] = {}
    for node in root.items("calculations"):
        node = node.at(f"calculation '{node.name()}'")
        found[node.name()] = load_calculation(node, node.name(), names)
    names.calculations.update(found)
    return found


def load_calculation(node: Node, name: str, names: Names) -> ir.Calculation:
    """An algorithm and its inputs."""
    algorithm = node.get("algo").text()
    if algorithm not in ALGORITHMS:
        raise node.unsupported(f"hash algorithm '{algorithm}'")
    inputs = tuple(_calc_input(i.at(node.where), names) for i in node.items("input"))
    return ir.Calculation(name, algorithm, inputs)


def _calc_input(node: Node, names: Names) -> ir.CalcInput:
    kind = node.get("type").text()
    match kind:
        case "field":
            return ir.CalcField(names.field(node.get("value").at(node.where)))
        case "hexstr":
            width = node.get("bitwidth").number()
            if not 0 < width <= WIDEST:
                raise node.get("bitwidth").fail(f"1..{WIDEST}")
            return ir.CalcConst(node.get("value").hex() & ((1 << width) - 1), width)
        case "header":
            return ir.CalcHeader(names.packet_header(node.get("value").at(node.where)))
        case "payload":
            return ir.CalcPayload()
    raise node.unsupported(f"calculation input '{kind}'")


def load_checksums(root: Node, names: Names) -> tuple[ir.Checksum, ...]:
    """Checksums to verify and to update, in order."""
    found: list[ir.Checksum] = []
    for node in root.items("checksums"):
        node = node.at(f"checksum '{node.name()}'")
        kind = node.get("type").text()
        if kind != "generic":
            raise node.unsupported(f"checksum type '{kind}'")
        target = names.field(node.get("target").at(node.where))
        calculation = names.declared(node.get("calculation"), "calculation", names.calculations)
        cond = (
            expression(node.get("if_cond").at(node.where), names) if node.has("if_cond") else None
        )
        verify, update = node.flag("verify", True), node.flag("update", True)
        found.append(ir.Checksum(node.name(), target, calculation, verify, update, cond))
    return tuple(found)
