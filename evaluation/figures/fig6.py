"""Fig. 6: word count and a parameter server, their messages by real size."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from matplotlib.figure import Figure

from evaluation import applications
from evaluation.applications import APPLICATIONS, PARAMETER_SERVER, WORD_COUNT
from evaluation.corpus import Text
from evaluation.output import Claim, Output, listed, times
from evaluation.settings import Cell, Record, Settings
from evaluation.style import LOOKS, Look, Sheet, log_ticks, plot
from evaluation.sweep import Results
from evaluation.table import Table, ratio, tabulate

__all__ = ["build", "cells"]

_PLACEMENTS = ("smc", "smc-fewest", "smc-sized")
_FEW = 4
_PAPER_WORDS = "54M words, 800K of them distinct"


def cells(settings: Settings, text: Text) -> list[Cell]:
    """The cells that the figure needs."""
    return applications.cells(settings, text)


def build(results: Results, settings: Settings, text: Text) -> Output:
    """The figure from its results."""
    panels, x = ("application",), "k"
    relative = tabulate(results, "applications", panels, (x, "over all red"), _over_red)
    sizes = tabulate(results, "applications", panels, (x, "largest messages"), _in_messages)
    return Output(
        "fig6",
        "word count and parameter server, by message size",
        f"Complete binary tree of {2**settings.levels - 1} switches, constant rates, uniform "
        f"loads, {settings.repeats} repeats. Word count of {text.name}, in equal consecutive "
        f"shares; parameter server of {settings.features:,} features, "
        f"dropout {settings.dropout / 100:g}. "
        "Blue switches as SMC chooses them for messages of one unit.",
        {"fig6": relative, "fig6-messages": sizes},
        {"fig6": _picture(relative, sizes, settings)},
        list(_claims(relative, sizes, settings)),
        [*_by_size(relative, settings), *_data(results)],
    )


def _over_red(cell: Cell, records: Sequence[Record]) -> list[Record]:
    """Congestion by size over that of all red, which is k = 0; and the same in the unit model."""
    return [r for name in (*_PLACEMENTS, "unit") for r in ratio(records, name, name, 0)]


def _in_messages(cell: Cell, records: Sequence[Record]) -> list[Record]:
    """Congestion in units of the largest message there can be, the union of everything."""
    largest = next(record.value for record in records if record.series == "largest")
    return [
        Record(record.series, record.x, record.value / largest)
        for record in records
        if record.series in (*_PLACEMENTS, "all-blue")
    ]


def _picture(relative: Table, sizes: Table, settings: Settings) -> Figure:
    sheet = Sheet(1, 2, height=2.8)
    sheet.title(
        "Word count and parameter server: messages by their real size",
        "constant rates, uniform loads; mean and standard deviation of "
        f"{settings.repeats} repeats; lower is better",
    )
    by_size = Look("placed by size", "#5b6770", "", "--")
    sheet.legend([*APPLICATIONS, "unit", by_size])
    xs = (0, *settings.budgets)
    left, right = sheet.panels[0]
    for i, name in enumerate(APPLICATIONS):
        look = LOOKS[name]
        dashed = Look(look.label, look.colour, "", "--")
        for ax, table in ((left, relative), (right, sizes)):
            plot(ax, table.line("smc-sized", name), dashed, xs, 0.05 * (i - 1))
            plot(ax, table.line("smc", name), look, xs, 0.05 * (i - 1))
    plot(left, relative.line("unit", WORD_COUNT), LOOKS["unit"], xs, 0.05)
    left.set_ylim(0, 1.05)
    log_ticks(right)
    sheet.heading(left, "relative to all red")
    sheet.heading(right, "in messages of the largest size")
    sheet.axes("blue switches allowed, k (0: all red)", "congestion")
    return sheet.figure


def _claims(relative: Table, sizes: Table, settings: Settings) -> Iterator[Claim]:
    few = {name: relative.at("smc", _FEW, name).mean for name in APPLICATIONS}
    yield Claim(
        f"Few blue switches reduce congestion significantly (read as: {_FEW} at least halve it).",
        max(few.values()) <= 0.5,
        f"Of all red, at k = {_FEW}: "
        + listed(f"{name} {value:.3f}" for name, value in few.items())
        + ".",
    )
    red = {name: sizes.at("smc", 0, name).mean for name in APPLICATIONS}
    yield Claim(
        "Without aggregation congestion is very high for the parameter server and significantly "
        "smaller for word count (read as: by x2, in messages of the largest size).",
        red[PARAMETER_SERVER] >= 2 * red[WORD_COUNT],
        f"All red: {listed(f'{name} {value:.1f}' for name, value in red.items())} messages.",
    )
    lines = {
        name: [relative.at("smc", k, name).mean for k in settings.budgets] for name in APPLICATIONS
    }
    milder = [
        words > server
        for words, server in zip(lines[WORD_COUNT], lines[PARAMETER_SERVER], strict=True)
    ]
    yield Claim(
        "The improvement is milder for word count than for the parameter server.",
        all(milder),
        f"So at {sum(milder)} of {len(milder)} budgets. Of all red: "
        + listed(
            f"{name} " + ", ".join(f"{value:.3f}" for value in line) for name, line in lines.items()
        )
        + f", for k = {', '.join(map(str, settings.budgets))}.",
    )


def _by_size(relative: Table, settings: Settings) -> Iterator[str]:
    for name in APPLICATIONS:
        line = relative.line("smc", name)
        rises = [
            f"from k = {a.x} to {b.x} by {b.mean / a.mean - 1:.0%}"
            for a, b in pairwise(line)
            if b.mean > a.mean
        ]
        word = listed(rises) if rises else "nowhere"
        yield (
            f"Sets that are optimal for messages of one unit are not optimal by size. {name}: with "
            f"more blue switches congestion rises {word}. Over the optimum by size, SMC as the "
            f"paper spends its budget: {_over_best(relative, 'smc', name, settings)}; with the "
            f"fewest switches: {_over_best(relative, 'smc-fewest', name, settings)}."
        )


def _over_best(relative: Table, series: str, name: str, settings: Settings) -> str:
    return ", ".join(
        f"{times(relative.at(series, k, name).mean / relative.at('smc-sized', k, name).mean)} "
        f"at k = {k}"
        for k in settings.budgets
    )


def _data(results: Results) -> Iterator[str]:
    counts: dict[str, int] = {}
    for cell, records in results.items():
        if cell.experiment == "applications" and cell.text("application") == WORD_COUNT:
            counts |= {r.series: int(r.value) for r in records if r.series in ("words", "largest")}
    yield (
        f"The text has {counts['words']:,} words, {counts['largest']:,} of them distinct; the "
        f"paper's dump has {_PAPER_WORDS}."
    )
