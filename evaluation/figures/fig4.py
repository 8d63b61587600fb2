"""Fig. 4: many workloads online; ways to spend the capacities; and the distance from offline."""

from collections.abc import Iterator, Sequence
from functools import partial

from matplotlib.figure import Figure

from evaluation import many, offline
from evaluation.corpus import Text
from evaluation.output import Claim, Output, listed, times
from evaluation.settings import RATES, Cell, Record, Settings
from evaluation.style import LOOKS, Sheet, plot
from evaluation.sweep import Results
from evaluation.table import Table, ratio, tabulate

__all__ = ["VARIANT_LOOKS", "build", "cells"]

_COMPARED = ("smc", *many.STRATEGIES)
_HOLDS_OUT = 1.25

VARIANT_LOOKS = {name: LOOKS["paper's greedy" if name == "smc" else name] for name in many.VARIANTS}


def cells(settings: Settings, text: Text) -> list[Cell]:
    """The cells that the figure needs."""
    return [
        cell for cell in many.cells(settings) if cell.number("capacity") == settings.capacity
    ] + offline.cells(settings)


def build(results: Results, settings: Settings, text: Text) -> Output:
    """The figure from its results."""
    at_capacity = {
        cell: records
        for cell, records in results.items()
        if cell.experiment != "many" or cell.number("capacity") == settings.capacity
    }
    names = ("workloads", "congestion over that of all red")
    compared = tabulate(at_capacity, "many", ("rates",), names, partial(_over_red, _COMPARED))
    variants = tabulate(
        at_capacity, "many", ("rates",), names, partial(_over_red, tuple(many.VARIANTS))
    )
    spent = tabulate(at_capacity, "many", ("rates",), ("workloads", "blue switches"), _spent)
    joint_names = ("workloads", "congestion over the joint optimum")
    joint = tabulate(results, "offline", ("rates",), joint_names, _over_joint)
    return Output(
        "fig4",
        "many workloads online, relative to all red",
        f"Complete binary tree of {2**settings.levels - 1} switches, a(s) = {settings.capacity}, "
        f"k = {settings.budget} for every workload, each workload uniform or power-law with "
        f"probability 1/2, {settings.repeats} repeats. SMC is the paper's greedy, which spends all "
        "of k. The joint optimum is of another, smaller setting: "
        f"{2**offline.LEVELS - 1} switches, a(s) = {offline.CAPACITY}, k = {offline.BUDGET}.",
        {"fig4": compared, "fig4-variants": variants, "fig4-spent": spent, "fig4-offline": joint},
        {
            "fig4": _strategies_picture(compared, settings),
            "fig4-variants": _variants_picture(variants, settings),
            "fig4-offline": _offline_picture(joint),
        },
        list(_claims(compared, settings)),
        [*_improvements(variants, spent, settings), *_distance(joint)],
    )


def _over_red(names: tuple[str, ...], cell: Cell, records: Sequence[Record]) -> list[Record]:
    return [record for name in names for record in ratio(records, name, "all-red")]


def _over_joint(cell: Cell, records: Sequence[Record]) -> list[Record]:
    return [r for name in (*many.VARIANTS, "all-red") for r in ratio(records, name, "joint")]


def _spent(cell: Cell, records: Sequence[Record]) -> list[Record]:
    return [
        Record(name, record.x, record.value)
        for name in (*many.VARIANTS, *many.STRATEGIES)
        for record in records
        if record.series == f"blue:{name}"
    ]


def _strategies_picture(table: Table, settings: Settings) -> Figure:
    sheet = Sheet(1, 3, height=2.6)
    sheet.title(
        "Many workloads, online",
        f"{2**settings.levels - 1} switches, capacity {settings.capacity}, k = {settings.budget} a "
        f"workload; mean and standard deviation of {settings.repeats} repeats; lower is better",
    )
    sheet.legend(_COMPARED)
    sheet.axes("workloads", "congestion over that of all red")
    for ax, rates in zip(sheet.panels[0], RATES, strict=True):
        for i, name in enumerate(_COMPARED):
            shift = 0.05 * (i - 1.5)
            plot(ax, table.line(name, rates), LOOKS[name], settings.workloads, shift)
        ax.set_ylim(0, 1.1)
        sheet.heading(ax, f"{rates} rates")
    return sheet.figure


def _variants_picture(table: Table, settings: Settings) -> Figure:
    sheet = Sheet(1, 3, height=2.6)
    sheet.title(
        "Many workloads, online: ways to spend the capacities",
        f"SMC on {2**settings.levels - 1} switches, capacity {settings.capacity}, "
        f"k = {settings.budget} a workload; mean and standard deviation of {settings.repeats} "
        "repeats; lower is better",
    )
    sheet.legend(list(VARIANT_LOOKS.values()))
    sheet.axes("workloads", "congestion over that of all red")
    for ax, rates in zip(sheet.panels[0], RATES, strict=True):
        for i, (name, look) in enumerate(VARIANT_LOOKS.items()):
            plot(ax, table.line(name, rates), look, settings.workloads, 0.06 * (i - 2))
        ax.set_ylim(bottom=0)
        sheet.heading(ax, f"{rates} rates")
    return sheet.figure


def _offline_picture(table: Table) -> Figure:
    sheet = Sheet(1, 3, height=2.6)
    sheet.title(
        "How far online is from the joint optimum",
        f"{2**offline.LEVELS - 1} switches, capacity {offline.CAPACITY}, k = {offline.BUDGET} a "
        "workload; mean and standard deviation over the repeats; 1 is optimal",
    )
    sheet.legend(list(VARIANT_LOOKS.values()))
    sheet.axes("workloads", "congestion over the joint optimum")
    most = max(p.mean + p.deviation for p in table.points if p.series in VARIANT_LOOKS)
    for ax, rates in zip(sheet.panels[0], RATES, strict=True):
        for i, (name, look) in enumerate(VARIANT_LOOKS.items()):
            plot(ax, table.line(name, rates), look, offline.WORKLOADS, 0.05 * (i - 2))
        ax.set_ylim(0.6, 1.05 * most)
        sheet.heading(ax, f"{rates} rates")
    return sheet.figure


def _claims(table: Table, settings: Settings) -> Iterator[Claim]:
    lost = [
        f"{rates}, {p.x} workloads: {LOOKS[name].label} {p.mean:.3f}, SMC {best:.3f}"
        for rates in RATES
        for name in many.STRATEGIES
        for p in table.line(name, rates)
        if p.mean < (best := table.at("smc", p.x, rates).mean)
    ]
    points = len(RATES) * len(settings.workloads)
    yield Claim(
        "SMC has the least congestion of all strategies for every number of workloads.",
        not lost,
        listed(lost) + "." if lost else f"It has at all {points} points, in the mean.",
    )
    rises = {rates: [p.mean for p in table.line("smc", rates)] for rates in RATES}
    yield Claim(
        "The more workloads, the nearer SMC comes to all red.",
        all(line[-1] == max(line) for line in rises.values()),
        listed(
            f"{rates} " + ", ".join(f"{mean:.3f}" for mean in line) for rates, line in rises.items()
        )
        + f", for {', '.join(map(str, settings.workloads))} workloads.",
    )
    sustained = {
        rates: max(
            p.x
            for p in table.line("smc", rates)
            if p.mean <= _HOLDS_OUT * table.line("smc", rates)[0].mean
        )
        for rates in RATES
    }
    yield Claim(
        "For exponential rates SMC sustains more workloads before changing for the worse (read as: "
        f"more than at the other rates stay within {_HOLDS_OUT:g} of what one workload has).",
        sustained["exponential"] > max(sustained["constant"], sustained["linear"]),
        listed(f"{rates} up to {count}" for rates, count in sustained.items()) + " workloads.",
    )


def _improvements(variants: Table, spent: Table, settings: Settings) -> Iterator[str]:
    last = max(settings.workloads)
    for name in list(VARIANT_LOOKS)[1:]:
        changes = []
        for rates in RATES:
            points = [
                variants.at(name, x, rates).mean / variants.at("smc", x, rates).mean - 1
                for x in settings.workloads
            ]
            low = min(range(len(points)), key=lambda i: points[i])
            changes.append(
                f"{rates} {points[-1]:+.1%} at {last} workloads, at best {points[low]:+.1%} at "
                f"{settings.workloads[low]}"
            )
        used = listed(
            f"{rates} {spent.at(name, last, rates).mean:.0f} against "
            f"{spent.at('smc', last, rates).mean:.0f}"
            for rates in RATES
        )
        yield (
            f'"{VARIANT_LOOKS[name].label}" against the paper\'s greedy, congestion: '
            f"{listed(changes)}. Blue switches spent by {last} workloads: {used}."
        )


def _distance(table: Table) -> Iterator[str]:
    last = max(offline.WORKLOADS)
    for name, look in VARIANT_LOOKS.items():
        shown = listed(
            f"{rates} {times(table.at(name, last, rates).mean)} in the mean, "
            f"{times(float(max(table.at(name, last, rates).values)))} at most"
            for rates in RATES
        )
        yield f'"{look.label}" over the joint optimum, {last} workloads: {shown}.'
