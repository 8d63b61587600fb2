"""Pictures of a placement: the tree, its blue and red switches, the congestion of every link.

The destination is on top, the leaves below with their racks of workers. Where a tree is so wide
that names and numbers do not fit, blue switches and the most congested links keep theirs. The same
input gives the same bytes: no dates, no random ids, no state shared with other users of matplotlib.
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
    link_curve,
    number_texts,
    point_of_link,
    shortened,
)
from topologies import Topology

__all__ = ["MOST_SWITCHES", "PictureError", "check_path", "draw"]

MOST_SWITCHES = 4096
"""The largest overlay that is drawn; beyond it a picture says less than the JSON."""

_BLUE, _RED, _UNAVAILABLE = "#2563a8", "#d6594c", "#e9b4ae"
_INK, _MUTED, _LINK, _PILL, _HOT = "#1f2933", "#5b6770", "#aab4bd", "#e4e8ec", "#e07b00"

_DPI = 160
_MOST_PIXELS = 1.2e8
_NAME_FONT = 6.5

_TEXT: dict[str, Any] = {
    "color": _INK,
    "ha": "center",
    "va": "center",
    "zorder": 5,
    "parse_math": False,
}


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
    *,
    numbers: str = "congestion",
) -> None:
    """Draw the overlay of a topology into an SVG or PNG file, by its suffix.

    Args:
        topology: the network; its overlay is drawn.
        blue: names of the blue switches.
        congestion: messages / rate of the link above every overlay switch, by its name.
        path: the file to write.
        numbers: what the congestion is called in the legend, such as "measured congestion".

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
    sketch = _Sketch(
        topology, frozenset(blue), tuple(congestion[name] for name in overlay.names), numbers
    )
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
            software = {"Software": "bluetree"}
            figure.savefig(path, format="png", dpi=figure.dpi, metadata=software)
    except OSError as error:
        raise PictureError(f"{path}: cannot be written: {error.strerror or error}") from None


class _Sketch:
    """One picture being drawn."""

    def __init__(
        self,
        topology: Topology,
        blue: frozenset[str],
        congestion: tuple[Fraction, ...],
        numbers: str,
    ) -> None:
        self.topology = topology
        self.names = topology.overlay.names
        self.tree = topology.overlay.tree
        self.blue = blue
        self.congestion = congestion
        self.most = max(congestion)
        self.number = number_texts(congestion)
        self.numbers = numbers
        self.layout = layout_of(self.tree)
        self.below_racks = 0.0
        leaves = (
            name for name, below in zip(self.names, self.tree.children, strict=True) if not below
        )
        self.longest_leaf = max(map(len, leaves))
        self.forced: set[tuple[int, int]] = set()
        self.ax: Axes

    def figure(self) -> Figure:
        """The finished figure."""
        layout = self.layout
        area = layout.width * layout.height
        dpi = min(_DPI, (_MOST_PIXELS / area) ** 0.5)
        figure = Figure(figsize=(layout.width, layout.height), dpi=dpi, facecolor="white")
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

    def _ends(self, v: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """The lower and the upper end of the link above v."""
        layout, above = self.layout, self.tree.parent[v]
        end = (layout.x[above], layout.y[above]) if above >= 0 else (layout.x[0], layout.top)
        return (layout.x[v], layout.y[v]), end

    def _curve(self, v: int) -> Curve:
        codes = [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
        return Curve(link_curve(*self._ends(v)), codes)

    def _point_of_number(self, v: int, size: float) -> tuple[float, float]:
        """Where the link above v is just clear of the circle of v, but not above its middle."""
        start, end = self._ends(v)
        rise = self.layout.radius(v) + 0.035 + 0.75 * size / 72
        return point_of_link(start, end, min(0.5, rise / (end[1] - start[1])) if v else 0.5)

    def _is_hot(self, v: int) -> bool:
        return self.congestion[v] == self.most > 0

    def _links(self) -> None:
        calm: list[PathPatch] = []
        hot: list[PathPatch] = []
        for v in range(self.tree.n):
            patch = PathPatch(self._curve(v), fill=False)
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
        edge = min(1.2, 10 * layout.pitch)
        self.ax.add_collection(
            PatchCollection(circles, facecolor=colours, edgecolor="white", linewidth=edge, zorder=3)
        )

    def _text(self, x: float, y: float, text: str, size: float, **style: Any) -> None:
        self.ax.text(x, y, text, fontsize=size, **(_TEXT | style))

    def _workers(self) -> None:
        """Grey racks, as in the paper's Fig. 1: below a leaf, beside a switch that has others."""
        layout, tree = self.layout, self.tree
        longest = max(len(str(load)) for load in tree.load)
        below = font_size(min(layout.pitch, 0.8) * 0.72, longest + 1, 9.0)
        below = below if below * 1.6 / 72 < 0.3 * layout.step else 0.0
        racks = []
        for v in range(tree.n):
            if not tree.load[v]:
                continue
            text, r = str(tree.load[v]), layout.radius(v)
            beside = font_size(layout.rack_room() - 0.04, len(text) + 1, 8.0)
            size = beside if tree.children[v] else below
            if not size:
                continue
            height = 1.5 * size / 72
            width = max(height, (len(text) * CHARACTER + 0.6) * size / 72)
            if tree.children[v]:
                x, y = layout.x[v] + r + width / 2 + 0.02, layout.y[v] - 0.6 * r
            else:
                x, y = layout.x[v], layout.y[v] - r - height / 2 - 0.03
            racks.append(_rack(x, y, width, height))
            self._text(x, y - 0.004, text, size)
        self.ax.add_collection(PatchCollection(racks, facecolor=_PILL, edgecolor="none", zorder=4))
        self.below_racks = 1.5 * below / 72 + 0.03 if below else 0.0

    def _names(self) -> None:
        """Inside the circle where the name fits, else below a leaf or beside another switch."""
        layout = self.layout
        for v, name in enumerate(self.names):
            inside = font_size(2 * layout.radius(v) * 0.86, len(name), 8.5)
            if inside >= 5.0:
                pale = self._colour(v) == _UNAVAILABLE
                ink = _INK if pale else "white"
                self._text(layout.x[v], layout.y[v], name, inside, color=ink)
            elif self.tree.children[v]:
                self._name_beside(v, name)
            else:
                self._name_below(v, name)

    def _name_below(self, v: int, name: str) -> None:
        """The name of a leaf, upright where not all names of leaves fit in a line."""
        layout, is_blue = self.layout, self.names[v] in self.blue
        x, y = layout.x[v], layout.y[v] - layout.radius(v) - 0.04
        y -= self.below_racks if self.tree.load[v] else 0.0
        style = {"color": _BLUE, "fontweight": "bold"} if is_blue else {"color": _MUTED}
        if self.longest_leaf * CHARACTER * _NAME_FONT / 72 <= 0.95 * layout.pitch:
            self._text(x, y, name, _NAME_FONT, va="top", **style)
            return
        if layout.pitch < 0.13 and not (is_blue and self._is_free(x, y)):
            return
        room = max(0.4, 0.55 * layout.step)
        self._text(x, y, shortened(name, room, 5.5), 5.5, va="top", rotation=90, zorder=8, **style)

    def _name_beside(self, v: int, name: str) -> None:
        """The name of a switch with others below it: of a blue one on top of its links."""
        layout = self.layout
        x, y, r = layout.x[v], layout.y[v], layout.radius(v)
        short = shortened(name, layout.gap[v] - 2 * r - 0.1, _NAME_FONT)
        if short == name or (short and name not in self.blue):
            self._text(x + r + 0.05, y + 0.5 * r, short, _NAME_FONT, ha="left", color=_MUTED)
        elif name in self.blue and self._is_free(x, y):
            style: dict[str, Any] = {"va": "top", "color": _BLUE, "fontweight": "bold", "zorder": 8}
            box = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none"}
            short = shortened(name, 0.8, SMALLEST_FONT)
            self._text(x, y - r - 0.01, short, SMALLEST_FONT, bbox=box, **style)

    def _is_free(self, x: float, y: float) -> bool:
        """Whether no name or number was put near here though it had no room; then one is."""
        place = round(x / 0.1), round(y / 0.07)
        near = {(place[0] + a, place[1] + b) for a in (-1, 0, 1) for b in (-1, 0, 1)}
        if min(self.layout.pitch, self.layout.step) < 0.13 and near & self.forced:
            return False
        self.forced.add(place)
        return True

    def _numbers(self) -> None:
        """The congestion on every link whose row has room, and on the most congested anyway."""
        layout = self.layout
        longest: dict[float, int] = {}
        for v in range(self.tree.n):
            length = len(self.number[v])
            longest[layout.y[v]] = max(longest.get(layout.y[v], 0), length)
        for v in range(self.tree.n):
            hot = self._is_hot(v)
            tallest = min(9.5, 0.2 * layout.step * 72)
            room = layout.gap[v] * 0.8
            # A row has one size, unless its longest number has no room and others have.
            size = font_size(room, longest[layout.y[v]] + 0.5, tallest)
            size = size or font_size(room, len(self.number[v]), min(tallest, 5.0))
            x, y = self._point_of_number(v, max(size, SMALLEST_FONT))
            if not size and not (hot and self._is_free(x, y)):
                continue
            self._text(
                x,
                y,
                self.number[v],
                max(size, SMALLEST_FONT),
                color="white" if hot else _INK,
                fontweight="bold" if hot else "normal",
                zorder=7 if hot else 6,
                bbox={
                    "boxstyle": "round,pad=0.16,rounding_size=0.25",
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
        top, physical = self.layout.height, len(self.topology.switches)
        workers = sum(self.tree.load)
        facts = [
            f"{self.tree.n:,} of {physical:,} switches"
            if physical > self.tree.n
            else _counted(self.tree.n, "switch", "switches"),
            _counted(workers, "worker", "workers"),
            f"{len(self.blue)} blue",
            f"congestion {self.number[self.congestion.index(self.most)]}",
        ]
        name = self.topology.name
        name = name if len(name) <= 48 else name[:47] + "…"
        self._text(MARGIN, top - 0.36, name, 14, ha="left", fontweight="bold")
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
            bbox_to_anchor=(MARGIN - 0.1, 0.34),
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
        told = f"on each link: its {self.numbers}, messages a chunk over rate"
        self._text(MARGIN, 0.22, told, 8.3, ha="left", color=_MUTED)


def _rack(x: float, y: float, width: float, height: float) -> FancyBboxPatch:
    corner = f"round,pad=0,rounding_size={height * 0.25}"
    return FancyBboxPatch((x - width / 2, y - height / 2), width, height, boxstyle=corner)


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
