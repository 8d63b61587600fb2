"""Fig. 3: the strategies' congestion relative to that of SMC."""

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from evaluation import single
from evaluation.corpus import Text
from evaluation.output import Claim, Output, listed, times
from evaluation.settings import LOADS, RATES, Cell, Record, Settings
from evaluation.style import LOOKS, Sheet, log_ticks, plot
from evaluation.sweep import Results
from evaluation.table import Point, Table, ratio, tabulate

__all__ = ["build", "cells"]

_STRATEGIES = ("top", "max", "level")
_WORST, _TOLERANCE = 13, 0.1


def cells(settings: Settings, text: Text) -> list[Cell]:
    """The cells that the figure needs."""
    return single.cells(settings)


def build(results: Results, settings: Settings, text: Text) -> Output:
    """The figure from its results."""
    names = ("k", "congestion over that of SMC")
    table = tabulate(results, "single", ("load", "rates"), names, _relative)
    return Output(
        "fig3",
        "congestion of other strategies, relative to SMC",
        f"Complete binary tree of {2**settings.levels - 1} switches, {settings.repeats} repeats; "
        "every ratio is of the same loads, then averaged.",
        {"fig3": table},
        {"fig3": _picture(table, settings)},
        list(_claims(table, settings)),
        list(_second_best(table, settings)),
    )


def _relative(cell: Cell, records: Sequence[Record]) -> list[Record]:
    """Every strategy over SMC at the same k; all red, which has no k, at every k."""
    shown = [record for name in single.COMPARED for record in ratio(records, name, "smc")]
    red = next(record for record in records if record.series == "all-red")
    optimum = [record for record in records if record.series == "smc"]
    return shown + [Record("all-red", o.x, red.value / o.value) for o in optimum]


def _picture(table: Table, settings: Settings) -> Figure:
    sheet = Sheet(2, 3)
    sheet.title(
        "Congestion of other strategies, relative to SMC",
        f"binary tree of {2**settings.levels - 1} switches; mean and standard deviation of "
        f"{settings.repeats} repeats; lower is better, SMC is 1",
    )
    sheet.legend(["smc", *_STRATEGIES, "all-red"])
    sheet.axes("blue switches allowed, k", "congestion over that of SMC")
    most = max(p.mean + p.deviation for p in table.points)
    for row, load in zip(sheet.panels, LOADS, strict=True):
        for ax, rates in zip(row, RATES, strict=True):
            for shift, name in ((0.0, "all-red"), (0.0, "smc"), (-0.08, "top"), (0.0, "max")):
                plot(ax, table.line(name, load, rates), LOOKS[name], settings.budgets, shift)
            plot(ax, table.line("level", load, rates), LOOKS["level"], settings.budgets, 0.08)
            log_ticks(ax)
            ax.set_ylim(0.85, 1.15 * most)
            sheet.heading(ax, f"{load} loads, {rates} rates")
    return sheet.figure


def _places(settings: Settings) -> list[tuple[int, str, str]]:
    return [(k, load, rates) for load in LOADS for rates in RATES for k in settings.budgets]


def _claims(table: Table, settings: Settings) -> Iterator[Claim]:
    others = [p for p in table.points if p.series in _STRATEGIES]
    lowest = min(min(p.values) for p in others)
    yield Claim(
        "No strategy is better than SMC, in no run.",
        lowest >= 1,
        f"The least ratio of {sum(len(p.values) for p in others)} is {times(float(lowest))}.",
    )
    worst = max(others, key=lambda p: p.mean)
    single_run = max(others, key=lambda p: max(p.values))
    yield Claim(
        f"Other strategies are sometimes as much as x{_WORST} worse (read as: within "
        f"{_TOLERANCE:.0%} of it).",
        abs(worst.mean - _WORST) <= _TOLERANCE * _WORST,
        f"The largest mean ratio is {times(worst.mean)} ({_where(worst)}); the largest of a single "
        f"run {times(float(max(single_run.values)))} ({_where(single_run)}).",
    )
    yield _max_claim(table, settings, "constant", better=False)
    for rates in ("linear", "exponential"):
        yield _max_claim(table, settings, rates, better=True)
    for load, name in (("power-law", "max"), ("uniform", "level")):
        yield _second_claim(table, settings, load, name)
    yield _sensitivity(table, settings)


def _where(point: Point) -> str:
    load, rates = point.panel
    return f"{LOOKS[point.series].label}, {load}, {rates}, k = {point.x}"


def _max_claim(table: Table, settings: Settings, rates: str, *, better: bool) -> Claim:
    """Max against both Top and Level under power-law loads, at all budgets."""
    lines = []
    holds = 0
    for k in settings.budgets:
        mean = {name: table.at(name, k, "power-law", rates).mean for name in _STRATEGIES}
        rivals = min(mean["top"], mean["level"]) if better else max(mean["top"], mean["level"])
        holds += mean["max"] < rivals if better else mean["max"] > rivals
        lines.append(
            f"k = {k}: Max {times(mean['max'])}, Top {times(mean['top'])}, "
            f"Level {times(mean['level'])}"
        )
    word = "better" if better else "worse"
    return Claim(
        f"Under power-law loads and {rates} rates, Max is {word} than both Top and Level.",
        holds == len(settings.budgets),
        f"So at {holds} of {len(settings.budgets)} budgets. {listed(lines)}.",
    )


def _is_second(table: Table, name: str, k: int, load: str, rates: str) -> bool:
    mean = {other: table.at(other, k, load, rates).mean for other in _STRATEGIES}
    return mean[name] <= min(mean.values())


def _second_claim(table: Table, settings: Settings, load: str, name: str) -> Claim:
    places = [place for place in _places(settings) if place[1] == load]
    missed = [(k, rates) for k, _, rates in places if not _is_second(table, name, k, load, rates)]
    label = LOOKS[name].label
    not_at = f" Not at {listed(f'{rates}, k = {k}' for k, rates in missed)}." if missed else ""
    return Claim(
        f"Under {load} loads {label} is the second best.",
        not missed,
        f"{label} is the best after SMC, or ties for it, at {len(places) - len(missed)} of "
        f"{len(places)} points.{not_at}",
    )


def _sensitivity(table: Table, settings: Settings) -> Claim:
    """How far a strategy's ratio moves between rate laws, at its worst over loads and budgets."""
    spread = {}
    for name in _STRATEGIES:
        factors = []
        for load in LOADS:
            for k in settings.budgets:
                means = [table.at(name, k, load, rates).mean for rates in RATES]
                factors.append(max(means) / min(means))
        spread[name] = max(factors)
    shown = listed(f"{LOOKS[name].label} {times(v)}" for name, v in spread.items())
    return Claim(
        "Top is the most sensitive to the rates.",
        max(spread, key=lambda name: spread[name]) == "top",
        f"Largest over smallest ratio among the rate laws, at most over loads and k: {shown}.",
    )


def _second_best(table: Table, settings: Settings) -> Iterator[str]:
    for load in LOADS:
        places = [place for place in _places(settings) if place[1] == load]
        counts = {
            name: sum(_is_second(table, name, *place) for place in places) for name in _STRATEGIES
        }
        shown = listed(f"{LOOKS[name].label} at {count}" for name, count in counts.items())
        yield (
            f"Best after SMC under {load} loads, of {len(places)} points (ties count for all): "
            f"{shown}."
        )
