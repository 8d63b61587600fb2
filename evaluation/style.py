"""How the figures look: one palette, quiet axes, budgets at equal distances, deviations as bars.

The same data give the same bytes: no dates, no random ids, no state of pyplot.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from PIL import Image

from evaluation.store import write_whole
from evaluation.table import Point

__all__ = ["INK", "LOOKS", "MUTED", "Look", "Sheet", "log_ticks", "plot", "reference", "save"]

INK, MUTED, _GRID = "#1f2933", "#5b6770", "#e4e8ec"
_BLUE, _ORANGE, _GREEN, _PURPLE, _RED = "#2563a8", "#e07b00", "#2a9d6f", "#8e5bb5", "#d6594c"
_DPI = 160
_COLOURS = 192
_WIDTH = 9.6
_TOP, _BOTTOM, _LEFT, _RIGHT = 1.2, 0.62, 0.78, 0.22
_GAP_X, _GAP_Y = 0.5, 0.55


@dataclass(frozen=True, slots=True)
class Look:
    """How a line is drawn and what the legend calls it."""

    label: str
    colour: str
    marker: str = "o"
    dashes: Literal["-", "--", ":"] = "-"


LOOKS: Mapping[str, Look] = {
    "smc": Look("SMC", _BLUE, "o"),
    "top": Look("Top", _ORANGE, "^"),
    "max": Look("Max", _GREEN, "s"),
    "level": Look("Level", _PURPLE, "D"),
    "all-red": Look("all red", _RED, "", "--"),
    "all-blue": Look("all blue", MUTED, "", ":"),
    "power-law": Look("power-law loads", _PURPLE, "D"),
    "uniform": Look("uniform loads", _GREEN, "s"),
    "constant": Look("constant rates", _BLUE, "o"),
    "linear": Look("linear rates", _GREEN, "s"),
    "exponential": Look("exponential rates", _ORANGE, "^"),
    "paper's greedy": Look("the paper's greedy", _BLUE, "o"),
    "smc-needed": Look("only what is needed", _ORANGE, "^"),
    "smc-spread": Look("needed, sparing the scarce", _GREEN, "s"),
    "smc-spread-all": Look("sparing the scarce, all of k", _PURPLE, "D"),
    "smc-total": Look("least total congestion", _RED, "v"),
    "joint": Look("joint optimum, offline", INK, "*", "--"),
    "word count": Look("word count", _GREEN, "s"),
    "parameter server": Look("parameter server", _ORANGE, "^"),
    "unit": Look("messages of one unit", _BLUE, "o"),
}


class Sheet:
    """A figure of equal panels in rows and columns, with a title and one legend above them."""

    def __init__(
        self,
        rows: int,
        columns: int,
        *,
        width: float = _WIDTH,
        height: float = 2.25,
        top: float = _TOP,
    ) -> None:
        """Lay out the panels; inches: `height` of one of them, `top` of title and legend."""
        total = top + rows * height + (rows - 1) * _GAP_Y + _BOTTOM
        self.figure = Figure(figsize=(width, total), dpi=_DPI, facecolor="white")
        self._size = (width, total)
        each = (width - _LEFT - _RIGHT - (columns - 1) * _GAP_X) / columns
        self.panels = [
            [
                self._panel(
                    _LEFT + column * (each + _GAP_X),
                    total - top - (row + 1) * height - row * _GAP_Y,
                    each,
                    height,
                )
                for column in range(columns)
            ]
            for row in range(rows)
        ]

    def _panel(self, x: float, y: float, width: float, height: float) -> Axes:
        across, up = self._size
        ax = self.figure.add_axes((x / across, y / up, width / across, height / up))
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            ax.spines[side].set_color("#aab4bd")
        ax.tick_params(colors=MUTED, labelsize=8, length=3)
        ax.grid(axis="y", color=_GRID, linewidth=0.8)
        ax.set_axisbelow(True)
        return ax

    def title(self, text: str, facts: str) -> None:
        """A bold line at the top left, and a quiet one below it."""
        across, up = self._size
        left = 0.2 / across
        self.figure.text(
            left, 1 - 0.27 / up, text, fontsize=12.5, fontweight="bold", color=INK, va="center"
        )
        self.figure.text(left, 1 - 0.5 / up, facts, fontsize=8.3, color=MUTED, va="center")

    def legend(self, names: Sequence[str | Look]) -> None:
        """One legend for all panels, below the title."""
        across, up = self._size
        looks = [LOOKS[name] if isinstance(name, str) else name for name in names]
        handles = [
            Line2D(
                [],
                [],
                color=look.colour,
                linestyle=look.dashes,
                marker=look.marker or "none",
                markersize=5.5,
                linewidth=1.8,
                label=look.label,
            )
            for look in looks
        ]
        self.figure.legend(
            handles=handles,
            loc="center left",
            bbox_to_anchor=(0.12 / across, 1 - 0.73 / up),
            ncols=len(handles),
            frameon=False,
            fontsize=8.3,
            labelcolor=INK,
            handlelength=2.2,
            columnspacing=1.6,
        )

    def heading(self, ax: Axes, text: str) -> None:
        """The heading of a panel, left above it."""
        ax.set_title(text, fontsize=9, color=INK, loc="left", pad=6, fontweight="bold")

    def axes(self, x: str, y: str) -> None:
        """What the axes are: x below the last row, y beside the first column."""
        for ax in self.panels[-1]:
            ax.set_xlabel(x, color=MUTED, fontsize=8.5)
        for row in self.panels:
            row[0].set_ylabel(y, color=MUTED, fontsize=8.5)


def plot(
    ax: Axes, line: Sequence[Point], look: Look, xs: Sequence[int], shift: float = 0.0
) -> None:
    """A line with deviations as bars; values of x stand at equal distances.

    `shift` moves it sideways a little, so that bars of several lines can be told apart.
    """
    place = {x: i for i, x in enumerate(xs)}
    shown = [point for point in line if point.x in place]
    ax.errorbar(
        [place[point.x] + shift for point in shown],
        [point.mean for point in shown],
        yerr=[point.deviation for point in shown],
        color=look.colour,
        linestyle=look.dashes,
        marker=look.marker or "none",
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.6,
        linewidth=1.7,
        elinewidth=1.0,
        capsize=2.2,
        zorder=3,
    )
    ax.set_xticks(range(len(xs)), [f"{x:,}" for x in xs])
    ax.set_xlim(-0.3, len(xs) - 0.7)


def reference(ax: Axes, point: Point, look: Look) -> None:
    """A level line for what does not depend on x."""
    ax.axhline(point.mean, color=look.colour, linestyle=look.dashes, linewidth=1.6, zorder=2)


def log_ticks(ax: Axes) -> None:
    """A logarithmic y axis with plain numbers at 1, 2 and 5."""
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.10g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.minorticks_off()


def save(figure: Figure, path: Path, kind: str) -> None:
    """Write a figure as "png" or "svg".

    Raises:
        EvaluationError: the file cannot be written.
    """

    def draw(beside: Path) -> None:
        if kind == "svg":
            with mpl.rc_context({"svg.hashsalt": "bluetree", "svg.fonttype": "path"}):
                figure.savefig(beside, format="svg", metadata={"Date": None})
        else:
            drawn = io.BytesIO()
            figure.savefig(drawn, format="png", metadata={"Software": "bluetree"})
            # So few colours that a palette holds them: a third of the size.
            palette = Image.open(drawn).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
            palette.save(beside, format="png", optimize=True)

    write_whole(path, draw)
