"""`bluetree plan`: a topology, a strategy and a budget give a placement and every link's load."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from controller.errors import BadInputError
from controller.placement import STRATEGIES, Placement, loads
from topologies import Topology


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """The predicted load of the link from `switch` to `parent` (None: the destination)."""

    switch: str
    parent: str | None
    messages: int
    rate: Fraction

    @property
    def congestion(self) -> Fraction:
        """psi_e = messages / rate (paper, Sec. II)."""
        return self.messages / self.rate


@dataclass(frozen=True, slots=True)
class Plan:
    """A placement on a topology, with what it costs.

    Attributes:
        blue: tree indices of the blue switches.
        congestion: psi, the largest congestion of a link (paper, eq. 1).
        links: one for each switch, in tree order.
    """

    topology: Topology
    strategy: str
    k: int
    blue: frozenset[int]
    congestion: Fraction
    links: tuple[LinkLoad, ...]

    @property
    def blue_names(self) -> list[str]:
        """The names of the blue switches, sorted."""
        return sorted(self.topology.overlay.names[v] for v in self.blue)


def plan(topology: Topology, k: int, strategy: str) -> Plan:
    """Place k blue switches by a strategy's name; PlacementError for a k that is no budget."""
    placement: Placement = STRATEGIES[strategy](topology.overlay.tree, k)
    return _planned(topology, strategy, k, placement.blue)


def plan_given(topology: Topology, names: Iterable[str]) -> Plan:
    """Take the blue switches as given; BadInputError names one that is unknown or unavailable."""
    index = {name: v for v, name in enumerate(topology.overlay.names)}
    blue = set()
    for name in names:
        if name not in index:
            raise BadInputError(
                f"--blue {name}: no such switch in the overlay; it has "
                + _some(topology.overlay.names)
            )
        if not topology.overlay.tree.available[index[name]]:
            raise BadInputError(f"--blue {name}: the topology says that it is not available")
        blue.add(index[name])
    return _planned(topology, "given", len(blue), frozenset(blue))


def _planned(topology: Topology, strategy: str, k: int, blue: frozenset[int]) -> Plan:
    overlay = topology.overlay
    cost = loads(overlay.tree, blue)
    return Plan(
        topology=topology,
        strategy=strategy,
        k=k,
        blue=blue,
        congestion=cost.congestion,
        links=tuple(
            LinkLoad(
                switch=overlay.names[v],
                parent=overlay.names[parent] if parent >= 0 else None,
                messages=cost.messages[v],
                rate=overlay.tree.rate[v],
            )
            for v, parent in enumerate(overlay.tree.parent)
        ),
    )


def _some(names: tuple[str, ...], shown: int = 6) -> str:
    return ", ".join(names[:shown]) + (", ..." if len(names) > shown else "")
