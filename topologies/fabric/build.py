"""A `Network` as a `Fabric`: every switch, host and link of it, at its rates.

Where nobody says what rate 1 stands for, the slowest link of the overlay has SLOWEST_LINK_BPS. The
others of the overlay keep their ratio to it. Physical links outside the overlay carry no Reduce.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from topologies.fabric.fabric import Fabric
from topologies.fabric.link import LinkSpec
from topologies.fabric.nodes import HOST_PORT, HostAgent, PacketDevice
from topologies.network import Network

SLOWEST_LINK_BPS = 100_000_000
HOST_LINK_BPS = 10_000_000_000
LINK_DELAY_NS = 1_000
MAX_SWITCHES = 2_048
"""The largest network that one process simulates in reasonable time (about 1 MiB a switch)."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What every link does to frames, each way: probabilities, and the seed of all chance.

    `base`: bits a second of a link of rate 1; None: what gives the slowest SLOWEST_LINK_BPS.
    `hosts`: bits a second of a worker's own link; None: HOST_LINK_BPS.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    seed: int = 0
    base: int | None = None
    hosts: int | None = None


def build_fabric(
    network: Network,
    devices: Mapping[str, PacketDevice],
    agents: Mapping[str, HostAgent],
    conditions: Conditions,
) -> Fabric:
    """Connect the devices (by switch name) and agents (by host name) as the network says."""

    def spec(bits_per_second: int) -> LinkSpec:
        return LinkSpec(
            rate=bits_per_second,
            delay=LINK_DELAY_NS,
            loss=conditions.loss,
            duplicate=conditions.duplicate,
            reorder=conditions.reorder,
        )

    fabric = Fabric(seed=conditions.seed)
    for name in network.topology.switches:
        fabric.add_switch(name, devices[name])
    for host in network.hosts:
        fabric.add_host(host.name, agents[host.name])
    bps = link_rates(network, conditions.base)
    other = conditions.base or SLOWEST_LINK_BPS
    to_parent = dict(zip(network.topology.overlay.names, network.parent_port, strict=True))
    for link in network.links:
        on_tree = to_parent.get(link.lower) == link.lower_port
        fabric.connect(
            (link.lower, link.lower_port),
            (link.upper, link.upper_port),
            spec(bps[link.lower] if on_tree else other),
        )
    own = spec(conditions.hosts or HOST_LINK_BPS)
    for host in network.workers:
        fabric.connect((host.name, HOST_PORT), (host.switch, host.port), own)
    to_destination = spec(bps[network.topology.overlay.names[0]])
    for host in (network.destination, *network.spares):
        fabric.connect((host.name, HOST_PORT), (host.switch, host.port), to_destination)
    return fabric


def link_rates(network: Network, base: int | None = None) -> dict[str, int]:
    """Bits a second of every overlay switch's link upward (of the root: to the destination)."""
    overlay = network.topology.overlay
    unit = SLOWEST_LINK_BPS / min(overlay.tree.rate) if base is None else Fraction(base)
    return {
        name: max(1, int(unit * rate))
        for name, rate in zip(overlay.names, overlay.tree.rate, strict=True)
    }
