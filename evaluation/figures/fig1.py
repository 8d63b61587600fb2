"""Fig. 1: the motivating example of Sec. III, seven switches and a budget of two."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from controller.placement import STRATEGIES, Placement, Tree, loads, smc
from evaluation.corpus import Text
from evaluation.output import Claim, Output, listed
from evaluation.settings import Cell, Settings
from evaluation.style import INK, LOOKS, MUTED, Sheet
from evaluation.sweep import Results
from evaluation.table import Point, Table

__all__ = ["EXAMPLE", "build", "cells"]

EXAMPLE = Tree(
    parent=[-1, 0, 0, 1, 1, 2, 2],
    rate=[1] * 7,
    load=[0, 0, 0, 2, 6, 5, 5],
    available=[True] * 7,
)
"""The tree of the figure, its racks of 2, 6, 5 and 5 workers."""

_BUDGET = 2
_PAPER = {"top": 8, "max": 9, "level": 6, "smc": 5}
_BLUE, _RED, _HOT, _RACK, _LINK = "#2563a8", "#d6594c", "#e07b00", "#e4e8ec", "#aab4bd"
_PLACE = {0: (2.0, 3.0), 1: (1.0, 2.0), 2: (3.0, 2.0)} | {3 + i: (0.5 + i, 1.0) for i in range(4)}


def cells(settings: Settings, text: Text) -> list[Cell]:
    """None: the example is computed on the spot."""
    return []


def build(results: Results, settings: Settings, text: Text) -> Output:
    """The figure; nothing of it depends on the settings."""
    placed = {name: STRATEGIES[name](EXAMPLE, _BUDGET) for name in _PAPER}
    links = [
        Point((), name, v, (value,))
        for name, placement in placed.items()
        for v, value in enumerate(loads(EXAMPLE, placement.blue).link_congestion)
    ]
    optimum = [Point((), "smc", k, (smc(EXAMPLE, k).congestion,)) for k in range(EXAMPLE.n + 1)]
    return Output(
        "fig1",
        "four strategies on seven switches with two blue ones",
        "Complete binary tree of 7 switches, rates 1, racks of 2, 6, 5 and 5 workers, k = 2.",
        {
            "fig1": Table((), "link", "congestion", tuple(links)),
            "fig1-optimum": Table((), "k", "congestion", tuple(optimum)),
        },
        {"fig1": _picture(placed)},
        list(_claims(placed)),
        [f"The optimum for k = 0 to 7 is {', '.join(str(p.values[0]) for p in optimum)}."],
    )


def _claims(placed: dict[str, Placement]) -> Iterator[Claim]:
    for name, expected in _PAPER.items():
        congestion = placed[name].congestion
        yield Claim(
            f"{LOOKS[name].label} has congestion {expected}.",
            congestion == expected,
            f"It has {congestion}.",
        )
    optimal = {k: _optimal_sets(k) for k in (2, 3, 4)}
    chains = [
        (two, three, four)
        for two in optimal[2]
        for three in optimal[3]
        for four in optimal[4]
        if two < three < four
    ]
    counts = listed(f"{len(sets)} for k = {k}" for k, sets in optimal.items())
    yield Claim(
        "No optimal set for k = 2 grows by one switch into an optimal set for k = 3 that is part "
        "of an optimal set for k = 4.",
        not chains,
        f"All optimal sets of exactly k switches: {counts}; such chains among them: {len(chains)}.",
    )


def _optimal_sets(k: int) -> list[frozenset[int]]:
    """All sets of exactly k switches with the least congestion of such sets."""
    congestion: dict[frozenset[int], Fraction] = {
        frozenset(chosen): loads(EXAMPLE, chosen).congestion
        for chosen in combinations(range(EXAMPLE.n), k)
    }
    least = min(congestion.values())
    return [blue for blue, value in congestion.items() if value == least]


def _picture(placed: dict[str, Placement]) -> Figure:
    sheet = Sheet(1, 4, height=2.5, top=1.0)
    sheet.title(
        "Two blue switches, placed by four strategies",
        "numbers on the links are their congestion, the largest in orange; workers in grey",
    )
    for ax, (name, placement) in zip(sheet.panels[0], placed.items(), strict=True):
        _draw(ax, placement)
        sheet.heading(ax, f"{LOOKS[name].label}: congestion {placement.congestion}")
    return sheet.figure


def _draw(ax: Axes, placement: Placement) -> None:
    ax.set_axis_off()
    ax.set_xlim(0, 4)
    ax.set_ylim(0.3, 4.1)
    congestion = loads(EXAMPLE, placement.blue).link_congestion
    for v, (x, y) in _PLACE.items():
        above = _PLACE.get(EXAMPLE.parent[v], (2.0, 3.85))
        hot = congestion[v] == placement.congestion
        ax.plot(
            [x, above[0]], [y, above[1]], color=_HOT if hot else _LINK, linewidth=3 if hot else 1.5
        )
        ax.text(
            (x + above[0]) / 2,
            (y + above[1]) / 2,
            str(congestion[v]),
            fontsize=8.5,
            ha="center",
            va="center",
            color="white" if hot else INK,
            fontweight="bold" if hot else "normal",
            bbox={
                "boxstyle": "round,pad=0.2",
                "facecolor": _HOT if hot else "white",
                "edgecolor": "none",
            },
            zorder=4,
        )
        colour = _BLUE if v in placement.blue else _RED
        ax.scatter([x], [y], s=330, facecolor=colour, edgecolor="white", zorder=3)
        if EXAMPLE.load[v]:
            _rack(ax, x, y - 0.5, EXAMPLE.load[v])
    ax.scatter([2.0], [3.92], s=110, marker="s", facecolor=INK, zorder=3)
    ax.text(2.28, 3.92, "destination", fontsize=7, color=MUTED, va="center")


def _rack(ax: Axes, x: float, y: float, workers: int) -> None:
    ax.add_patch(
        FancyBboxPatch(
            (x - 0.2, y - 0.12),
            0.4,
            0.24,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=_RACK,
            edgecolor="none",
        )
    )
    ax.text(x, y - 0.01, str(workers), fontsize=8, color=INK, ha="center", va="center")
