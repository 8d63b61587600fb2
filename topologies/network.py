"""A topology with every port, address and source id fixed: what can be brought up as it stands.

The same `Network` is compiled into table entries, built on the fabric, and built in Mininet, so the
numbers in it agree everywhere. Nothing here is random: equal topologies give equal networks.

Source ids number the overlay's switches and workers together in pre-order (a switch, its workers,
then its children's subtrees), from 1, so that what lies below one link is an interval. Addresses
follow the same order: the workers of one switch share an IPv4 prefix of their own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from p4src.builds import NARROW, Build
from topologies.topology import Topology

FIRST_PORT = 1
CPU_PORT = 510
"""Port of packet-ins and packet-outs: bmv2's own default would be the drop port, 511."""
LAST_PORT = CPU_PORT - 1
MAX_SOURCE = 0xFFFE
"""Source ids are 16 bits wide on the wire; 0 is never valid, 0xFFFF is the destination."""
MAX_DEPTH = 253
"""Switches on a path from a worker to the destination; every hop takes one of 255 from the TTL."""

WORKER_ADDRESSES = ipaddress.ip_network("10.0.0.0/9")
DESTINATION_ADDRESS = int(ipaddress.ip_address("10.255.255.1"))
DESTINATION_NAME = "destination"
WORKER_UDP_PORT = 9591
"""The port of a worker's own socket: results are rewritten to it."""
_SHOWN = 6
"""How many switches an error lists."""
_HOST_MAC = 0x02_00_00_00_00_00
_SWITCH_MAC = 0x02_01_00_00_00_00


class NetworkError(ValueError):
    """The topology cannot be wired as it is; the text names the switch and the remedy."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host on a switch port. `mac` and `ip` are integers; `rank` counts workers from 0.

    The destination has rank -1 and source 0.
    """

    name: str
    switch: str
    port: int
    mac: int
    ip: int
    udp_port: int
    source: int
    rank: int


@dataclass(frozen=True, slots=True)
class SwitchLink:
    """A link between two switches; `rate` is that of the tree link it carries (else 1)."""

    lower: str
    lower_port: int
    upper: str
    upper_port: int
    rate: Fraction


@dataclass(frozen=True, slots=True)
class Prefix:
    """The IPv4 prefix of one switch's workers."""

    switch: str
    address: int
    length: int


@dataclass(frozen=True, slots=True)
class Network:
    """A wired topology.

    Attributes:
        topology: what was wired.
        workers: by rank, which is the order of source ids.
        destination: the host above the root.
        links: between switches, those outside the overlay included.
        prefixes: one for each switch that has workers.
        interval: for overlay switch v (by tree index), the lowest and highest source id in its
            subtree; the lowest is the switch's own.
        parent_port: for overlay switch v, its port towards the parent (the root: destination).
        child_port: for overlay switch v > 0, the port of its parent that leads to it.
        workers_at: the workers of every overlay switch, by its name.
        device_id: the P4Runtime device id of every physical switch, from 1, by its name.
        spares: further destinations, at switches that may become the root (`topologies.rerooting`).
        build: of the P4 program, what the switches run: how many lanes messages have.
    """

    topology: Topology
    workers: tuple[Host, ...]
    destination: Host
    links: tuple[SwitchLink, ...]
    prefixes: tuple[Prefix, ...]
    interval: tuple[tuple[int, int], ...]
    parent_port: tuple[int, ...]
    child_port: tuple[int, ...]

    workers_at: Mapping[str, tuple[Host, ...]]
    device_id: Mapping[str, int]
    spares: tuple[Host, ...] = ()
    build: Build = NARROW

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts: workers by rank, the destination, further destinations."""
        return (*self.workers, self.destination, *self.spares)

    @property
    def worker_names(self) -> str:
        """The workers in words: "w0", or "w0 to w15"."""
        ends = dict.fromkeys((self.workers[0].name, self.workers[-1].name))
        return " to ".join(ends)

    def switch_mac(self, switch: str) -> int:
        """The MAC address by which neighbours address a switch."""
        return _SWITCH_MAC + self.device_id[switch]


def mac_text(mac: int) -> str:
    """`02:00:...` for an integer MAC address."""
    return mac.to_bytes(6, "big").hex(":")


def ip_text(ip: int) -> str:
    """Dotted quad for an integer IPv4 address."""
    return str(ipaddress.ip_address(ip))


def check_roots(topology: Topology, names: Sequence[str]) -> None:
    """Raise NetworkError where there is no switch of a name that a destination is wanted at."""
    for name in names:
        if name not in topology.switches:
            there = list(topology.switches)
            shown = ", ".join(there[:_SHOWN]) + (", ..." if len(there) > _SHOWN else "")
            raise NetworkError(
                f"--root {name}: no such switch to be a root in {topology.name}; it has {shown}"
            )


def wire(topology: Topology, spares: Sequence[str] = (), build: Build = NARROW) -> Network:
    """Fix the ports, addresses and source ids of a topology, and what its switches run.

    Ports of a switch, from 1: its workers, the destination at the root, a further destination where
    `spares` names the switch, then its links in the topology's order. Raises NetworkError where a
    switch would need more ports than 509, the tree more sources than 65,534, a path more than 253
    switches, a switch has a host's name, or there is no switch of a name in `spares`.
    """
    root = topology.overlay.names[0]
    others = tuple(dict.fromkeys(name for name in spares if name != root))
    check_roots(topology, others)
    _check_depth(topology)
    _check_names(topology, len(others))
    interval = number_sources(topology)
    pre_order = sorted(range(len(interval)), key=interval.__getitem__)
    prefixes = tuple(_allocate_prefixes(topology, pre_order))
    ports = _PortAllocator()
    workers = tuple(_place_workers(topology, pre_order, ports, interval, prefixes))
    destination, *more = (
        _destination(i, switch, ports.take(switch)) for i, switch in enumerate((root, *others))
    )
    links = tuple(_place_links(topology, ports))
    return orient(topology, workers, destination, tuple(more), links, prefixes, build)


def orient(
    topology: Topology,
    workers: tuple[Host, ...],
    destination: Host,
    spares: tuple[Host, ...],
    links: tuple[SwitchLink, ...],
    prefixes: tuple[Prefix, ...],
    build: Build,
) -> Network:
    """The network of hosts and links that are in their places, by the overlay of its topology."""
    port_between = {(link.lower, link.upper): link.lower_port for link in links}
    port_between |= {(link.upper, link.lower): link.upper_port for link in links}
    names, parent = topology.overlay.names, topology.overlay.tree.parent
    above = [names[p] for p in parent[1:]]
    return Network(
        topology=topology,
        workers=workers,
        destination=destination,
        links=links,
        prefixes=prefixes,
        interval=number_sources(topology),
        parent_port=(
            destination.port,
            *(port_between[name, up] for name, up in zip(names[1:], above, strict=True)),
        ),
        child_port=(
            0,
            *(port_between[up, name] for name, up in zip(names[1:], above, strict=True)),
        ),
        workers_at=_by_switch(names, workers),
        device_id={name: i for i, name in enumerate(topology.switches, start=1)},
        spares=spares,
        build=build,
    )


def _destination(number: int, switch: str, port: int) -> Host:
    return Host(
        name=_destination_name(number),
        switch=switch,
        port=port,
        mac=_HOST_MAC + MAX_SOURCE + 1 + number,
        ip=DESTINATION_ADDRESS + number,
        udp_port=0,
        source=0,
        rank=-1,
    )


def _destination_name(number: int) -> str:
    return f"{DESTINATION_NAME}{number + 1}" if number else DESTINATION_NAME


def _by_switch(names: tuple[str, ...], workers: tuple[Host, ...]) -> dict[str, tuple[Host, ...]]:
    gathered: dict[str, list[Host]] = {name: [] for name in names}
    for host in workers:
        # A switch that has failed is in no tree; see `topologies.rerooting`.
        if host.switch in gathered:
            gathered[host.switch].append(host)
    return {name: tuple(hosts) for name, hosts in gathered.items()}


class _PortAllocator:
    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def take(self, switch: str) -> int:
        port = self._next.get(switch, FIRST_PORT)
        if port > LAST_PORT:
            raise NetworkError(
                f"{switch}: more than {LAST_PORT} ports; a v1model port has 9 bits, so spread its "
                "workers or children over more switches"
            )
        self._next[switch] = port + 1
        return port


def _check_depth(topology: Topology) -> None:
    depths = topology.overlay.tree.depths()
    deepest = max(range(len(depths)), key=depths.__getitem__)
    if depths[deepest] + 1 > MAX_DEPTH:
        raise NetworkError(
            f"{topology.overlay.names[deepest]}: {depths[deepest] + 1} switches lie on its path to "
            f"the destination; packets live for {MAX_DEPTH}, so make the tree shallower "
            "(planning has no such limit)"
        )


def _check_names(topology: Topology, spares: int) -> None:
    """Hosts and switches are told apart by their names alone."""
    hosts = {_worker_name(rank) for rank in range(sum(topology.overlay.tree.load))}
    hosts |= {_destination_name(number) for number in range(1 + spares)}
    for name in topology.switches:
        if name in hosts:
            raise NetworkError(
                f"{name}: a host is called so; give the switch another name to run it "
                "(planning has no such limit)"
            )


def _worker_name(rank: int) -> str:
    return f"w{rank}"


def number_sources(topology: Topology) -> tuple[tuple[int, int], ...]:
    """Return each overlay switch's interval of source ids; its workers follow the lowest."""
    tree = topology.overlay.tree
    size = [1 + load for load in tree.load]
    for v in tree.order[:-1]:
        size[tree.parent[v]] += size[v]
    if size[0] > MAX_SOURCE:
        raise NetworkError(
            f"{topology.name}: {size[0]} switches and workers; a run carries at most {MAX_SOURCE} "
            "(planning has no such limit)"
        )
    lowest = [0] * tree.n
    lowest[0] = 1
    for v in reversed(tree.order):
        following = lowest[v] + 1 + tree.load[v]
        for child in tree.children[v]:
            lowest[child] = following
            following += size[child]
    return tuple((low, low + span - 1) for low, span in zip(lowest, size, strict=True))


def _allocate_prefixes(topology: Topology, pre_order: list[int]) -> Iterator[Prefix]:
    tree = topology.overlay.tree
    following = int(WORKER_ADDRESSES.network_address)
    for v in pre_order:
        if tree.load[v] == 0:
            continue
        # Room for the workers, the network address and the broadcast address.
        host_bits = (tree.load[v] + 1).bit_length()
        block = 1 << host_bits
        address = -(-following // block) * block
        following = address + block
        if following > int(WORKER_ADDRESSES.broadcast_address) + 1:
            raise NetworkError(f"{topology.name}: more workers than {WORKER_ADDRESSES} addresses")
        yield Prefix(topology.overlay.names[v], address, 32 - host_bits)


def _place_workers(
    topology: Topology,
    pre_order: list[int],
    ports: _PortAllocator,
    interval: tuple[tuple[int, int], ...],
    prefixes: tuple[Prefix, ...],
) -> Iterator[Host]:
    address = {prefix.switch: prefix.address for prefix in prefixes}
    rank = 0
    for v in pre_order:
        switch = topology.overlay.names[v]
        for i in range(topology.overlay.tree.load[v]):
            source = interval[v][0] + 1 + i
            yield Host(
                name=_worker_name(rank),
                switch=switch,
                port=ports.take(switch),
                mac=_HOST_MAC + source,
                ip=address[switch] + 1 + i,
                udp_port=WORKER_UDP_PORT,
                source=source,
                rank=rank,
            )
            rank += 1


def _place_links(topology: Topology, ports: _PortAllocator) -> Iterator[SwitchLink]:
    overlay = topology.overlay
    rates = {
        (name, overlay.names[parent]): rate
        for name, parent, rate in zip(
            overlay.names, overlay.tree.parent, overlay.tree.rate, strict=True
        )
        if parent >= 0
    }
    for lower, upper in topology.links:
        yield SwitchLink(
            lower=lower,
            lower_port=ports.take(lower),
            upper=upper,
            upper_port=ports.take(upper),
            rate=rates.get((lower, upper), Fraction(1)),
        )
