"""Ports, addresses and source ids of a wired topology."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given

from controller.placement import Tree
from tests.unit.controller.trees import topology_of, trees
from topologies import WorkloadOptions, parse
from topologies.network import LAST_PORT, NetworkError, ip_text, mac_text, wire


@given(tree=trees())
def test_sources_below_a_switch_are_an_interval(tree: Tree) -> None:
    network = wire(topology_of(tree))
    names = network.topology.overlay.names
    below: list[set[int]] = [set() for _ in names]
    for v in tree.order:
        below[v] = {network.interval[v][0]}
        below[v] |= {host.source for host in network.workers if host.switch == names[v]}
        for child in tree.children[v]:
            below[v] |= below[child]
        low, high = network.interval[v]
        assert below[v] == set(range(low, high + 1))
    assert network.interval[0] == (1, tree.n + sum(tree.load))


@given(tree=trees())
def test_no_port_address_or_name_is_used_twice(tree: Tree) -> None:
    network = wire(topology_of(tree))
    hosts = (*network.workers, network.destination)
    ports = [(host.switch, host.port) for host in hosts]
    ports += [(link.lower, link.lower_port) for link in network.links]
    ports += [(link.upper, link.upper_port) for link in network.links]
    assert len(set(ports)) == len(ports)
    macs = [host.mac for host in hosts]
    macs += [network.switch_mac(name) for name in network.topology.switches]
    assert len(set(macs)) == len(macs)
    assert len({host.ip for host in hosts}) == len(hosts)
    assert [host.rank for host in network.workers] == list(range(len(network.workers)))


@given(tree=trees())
def test_workers_lie_in_the_prefix_of_their_switch_only(tree: Tree) -> None:
    network = wire(topology_of(tree))
    for prefix in network.prefixes:
        block = ipaddress.ip_network((prefix.address, prefix.length))
        for host in network.workers:
            inside = ipaddress.ip_address(host.ip) in block
            assert inside == (host.switch == prefix.switch)
            assert host.ip not in (int(block.network_address), int(block.broadcast_address))


def test_fat_tree_of_four_has_twenty_switches_and_sixteen_workers() -> None:
    network = wire(parse("fat-tree:k=4", WorkloadOptions()))
    assert len(network.topology.switches) == 20
    assert len(network.topology.overlay.names) == 13
    assert len(network.workers) == 16
    assert len(network.links) == 32


def test_addresses_as_text() -> None:
    assert mac_text(0x02_00_00_00_00_1F) == "02:00:00:00:00:1f"
    assert ip_text(0x0A_00_00_01) == "10.0.0.1"


def test_too_many_ports_names_the_switch() -> None:
    tree = Tree(parent=[-1], rate=[1], load=[LAST_PORT + 1])
    with pytest.raises(NetworkError, match=r"s0: more than 509 ports"):
        wire(topology_of(tree))


def test_too_deep_a_tree_names_the_switch() -> None:
    n = 300
    tree = Tree(parent=list(range(-1, n - 1)), rate=[1] * n, load=[1] * n)
    with pytest.raises(NetworkError, match=r"s299: 300 switches lie on its path"):
        wire(topology_of(tree))


def test_too_many_sources_says_so() -> None:
    n = 200
    tree = Tree(parent=[-1] + [0] * (n - 1), rate=[1] * n, load=[400] * n)
    with pytest.raises(NetworkError, match="80200 switches and workers"):
        wire(topology_of(tree))
