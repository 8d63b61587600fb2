"""Where the parts of a picture go: a tidy layout of the tree, and what fits where.

Every switch stands above the middle of its children, one row a level, and subtrees are pushed
together until they nearly touch (Reingold and Tilford, 1981). A rack of workers below a leaf takes
the place of a child, one beside an inner switch its place in the row. All lengths are inches, all
font sizes points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from controller.placement import Tree

__all__ = [
    "CHARACTER",
    "MARGIN",
    "SMALLEST_FONT",
    "Layout",
    "font_size",
    "layout_of",
    "link_curve",
    "number_texts",
    "point_of_link",
    "shortened",
]

MARGIN = 0.45
HEADER = 1.0
FOOTER = 0.8
LONGEST_SIDE = 98.0
_NARROWEST = 7.3
SMALLEST_FONT = 4.4
# Average width of a character of DejaVu Sans, as a share of the font size.
CHARACTER = 0.64
# Heights of a link's two inner control points, as shares of its own: it leaves the lower switch
# upright, with its number, and turns to the upper one above the numbers of its neighbours.
_BENDS = (0.5, 0.85)
# What a rack beside an inner switch takes of its row, in distances between neighbours.
_RACK = 0.62


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is, in inches from the lower left corner.

    Attributes:
        x, y: the middle of every switch.
        gap: for every switch, the distance of the nearest neighbours in its row, without the racks
            between them, at most two rows.
        pitch: what neighbours keep at least.
        step: from one row to the next.
        top: the height of the destination's middle.
    """

    width: float
    height: float
    x: tuple[float, ...]
    y: tuple[float, ...]
    gap: tuple[float, ...]
    pitch: float
    step: float
    top: float

    def radius(self, v: int) -> float:
        """Of the circle of a switch: as large as its row lets it be."""
        return min(0.21, 0.36 * self.gap[v], 0.22 * self.step)

    def rack_room(self) -> float:
        """The width that a rack beside an inner switch may have."""
        return _RACK * self.pitch


def layout_of(tree: Tree) -> Layout:
    """The layout of a tree; its size grows with its widest part and its levels."""
    depth = tree.depths()
    column, widest = _columns(tree)
    # Narrow trees get room for names, wide ones only as much as keeps switches apart.
    pitch = 1.25 if widest <= 6 else max(0.2, 9.2 / widest, min(0.42, 26 / widest))
    pitch = min(pitch, (LONGEST_SIDE - 2 * MARGIN) / widest)
    inner_width = max(_NARROWEST - 2 * MARGIN, widest * pitch)
    left = (2 * MARGIN + inner_width - (widest - 1) * pitch) / 2
    rows = max(depth)
    step = max(0.34, min(max(1.05, 0.38 * inner_width / (rows + 1)), 1.35, 26 / (rows + 1)))
    step = min(step, (LONGEST_SIDE - HEADER - FOOTER - 1) / (rows + 1))
    below = 0.55 if pitch >= 0.5 else 0.75
    top = FOOTER + below + (rows + 0.95) * step
    x = tuple(left + c * pitch for c in column)
    y = tuple(top - (d + 0.95) * step for d in depth)
    racks = [_RACK * pitch if tree.children[v] and tree.load[v] else 0.0 for v in range(tree.n)]
    gap = _gaps(x, racks, depth, min(inner_width, 2 * step))
    return Layout(2 * MARGIN + inner_width, top + HEADER, x, y, gap, pitch, step, top)


class _Outline:
    """The left and right edge of a subtree in each of its rows, the deepest row first."""

    __slots__ = ("_base", "_high", "_low")

    def __init__(self, rows: int) -> None:
        self._low = [0.0] * rows
        self._high = [0.0] * rows
        self._base = 0.0

    def place_beside(self, other: "_Outline") -> float:
        """How far right the other one begins to stay 1 away; then this is both of them."""
        rows = range(-1, -1 - min(len(self._low), len(other._low)), -1)
        apart = self._base - other._base + 1
        shift = max(self._high[i] - other._low[i] for i in rows) + apart
        base = other._base + shift
        # Only the rows that both have are touched, so that all of a tree takes linear time.
        if len(other._low) > len(self._low):
            for i in rows:
                other._low[i] = self._low[i] + self._base - base
            self._low, self._high, self._base = other._low, other._high, base
        else:
            for i in rows:
                self._high[i] = other._high[i] + base - self._base
        return shift

    def put_above(self, middle: float, extra: float) -> None:
        """Add a row of one switch above `middle`, which becomes 0."""
        self._base -= middle
        self._low.append(-self._base)
        self._high.append(extra - self._base)

    def right(self) -> float:
        """The rightmost edge."""
        return max(self._high) + self._base

    def left(self) -> float:
        """The leftmost edge."""
        return min(self._low) + self._base


def _columns(tree: Tree) -> tuple[list[float], float]:
    """The place of every switch from left to right, the leftmost at 0, and the width of all."""
    from_parent = [0.0] * tree.n
    outlines: dict[int, _Outline] = {}
    for v in tree.order:
        children = tree.children[v]
        if not children:
            outlines[v] = _Outline(2 if tree.load[v] else 1)
            continue
        outline = outlines.pop(children[0])
        places = [0.0]
        places += [outline.place_beside(outlines.pop(child)) for child in children[1:]]
        middle = places[-1] / 2
        for child, place in zip(children, places, strict=True):
            from_parent[child] = place - middle
        outline.put_above(middle, _RACK if tree.load[v] else 0.0)
        outlines[v] = outline
    column = [-outlines[0].left()] * tree.n
    for v in reversed(tree.order[:-1]):
        column[v] = column[tree.parent[v]] + from_parent[v]
    return column, 1 + outlines[0].right() - outlines[0].left()


def _gaps(
    x: Sequence[float], racks: Sequence[float], depth: Sequence[int], most: float
) -> tuple[float, ...]:
    """The smallest room between neighbours in the row of each switch, at most `most`."""
    rows: dict[int, list[tuple[float, float]]] = {}
    for v, d in enumerate(depth):
        rows.setdefault(d, []).append((x[v], racks[v]))
    gap = {
        d: min([most, *(b[0] - a[0] - a[1] for a, b in pairwise(sorted(places)))])
        for d, places in rows.items()
    }
    return tuple(gap[d] for d in depth)


def link_curve(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """The four control points of a link from a switch up to its parent, a cubic Bezier curve."""
    (x, y), rise = start, end[1] - start[1]
    return [start, *((x, y + share * rise) for share in _BENDS), end]


def point_of_link(
    start: tuple[float, float], end: tuple[float, float], share: float
) -> tuple[float, float]:
    """The point of a link at a share of its height, which grows along the curve."""
    low, high = 0.0, 1.0
    for _ in range(20):
        t = (low + high) / 2
        bends = 3 * (1 - t) * t * ((1 - t) * _BENDS[0] + t * _BENDS[1])
        low, high = (t, high) if bends + t**3 < share else (low, t)
    return start[0] + (end[0] - start[0]) * low**3, start[1] + share * (end[1] - start[1])


def number_texts(values: Sequence[Fraction]) -> list[str]:
    """The values in one style: exact fractions where all are short, else decimals.

    A decimal has two places, and "~" where it is rounded.
    """
    if all(len(str(value)) <= 5 for value in values):
        return [str(value) for value in values]
    return [_decimal(value) for value in values]


def _decimal(value: Fraction) -> str:
    if value.denominator == 1 and value < 10**6:
        return str(value)
    if value >= 10**6 or 0 < value < Fraction(1, 100):
        text = f"{float(value):.2g}"
    else:
        text = f"{float(value):.0f}" if value >= 1000 else f"{float(value):.2f}"
    return text if Fraction(text) == value else f"~{text}"


def font_size(room: float, characters: float, largest: float) -> float:
    """The size in points at which so many characters fit the room in inches; 0 where none does."""
    size = min(largest, room * 72 / (max(characters, 1) * CHARACTER))
    return size if size >= SMALLEST_FONT else 0.0


def shortened(text: str, room: float, size: float) -> str:
    """The text, its middle left out where it is too long; empty where hardly any of it fits."""
    most = int(room * 72 / (size * CHARACTER))
    if len(text) <= most:
        return text
    if most < 5:
        return ""
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"
