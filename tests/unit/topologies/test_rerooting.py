"""Another root: the same switches, ports and hosts, and the tree turned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.compile import JobPlan, compile_programs, merge_programs
from controller.placement import Tree
from controller.routes import ipv4_routes
from tests.unit.controller.trees import topology_of, trees
from topologies import WorkloadOptions, parse
from topologies.network import Network, NetworkError, wire
from topologies.rerooting import find_detour, find_link, link_name, reroot


def edges(network: Network) -> dict[frozenset[str], object]:
    overlay = network.topology.overlay
    return {
        frozenset((overlay.names[v], overlay.names[p])): overlay.tree.rate[v]
        for v, p in enumerate(overlay.tree.parent)
        if p >= 0
    }


@given(tree=trees(), data=st.data())
def test_a_tree_is_turned_and_turned_back(tree: Tree, data: st.DataObject) -> None:
    topology = topology_of(tree)
    network = wire(topology, spares=topology.switches)
    root = data.draw(st.sampled_from(topology.switches))
    turned = reroot(network, root)
    overlay = turned.topology.overlay
    assert overlay.names[0] == root == turned.destination.switch
    assert edges(turned) == edges(network)
    load = dict(zip(overlay.names, overlay.tree.load, strict=True))
    assert load == dict(zip(topology.overlay.names, tree.load, strict=True))
    assert {host.name for host in turned.hosts} == {host.name for host in network.hosts}
    for before, after in zip(network.workers, turned.workers, strict=True):
        assert (before.name, before.port, before.mac, before.ip, before.rank) == (
            after.name, after.port, after.mac, after.ip, after.rank,
        )  # fmt: skip
    for v, name in enumerate(overlay.names):
        low, high = turned.interval[v]
        inside = {host.name for host in turned.workers if low <= host.source <= high}
        assert inside >= {host.name for host in turned.workers_at[name]}
    back = reroot(turned, network.destination.switch)
    assert back.destination == network.destination
    assert {host.source for host in back.workers} <= set(range(1, 1 + tree.n + sum(tree.load)))
    assert edges(back) == edges(network)


def test_a_fat_tree_has_a_tree_from_every_core() -> None:
    topology = parse("fat-tree:k=4", WorkloadOptions())
    network = wire(topology, spares=["core3"])
    turned = reroot(network, "core3")
    overlay = turned.topology.overlay
    assert overlay.names[0] == "core3"
    # The other aggregation switch of each pod; the old ones and the old core stay as leaves.
    assert set(overlay.names) == {
        *topology.overlay.names,
        "core3",
        *(f"agg{p}-1" for p in range(4)),
    }
    for p in range(4):
        for e in range(2):
            above = overlay.tree.parent[overlay.index(f"edge{p}-{e}")]
            assert overlay.names[above] == f"agg{p}-1"
    routes = {name: set(entries) for name, entries in ipv4_routes(network).items()}
    assert routes == {name: set(entries) for name, entries in ipv4_routes(turned).items()}


def test_programs_of_both_roots_fit_together() -> None:
    topology = parse("fat-tree:k=4", WorkloadOptions())
    network = wire(topology, spares=["core3"])
    here, there = compile_programs(network, []), compile_programs(reroot(network, "core3"), [])
    merged = merge_programs(here, there)
    assert [set(program.entries) for program in merged] == [set(one.entries) for one in here]


def test_roots_without_a_destination_are_refused() -> None:
    topology = parse("fat-tree:k=4", WorkloadOptions())
    with pytest.raises(
        NetworkError,
        match="core9: no such switch to be a root in fat-tree:k=4; it has core0, core1",
    ):
        wire(topology, spares=["core9"])
    with pytest.raises(NetworkError, match="core1: no destination is attached to it"):
        reroot(wire(topology, spares=["core3"]), "core1")


@pytest.fixture(scope="module")
def fat_tree() -> Network:
    return wire(parse("fat-tree:k=4", WorkloadOptions()), spares=["core3"])


@given(data=st.data())
def test_a_detour_avoids_what_has_failed(fat_tree: Network, data: st.DataObject) -> None:
    topology = fat_tree.topology
    links = [link_name(*ends) for ends in topology.links]
    parts = st.one_of(st.sampled_from(topology.switches), st.sampled_from(links))
    failed = data.draw(st.sets(parts, max_size=6))
    detour = find_detour(fat_tree, failed)
    if detour is None:
        return
    view, overlay = detour.network, detour.network.topology.overlay
    assert failed.isdisjoint(overlay.names)
    assert overlay.names[0] == detour.root == view.destination.switch
    for edge in edges(view):
        one, other = sorted(edge)
        assert failed.isdisjoint((link_name(one, other), link_name(other, one)))
    gone = {host.name for host in detour.cut_off}
    for host in view.workers:
        assert (host.source == 0) == (host.name in gone) == (host.switch not in overlay.names)
    # What is left still compiles.
    members = frozenset(host.rank for host in view.workers if host.source)
    compile_programs(view, [JobPlan(1, 1, frozenset(range(overlay.tree.n)), 0, 4, members)])


@pytest.mark.parametrize(
    ("failed", "root", "cut_off"),
    [
        ({"agg0-0"}, "core0", []),
        ({"core0"}, "core3", []),
        ({"edge0-0"}, "core0", ["w0", "w1"]),
        # Both ways of a pod: no destination is reached by its workers.
        ({"agg0-0", "agg0-1"}, "core0", ["w0", "w1", "w2", "w3"]),
        # The first destination is left, but reaches less.
        ({link_name("agg0-0", f"core{i}") for i in (0, 1)} | {"core2", "edge1-0", "edge1-1",
          "agg2-1", "agg3-1"}, "core0", ["w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"]),
    ],
)  # fmt: skip
def test_a_detour_cuts_off_as_few_as_can_be(
    fat_tree: Network, failed: set[str], root: str, cut_off: list[str]
) -> None:
    detour = find_detour(fat_tree, failed)
    assert detour is not None
    assert (detour.root, [host.name for host in detour.cut_off]) == (root, cut_off)


def test_without_a_destination_there_is_no_detour(fat_tree: Network) -> None:
    assert find_detour(fat_tree, {"core0", "core3"}) is None
    with pytest.raises(NetworkError, match="core0: has failed"):
        reroot(fat_tree, None, {"core0"})


def test_a_link_is_found_from_both_ends(fat_tree: Network) -> None:
    assert find_link(fat_tree.topology, "core0-agg0-0") == ("agg0-0", "core0")
    assert find_link(fat_tree.topology, "agg0-0-core0") == ("agg0-0", "core0")
    assert find_link(fat_tree.topology, "core0-edge0-0") is None
