"""Tree files in every format: read exactly, and refused with every problem at once."""

import json
from fractions import Fraction
from pathlib import Path

import networkx as nx
import pytest

from topologies import TopologyError, WorkloadOptions, parse

FIG1_WORKERS = {"r": 0, "a": 0, "b": 0, "a0": 2, "a1": 6, "b0": 5, "b1": 5}
FIG1_PARENT = {"a": "r", "b": "r", "a0": "a", "a1": "a", "b0": "b", "b1": "b"}


def problems_of(path: Path, text: str) -> tuple[str, ...]:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TopologyError) as refusal:
        parse(str(path))
    assert refusal.value.source == str(path)
    assert "\n" not in str(refusal.value)
    return refusal.value.problems


def test_the_contracts_example_is_read_exactly(tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    path.write_text(
        """{"format": "bluetree/tree-1", "switches": {
        "a": {"parent": "r", "rate": "3/2", "workers": 5},
        "r": {"parent": null, "rate": "1", "workers": 0, "available": true, "capacity": 4},
        "b": {"parent": "a", "rate": 0.1, "available": false},
        "c": {"parent": "a", "rate": 12345678901234567.5, "capacity": 0, "workers": 1}}}"""
    )
    topology = parse(str(path))
    overlay = topology.overlay
    assert topology.name == "net"
    assert topology.switches == overlay.names == ("r", "a", "b", "c")
    assert overlay.tree.parent == (-1, 0, 1, 1)
    assert overlay.tree.rate == tuple(map(Fraction, ("1", "3/2", "1/10", "24691357802469135/2")))
    assert overlay.tree.load == (0, 5, 0, 1)
    assert overlay.tree.available == (True, True, False, False)
    assert overlay.capacity == (4, None, None, 0)
    assert topology.links == (("a", "r"), ("b", "a"), ("c", "a"))


def test_yaml_says_the_same_as_json(tmp_path: Path) -> None:
    switches = {
        "r": {"parent": None, "rate": "1", "capacity": 4},
        "on": {"parent": "r", "rate": "3/2", "workers": 5},
        "schön-und-über-vierzig-zeichen-lang-ist-dieser-name": {"parent": "on", "rate": 1.25},
    }
    (tmp_path / "t.json").write_text(
        json.dumps({"format": "bluetree/tree-1", "switches": switches})
    )
    (tmp_path / "t.yaml").write_text(
        """format: bluetree/tree-1
switches:
  r: {parent: null, rate: 1, capacity: 4}
  on: {parent: r, rate: 3/2, workers: 5}   # YAML 1.1 would read this name as true
  schön-und-über-vierzig-zeichen-lang-ist-dieser-name: {parent: on, rate: 1.25}
""",
        encoding="utf-8",
    )
    assert parse(str(tmp_path / "t.yaml")) == parse(str(tmp_path / "t.json"))


def fig1_graph() -> "nx.DiGraph[str]":
    graph = nx.DiGraph()
    for name, workers in FIG1_WORKERS.items():
        graph.add_node(name, workers=workers, rate="3/2" if name == "a" else "1", available=True)
    graph.add_edges_from(FIG1_PARENT.items())
    return graph


def with_parents(graph: "nx.DiGraph[str]") -> "nx.DiGraph[str]":
    for child, parent in FIG1_PARENT.items():
        graph.nodes[child]["parent"] = parent
    return graph


def rooted(graph: "nx.Graph[str]") -> "nx.Graph[str]":
    graph.graph["root"] = "r"
    return graph


@pytest.mark.parametrize("suffix", ["graphml", "json"])
@pytest.mark.parametrize(
    "graph",
    [
        fig1_graph(),
        fig1_graph().reverse(),
        with_parents(fig1_graph()),
        nx.create_empty_copy(with_parents(fig1_graph())),
        rooted(fig1_graph().to_undirected()),
    ],
    ids=["towards", "away", "parents", "no-edges", "undirected"],
)
def test_graphs_carry_the_same_tree(tmp_path: Path, suffix: str, graph: "nx.Graph[str]") -> None:
    path = tmp_path / f"fig1.{suffix}"
    if suffix == "graphml":
        nx.write_graphml(graph, path)
    else:
        path.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    overlay = parse(str(path)).overlay
    above = {
        overlay.names[v]: overlay.names[p] for v, p in enumerate(overlay.tree.parent) if p >= 0
    }
    assert above == FIG1_PARENT
    assert dict(zip(overlay.names, overlay.tree.load, strict=True)) == FIG1_WORKERS
    assert overlay.tree.rate[overlay.names.index("a")] == Fraction(3, 2)


def test_networkx_graphs_with_numbers_for_names_and_rates_on_edges(tmp_path: Path) -> None:
    graph = nx.balanced_tree(2, 2, create_using=nx.DiGraph)
    nx.set_edge_attributes(graph, 0.1, "rate")
    graph.nodes[0]["rate"] = 2
    path = tmp_path / "numbered.json"
    path.write_text(json.dumps(nx.node_link_data(graph, edges="links")))
    overlay = parse(str(path)).overlay
    assert overlay.names == tuple("0123456")
    assert overlay.tree.parent == (-1, 0, 0, 1, 1, 2, 2)
    assert overlay.tree.rate == (2, *[Fraction(1, 10)] * 6)


def test_a_file_may_leave_rates_out_where_the_options_give_them(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"format": "bluetree/tree-1", "switches": {"r": {"parent": null}}}')
    assert parse(str(path), WorkloadOptions(rates="linear")).overlay.tree.rate == (Fraction(1),)
    assert problems_of(path, path.read_text()) == (
        'switch "r": rate: missing, write that of the link to its parent, like "1"',
    )


def test_every_problem_of_a_file_is_told_with_its_place(tmp_path: Path) -> None:
    text = """{"format": "bluetree/tree-1", "swiches": 1, "switches": {
        "r": {"parent": null, "rate": NaN},
        "s": {"parent": null, "rate": "-1"},
        "a": {"parent": "bb", "rate": 0, "wokers": 3},
        "a": {"parent": "r", "rate": Infinity, "workers": 2.5},
        "b": {"parent": "c", "rate": 1, "rate": 2, "capacity": -1},
        "c": {"parent": "b", "rate": "1/0", "available": "yes"},
        "d": 5,
        "e": {"rate": true, "workers": 1000000000001},
        "f": {"parent": "f", "rate": 1e500},
        "g,h": {"parent": 3, "rate": "1", "workers": -1, "available": null}}}"""
    assert problems_of(tmp_path / "bad.json", text) == (
        'unknown key "swiches", did you mean "switches"?',
        'switch "d": expected a mapping with parent and rate',
        'switch "r": rate: NaN is not a rate: write a positive integer, decimal or fraction',
        "switch \"s\": rate: '-1' is not a rate: write a positive integer, decimal or fraction",
        'switch "a": unknown key "wokers", did you mean "workers"?',
        'switch "a": rate: 0 is not a rate: write a positive integer, decimal or fraction',
        'switch "a": rate: Infinity is not a rate: write a positive integer, decimal or fraction',
        'switch "a": workers: 2.5 is not a number of workers: write an integer >= 0',
        'switch "b": rate: appears more than once',
        'switch "b": capacity: -1 is not an integer >= 0, or null for unlimited',
        "switch \"c\": rate: '1/0' is not a rate: write a positive integer, decimal or fraction",
        "switch \"c\": available: 'yes' is not true or false",
        'switch "e": parent: missing, write a switch, or null for the root',
        'switch "e": rate: true is not a rate: write a positive integer, decimal or fraction',
        'switch "e": workers: 1000000000001 is too large: at most 1000000000000 workers a switch',
        'switch "f": rate: too large, numerator and denominator are below 2^128',
        "switch 'g,h': a name has no commas, line breaks or control characters",
        'switch "g,h": parent: 3 is not a name, write a switch, or null for the root',
        'switch "g,h": workers: -1 is not a number of workers: write an integer >= 0',
        'switch "g,h": available: null is not true or false',
        'switch "a": appears more than once',
        'switch "a": parent: no switch is called "bb", did you mean "b"?',
        'switch "s": parent: a second root besides "r", give it a parent',
        'switch "b": parent: a cycle, b -> c -> b',
        'switch "f": parent: a cycle, f -> f',
    )


def test_yaml_duplicates_and_odd_scalars_are_told_too(tmp_path: Path) -> None:
    text = """format: bluetree/tree-1
switches:
  r: {parent: null, rate: 1}
  a: {parent: r, rate: .nan, workers: 010}
  a: {parent: r, rate: 1:30}
  3: {parent: r, rate: 1}
"""
    assert problems_of(tmp_path / "bad.yaml", text) == (
        "switch 3: a name is a string, put it in quotes",
        'switch "a": rate: .nan is not a rate: write a positive integer, decimal or fraction',
        'switch "a": workers: 010 is not a number of workers: write an integer >= 0',
        'switch "a": rate: 1:30 is not a rate: write a positive integer, decimal or fraction',
        'switch "a": appears more than once',
    )


def test_a_cycle_without_any_root_is_told_once(tmp_path: Path) -> None:
    text = """{"format": "bluetree/tree-1", "switches": {
        "tail": {"parent": "y", "rate": 1},
        "x": {"parent": "y", "rate": 1}, "y": {"parent": "x", "rate": 1}}}"""
    assert problems_of(tmp_path / "bad.json", text) == (
        "no root: exactly one switch has parent null",
        'switch "x": parent: a cycle, x -> y -> x',
    )


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.json", "", "line 1, column 1: not JSON: Expecting value"),
        ("a.json", '{"a": 1,}', "line 1, column "),
        ("a.json", "[" * 100_000, "nested too deeply to be a tree file"),
        ("a.json", "[]", 'expected a mapping with "format"'),
        ("a.json", "{}", 'format: missing, write "format": "bluetree/tree-1"'),
        ("a.json", '{"format": "bluetree/tree-1", "switches": {}}', "switches: empty"),
        ("a.json", '{"format": "bluetree/tree-1", "switches": []}', "switches: not a mapping"),
        ("a.yaml", "a: [", "line 1, column 5: not YAML"),
        ("a.yaml", "a: b: c", "line 1, column 5: not YAML"),
        ("a.yaml", "a: !!python/object:os.system {}", 'unknown key "a"'),
        ("a.yaml", "a: &x {b: *x}", "line 1: nested too deeply"),
        ("a.graphml", "<graphml>", "line 1, column 10: not XML"),
        ("a.graphml", "<graphml/>", "has no <graph>"),
    ],
)
def test_what_is_no_tree_file_at_all(tmp_path: Path, name: str, text: str, problem: str) -> None:
    assert problems_of(tmp_path / name, text)[0].startswith(problem)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(TopologyError, match="is not UTF-8 text"):
        parse(str(path))


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        (nx.DiGraph([("a", "r"), ("a", "q"), ("b", "r")]), 'switch "a": 2 edges leave it'),
        (nx.Graph([("a", "r")]), "graph: root: missing, an undirected graph names its root"),
        (rooted(nx.Graph([("a", "r"), ("b", "a"), ("b", "r")])), "graph: 3 edges join 3 switches"),
        (rooted(nx.Graph([("a", "r"), ("b", "c")])), 'switch "b": no path leads to the root'),
    ],
    ids=["two-parents", "no-root", "cycle", "apart"],
)
def test_a_graph_that_is_no_tree_is_refused(
    tmp_path: Path, graph: "nx.Graph[str]", problem: str
) -> None:
    text = json.dumps(nx.node_link_data(graph, edges="edges"))
    assert any(told.startswith(problem) for told in problems_of(tmp_path / "g.json", text))


@pytest.mark.parametrize("kind", ["nodes", "edges"])
@pytest.mark.parametrize("suffix", ["graphml", "json"])
def test_a_graph_that_does_not_say_its_root_is_told_so_once(
    tmp_path: Path, suffix: str, kind: str
) -> None:
    graph = nx.Graph(nx.random_labeled_rooted_tree(60, seed=1))
    graph.graph.clear()
    (nx.set_node_attributes if kind == "nodes" else nx.set_edge_attributes)(graph, 1, "rate")
    path = tmp_path / f"g.{suffix}"
    if suffix == "graphml":
        text = "\n".join(nx.generate_graphml(graph))
    else:
        text = json.dumps(nx.node_link_data(graph, edges="edges"))
    assert problems_of(path, text) == (
        "graph: root: missing, an undirected graph names its root in this attribute (networkx: "
        'graph.graph["root"] = "s0"), or has the attribute parent at every node',
    )
    loose = nx.create_empty_copy(graph.to_directed())
    nx.set_node_attributes(loose, 1, "rate")
    (problem,) = problems_of(
        tmp_path / "l.json", json.dumps(nx.node_link_data(loose, edges="edges"))
    )
    assert problem.startswith("graph: 60 switches and no edges: write an edge from each switch")


def test_a_graphml_node_twice_or_with_a_strange_key_is_told(tmp_path: Path) -> None:
    text = """<?xml version="1.0" encoding="UTF-8"?>
<graphml>
  <key id="d0" for="node" attr.name="rate" attr.type="string"><default>1</default></key>
  <key id="d1" for="node" attr.name="worker" attr.type="int"/>
  <key id="d2" for="node" attr.name="workers" attr.type="string"/>
  <graph edgedefault="directed">
    <node id="r"><data key="d2">7</data></node>
    <node id="a"><data key="d1">2</data></node>
    <node id="a"><data key="d2">x</data></node>
    <edge source="a" target="r"/><edge source="z" target="r"/>
  </graph>
</graphml>"""
    assert problems_of(tmp_path / "g.graphml", text) == (
        'edge "z" - "r": no node is called "z"',
        'switch "a": unknown key "worker", did you mean "workers"?',
        'switch "a": workers: x is not a number of workers: write an integer >= 0',
        'switch "a": appears more than once',
    )
