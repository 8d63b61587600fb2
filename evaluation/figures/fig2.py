"""Fig. 2: the congestion of SMC as the budget grows, between all red and all blue."""

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from evaluation import single
from evaluation.corpus import Text
from evaluation.output import Claim, Output, listed, times
from evaluation.settings import LOADS, RATES, Cell, Record, Settings
from evaluation.style import LOOKS, Sheet, log_ticks, plot, reference
from evaluation.sweep import Results
from evaluation.table import Table, tabulate

__all__ = ["build", "cells"]

_SETTINGS = [(load, rates) for load in LOADS for rates in RATES]
_FACTOR, _CLOSE, _FEW = 10, 2, 4
_PAPER_VARIANCE = {"power-law": 97.1, "uniform": 2.6}


def cells(settings: Settings, text: Text) -> list[Cell]:
    """The cells that the figure needs."""
    return single.cells(settings)


def build(results: Results, settings: Settings, text: Text) -> Output:
    """The figure from its results."""
    table = tabulate(results, "single", ("load", "rates"), ("k", "congestion"), _shown)
    return Output(
        "fig2",
        "congestion of SMC by the number of blue switches",
        f"Complete binary tree of {2**settings.levels - 1} switches, workers at the leaves, "
        f"{settings.repeats} repeats; means and sample standard deviations.",
        {"fig2": table},
        {"fig2": _picture(table, settings)},
        list(_claims(table, settings)),
        [*_reach(table, settings), *_drawn(results)],
    )


def _shown(cell: Cell, records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.series in ("smc", *single.BOUNDS)]


def _picture(table: Table, settings: Settings) -> Figure:
    sheet = Sheet(2, 3)
    sheet.title(
        "Congestion of SMC, by the number of blue switches",
        f"binary tree of {2**settings.levels - 1} switches; mean and standard deviation of "
        f"{settings.repeats} repeats",
    )
    sheet.legend(["smc", "all-red", "all-blue"])
    sheet.axes("blue switches allowed, k", "congestion")
    for row, load in zip(sheet.panels, LOADS, strict=True):
        for ax, rates in zip(row, RATES, strict=True):
            for bound in single.BOUNDS:
                reference(ax, table.at(bound, 0, load, rates), LOOKS[bound])
            plot(ax, table.line("smc", load, rates), LOOKS["smc"], settings.budgets)
            log_ticks(ax)
            ax.set_ylim(0.7, 1.6 * table.at("all-red", 0, load, "constant").mean)
            sheet.heading(ax, f"{load} loads, {rates} rates")
    return sheet.figure


def _mean_ratio(table: Table, over: tuple[str, int], under: tuple[str, int], *panel: str) -> float:
    """The mean over the repeats of one congestion over another, each (series, k)."""
    pairs = zip(table.at(*over, *panel).values, table.at(*under, *panel).values, strict=True)
    ratios = [float(a / b) for a, b in pairs]
    return sum(ratios) / len(ratios)


def _reductions(table: Table, k: int) -> dict[tuple[str, str], float]:
    return {panel: _mean_ratio(table, ("all-red", 0), ("smc", k), *panel) for panel in _SETTINGS}


def _each(values: dict[tuple[str, str], float]) -> str:
    return listed(f"{load}, {rates} {times(v)}" for (load, rates), v in values.items())


def _claims(table: Table, settings: Settings) -> Iterator[Claim]:
    most = max(settings.budgets)
    reductions = _reductions(table, most)
    short = [panel for panel, factor in reductions.items() if factor < _FACTOR]
    share = most / (2**settings.levels - 1)
    yield Claim(
        f"{most} blue switches, about {share:.1%} of all, reduce congestion x{_FACTOR} in all six "
        "settings.",
        not short,
        f"All red over SMC: {_each(reductions)}. At least x{_FACTOR} in {6 - len(short)} of 6.",
    )
    distance = {
        panel: _mean_ratio(table, ("smc", most), ("all-blue", 0), *panel) for panel in _SETTINGS
    }
    yield Claim(
        f"With {most} blue switches congestion is close to that of all blue (read as: at most "
        f"x{_CLOSE} of it).",
        max(distance.values()) <= _CLOSE,
        f"SMC over all blue: {_each(distance)}.",
    )
    few = _reductions(table, _FEW)
    yield Claim(
        f"A small number of blue switches reduces congestion significantly (read as: {_FEW} at "
        "least halve it).",
        min(few.values()) >= 2,
        f"All red over SMC at k = {_FEW}: {_each(few)}.",
    )


def _reach(table: Table, settings: Settings) -> Iterator[str]:
    enough = []
    for panel in _SETTINGS:
        reached = [k for k in settings.budgets if _reductions(table, k)[panel] >= _FACTOR]
        first = f"k = {min(reached)}" if reached else "none of these k"
        enough.append(f"{panel[0]}, {panel[1]} {first}")
    yield f"The first k of {_listed_numbers(settings.budgets)} with x{_FACTOR}: {listed(enough)}."


def _listed_numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _drawn(results: Results) -> Iterator[str]:
    """Mean and variance of the loads that were drawn, beside what the paper states."""
    for load in LOADS:
        sums = {"load-leaves": 0, "load-sum": 0, "load-squares": 0}
        for cell, records in results.items():
            if cell.experiment == "single" and cell.text("load") == load:
                for record in records:
                    if record.series in sums:
                        sums[record.series] += int(record.value)
        mean = sums["load-sum"] / sums["load-leaves"]
        variance = sums["load-squares"] / sums["load-leaves"] - mean**2
        yield (
            f"The {load} loads drawn have mean {mean:.2f} and variance {variance:.1f} (standard "
            f"deviation {variance**0.5:.1f}); the paper states mean 5, variance "
            f"{_PAPER_VARIANCE[load]}."
        )
