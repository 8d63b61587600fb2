"""How far online is from the joint optimum of all workloads, on trees small enough to know it."""

from controller.placement.joint import joint_optimum
from controller.placement.online import OnlineAllocator
from evaluation.many import VARIANTS, admit, workload_loads
from evaluation.settings import RATES, Cell, Record, Settings, paper_tree

__all__ = ["BUDGET", "CAPACITY", "LEVELS", "WORKLOADS", "cells", "measure"]

LEVELS, BUDGET, CAPACITY, WORKLOADS = 4, 3, 1, (1, 2, 4, 6)
"""15 switches, k = 3 a workload, a(s) = 1: branch and bound proves its optimum in seconds."""

_SECONDS = 300.0


def cells(settings: Settings) -> list[Cell]:
    """One cell for every rate law and repeat."""
    return [
        Cell(
            "offline",
            (
                ("rates", rates),
                ("levels", LEVELS),
                ("seed", settings.seed),
                ("budget", BUDGET),
                ("capacity", CAPACITY),
                ("workloads", WORKLOADS),
            ),
            repeat,
        )
        for repeat in range(settings.repeats)
        for rates in RATES
    ]


def measure(cell: Cell) -> tuple[Record, ...]:
    """The congestion of every variant online and series "joint", by the number of workloads."""
    tree = paper_tree(cell.number("levels"), "1", cell.text("rates"), 0)
    counts, k = cell.numbers("workloads"), cell.number("budget")
    capacity = [cell.number("capacity")] * tree.n
    loads = workload_loads(cell.number("levels"), cell.number("seed"), cell.repeat, max(counts))
    records = []
    for name in (*VARIANTS, "all-red"):
        allocator = OnlineAllocator(tree, capacity)
        for served, load in enumerate(loads, start=1):
            admit(allocator, name, load, k)
            if served in counts:
                records.append(Record(name, served, allocator.congestion))
    for count in counts:
        joint = joint_optimum(tree, loads[:count], [k] * count, capacity, seconds=_SECONDS)
        records.append(Record("joint", count, joint.congestion))
    return tuple(records)
