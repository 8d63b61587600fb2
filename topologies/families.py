"""The generated networks: fat-tree, complete binary tree, random tree."""

import random
from collections.abc import Sequence

from controller.placement import Tree
from topologies.topology import Overlay, Topology

__all__ = ["binary_tree", "fat_tree", "random_tree", "tree_topology"]

_IDLE_LEAF = 0.1
_BUSY_INNER = 0.25
_NEARBY = 0.3


def fat_tree(k: int, name: str) -> Topology:
    """The k-ary fat-tree: (k/2)^2 core switches and k pods of k/2 aggregation and k/2 edge ones.

    Core switch c is wired to aggregation switch c // (k/2) of every pod, and every aggregation
    switch to every edge switch of its pod. The overlay is the tree from core0, where the
    destination is attached, through the one aggregation switch of each pod that core0 reaches,
    to all edge switches of the pod. An edge switch has k/2 ports for hosts and by default a
    worker on each. k is even and at least 2. All rates are 1.
    """
    half = k // 2
    cores = [f"core{c}" for c in range(half * half)]
    aggs = [[f"agg{pod}-{a}" for a in range(half)] for pod in range(k)]
    edges = [[f"edge{pod}-{e}" for e in range(half)] for pod in range(k)]
    links = [(edge, agg) for pod in range(k) for edge in edges[pod] for agg in aggs[pod]]
    links += [(aggs[pod][c // half], core) for pod in range(k) for c, core in enumerate(cores)]
    names = [cores[0], *(aggs[pod][0] for pod in range(k))]
    parent = [-1] + [0] * k
    for pod in range(k):
        names += edges[pod]
        parent += [1 + pod] * half
    load = [0] * (1 + k) + [half] * (k * half)
    switches = (*cores, *(a for pod in aggs for a in pod), *(e for pod in edges for e in pod))
    return Topology(name, switches, _overlay(names, parent, load), tuple(links))


def binary_tree(levels: int, name: str) -> Topology:
    """The complete binary tree of 2^levels - 1 switches, s0 the root, s(2i+1) and s(2i+2) below si.

    One worker at every leaf, rates 1. levels is at least 1.
    """
    n = 2**levels - 1
    parent = [(v - 1) // 2 if v else -1 for v in range(n)]
    first_leaf = n // 2
    load = [int(v >= first_leaf) for v in range(n)]
    return tree_topology(name, _overlay([f"s{v}" for v in range(n)], parent, load))


def random_tree(n: int, seed: int, name: str) -> Topology:
    """A random tree of n switches, s0 the root, the same for the same n and seed.

    Most switches join below any earlier one with equal chance (a random recursive tree), the
    others below one of the last few, so that there are stars, bushes and chains, and the depth
    still grows like log n. Leaves have 1 to 9 workers, one leaf in ten none; one inner switch in
    four has 1 to 9 of its own. At least one worker exists. Rates are 1.
    """
    rng = random.Random(seed)
    parent = [-1]
    for v in range(1, n):
        nearby = rng.random() < _NEARBY
        parent.append(rng.randrange(max(0, v - 4), v) if nearby else rng.randrange(v))
    inner = set(parent)
    load = [0] * n
    for v in range(n):
        has_workers = rng.random() < (_BUSY_INNER if v in inner else 1 - _IDLE_LEAF)
        workers = rng.randint(1, 9)
        load[v] = workers if has_workers else 0
    if not any(load):
        load[-1] = 1
    return tree_topology(name, _overlay([f"s{v}" for v in range(n)], parent, load))


def tree_topology(name: str, overlay: Overlay) -> Topology:
    """A network that is just its overlay tree."""
    links = tuple(
        (overlay.names[v], overlay.names[above]) for v, above in enumerate(overlay.tree.parent) if v
    )
    return Topology(name, overlay.names, overlay, links)


def _overlay(names: Sequence[str], parent: Sequence[int], load: Sequence[int]) -> Overlay:
    tree = Tree(parent=parent, rate=[1] * len(parent), load=load, available=[True] * len(parent))
    return Overlay(tuple(names), tree, (None,) * len(names))
