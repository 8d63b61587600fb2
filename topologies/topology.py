"""The shape of a network: its switches and links, and the overlay tree inside it."""

from dataclasses import dataclass

from controller.placement import Tree

__all__ = ["Overlay", "Topology"]


@dataclass(frozen=True, slots=True)
class Overlay:
    """The tree over which a Reduce runs, from the switch at the destination down to the leaves.

    Attributes:
        names: names of the switches; the position is the index in the tree, the root first.
        tree: parents, rates, workers and availability of the same switches.
        capacity: a(s), how many workloads each may aggregate at once; None is unlimited.
    """

    names: tuple[str, ...]
    tree: Tree
    capacity: tuple[int | None, ...]

    def index(self, name: str) -> int:
        """The tree index of a switch; ValueError where the overlay has no such switch."""
        return self.names.index(name)


@dataclass(frozen=True, slots=True)
class Topology:
    """A network of switches.

    Attributes:
        name: what it was made from, for titles.
        switches: all physical switches; switch i has device id i + 1.
        overlay: the tree among them that carries the Reduce.
        links: physical links between switches as (lower, upper), those of the overlay included.
    """

    name: str
    switches: tuple[str, ...]
    overlay: Overlay
    links: tuple[tuple[str, str], ...]
