"""Measured values as tables: means and deviations over the repeats, and CSV."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from evaluation.settings import Cell, Record
from evaluation.sweep import Results

__all__ = ["Point", "Table", "ratio", "tabulate"]

Transform = Callable[[Cell, Sequence[Record]], Iterable[Record]]


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a figure: a value for every repeat.

    Attributes:
        panel: where in the figure, one word or number for each name of the table's panels.
        series: which line.
        x: the place on the x axis.
        values: one exact value a repeat, in order of the repeats.
    """

    panel: tuple[str, ...]
    series: str
    x: int
    values: tuple[Fraction, ...]

    @property
    def mean(self) -> float:
        """The mean over the repeats."""
        return float(sum(self.values, Fraction(0)) / len(self.values))

    @property
    def deviation(self) -> float:
        """The sample standard deviation over the repeats; 0 for one repeat."""
        if len(self.values) < 2:
            return 0.0
        mean = sum(self.values, Fraction(0)) / len(self.values)
        squares = sum(((value - mean) ** 2 for value in self.values), Fraction(0))
        return math.sqrt(squares / (len(self.values) - 1))


@dataclass(frozen=True, slots=True)
class Table:
    """What a figure shows.

    Attributes:
        panels: what tells its panels apart, such as ("load", "rates").
        x_name: what the x axis is.
        value_name: what the y axis is.
        points: all points, in the order of the figure.
    """

    panels: tuple[str, ...]
    x_name: str
    value_name: str
    points: tuple[Point, ...]

    def line(self, series: str, *panel: str) -> list[Point]:
        """The points of a line, by rising x."""
        found = [p for p in self.points if p.series == series and p.panel == panel]
        return sorted(found, key=lambda p: p.x)

    def at(self, series: str, x: int, *panel: str) -> Point:
        """One point; KeyError where the table has none."""
        for point in self.points:
            if point.series == series and point.x == x and point.panel == panel:
                return point
        raise KeyError((series, x, panel))

    def csv(self) -> str:
        """A row a point: mean, sample standard deviation, least and most over the repeats."""
        head = [*self.panels, "series", self.x_name, "repeats", "mean", "deviation", "min", "max"]
        return _csv(
            head,
            (
                [*p.panel, p.series, p.x, len(p.values)]
                + [_number(v) for v in (p.mean, p.deviation, min(p.values), max(p.values))]
                for p in self.points
            ),
        )

    def runs_csv(self) -> str:
        """A row a repeat of a point, with the exact value."""
        head = [*self.panels, "series", self.x_name, "repeat", self.value_name, "exact"]
        return _csv(
            head,
            (
                [*p.panel, p.series, p.x, repeat, _number(value), str(value)]
                for p in self.points
                for repeat, value in enumerate(p.values)
            ),
        )


def tabulate(
    results: Results,
    experiment: str,
    panels: tuple[str, ...],
    names: tuple[str, str],
    transform: Transform,
) -> Table:
    """Gather the repeats of an experiment.

    Args:
        results: of all cells.
        experiment: whose cells to take.
        panels: the settings that tell the panels of the figure apart.
        names: of the x axis and of the value.
        transform: what to show of a cell's records, such as their ratio to another series.
    """
    gathered: dict[tuple[tuple[str, ...], str, int], list[Fraction]] = {}
    for cell, records in results.items():
        if cell.experiment != experiment:
            continue
        panel = tuple(str(dict(cell.setting)[name]) for name in panels)
        for record in transform(cell, records):
            gathered.setdefault((panel, record.series, record.x), []).append(record.value)
    points = (Point(*key, tuple(values)) for key, values in gathered.items())
    return Table(panels, *names, tuple(points))


def ratio(
    records: Sequence[Record], series: str, base: str, base_x: int | None = None
) -> list[Record]:
    """A series divided by another of the same cell, at the same x or at `base_x`."""
    below = {record.x: record.value for record in records if record.series == base}
    return [
        Record(series, record.x, record.value / below[record.x if base_x is None else base_x])
        for record in records
        if record.series == series
    ]


def _number(value: float | Fraction) -> str:
    return f"{float(value):.9g}"


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
