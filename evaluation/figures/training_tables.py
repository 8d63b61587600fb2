"""Times of trainings as tables: over all workers, by worker, by layer."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

from evaluation.settings import Cell, Record
from evaluation.sweep import Results
from evaluation.table import Point, Table
from evaluation.training import AGGREGATED, PLAIN

__all__ = [
    "NETWORKS",
    "_MEASURES",
    "by_layer",
    "by_worker",
    "gather",
    "statistics",
    "swept",
    "values",
]

NETWORKS = {PLAIN: "parameter server", AGGREGATED: f"{AGGREGATED} blue switch"}
_MEASURES = ("blocking", "waiting", "iteration")
_STATISTICS = ("mean", "best", "p99")
_Key: TypeAlias = tuple[tuple[str, ...], str, int]
_Row: TypeAlias = tuple[tuple[str, ...], int, Fraction]
_Transform: TypeAlias = Callable[[Cell, Sequence[Record]], Iterator[_Row]]


def gather(
    results: Results,
    panels: tuple[str, ...],
    x_name: str,
    transform: _Transform,
) -> Table:
    """Points of each scheme: `transform` gives (panel, x, milliseconds) of a cell."""
    gathered: dict[_Key, list[Fraction]] = {}
    for cell, records in results.items():
        for panel, x, value in transform(cell, records):
            gathered.setdefault((panel, cell.text("scheme"), x), []).append(value)
    points = (Point(*key, tuple(values)) for key, values in gathered.items())
    return Table(panels, x_name, "milliseconds", tuple(points))


def values(records: Sequence[Record], series: str) -> list[Fraction]:
    """The values of a series."""
    return [record.value for record in records if record.series == series]


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def statistics(cell: Cell, records: Sequence[Record]) -> Iterator[_Row]:
    """Mean, least and 99th percentile (nearest rank) over workers and iterations."""
    place = (cell.text("model"), NETWORKS[cell.number("budget")])
    for measure in _MEASURES:
        found = sorted(values(records, measure))
        rank = -(-99 * len(found) // 100) - 1
        for statistic, value in zip(
            _STATISTICS, (_mean(found), found[0], found[rank]), strict=True
        ):
            yield (*place, measure, statistic), cell.number("jobs"), value


def by_worker(cell: Cell, records: Sequence[Record]) -> Iterator[_Row]:
    """Mean blocking time of each worker."""
    panel = (cell.text("model"), NETWORKS[cell.number("budget")], str(cell.number("jobs")))
    blocking = [record for record in records if record.series == "blocking"]
    for worker in sorted({record.x // 100 for record in blocking}):
        yield panel, worker, _mean([r.value for r in blocking if r.x // 100 == worker])


def by_layer(cell: Cell, records: Sequence[Record]) -> Iterator[_Row]:
    """Mean latency of each layer's tensor."""
    panel = (cell.text("model"), NETWORKS[cell.number("budget")], str(cell.number("jobs")))
    for record in records:
        if record.series == "latency":
            yield panel, record.x, record.value


def swept(setting: str) -> _Transform:
    """Means of what was measured, and the first repeat's facts, by one setting of the cells."""

    def transform(cell: Cell, records: Sequence[Record]) -> Iterator[_Row]:
        x = cell.number(setting)
        for measure in _MEASURES:
            found = values(records, measure)
            if found:
                yield (measure,), x, _mean(found)
        for fact in ("correct", "resent", "dropped"):
            yield (fact,), x, values(records, fact)[0]

    return transform
