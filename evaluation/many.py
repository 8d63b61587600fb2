"""Many workloads, online (Figs. 4 and 5): strategies, capacities, and ways to spend them."""

import random
from fractions import Fraction

from controller.placement import Tree
from controller.placement.online import Goal, OnlineAllocator, Spend, Ties
from evaluation.settings import RATES, Cell, Record, Settings, paper_tree, seed_of

__all__ = ["STRATEGIES", "VARIANTS", "admit", "cells", "measure", "workload_loads"]

STRATEGIES = ("top", "max", "level")
"""What the paper compares its greedy with, under the same capacities."""

VARIANTS: dict[str, tuple[Spend, Ties, Goal]] = {
    "smc": ("budget", "index", "own"),
    "smc-needed": ("needed", "index", "own"),
    "smc-spread": ("needed", "residual", "own"),
    "smc-spread-all": ("budget", "residual", "own"),
    "smc-total": ("needed", "index", "total"),
}
"""SMC for many workloads by name: "smc" is the paper's greedy, which spends all of k."""


def cells(settings: Settings) -> list[Cell]:
    """One cell for every rate law, capacity and repeat; the strategies at the paper's capacity."""
    capacities = sorted({settings.capacity, *settings.capacities})
    return [
        Cell(
            "many",
            (
                ("rates", rates),
                ("capacity", capacity),
                ("levels", settings.levels),
                ("seed", settings.seed),
                ("budget", settings.budget),
                ("workloads", settings.workloads),
                ("strategies", "compared" if capacity == settings.capacity else "smc"),
            ),
            repeat,
        )
        for repeat in range(settings.repeats)
        for rates in RATES
        for capacity in capacities
    ]


def measure(cell: Cell) -> tuple[Record, ...]:
    """The congestion of all workloads together after each number of workloads.

    The sequence of workloads depends on the repeat alone. Series NAME is the congestion and
    "blue:NAME" the number of blue switches spent so far.
    """
    tree = paper_tree(cell.number("levels"), "1", cell.text("rates"), 0)
    counts = cell.numbers("workloads")
    loads = workload_loads(cell.number("levels"), cell.number("seed"), cell.repeat, max(counts))
    names = [*VARIANTS, "all-red"]
    if cell.text("strategies") == "compared":
        names += STRATEGIES
    records = []
    for name in names:
        capacity = [cell.number("capacity")] * tree.n
        records += _series(name, tree, capacity, loads, cell.number("budget"), counts)
    return tuple(records)


def workload_loads(levels: int, seed: int, repeat: int, count: int) -> list[tuple[int, ...]]:
    """L_0, L_1, ...: each uniform or power-law with probability 1/2, then drawn from it."""
    coin = random.Random(seed_of(seed, "coin", repeat))
    laws = [coin.choice(("uniform", "power-law")) for _ in range(count)]
    return [
        paper_tree(levels, law, "constant", seed_of(seed, "workload", repeat, t)).load
        for t, law in enumerate(laws)
    ]


def admit(allocator: OnlineAllocator, name: str, load: tuple[int, ...], k: int) -> int:
    """Serve a workload by a variant of SMC or a strategy, and say how many switches it spent."""
    if name in VARIANTS:
        spend, ties, goal = VARIANTS[name]
        admission = allocator.admit(load, k, spend=spend, ties=ties, goal=goal)
    else:
        admission = allocator.admit(load, k, name)
    return len(admission.placement.blue)


def _series(
    name: str,
    tree: Tree,
    capacity: list[int],
    loads: list[tuple[int, ...]],
    k: int,
    counts: tuple[int, ...],
) -> list[Record]:
    allocator = OnlineAllocator(tree, capacity)
    records, spent = [], 0
    for served, load in enumerate(loads, start=1):
        spent += admit(allocator, name, load, k)
        if served in counts:
            records.append(Record(name, served, allocator.congestion))
            records.append(Record(f"blue:{name}", served, Fraction(spent)))
    return records
