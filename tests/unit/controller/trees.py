"""Random topologies for the tests of the control plane."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from controller.placement import Tree
from topologies.topology import Overlay, Topology


def topology_of(tree: Tree, name: str = "test") -> Topology:
    """A topology that is exactly the tree, switches named s0, s1, ..."""
    names = tuple(f"s{v}" for v in range(tree.n))
    return Topology(
        name=name,
        switches=names,
        overlay=Overlay(names=names, tree=tree, capacity=(None,) * tree.n),
        links=tuple((names[v], names[p]) for v, p in enumerate(tree.parent) if p >= 0),
    )


@st.composite
def trees(draw: st.DrawFn, max_switches: int = 12, max_load: int = 4) -> Tree:
    """Trees of mixed rates and availability, with loads anywhere."""
    n = draw(st.integers(1, max_switches))
    parent = [-1] + [draw(st.integers(0, v - 1)) for v in range(1, n)]
    rate = draw(
        st.lists(st.builds(Fraction, st.integers(1, 9), st.integers(1, 4)), min_size=n, max_size=n)
    )
    load = draw(st.lists(st.integers(0, max_load), min_size=n, max_size=n))
    available = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return Tree(parent=parent, rate=rate, load=load, available=available)


@st.composite
def trees_with_blue(draw: st.DrawFn) -> tuple[Tree, frozenset[int]]:
    """A tree and any set of blue switches of it."""
    tree = draw(trees())
    blue = draw(st.sets(st.integers(0, tree.n - 1)))
    return tree, frozenset(blue)
