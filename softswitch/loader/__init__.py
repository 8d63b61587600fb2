"""p4c's bmv2 JSON -> the intermediate form.

The format is bmv2's docs/JSON_format.md, version 2. What is not understood is refused by name
(`UnsupportedConstruct`); what is not well-formed is refused with its place (`InvalidPipeline`).
"""

import hashlib

from softswitch import ir
from softswitch.errors import InvalidPipeline
from softswitch.loader.controls import load_actions, load_pipeline, load_profiles
from softswitch.loader.names import LARGEST, WIDEST, Names
from softswitch.loader.node import Node, parse
from softswitch.loader.packet import (
    load_calculations,
    load_checksums,
    load_errors,
    load_headers,
    load_parser,
)

_SECTIONS = frozenset(
    [
        "program",
        "__meta__",
        "header_types",
        "headers",
        "header_stacks",
        "header_union_types",
        "header_unions",
        "header_union_stacks",
        "field_lists",
        "errors",
        "enums",
        "parsers",
        "parse_vsets",
        "deparsers",
        "meter_arrays",
        "counter_arrays",
        "register_arrays",
        "calculations",
        "learn_lists",
        "actions",
        "pipelines",
        "checksums",
        "force_arith",
        "extern_instances",
        "field_aliases",
    ]
)
# bmv2's names of what v1model keeps in one struct
_STANDARD_ALIASES = {
    "ingress_global_timestamp": "intrinsic_metadata",
    "egress_global_timestamp": "intrinsic_metadata",
    "mcast_grp": "intrinsic_metadata",
    "egress_rid": "intrinsic_metadata",
    "priority": "intrinsic_metadata",
    "enq_timestamp": "queueing_metadata",
    "enq_qdepth": "queueing_metadata",
    "deq_timedelta": "queueing_metadata",
    "deq_qdepth": "queueing_metadata",
    "qid": "queueing_metadata",
}
_REQUIRED = ("ingress_port", "egress_spec", "egress_port", "instance_type", "packet_length")
_OPTIONAL = ("parser_error", "checksum_error")


def digest_of(text: bytes, drop_port: int = ir.DROP_PORT) -> str:
    """The digest of the program that `load_program` would read."""
    digest = hashlib.sha256(text).hexdigest()
    return digest if drop_port == ir.DROP_PORT else f"{digest} drop {drop_port}"


def load_program(text: bytes, drop_port: int = ir.DROP_PORT) -> ir.Program:
    """Read one program, for a target with this drop port.

    InvalidPipeline: not JSON, or names and numbers that do not fit together.
    UnsupportedConstruct: a construct that the switch does not run.
    """
    root = parse(text)
    try:
        return _program(root, digest_of(text, drop_port), drop_port)
    except RecursionError:
        raise root.unsupported("values nested too deep for Python") from None


def _program(root: Node, digest: str, drop_port: int) -> ir.Program:
    _check_frame(root)
    names = Names()
    load_headers(root, names)
    errors = load_errors(root)
    registers, counters, meters = _externs(root, names)
    field_lists, learn_lists = _lists(root, names)
    calculations = load_calculations(root, names)
    actions = load_actions(root, names)
    profiles = load_profiles(root, names)
    direct = {m.table: m.name for m in meters.values() if m.table is not None}
    ingress = load_pipeline(root, "ingress", names, actions, direct)
    egress = load_pipeline(root, "egress", names, actions, direct)
    tables = {
        node.name: node
        for pipeline in (ingress, egress)
        for node in pipeline.nodes.values()
        if isinstance(node, ir.Table)
    }
    return ir.Program(
        digest=digest,
        headers=names.headers,
        stacks=names.stacks,
        errors=errors,
        parser=load_parser(root, names),
        value_sets={
            v.name(): ir.ValueSet(v.name(), v.get("compressed_bitwidth").number())
            for v in root.items("parse_vsets")
        },
        calculations=calculations,
        checksums=load_checksums(root, names),
        deparser=_deparser(root, names),
        actions=actions,
        tables=tables,
        profiles=profiles,
        ingress=ingress,
        egress=egress,
        registers=registers,
        counters=counters,
        meters=meters,
        field_lists=field_lists,
        learn_lists=learn_lists,
        standard=_standard(root, names),
        drop_port=drop_port,
    )


def _check_frame(root: Node) -> None:
    for key in root.member_names():
        if key not in _SECTIONS:
            raise root.unsupported(f"section '{key}'")
    if root.has("__meta__") and root.get("__meta__").has("version"):
        major, _ = root.get("__meta__").get("version").pair()
        if major.number() != 2:
            raise root.unsupported(f"JSON format version {major.value}")
    for node in root.items("extern_instances"):
        raise root.unsupported(f"extern '{node.get('type').text()}' (instance '{node.name()}')")


def _externs(
    root: Node, names: Names
) -> tuple[dict[str, ir.Register], dict[str, ir.Counter], dict[str, ir.Meter]]:
    registers = {
        n.name(): ir.Register(n.name(), _size(n, "size", LARGEST), _size(n, "bitwidth", WIDEST))
        for n in root.items("register_arrays")
    }
    counters: dict[str, ir.Counter] = {}
    for node in root.items("counter_arrays"):
        direct = node.flag("is_direct", False)
        size = 0 if direct else _size(node, "size", LARGEST)
        table = node.get("binding").text() if direct else None
        counters[node.name()] = ir.Counter(node.name(), size, table)
    meters: dict[str, ir.Meter] = {}
    for node in root.items("meter_arrays"):
        direct = node.flag("is_direct", False)
        unit = node.get("type").text()
        if unit not in ("packets", "bytes") or node.get("rate_count").number() != 2:
            raise root.unsupported(
                f"meter '{node.name()}' other than two rates of packets or bytes"
            )
        meters[node.name()] = ir.Meter(
            node.name(),
            0 if direct else _size(node, "size", LARGEST),
            unit,
            node.get("binding").text() if direct else None,
            names.field(node.get("result_target")) if direct else None,
        )
    names.registers.update(registers)
    names.counters.update(n for n, c in counters.items() if c.table is None)
    names.meters.update(n for n, m in meters.items() if m.table is None)
    return registers, counters, meters


def _size(node: Node, key: str, most: int) -> int:
    found = node.get(key)
    if not 0 < found.number() <= most:
        raise found.fail(f"1..{most}")
    return found.number()


def _lists(root: Node, names: Names) -> tuple[dict[int, ir.FieldList], dict[int, ir.LearnList]]:
    field_lists: dict[int, ir.FieldList] = {}
    for node in root.items("field_lists"):
        number = node.get("id").number()
        fields: list[ir.FieldRef] = []
        for element in node.items("elements"):
            kind = element.get("type").text()
            if kind != "field":
                raise node.unsupported(f"field list element '{kind}'")
            ref = names.field(element.get("value"))
            if not names.headers[ref.header].metadata:
                raise node.unsupported(f"field list element of a packet header '{ref.header}'")
            fields.append(ref)
        field_lists[number] = ir.FieldList(number, node.name(), tuple(fields))
    learn_lists: dict[int, ir.LearnList] = {}
    for node in root.items("learn_lists"):
        number = node.get("id").number()
        refs = [names.field(e.get("value")) for e in _only_fields(node)]
        widths = tuple(names.declaration(r, node).width for r in refs)
        learn_lists[number] = ir.LearnList(number, node.name(), tuple(refs), widths)
    names.field_lists.update(field_lists)
    names.learn_lists.update(learn_lists)
    return field_lists, learn_lists


def _only_fields(node: Node) -> list[Node]:
    elements = list(node.items("elements"))
    for element in elements:
        if element.get("type").text() != "field":
            raise node.unsupported(f"digest member of type '{element.get('type').text()}'")
    return elements


def _deparser(root: Node, names: Names) -> tuple[str, ...]:
    deparsers = list(root.items("deparsers"))
    if len(deparsers) != 1:
        raise root.unsupported(f"number of deparsers {len(deparsers)}")
    for _ in deparsers[0].items("primitives"):
        raise root.unsupported("primitives in the deparser")
    return tuple(names.packet_header(h) for h in deparsers[0].items("order"))


def _standard(root: Node, names: Names) -> dict[str, ir.FieldRef]:
    """Fields with a meaning to the target, by v1model's name of them."""
    aliases = {pair[0].text(): pair[1] for pair in (a.pair() for a in root.items("field_aliases"))}
    found: dict[str, ir.FieldRef] = {}
    wanted = dict.fromkeys((*_REQUIRED, *_OPTIONAL), "standard_metadata") | _STANDARD_ALIASES
    for name, owner in wanted.items():
        full = f"{owner}.{name}"
        if full in aliases:
            found[name] = names.field(aliases[full])
            continue
        for candidate in (owner, "standard_metadata"):
            header = names.headers.get(candidate)
            if header is not None and any(f.name == name for f in header.type.fields):
                found[name] = ir.FieldRef(candidate, name)
                break
    missing = [n for n in _REQUIRED if n not in found]
    if missing:
        raise InvalidPipeline(f"program: standard_metadata lacks {', '.join(missing)}")
    return found


__all__ = ["digest_of", "load_program"]
