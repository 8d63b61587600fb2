"""Where the parts of a picture go: a tidy layout of the tree, and what fits where.

Leaves are evenly spaced in the order of the tree, every other switch stands above the middle of
its children, one row a level. All lengths are inches, all font sizes points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from controller.placement import Tree

__all__ = [
    "CHARACTER",
    "FOOTER",
    "HEADER",
    "MARGIN",
    "SMALLEST_FONT",
    "Layout",
    "font_size",
    "layout_of",
    "number_text",
    "shortened",
]

MARGIN = 0.45
HEADER = 1.0
FOOTER = 0.55
_NARROWEST = 7.3
SMALLEST_FONT = 4.4
# Average width of a character of DejaVu Sans, as a share of the font size.
CHARACTER = 0.64


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is, in inches from the lower left corner.

    Attributes:
        x, y: the middle of every switch.
        gap: for every switch, the room to its nearest neighbour in the row.
        top: the height of the destination's middle.
    """

    width: float
    height: float
    x: tuple[float, ...]
    y: tuple[float, ...]
    gap: tuple[float, ...]
    top: float

    def radius(self, v: int) -> float:
        """Of the circle of a switch: as large as its row lets it be."""
        return min(0.21, max(0.055, 0.36 * self.gap[v]))


def layout_of(tree: Tree) -> Layout:
    """The layout of a tree; its size grows with the number of leaves and of levels."""
    depth = tree.depths()
    slot = [0.0] * tree.n
    leaves = 0
    for v in tree.order:
        children = tree.children[v]
        if children:
            slot[v] = (slot[children[0]] + slot[children[-1]]) / 2
        else:
            slot[v] = float(leaves)
            leaves += 1
    # Few leaves get room for names, many only as much as keeps them apart.
    pitch = 1.25 if leaves <= 6 else max(0.2, 9.2 / leaves)
    inner_width = max(_NARROWEST - 2 * MARGIN, leaves * pitch)
    left = (2 * MARGIN + inner_width - (leaves - 1) * pitch) / 2
    rows = max(depth)
    step = max(0.34, min(max(1.05, 0.38 * inner_width / (rows + 1)), 1.35, 26 / (rows + 1)))
    top = FOOTER + 0.55 + (rows + 0.95) * step
    x = tuple(left + s * pitch for s in slot)
    y = tuple(top - (d + 0.95) * step for d in depth)
    return Layout(
        2 * MARGIN + inner_width, top + HEADER, x, y, _gaps(x, depth, step, inner_width), top
    )


def _gaps(
    x: Sequence[float], depth: Sequence[int], step: float, widest: float
) -> tuple[float, ...]:
    """The distance of each switch to its nearest neighbour in the row, at most two rows."""
    rows: dict[int, list[int]] = {}
    for v, d in enumerate(depth):
        rows.setdefault(d, []).append(v)
    gap = [min(widest, 2 * step)] * len(x)
    for members in rows.values():
        members.sort(key=x.__getitem__)
        for a, b in pairwise(members):
            distance = x[b] - x[a]
            gap[a], gap[b] = min(gap[a], distance), min(gap[b], distance)
    return tuple(gap)


def number_text(value: Fraction) -> str:
    """Exact where that is short (5, 7/3), else three digits."""
    return str(value) if len(str(value)) <= 5 else f"{float(value):.3g}"


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
