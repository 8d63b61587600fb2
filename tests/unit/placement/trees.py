"""Trees to place on: the paper's Fig. 1, and random ones that leave nothing regular."""

import random
from fractions import Fraction

from hypothesis import strategies as st

from controller.placement import Tree

FIG1 = Tree(
    parent=[-1, 0, 0, 1, 1, 2, 2],
    rate=[1] * 7,
    load=[0, 0, 0, 2, 6, 5, 5],
    available=[True] * 7,
)
"""Fig. 1 of the paper: seven switches, rates of 1, racks of 2, 6, 5 and 5 workers."""

RATES = st.one_of(
    st.sampled_from([Fraction(1), Fraction(2), Fraction(3, 2)]),
    st.fractions(min_value=Fraction(1, 7), max_value=9, max_denominator=7),
    st.builds(Fraction, st.integers(1, 10**12), st.integers(1, 10**12)),
)


@st.composite
def trees(draw: st.DrawFn, most: int = 9) -> Tree:
    """Any shape, mixed rational rates, restricted Lambda, idle leaves, workers anywhere."""
    n = draw(st.integers(1, most))
    parent = [-1, *(draw(st.integers(0, v - 1)) for v in range(1, n))]
    rate = draw(st.lists(RATES, min_size=n, max_size=n))
    load = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 5, 8, 40]), min_size=n, max_size=n))
    available = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return _relabelled(draw, Tree(parent, rate, load, available))


def _relabelled(draw: st.DrawFn, tree: Tree) -> Tree:
    """The same tree with its switches numbered at random, so that no code leans on parent < v."""
    new = [0, *draw(st.permutations(range(1, tree.n)))]
    old = sorted(range(tree.n), key=new.__getitem__)
    return Tree(
        [-1 if tree.parent[v] == -1 else new[tree.parent[v]] for v in old],
        [tree.rate[v] for v in old],
        [tree.load[v] for v in old],
        [tree.available[v] for v in old],
    )


def random_tree(rng: random.Random, n: int) -> Tree:
    """A tree of n switches of a random shape: bushy, deep, star-like; all kinds of numbers."""
    nearby = rng.choice([1, 2, 5, n])
    parent = [-1, *(rng.randrange(max(0, v - nearby), v) for v in range(1, n))]
    digits = rng.choice([1, 1, 2, 12])
    share, idle = rng.choice([0.2, 0.6, 1.0]), rng.random() / 2
    most = rng.choice([3, 40, 10**9])
    kinds = [_rate(rng, digits) for _ in range(rng.choice([1, 3, n]))]
    return Tree(
        parent,
        [rng.choice(kinds) for _ in range(n)],
        [0 if rng.random() < idle else rng.randint(0, most) for _ in range(n)],
        [rng.random() < share for _ in range(n)],
    )


def _rate(rng: random.Random, digits: int) -> Fraction:
    return Fraction(rng.randint(1, 10**digits - 1), rng.randint(1, 10**digits - 1))
