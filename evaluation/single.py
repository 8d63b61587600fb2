"""One workload (Figs. 2 and 3): SMC, the strategies of Sec. III, and the two extremes."""

from fractions import Fraction

from controller.placement import STRATEGIES
from evaluation.settings import LOADS, RATES, Cell, Record, Settings, paper_tree, seed_of

__all__ = ["BOUNDS", "COMPARED", "cells", "measure"]

COMPARED = ("smc", "top", "max", "level")
"""The strategies that take a budget."""

BOUNDS = ("all-red", "all-blue")
"""The two that do not: what congestion is at most, and at least."""


def cells(settings: Settings) -> list[Cell]:
    """One cell for every load distribution, rate law and repeat."""
    return [
        Cell(
            "single",
            (
                ("load", load),
                ("rates", rates),
                ("levels", settings.levels),
                ("seed", settings.seed),
                ("budgets", settings.budgets),
            ),
            repeat,
        )
        for repeat in range(settings.repeats)
        for load in LOADS
        for rates in RATES
    ]


def measure(cell: Cell) -> tuple[Record, ...]:
    """The congestion of every strategy at every budget, and facts about the loads drawn.

    The loads depend on the distribution and the repeat alone, so all strategies, budgets and rate
    laws are compared on the same ones. Series "load-sum", "load-squares" and "load-leaves" at x = 0
    let the text state the mean and variance that were really drawn.
    """
    load = cell.text("load")
    seed = seed_of(cell.number("seed"), load, cell.repeat)
    tree = paper_tree(cell.number("levels"), load, cell.text("rates"), seed)
    records = [
        Record(name, k, STRATEGIES[name](tree, k).congestion)
        for name in COMPARED
        for k in cell.numbers("budgets")
    ]
    records += [Record(name, 0, STRATEGIES[name](tree, tree.n).congestion) for name in BOUNDS]
    leaves = [workers for workers in tree.load if workers]
    records.append(Record("load-leaves", 0, Fraction(len(leaves))))
    records.append(Record("load-sum", 0, Fraction(sum(leaves))))
    records.append(Record("load-squares", 0, Fraction(sum(x * x for x in leaves))))
    return tuple(records)
