"""The AllReduce benchmark's methods come to the right sums, in the time that theory gives them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from evaluation.allreduce_fabric import METHODS, Bench, bench
from evaluation.allreduce_hosts import neighbours
from evaluation.bench_allreduce import IDEAL_RING, Row, misses
from p4src import artefacts
from p4src.builds import NARROW
from topologies import WorkloadOptions, parse
from topologies.network import wire

RATE = 100_000_000
RANKS = 8
ELEMENTS = 16_384
IDEAL_S = 4 * ELEMENTS * 8 / RATE
VALUES = np.random.default_rng(5).standard_normal((RANKS, ELEMENTS), dtype=np.float32)
FRAMES = (62 + 4 * NARROW.lanes) / (4 * NARROW.lanes)
"""Bytes on the wire for each byte of values, in messages of the committed build."""
EXPECTED = {
    "smc k=1": 4 * FRAMES,
    "smc k=4": 2 * FRAMES,
    "all-blue": FRAMES,
    "all-red": 8 * FRAMES,
    "parameter server": 16,
    "parameter server, chunk by chunk": 8,
    "ring": 2 * 7 / 8,
    "tree": 3,
}
"""Units of bytes / rate, without the way there and the headers of datagrams."""


@pytest.fixture(scope="module")
def up() -> Iterator[Bench]:
    """Eight workers under seven switches."""
    network = wire(parse("binary-tree:levels=3", WorkloadOptions("2", None, 0)))
    with bench(network, RATE, artefacts.load()) as found:
        yield found


@pytest.mark.parametrize("method", METHODS)
def test_every_method_sums_right_and_takes_its_time(up: Bench, method: str) -> None:
    time = up.measure(method, VALUES)
    # Above: the window of exponents, headers, and the tree's longest way.
    over = time.seconds / IDEAL_S / EXPECTED[method]
    assert 1.0 <= over <= (1.4 if method == "tree" else 1.12), time


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 16, 21])
def test_the_tree_of_neighbours_is_one(ranks: int) -> None:
    parents = {rank: neighbours(ranks, rank)[0] for rank in range(ranks)}
    assert sum(parent is None for parent in parents.values()) == 1
    for rank in range(ranks):
        children = neighbours(ranks, rank)[1]
        assert {child for child, parent in parents.items() if parent == rank} == set(children)
        assert len(children) <= 2
        at, steps = rank, 0
        while (parent := parents[at]) is not None:
            at, steps = parent, steps + 1
        assert steps <= ranks.bit_length()


def row(method: str, seconds: float) -> Row:
    return Row(16, 16, 240, method, 7, seconds, seconds / 1.342, None, 1.44 / seconds, None)


def test_marks_are_judged() -> None:
    good = [row("all-blue", 1.44), row(IDEAL_RING, 2.5), row("parameter server", 44.0)]
    assert misses(good) == []
    slow = [row("all-blue", 2.4), row(IDEAL_RING, 2.5), row("parameter server", 44.0)]
    assert len(misses(slow)) == 3
