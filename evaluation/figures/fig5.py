"""Fig. 5: how much capacity a switch needs."""

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from evaluation import many
from evaluation.corpus import Text
from evaluation.figures.fig4 import VARIANT_LOOKS
from evaluation.output import Claim, Output, listed
from evaluation.settings import RATES, Cell, Record, Settings
from evaluation.style import LOOKS, Sheet, plot
from evaluation.sweep import Results
from evaluation.table import Table, ratio, tabulate

__all__ = ["build", "cells"]

_SAME = 0.01


def cells(settings: Settings, text: Text) -> list[Cell]:
    """The cells that the figure needs."""
    return [cell for cell in many.cells(settings) if cell.number("capacity") in settings.capacities]


def build(results: Results, settings: Settings, text: Text) -> Output:
    """The figure from its results."""
    wanted = {
        cell: records
        for cell, records in results.items()
        if cell.experiment == "many" and cell.number("capacity") in settings.capacities
    }
    names = ("capacity", "congestion over that of all red")

    def at_the_end(cell: Cell, records: Sequence[Record]) -> list[Record]:
        return [
            Record(name, cell.number("capacity"), record.value)
            for name in many.VARIANTS
            for record in ratio(records, name, "all-red")
            if record.x == max(settings.workloads)
        ]

    table = tabulate(wanted, "many", ("rates",), names, at_the_end)
    return Output(
        "fig5",
        "SMC by the capacity of the switches, relative to all red",
        f"Complete binary tree of {2**settings.levels - 1} switches, {max(settings.workloads)} "
        f"workloads of k = {settings.budget}, {settings.repeats} repeats. SMC is the paper's "
        "greedy.",
        {"fig5": table},
        {"fig5": _picture(table, settings)},
        list(_claims(table, settings)),
        list(_findings(table, settings)),
    )


def _picture(table: Table, settings: Settings) -> Figure:
    sheet = Sheet(1, 1, width=6.4, height=2.7)
    sheet.title(
        "Congestion of SMC, by the capacity of the switches",
        f"{max(settings.workloads)} workloads, k = {settings.budget}; mean and standard deviation "
        f"of {settings.repeats} repeats; lower is better",
    )
    sheet.legend(RATES)
    sheet.axes("capacity a(s) of every switch", "congestion over that of all red")
    ax = sheet.panels[0][0]
    for i, rates in enumerate(RATES):
        plot(ax, table.line("smc", rates), LOOKS[rates], settings.capacities, 0.04 * (i - 1))
    ax.set_ylim(bottom=0)
    return sheet.figure


def _enough(table: Table, name: str, rates: str) -> int:
    """The least capacity whose congestion is within _SAME of that at the largest."""
    line = table.line(name, rates)
    return min(p.x for p in line if p.mean <= (1 + _SAME) * line[-1].mean)


def _lines(table: Table, name: str) -> str:
    return listed(
        f"{rates} " + ", ".join(f"{p.mean:.4f}" for p in table.line(name, rates)) for rates in RATES
    )


def _claims(table: Table, settings: Settings) -> Iterator[Claim]:
    largest = max(settings.capacities)
    shown = f"{_lines(table, 'smc')}, for a(s) = {', '.join(map(str, settings.capacities))}."
    yield Claim(
        f"A capacity of {largest} gives the least congestion.",
        all(
            table.at("smc", largest, rates).mean <= min(p.mean for p in table.line("smc", rates))
            for rates in RATES
        ),
        shown,
    )
    enough = {rates: _enough(table, "smc", rates) for rates in RATES}
    yield Claim(
        f"SMC reaches what it has at {largest} with a significantly smaller capacity (read as: "
        f"within {_SAME:.0%} of it at a smaller one, at all rates).",
        max(enough.values()) < largest,
        f"Enough: {listed(f'{rates} {capacity}' for rates, capacity in enough.items())}.",
    )


def _findings(table: Table, settings: Settings) -> Iterator[str]:
    for name in list(VARIANT_LOOKS)[1:]:
        enough = listed(f"{rates} {_enough(table, name, rates)}" for rates in RATES)
        yield (f'"{VARIANT_LOOKS[name].label}": {_lines(table, name)}. Enough: {enough}.')
