"""Actions, tables and control flow of the JSON."""

from softswitch import ir
from softswitch.ir import walk
from softswitch.loader.expressions import expression
from softswitch.loader.names import VALID, WIDEST, Names
from softswitch.loader.node import Node
from softswitch.loader.packet import load_calculation
from softswitch.loader.statements import statement

_KINDS = frozenset(["exact", "lpm", "ternary", "range"])


def load_actions(root: Node, names: Names) -> dict[int, ir.Action]:
    """Actions by id."""
    found: dict[int, ir.Action] = {}
    for node in root.items("actions"):
        node = node.at(f"action '{node.name()}'")
        data = list(node.items("runtime_data"))
        body = tuple(statement(p.at(node.where), names) for p in node.items("primitives"))
        number = node.get("id").number()
        found[number] = ir.Action(
            number,
            node.name(),
            tuple(d.name() for d in data),
            tuple(d.get("bitwidth").number() for d in data),
            body,
        )
        _check_body(node, found[number])
    return found


def _check_body(node: Node, action: ir.Action) -> None:
    if any(not 0 < width <= WIDEST for width in action.param_widths):
        raise node.fail(f"parameters of 1..{WIDEST} bits")
    for step in walk(action.body):
        if isinstance(step, ir.Jump | ir.JumpIfZero) and not 0 <= step.target <= len(action.body):
            raise node.fail("a jump to a primitive of the action")
        if isinstance(step, ir.ParamRef) and not 0 <= step.index < len(action.param_names):
            raise node.fail("a parameter of the action")
        if isinstance(step, ir.Lookahead):
            raise node.unsupported("lookahead outside the parser")


def load_pipeline(
    root: Node, name: str, names: Names, actions: dict[int, ir.Action], meters: dict[str, str]
) -> ir.Pipeline:
    """The pipeline `name`; `meters` maps a table to its direct meter."""
    matching = [p for p in root.items("pipelines") if p.name() == name]
    if len(matching) != 1:
        raise root.fail(f"one pipeline '{name}'")
    node = matching[0].at(f"pipeline '{name}'")
    nodes: dict[str, ir.ControlNode] = {}
    for item in node.items("tables"):
        nodes[item.name()] = _table(item.at(f"table '{item.name()}'"), names, actions, meters)
    for item in node.items("conditionals"):
        where = item.get("expression").at(f"conditional '{item.name()}'")
        cond = expression(where, names)
        if any(isinstance(n, ir.ParamRef | ir.Lookahead) for n in walk(cond)):
            raise where.fail("an expression on fields")
        yes, no = (item.get(k).optional_text() for k in ("true_next", "false_next"))
        nodes[item.name()] = ir.Conditional(item.name(), cond, yes, no)
    for item in node.items("action_calls"):
        number = item.get("action_id").number()
        if number not in actions:
            raise item.get("action_id").fail("the id of an action")
        following = item.get("next_node").optional_text()
        nodes[item.name()] = ir.ActionNode(item.name(), number, following)
    init = node.get("init_table").optional_text()
    _check_flow(node, init, nodes)
    return ir.Pipeline(name, init, nodes)


def successors(node: ir.ControlNode) -> list[str | None]:
    """Nodes that may follow `node`; None is the end of the pipeline."""
    match node:
        case ir.Conditional():
            return [node.next_true, node.next_false]
        case ir.ActionNode():
            return [node.next_node]
        case ir.Table(by_hit=True):
            return [node.next_hit, node.next_miss]
        case ir.Table():
            return list(dict.fromkeys(node.next_by_action.values())) or [None]


def _check_flow(where: Node, init: str | None, nodes: dict[str, ir.ControlNode]) -> None:
    done: set[str] = set()
    path: list[tuple[str, int]] = []
    if init is not None:
        path.append((init, 0))
    while path:
        name, step = path[-1]
        if name not in nodes:
            raise where.fail(f"a declared table or conditional, not '{name}'")
        following = successors(nodes[name])
        if step == len(following):
            done.add(name)
            path.pop()
            continue
        path[-1] = (name, step + 1)
        target = following[step]
        if target is None or target in done:
            continue
        if any(target == seen for seen, _ in path):
            raise where.unsupported(f"loop through '{target}'")
        path.append((target, 0))


def _table(
    node: Node, names: Names, actions: dict[int, ir.Action], meters: dict[str, str]
) -> ir.Table:
    kind = node.get("match_type").text()
    if kind not in _KINDS:
        raise node.unsupported(f"match kind '{kind}'")
    profile = _implementation(node, names)
    keys = tuple(_key(k.at(node.where), names) for k in node.items("key"))
    ids = tuple(a.number() for a in node.items("action_ids"))
    for number in ids:
        if number not in actions:
            raise node.fail("declared actions")
    following = node.get("next_tables").at(node.where)
    by_hit = any(k in ("__HIT__", "__MISS__") for k in following.member_names())
    hit, miss = (
        following.get(k).optional_text() if following.has(k) else None
        for k in ("__HIT__", "__MISS__")
    )
    next_by_action = {
        number: following.get(actions[number].name).optional_text() for number in ids if not by_hit
    }
    if profile is not None and node.has("entries"):
        raise node.unsupported("const entries of a table with an action profile")
    entries = tuple(_const_entries(node, keys, actions, kind, ids) if node.has("entries") else ())
    return ir.Table(
        name=node.name(),
        kind=kind,
        keys=keys,
        actions=ids,
        size=node.get("max_size").number() if node.has("max_size") else 1024,
        next_by_action=next_by_action,
        by_hit=by_hit,
        next_hit=hit,
        next_miss=miss,
        default=_default(node, actions, ids),
        const_entries=entries,
        is_const=node.has("entries"),
        has_counter=node.flag("with_counters", False),
        meter=meters.get(node.name()),
        supports_timeout=node.flag("support_timeout", False),
        profile=profile,
    )


def _implementation(node: Node, names: Names) -> str | None:
    """The action profile of a table, if it has one."""
    kind = node.get("type").text() if node.has("type") else "simple"
    if kind == "simple":
        return None
    if kind not in ("indirect", "indirect_ws"):
        raise node.unsupported(f"table type '{kind}'")
    return names.declared(node.get("action_profile"), "action profile", names.profiles)


def load_profiles(root: Node, names: Names) -> dict[str, ir.ActionProfile]:
    """Action profiles of all pipelines."""
    found: dict[str, ir.ActionProfile] = {}
    for pipeline in root.items("pipelines"):
        for node in pipeline.items("action_profiles"):
            name = node.name()
            node = node.at(f"action profile '{name}'")
            selector = None
            if node.has("selector"):
                part = node.get("selector").at(node.where)
                selector = load_calculation(part, f"{name} selector", names)
            found[name] = ir.ActionProfile(name, node.get("max_size").number(), selector)
    names.profiles.update(found)
    return found


def _key(node: Node, names: Names) -> ir.Key:
    kind = node.get("match_type").text()
    target = node.get("target").at(node.where)
    mask = node.get("mask").hex() if node.has("mask") else None
    if kind == "valid":
        ref: ir.FieldRef | ir.ValidRef = ir.ValidRef(names.header(target))
        return ir.Key(node.name() if node.has("name") else target.text(), ref, 1, "exact", mask)
    if kind not in _KINDS:
        raise node.unsupported(f"match kind '{kind}'")
    header, member = target.pair()
    if member.value == VALID:
        ref, width = ir.ValidRef(names.header(header)), 1
    else:
        ref = names.field(target)
        decl = names.declaration(ref, node)
        if decl.varbit:
            raise node.unsupported("varbit field as a table key")
        width = decl.width
    name = node.name() if node.has("name") else f"{header.text()}.{member.text()}"
    return ir.Key(name, ref, width, kind, mask)


def _default(
    node: Node, actions: dict[int, ir.Action], ids: tuple[int, ...]
) -> ir.DefaultEntry | None:
    if not node.has("default_entry"):
        return None
    entry = node.get("default_entry").at(node.where)
    number = entry.get("action_id").number()
    params = tuple(d.hex() for d in entry.items("action_data"))
    _check_params(entry, number, params, actions, ids)
    const_action = entry.flag("action_const", False)
    return ir.DefaultEntry(number, params, const_action, entry.flag("action_entry_const", False))


def _check_params(
    node: Node,
    number: int,
    params: tuple[int, ...],
    actions: dict[int, ir.Action],
    allowed: tuple[int, ...],
) -> None:
    if number not in allowed:
        raise node.get("action_id").fail("the id of an action of the table")
    if len(params) != len(actions[number].param_names):
        raise node.fail(f"{len(actions[number].param_names)} action parameters")


def _const_entries(
    node: Node,
    keys: tuple[ir.Key, ...],
    actions: dict[int, ir.Action],
    kind: str,
    ids: tuple[int, ...],
) -> list[ir.ConstEntry]:
    raw: list[tuple[tuple[tuple[int, int], ...], int, tuple[int, ...], int]] = []
    for item in (e.at(node.where) for e in node.items("entries")):
        parts = [m.at(node.where) for m in item.items("match_key")]
        if len(parts) != len(keys):
            raise item.fail(f"{len(keys)} match fields")
        matches = tuple(_match(m, k) for m, k in zip(parts, keys, strict=True))
        call = item.get("action_entry").at(node.where)
        params = tuple(d.hex() for d in call.items("action_data"))
        number = call.get("action_id").number()
        _check_params(call, number, params, actions, ids)
        priority = item.get("priority").number() if item.has("priority") else 1
        raw.append((matches, number, params, priority))
    # in the JSON a small number goes first, in P4Runtime a large one
    last = max((r[3] for r in raw), default=0)
    ordered = kind in ("ternary", "range")
    return [ir.ConstEntry(m, a, p, last + 1 - n if ordered else 0) for m, a, p, n in raw]


def _match(node: Node, key: ir.Key) -> tuple[int, int]:
    kind = node.get("match_type").text()
    full = (1 << key.width) - 1
    if kind == "valid":
        return int(node.get("key").truth()), full
    match key.kind:
        case "exact":
            return node.get("key").hex() & full, full
        case "lpm":
            length = node.get("prefix_length").number()
            if not 0 <= length <= key.width:
                raise node.fail(f"a prefix length of 0..{key.width}")
            return node.get("key").hex() & (full ^ (full >> length)), length
        case "ternary":
            mask = node.get("mask").hex() & full
            return node.get("key").hex() & mask, mask
        case _:
            return node.get("start").hex() & full, node.get("end").hex() & full
