"""The same wired network with its destination at another switch.

Nothing physical changes: ports, addresses and links stay. The overlay becomes the tree of shortest
paths to the new root, of equally short ones the one over the switch that comes first; where the
links are a tree this is the same tree, turned. Source ids are numbered anew, so a job cannot be of
both overlays: it goes on under another number, from an agreed chunk on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction

from controller.placement import Tree
from topologies.network import Host, Network, NetworkError, number_sources, orient
from topologies.topology import Overlay, Topology


@dataclass(frozen=True, slots=True)
class Detour:
    """A way around what has failed.

    Attributes:
        network: as it is from a root that is left.
        root: where its destination is.
        cut_off: the workers, of those that were asked for, that no way leads to.
    """

    network: Network
    root: str
    cut_off: tuple[Host, ...]


def link_name(one: str, other: str) -> str:
    """How a link is called where parts of a network are named."""
    return f"{one}-{other}"


def find_link(topology: Topology, name: str) -> tuple[str, str] | None:
    """The ends of the link that is called so, from either end; None if there is none."""
    return next(
        (ends for ends in topology.links if name in (link_name(*ends), link_name(*ends[::-1]))),
        None,
    )


def find_detour(
    network: Network,
    failed: Collection[str],
    workers: Collection[Host] | None = None,
    root: str | None = None,
) -> Detour | None:
    """The overlay that avoids failed switches and links (by name) and cuts off fewest workers.

    The destination stays at `root`, by default the network's own, unless another one is reached by
    more of the workers. None where no destination is left, or none that any worker reaches.
    """
    wanted = network.workers if workers is None else tuple(workers)
    first = root or network.destination.switch
    destinations = (network.destination, *network.spares)
    best: Detour | None = None
    for switch in sorted((host.switch for host in destinations), key=lambda at: at != first):
        if switch in failed:
            continue
        view = reroot(network, switch, failed)
        cut_off = tuple(host for host in wanted if not view.workers[host.rank].source)
        if best is None or len(cut_off) < len(best.cut_off):
            best = Detour(view, switch, cut_off)
    return best if best is not None and len(best.cut_off) < len(wanted) else None


def reroot(network: Network, root: str | None, failed: Collection[str] = ()) -> Network:
    """The network with `root`, which has a destination, as the root; None is its own.

    The overlay avoids the `failed` switches and links. Raises NetworkError where no destination is
    attached to the root, or it has failed.
    """
    root = root or network.destination.switch
    destinations = (network.destination, *network.spares)
    chosen = next((host for host in destinations if host.switch == root), None)
    if chosen is None:
        there = ", ".join(host.switch for host in destinations)
        raise NetworkError(
            f"{root}: no destination is attached to it; there are some at {there}, and others are "
            "attached when the network is brought up"
        )
    if chosen is network.destination and not failed:
        return network
    if root in failed:
        raise NetworkError(f"{root}: has failed, so it cannot be the root")
    topology = replace(network.topology, overlay=overlay_from(network.topology, root, failed))
    spares = tuple(host for host in destinations if host is not chosen)
    workers = _numbered(network, topology)
    return orient(topology, workers, chosen, spares, network.links, network.prefixes, network.build)


def overlay_from(topology: Topology, root: str, failed: Collection[str] = ()) -> Overlay:
    """The overlay of shortest paths to another root: all its switches, and those on the way.

    Links of the old overlay keep their rates, others have rate 1; the new root's link to the
    destination has the rate of the old one's. With `failed` switches and links it avoids these and
    leaves out what they cut off; else it raises NetworkError where a switch of the overlay is not
    connected to the root.
    """
    old = topology.overlay
    order, parent = _search(topology, root, failed)
    lost = [name for name in old.names if name not in parent]
    if lost and not failed:
        raise NetworkError(f"{lost[0]}: no path leads from it to {root}")
    needed = {root}
    for name in old.names:
        if name not in parent:
            continue
        at = name
        while at not in needed:
            needed.add(at)
            at = parent[at]
    names = tuple(name for name in order if name in needed)
    index = {name: v for v, name in enumerate(names)}
    before = {name: v for v, name in enumerate(old.names)}
    rates = {
        frozenset((old.names[v], old.names[p])): old.tree.rate[v]
        for v, p in enumerate(old.tree.parent)
        if p >= 0
    }
    up = [(name, parent[name]) for name in names[1:]]
    tree = Tree(
        parent=[-1, *(index[above] for _, above in up)],
        rate=[old.tree.rate[0], *(rates.get(frozenset(pair), Fraction(1)) for pair in up)],
        load=[old.tree.load[before[name]] if name in before else 0 for name in names],
        available=[name not in before or old.tree.available[before[name]] for name in names],
    )
    capacity = tuple(old.capacity[before[name]] if name in before else None for name in names)
    return Overlay(names, tree, capacity)


def _search(
    topology: Topology, root: str, failed: Collection[str]
) -> tuple[list[str], dict[str, str]]:
    """Switches in order of their distance from the root, and the next of each on the way there."""
    place = {name: i for i, name in enumerate(topology.switches)}
    near: dict[str, list[str]] = {name: [] for name in topology.switches}
    for lower, upper in topology.links:
        names = {lower, upper, link_name(lower, upper), link_name(upper, lower)}
        if not names.isdisjoint(failed):
            continue
        near[lower].append(upper)
        near[upper].append(lower)
    order, parent = [root], {root: root}
    queue = deque(order)
    while queue:
        at = queue.popleft()
        for name in sorted(near[at], key=place.__getitem__):
            if name not in parent:
                parent[name] = at
                order.append(name)
                queue.append(name)
    return order, parent


def _numbered(network: Network, topology: Topology) -> tuple[Host, ...]:
    """The workers, by rank, with their source ids in the new overlay."""
    interval = number_sources(topology)
    source = {
        host.name: interval[v][0] + 1 + i
        for v, name in enumerate(topology.overlay.names)
        for i, host in enumerate(network.workers_at.get(name, ()))
    }
    return tuple(replace(host, source=source.get(host.name, 0)) for host in network.workers)
