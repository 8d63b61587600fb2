"""Routes of ordinary IPv4 traffic: every host reaches every other along a shortest path. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from controller.program import MatchValue, TableEntry
from topologies.network import Host, Network


def ipv4_routes(network: Network) -> dict[str, list[TableEntry]]:
    """Return the entries of `ipv4_routes` for every physical switch.

    A switch has a /32 for each of its own hosts, a default route over the neighbour that leads to
    most prefixes, and the prefixes that lie elsewhere. Of equally short paths, the neighbour that
    comes first among the topology's switches is taken.
    """
    next_hops = _next_hops(network)
    port_to = _ports(network)
    routes: dict[str, list[TableEntry]] = {name: [] for name in network.topology.switches}
    for host in network.hosts:
        routes[host.switch].append(_route((host.ip, 32), host.port, host.mac))
    for switch, hops in next_hops.items():
        routes[switch].extend(_remote(network, switch, hops, port_to))
    return routes


def _remote(
    network: Network, switch: str, hops: dict[str, str], port_to: dict[tuple[str, str], int]
) -> Iterator[TableEntry]:
    """Routes out of `switch`; `hops` maps a switch with hosts to the neighbour on the way."""
    if not hops:
        return
    by_use = Counter(hops.values())
    default = max(by_use, key=lambda neighbour: (by_use[neighbour], neighbour))
    yield _route(None, port_to[switch, default], network.switch_mac(default))
    targets = [(prefix.switch, (prefix.address, prefix.length)) for prefix in network.prefixes]
    targets += [(host.switch, (host.ip, 32)) for host in _destinations(network)]
    for target, prefix in targets:
        neighbour = hops.get(target)
        if neighbour is not None and neighbour != default:
            yield _route(prefix, port_to[switch, neighbour], network.switch_mac(neighbour))


def _destinations(network: Network) -> tuple[Host, ...]:
    return (network.destination, *network.spares)


def _route(prefix: tuple[int, int] | None, port: int, mac: int) -> TableEntry:
    # P4Runtime leaves a /0 out instead of sending it.
    match: dict[str, MatchValue] = {} if prefix is None else {"dst_addr": prefix}
    return TableEntry.of("ipv4_routes", match, "route", {"port": port, "mac": mac})


def _ports(network: Network) -> dict[tuple[str, str], int]:
    ports = {(link.lower, link.upper): link.lower_port for link in network.links}
    return ports | {(link.upper, link.lower): link.upper_port for link in network.links}


def _next_hops(network: Network) -> dict[str, dict[str, str]]:
    """For every switch: the neighbour towards each other switch that has hosts."""
    order = {name: i for i, name in enumerate(network.topology.switches)}
    neighbours: dict[str, list[str]] = {name: [] for name in order}
    for link in network.links:
        neighbours[link.lower].append(link.upper)
        neighbours[link.upper].append(link.lower)
    for adjacent in neighbours.values():
        adjacent.sort(key=order.__getitem__)
    hops: dict[str, dict[str, str]] = {name: {} for name in order}
    with_hosts = {prefix.switch for prefix in network.prefixes}
    with_hosts |= {host.switch for host in _destinations(network)}
    for target in with_hosts:
        distance = {target: 0}
        queue = deque([target])
        while queue:
            at = queue.popleft()
            for near in neighbours[at]:
                if near not in distance:
                    distance[near] = distance[at] + 1
                    queue.append(near)
        for name in order:
            if name in distance and name != target:
                hops[name][target] = next(
                    near for near in neighbours[name] if distance[near] == distance[name] - 1
                )
    return hops
