"""Generated networks: their shape, and what a bad specification is told."""

from collections import Counter

import networkx as nx
import pytest

from topologies import Topology, TopologyError, WorkloadOptions, parse


def graph_of(topology: Topology) -> "nx.Graph[str]":
    graph = nx.Graph()
    graph.add_nodes_from(topology.switches)
    graph.add_edges_from(topology.links)
    return graph


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_fat_tree_is_the_one_of_the_textbook(k: int) -> None:
    topology = parse(f"fat-tree:k={k}")
    half = k // 2
    kinds = Counter(name.rstrip("0123456789-") for name in topology.switches)
    assert kinds == {"core": half * half, "agg": k * half, "edge": k * half}
    assert len(set(topology.switches)) == len(topology.switches)
    graph = graph_of(topology)
    assert graph.number_of_edges() == len(topology.links) == 2 * k * half * half
    assert nx.is_connected(graph)
    for name, degree in graph.degree():
        assert degree == (half if name.startswith("edge") else k)
    for core in (name for name in graph if name.startswith("core")):
        pods = Counter(name.split("-")[0] for name in graph[core])
        assert pods == {f"agg{pod}": 1 for pod in range(k)}


@pytest.mark.parametrize("k", [2, 4, 6])
def test_the_overlay_of_a_fat_tree_reaches_every_edge_switch_over_physical_links(k: int) -> None:
    topology = parse(f"fat-tree:k={k}")
    overlay, half = topology.overlay, k // 2
    assert overlay.names[0] == "core0"
    assert len(overlay.names) == 1 + k + k * half
    links = {(overlay.names[v], overlay.names[p]) for v, p in enumerate(overlay.tree.parent) if v}
    assert links <= set(topology.links)
    edges = {name for name in topology.switches if name.startswith("edge")}
    assert edges <= set(overlay.names)
    for v, name in enumerate(overlay.names):
        assert overlay.tree.load[v] == (half if name in edges else 0)


def test_fat_tree_of_four_has_the_numbers_of_the_example() -> None:
    topology = parse("fat-tree:k=4")
    assert len(topology.switches) == 20
    assert len(topology.overlay.names) == 13
    assert sum(topology.overlay.tree.load) == 16
    assert topology.name == "fat-tree:k=4"


@pytest.mark.parametrize("levels", [1, 2, 3, 8])
def test_binary_tree_is_complete(levels: int) -> None:
    topology = parse(f"binary-tree:levels={levels}")
    tree = topology.overlay.tree
    assert tree.n == len(topology.switches) == 2**levels - 1
    assert Counter(map(len, tree.children)) == Counter({2: tree.n // 2, 0: tree.n // 2 + 1})
    assert set(tree.depths()) == set(range(levels))
    assert sum(tree.load) == tree.n // 2 + 1
    assert len(topology.links) == tree.n - 1


@pytest.mark.parametrize("seed", range(8))
def test_random_tree_is_a_tree_of_mixed_shape_and_load(seed: int) -> None:
    topology = parse(f"random-tree:n=200,seed={seed}")
    tree = topology.overlay.tree
    assert tree.n == 200
    leaves = [v for v in range(tree.n) if not tree.children[v]]
    inner = [v for v in range(tree.n) if tree.children[v]]
    assert 0 < sum(tree.load[v] == 0 for v in leaves) < len(leaves) / 2
    assert 0 < sum(tree.load[v] > 0 for v in inner) < len(inner)
    assert len(set(map(len, tree.children))) >= 4
    assert max(tree.depths()) < 40


def test_random_tree_repeats_under_a_seed_and_differs_between_seeds() -> None:
    assert parse("random-tree:n=50,seed=7") == parse("random-tree:n=50,seed=7")
    assert (
        parse("random-tree:n=50,seed=7").overlay.tree
        != parse("random-tree:n=50,seed=8").overlay.tree
    )
    unseeded = parse("random-tree:n=50", WorkloadOptions(seed=7)).overlay
    assert unseeded == parse("random-tree:n=50,seed=7").overlay


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_random_tree_has_a_worker(seed: int) -> None:
    assert sum(parse(f"random-tree:n=1,seed={seed}").overlay.tree.load) >= 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("fattree:k=4", '"fattree" is not one of fat-tree, .*did you mean "fat-tree"'),
        ("", '"" is not one of fat-tree'),
        ("fat-tree", "k: missing, write it like fat-tree:k=4"),
        ("fat-tree:k=3", "k: 3 is odd, a fat-tree has an even k"),
        ("fat-tree:k=0", r"k: 0 is outside 2\.\.128"),
        ("fat-tree:k=-4", r"k: -4 is outside 2\.\.128"),
        ("fat-tree:k=4096", r"k: 4096 is outside 2\.\.128"),
        ("fat-tree:k=four", 'k: "four" is not an integer'),
        ("fat-tree:4", 'unknown option "4", write it like fat-tree:k=4'),
        ("fat-tree:k=4,k=6", "k: appears more than once"),
        ("binary-tree:level=8", 'unknown option "level", did you mean "levels"'),
        ("binary-tree:levels=0", r"levels: 0 is outside 1\.\.20"),
        ("binary-tree:levels=99999999999", r"levels: 99999999999 is outside 1\.\.20"),
        ("random-tree:seed=1", "n: missing"),
        ("random-tree:n=0", r"n: 0 is outside 1\.\.1048576"),
        ("nowhere.json", "nowhere.json: cannot be read: No such file"),
    ],
)
def test_a_bad_specification_is_refused_in_one_line(spec: str, message: str) -> None:
    with pytest.raises(TopologyError, match=message) as refusal:
        parse(spec)
    assert len(refusal.value.problems) == 1
    assert "\n" not in str(refusal.value)
