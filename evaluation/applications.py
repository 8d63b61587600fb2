"""Two applications (Fig. 6): word count and a parameter server, their messages by real size.

A message is a set of keys and its size their number: the distinct words of a worker's share of the
text, or the features that a worker did not drop. Aggregated messages are unions. The blue switches
are those of SMC in the unit model, as in the paper; real contents are then replayed through the
tree. A set is an integer with a bit a key, so that a union is `|` and a size `bit_count`.

Sets that are equally good in the unit model differ by size, so it matters which of them SMC takes:
"smc" is as SMC-Color spends its budget, from the root down, "smc-fewest" as `smc` does. "smc-sized"
is the optimum by size.
"""

import operator
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from controller.placement import Tree, smc
from controller.placement.message_size import message_sizes, sized_loads
from controller.placement.sized import smc_painted, smc_sized
from evaluation.corpus import Text, Words
from evaluation.settings import Cell, Record, Settings, paper_tree, seed_of

__all__ = ["APPLICATIONS", "PARAMETER_SERVER", "WORD_COUNT", "cells", "measure"]

WORD_COUNT, PARAMETER_SERVER = "word count", "parameter server"
APPLICATIONS = (WORD_COUNT, PARAMETER_SERVER)


def cells(settings: Settings, text: Text) -> list[Cell]:
    """One cell for every application and repeat, at constant rates and uniform loads."""
    common = (
        ("levels", settings.levels),
        ("seed", settings.seed),
        ("budgets", settings.budgets),
    )
    server = (("features", settings.features), ("dropout", settings.dropout))
    return [
        Cell("applications", (("application", name), *common, *own), repeat)
        for repeat in range(settings.repeats)
        for name, own in (
            (WORD_COUNT, (("text", text.identity),)),
            (PARAMETER_SERVER, server),
        )
    ]


def measure(cell: Cell, words: Words | None) -> tuple[Record, ...]:
    """Congestion in keys a second at every budget.

    Series "smc", "smc-fewest" and "smc-sized" are by size, "unit" is the optimum in the unit model;
    x is k, 0 is all red.
    "all-blue", "largest" (the size of the union of everything) and "words" (of the text) are at
    x = 0.
    """
    seed = seed_of(cell.number("seed"), "uniform", cell.repeat)
    tree = paper_tree(cell.number("levels"), "uniform", "constant", seed)
    if cell.text("application") == WORD_COUNT:
        assert words is not None
        contents = _shares(tree, words)
    else:
        contents = _gradients(tree, cell)
    sizes = message_sizes(tree, contents, operator.or_, int.bit_count)
    records = []
    for k in (0, *cell.numbers("budgets")):
        painted, fewest = smc_painted(tree, k), smc(tree, k)
        by_size = smc_sized(tree, sizes, k)
        records.append(Record("smc", k, sized_loads(tree, sizes, painted.blue).congestion))
        records.append(Record("smc-fewest", k, sized_loads(tree, sizes, fewest.blue).congestion))
        records.append(Record("smc-sized", k, by_size.congestion))
        records.append(Record("unit", k, fewest.congestion))
    everything = range(tree.n)
    records.append(Record("all-blue", 0, sized_loads(tree, sizes, everything).congestion))
    records.append(Record("largest", 0, Fraction(sizes.merged[0])))
    if words is not None:
        records.append(Record("words", 0, Fraction(len(words.numbers))))
    return tuple(records)


def _dealt(tree: Tree, keys: Iterator[int]) -> list[list[int]]:
    return [[next(keys) for _ in range(workers)] for workers in tree.load]


def _as_bits(present: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(present, bitorder="little").tobytes(), "little")


def _shares(tree: Tree, words: Words) -> list[list[int]]:
    """Every worker counts an equal, consecutive share of the text, as MapReduce splits a file."""
    workers = sum(tree.load)
    ends = [len(words.numbers) * i // workers for i in range(workers + 1)]

    def sets() -> Iterator[int]:
        for first, last in pairwise(ends):
            present = np.zeros(words.distinct, dtype=np.bool_)
            present[words.numbers[first:last]] = True
            yield _as_bits(present)

    return _dealt(tree, sets())


def _gradients(tree: Tree, cell: Cell) -> list[list[int]]:
    """Every worker keeps each feature with probability 1 - dropout, and sends its gradient."""
    rng = np.random.default_rng(seed_of(cell.number("seed"), "dropout", cell.repeat))
    features, kept = cell.number("features"), 100 - cell.number("dropout")

    def sets() -> Iterator[int]:
        while True:
            yield _as_bits(rng.integers(100, size=features) < kept)

    return _dealt(tree, sets())
