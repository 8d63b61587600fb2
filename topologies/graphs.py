"""Graph files, GraphML and networkx node-link JSON, as records of switches.

Nodes carry the keys of the tree file. The parent of a switch is its node's `parent`; a graph in
which no node has one takes it from the edges instead, which then lead towards the destination
(child to parent), or all away from the root. Of an undirected graph the attribute `root` of the
graph names the root. An edge may carry the `rate` of its link.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

from topologies.documents import Number, Record, Value
from topologies.errors import TopologyError, did_you_mean
from topologies.treefile import SwitchRecord

__all__ = ["is_node_link", "records_of_graphml", "records_of_node_link"]

_EDGE_KEYS = ("rate", "id", "key")
_LONGEST_INTEGER = 60


@dataclass(slots=True)
class _Graph:
    """A graph as written: values still raw, names already strings."""

    directed: bool = True
    root: str | None = None
    nodes: list[tuple[str, Record]] = field(default_factory=list)
    edges: list[tuple[str, str, Record]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def is_node_link(document: Value) -> bool:
    """Whether a JSON document is a graph in networkx's node-link form."""
    return isinstance(document, Record) and isinstance(document.get("nodes"), list)


def records_of_node_link(document: Record) -> tuple[list[SwitchRecord], list[str]]:
    """The switches of a node-link graph (edges under "edges" or "links"), and its problems."""
    graph = _Graph(directed=document.get("directed") is True)
    attributes = document.get("graph")
    if isinstance(attributes, Record) and attributes.has("root"):
        graph.root = _name(attributes.get("root"))
    nodes = document.get("nodes")
    for place, node in enumerate(nodes if isinstance(nodes, list) else []):
        name = _name(node.get("id")) if isinstance(node, Record) else None
        if name is None or not isinstance(node, Record):
            graph.problems.append(f"nodes[{place}]: no id, write the name of the switch")
            continue
        pairs = [(key, value) for key, value in node.pairs if key != "id"]
        graph.nodes.append((name, Record(tuple(map(_with_parent_name, pairs)))))
    key = "edges" if document.has("edges") else "links"
    edges = document.get(key) if document.has(key) else []
    if not isinstance(edges, list):
        graph.problems.append(f"{key}: not a list of edges")
        edges = []
    for place, edge in enumerate(edges):
        written = edge if isinstance(edge, Record) else Record(())
        source, target = _name(written.get("source")), _name(written.get("target"))
        if source is None or target is None:
            graph.problems.append(f"{key}[{place}]: no source or no target, write both")
            continue
        rest = tuple(pair for pair in written.pairs if pair[0] not in ("source", "target"))
        graph.edges.append((source, target, Record(rest)))
    return _records(graph)


def records_of_graphml(text: str, source: str) -> tuple[list[SwitchRecord], list[str]]:
    """The switches of a GraphML document, and its problems.

    Raises:
        TopologyError: it is not well-formed XML, or holds no graph.
    """
    try:
        document = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line, column = error.position
        reason = str(error).split(":")[0]
        place = f"line {line}, column {column + 1}"
        raise TopologyError(source, [f"{place}: not XML: {reason}"]) from None
    except ValueError as error:
        raise TopologyError(source, [f"not XML: {error}"]) from None
    element = next(_named(document, "graph"), None)
    if element is None:
        raise TopologyError(source, ["has no <graph>: write a GraphML file"])
    keys = {key.get("id", ""): key.get("attr.name", "") for key in _named(document, "key")}
    defaults = [
        (key.get("for", "all"), key.get("attr.name", ""), default.text or "")
        for key in _named(document, "key")
        for default in _named(key, "default")
    ]
    graph = _Graph(directed=element.get("edgedefault") != "undirected")
    attributes = _data(element, keys, defaults, "graph")
    root = attributes.get("root")
    graph.root = root if isinstance(root, str) else None
    for node in _named(element, "node"):
        graph.nodes.append((node.get("id", ""), _data(node, keys, defaults, "node")))
    for edge in _named(element, "edge"):
        ends = edge.get("source", ""), edge.get("target", "")
        graph.edges.append((*ends, _data(edge, keys, defaults, "edge")))
    return _records(graph)


def _named(element: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """The children called `name`, in whatever namespace."""
    return (child for child in element if child.tag.rpartition("}")[2] == name)


def _data(
    element: ElementTree.Element,
    keys: dict[str, str],
    defaults: Iterable[tuple[str, str, str]],
    kind: str,
) -> Record:
    pairs = []
    for data in _named(element, "data"):
        name = keys.get(data.get("key", ""), data.get("key", ""))
        pairs.append((name, _value_of_text(name, (data.text or "").strip())))
    written = {name for name, _ in pairs}
    pairs += [
        (name, _value_of_text(name, text.strip()))
        for scope, name, text in defaults
        if scope in (kind, "all") and name not in written
    ]
    return Record(tuple(pairs))


def _value_of_text(name: str, text: str) -> Value:
    """A GraphML value by what its key means, since every tool declares other types."""
    if name in ("workers", "capacity"):
        digits = text.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_INTEGER
        return int(text) if plain else Number(text)
    if name == "available":
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower(), text)
    if name == "parent" and not text:
        return None
    return text


def _name(value: Value) -> str | None:
    """Names of nodes: networkx numbers them by default, and 3 is then called "3"."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _with_parent_name(pair: tuple[Value, Value]) -> tuple[Value, Value]:
    key, value = pair
    return (key, _name(value) or value) if key == "parent" else pair


def _records(graph: _Graph) -> tuple[list[SwitchRecord], list[str]]:
    """Records with `parent` and `rate` in every switch, from nodes and edges together."""
    known = {name: None for name, _ in graph.nodes}
    adrift: set[str] = set()  # at an edge to a switch that does not exist
    edges = []
    for source, target, attributes in graph.edges:
        place = f'edge "{source}" - "{target}"'
        missing = [end for end in (source, target) if end not in known]
        graph.problems += [
            f'{place}: no node is called "{end}"{did_you_mean(end, list(known))}' for end in missing
        ]
        graph.problems += [
            f'{place}: unknown key "{key}"{did_you_mean(str(key), _EDGE_KEYS)}'
            for key, _ in attributes.pairs
            if key not in _EDGE_KEYS
        ]
        if missing:
            adrift |= {source, target}
        else:
            edges.append((source, target, attributes))
    if any(fields.has("parent") for _, fields in graph.nodes):
        parent = _parents_of_nodes(graph)
    elif (problem := _rootless(graph, edges)) is not None:
        # Told once, not again at every switch and edge.
        graph.problems.append(problem)
        return list(_rootless_records(graph, edges)), graph.problems
    else:
        parent = _parents_of_edges(graph, edges)
    rates = _rates_of_edges(graph, edges, parent)
    records = []
    for name, fields in graph.nodes:
        pairs = fields.pairs
        if not fields.has("parent"):
            pairs += (("parent", parent.get(name)),)
        if name in rates and not fields.has("rate"):
            pairs += (("rate", rates[name]),)
        records.append(SwitchRecord(name, Record(pairs), name in parent or name not in adrift))
    return records, graph.problems


def _parents_of_nodes(graph: _Graph) -> dict[str, str | None]:
    return {name: _name(fields.get("parent")) for name, fields in graph.nodes}


def _rootless(graph: _Graph, edges: list[tuple[str, str, Record]]) -> str | None:
    """Why no parents follow from the edges, where nothing in the graph says what its root is."""
    names = {name for name, _ in graph.nodes}
    if graph.directed:
        # Of two switches, one line about a second root says as much.
        if edges or len(names) <= 2 or graph.problems:
            return None
        return (
            f"graph: {len(names)} switches and no edges: write an edge from each switch to its "
            "parent, or the attribute parent of every node"
        )
    if graph.root in names:
        return None
    shown = "missing" if graph.root is None else f'no node is called "{graph.root}"'
    return (
        f"graph: root: {shown}, an undirected graph names its root in this attribute "
        '(networkx: graph.graph["root"] = "s0"), or has the attribute parent at every node'
    )


def _rootless_records(
    graph: _Graph, edges: list[tuple[str, str, Record]]
) -> Iterator[SwitchRecord]:
    """The switches with parents unknown; rates on edges belong to some switch, whichever it is."""
    on_edges = any(attributes.has("rate") for _, _, attributes in edges)
    for name, fields in graph.nodes:
        rate = (("rate", 1),) if on_edges and not fields.has("rate") else ()
        yield SwitchRecord(name, Record(fields.pairs + rate), parent_known=False)


def _parents_of_edges(graph: _Graph, edges: list[tuple[str, str, Record]]) -> dict[str, str | None]:
    if not graph.directed:
        return _parents_from_root(graph, edges)
    towards: dict[str, str | None] = {source: target for source, target, _ in edges}
    away: dict[str, str | None] = {target: source for source, target, _ in edges}
    if len(towards) == len(edges):
        return towards
    if len(away) == len(edges):
        return away
    for name, count in Counter(source for source, _, _ in edges).items():
        if count > 1:
            graph.problems.append(
                f'switch "{name}": {count} edges leave it, a tree has one, to the parent'
            )
    return towards


def _parents_from_root(
    graph: _Graph, edges: list[tuple[str, str, Record]]
) -> dict[str, str | None]:
    # Only these files need it, and it takes longer to load than most of them.
    import networkx as nx

    names = {name for name, _ in graph.nodes}
    tree = nx.Graph()
    tree.add_nodes_from(name for name, _ in graph.nodes)
    tree.add_edges_from((source, target) for source, target, _ in edges)
    if tree.number_of_edges() >= len(names) or tree.number_of_edges() < len(edges):
        graph.problems.append(
            f"graph: {len(edges)} edges join {len(names)} switches, a tree has one less than "
            "switches and none twice"
        )
    parent: dict[str, str | None] = dict(nx.bfs_predecessors(tree, graph.root))
    for name, _ in graph.nodes:
        if name not in parent and name != graph.root:
            graph.problems.append(f'switch "{name}": no path leads to the root, "{graph.root}"')
            parent[name] = graph.root
    return parent


def _rates_of_edges(
    graph: _Graph, edges: list[tuple[str, str, Record]], parent: dict[str, str | None]
) -> dict[str, Value]:
    """The rate of the link above a switch, by switch, where its edge carries one."""
    rates: dict[str, Value] = {}
    fields_of = dict(graph.nodes)
    for source, target, attributes in edges:
        if parent.get(source) == target:
            child = source
        elif parent.get(target) == source:
            child = target
        else:
            graph.problems.append(
                f'edge "{source}" - "{target}": neither switch is the parent of the other'
            )
            continue
        if not attributes.has("rate"):
            continue
        rates[child] = attributes.get("rate")
        own = fields_of[child]
        if own.has("rate") and own.get("rate") != rates[child]:
            graph.problems.append(f'switch "{child}": rate: its edge carries another one')
    return rates
