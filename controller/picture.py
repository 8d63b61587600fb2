"""Pictures of a placement: the tree, its blue and red switches, the congestion of every link.

The destination is on top, the leaves below with their racks of workers. The same input gives the
same bytes: no dates, no random ids, no state shared with other users of matplotlib.
"""

import warnings
from collections.abc import Collection, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path as Curve

from controller.picture_layout import (
    CHARACTER,
    MARGIN,
    SMALLEST_FONT,
    font_size,
    layout_of,
    number_text,
    shortened,
)
from topologies import Topology

__all__ = ["MOST_SWITCHES", "PictureError", "check_path", "draw"]

MOST_SWITCHES = 4096
"""The largest overlay that is drawn; beyond it a picture says less than the JSON."""

_BLUE, _RED, _UNAVAILABLE = "#2563a8", "#d6594c", "#e9b4ae"
_INK, _MUTED, _LINK, _PILL, _HOT = "#1f2933", "#5b6770", "#aab4bd", "#e4e8ec", "#e07b00"

_DPI = 160
_NAME_FONT = 6.5


class PictureError(ValueError):
    """A picture that cannot be drawn: one line that names the file or the tree, and the remedy."""


def check_path(path: Path) -> None:
    """Refuse a picture file whose kind is unknown or whose folder is missing.

    Raises:
        PictureError: the suffix is not .svg or .png, or there is no such folder.
    """
    if path.suffix.lower() not in (".svg", ".png"):
        raise PictureError(f"{path}: a picture ends in .svg or .png, not in {path.suffix!r}")
    if not path.parent.is_dir():
        raise PictureError(f"{path}: there is no folder {path.parent}, create it first")


def draw(
    topology: Topology,
    blue: Collection[str],
    congestion: Mapping[str, Fraction],
    path: Path,
) -> None:
    """Draw the overlay of a topology into an SVG or PNG file, by its suffix.

    Args:
        topology: the network; its overlay is drawn.
        blue: names of the blue switches.
        congestion: messages / rate of the link above every overlay switch, by its name.
        path: the file to write.

    Raises:
        PictureError: another suffix, a missing folder, more than MOST_SWITCHES switches, a name
            that is not in the overlay, a link without congestion, or a file that cannot be written.
    """
    check_path(path)
    overlay = topology.overlay
    if overlay.tree.n > MOST_SWITCHES:
        raise PictureError(
            f"{path}: {overlay.tree.n} switches are too many for a picture, the limit is "
            f"{MOST_SWITCHES}; leave it out and use --json"
        )
    for name in blue:
        if name not in congestion or name not in overlay.names:
            raise PictureError(f'{path}: blue switch "{name}" is not in the overlay')
    for name in overlay.names:
        if name not in congestion:
            raise PictureError(f'{path}: no congestion is given for the link of "{name}"')
    sketch = _Sketch(topology, frozenset(blue), tuple(congestion[name] for name in overlay.names))
    with warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; the warning would not help.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        _save(sketch.figure(), path)


def _save(figure: Figure, path: Path) -> None:
    try:
        if path.suffix.lower() == ".svg":
            # The salt makes the ids inside the file the same every time.
            with mpl.rc_context({"svg.hashsalt": "bluetree", "svg.fonttype": "path"}):
                figure.savefig(path, format="svg", metadata={"Date": None})
        else:
            figure.savefig(path, format="png", metadata={"Software": "bluetree"})
    except OSError as error:
        raise PictureError(f"{path}: cannot be written: {error.strerror or error}") from None


class _Sketch:
    """One picture being drawn."""

    def __init__(
        self, topology: Topology, blue: frozenset[str], congestion: tuple[Fraction, ...]
    ) -> None:
        self.topology = topology
        self.names = topology.overlay.names
        self.tree = topology.overlay.tree
        self.blue = blue
        self.congestion = congestion
        self.most = max(congestion)
        self.layout = layout_of(self.tree)
        self.ax: Axes

    def figure(self) -> Figure:
        """The finished figure."""
        layout = self.layout
        figure = Figure(figsize=(layout.width, layout.height), dpi=_DPI, facecolor="white")
        self.ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.ax.set_axis_off()
        self.ax.set_xlim(0, layout.width)
        self.ax.set_ylim(0, layout.height)
        self._links()
        self._switches()
        self._workers()
        self._names()
        self._numbers()
        self._destination()
        self._title()
        self._legend()
        return figure

    def _curve(self, v: int) -> tuple[Curve, tuple[float, float]]:
        """The link above v, and the point for its number, nearer the switch so that numbers
        keep the spacing of their row."""
        layout, above = self.layout, self.tree.parent[v]
        start = (layout.x[v], layout.y[v])
        end = (layout.x[above], layout.y[above]) if above >= 0 else (layout.x[0], layout.top)
        middle = (start[1] + end[1]) / 2
        points = [start, (start[0], middle), (end[0], middle), end]
        share = 0.3 if above >= 0 else 0.5
        weights = [
            (1 - share) ** 3,
            3 * (1 - share) ** 2 * share,
            3 * (1 - share) * share**2,
            share**3,
        ]
        place = (
            sum(w * p[0] for w, p in zip(weights, points, strict=True)),
            sum(w * p[1] for w, p in zip(weights, points, strict=True)),
        )
        return Curve(points, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]), place

    def _is_hot(self, v: int) -> bool:
        return self.congestion[v] == self.most > 0

    def _links(self) -> None:
        calm: list[PathPatch] = []
        hot: list[PathPatch] = []
        for v in range(self.tree.n):
            patch = PathPatch(self._curve(v)[0], fill=False)
            (hot if self._is_hot(v) else calm).append(patch)
        thin = 1.0 if self.tree.n > 60 else 1.5
        for patches, colour, width in ((calm, _LINK, thin), (hot, _HOT, 2.6 * thin)):
            collection = PatchCollection(
                patches, facecolor="none", edgecolor=colour, linewidth=width, capstyle="round"
            )
            self.ax.add_collection(collection)

    def _colour(self, v: int) -> str:
        if self.names[v] in self.blue:
            return _BLUE
        return _RED if self.tree.available[v] else _UNAVAILABLE

    def _switches(self) -> None:
        layout = self.layout
        circles = [Circle((layout.x[v], layout.y[v]), layout.radius(v)) for v in range(self.tree.n)]
        colours = [self._colour(v) for v in range(self.tree.n)]
        self.ax.add_collection(
            PatchCollection(circles, facecolor=colours, edgecolor="white", linewidth=1.2, zorder=3)
        )

    def _text(self, x: float, y: float, text: str, size: float, **style: Any) -> None:
        defaults: dict[str, Any] = {"color": _INK, "ha": "center", "va": "center", "zorder": 5}
        self.ax.text(x, y, text, fontsize=size, **(defaults | style))

    def _pill(self, x: float, y: float, text: str, size: float) -> None:
        """A grey rack with its number of workers, as in the paper's Fig. 1."""
        height = 1.55 * size / 72
        width = max(height, (len(text) * CHARACTER + 0.7) * size / 72)
        self.ax.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                zorder=4,
                boxstyle=f"round,pad=0,rounding_size={height * 0.25}",
                facecolor=_PILL,
                edgecolor="none",
            )
        )
        self._text(x, y - 0.004, text, size, color=_INK)

    def _workers(self) -> None:
        """Below a leaf, as the paper draws its racks; beside a switch that has others below it."""
        layout, tree = self.layout, self.tree
        longest = max(len(str(load)) for load in tree.load)
        for v in range(tree.n):
            if not tree.load[v]:
                continue
            text, r = str(tree.load[v]), layout.radius(v)
            if tree.children[v]:
                size = font_size(layout.gap[v] - 2 * r - 0.06, len(text) + 1, 8.0)
                half = (len(text) * CHARACTER + 0.7) * size / 144
                place = layout.x[v] + r + half + 0.02, layout.y[v] - 0.6 * r
            else:
                size = font_size(layout.gap[v] * 0.8, longest + 1.5, 9.0)
                place = layout.x[v], layout.y[v] - r - 1.1 * size / 72
            if size:
                self._pill(*place, text, size)

    def _names(self) -> None:
        """Inside the circle where the name fits, else beside it, below a leaf, or not at all."""
        layout = self.layout
        for v, name in enumerate(self.names):
            x, y, r = layout.x[v], layout.y[v], layout.radius(v)
            inside = font_size(2 * r * 0.86, len(name), 8.5)
            if inside >= 5.0:
                pale = self._colour(v) == _UNAVAILABLE
                self._text(x, y, name, inside, color=_INK if pale else "white")
            elif self.tree.children[v]:
                short = shortened(name, layout.gap[v] - 2 * r - 0.1, _NAME_FONT)
                self._text(x + r + 0.05, y + 0.5 * r, short, _NAME_FONT, ha="left", color=_MUTED)
            elif layout.gap[v] > 0.5:
                short = shortened(name, 0.95 * layout.gap[v], _NAME_FONT)
                pill = 0.26 if self.tree.load[v] else 0.0
                self._text(x, y - r - pill - 0.09, short, _NAME_FONT, color=_MUTED)

    def _numbers(self) -> None:
        """The congestion on every link whose row has room, and on the most congested anyway."""
        layout = self.layout
        longest: dict[float, int] = {}
        for v in range(self.tree.n):
            length = len(number_text(self.congestion[v]))
            longest[layout.y[v]] = max(longest.get(layout.y[v], 0), length)
        for v in range(self.tree.n):
            hot = self._is_hot(v)
            size = font_size(layout.gap[v] * 0.72, longest[layout.y[v]], 9.5)
            if not size and not hot:
                continue
            x, y = self._curve(v)[1]
            self._text(
                x,
                y,
                number_text(self.congestion[v]),
                max(size, SMALLEST_FONT),
                color="white" if hot else _INK,
                fontweight="bold" if hot else "normal",
                zorder=7 if hot else 6,
                bbox={
                    "boxstyle": "round,pad=0.22,rounding_size=0.25",
                    "facecolor": _HOT if hot else "white",
                    "edgecolor": "none",
                },
            )

    def _destination(self) -> None:
        x, y = self.layout.x[0], self.layout.top
        self.ax.add_patch(
            Rectangle((x - 0.12, y - 0.12), 0.24, 0.24, facecolor=_INK, edgecolor="none", zorder=3)
        )
        self._text(x + 0.22, y, "destination", 9, ha="left", color=_MUTED)

    def _title(self) -> None:
        top = self.layout.height
        workers = sum(self.tree.load)
        facts = [
            _counted(self.tree.n, "switch", "switches"),
            _counted(workers, "worker", "workers"),
            f"{len(self.blue)} blue",
            f"congestion {number_text(self.most)}",
        ]
        name = self.topology.name
        self._text(
            MARGIN,
            top - 0.36,
            name if len(name) <= 48 else name[:47] + "…",
            14,
            ha="left",
            fontweight="bold",
        )
        self._text(MARGIN, top - 0.62, "  ·  ".join(facts), 9.5, ha="left", color=_MUTED)

    def _legend(self) -> None:
        entries = [_dot(_BLUE, "blue, aggregates"), _dot(_RED, "red, forwards")]
        if not all(self.tree.available):
            entries.append(_dot(_UNAVAILABLE, "red, not available"))
        entries.append(_dot(_PILL, "workers", marker="s"))
        entries.append(Line2D([], [], color=_HOT, linewidth=3, label="most congested"))
        self.ax.legend(
            handles=entries,
            loc="lower left",
            bbox_to_anchor=(MARGIN - 0.1, 0.12),
            bbox_transform=self.ax.transData,
            ncols=len(entries),
            frameon=False,
            fontsize=8.3,
            labelcolor=_MUTED,
            handletextpad=0.6,
            handlelength=1.6,
            columnspacing=1.3,
            borderpad=0.0,
        )


def _dot(colour: str, label: str, marker: str = "o") -> Line2D:
    return Line2D(
        [],
        [],
        color=colour,
        label=label,
        linestyle="none",
        marker=marker,
        markersize=8,
        markeredgecolor="white",
    )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
