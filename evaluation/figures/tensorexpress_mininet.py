"""TensorExpress over Mininet, on bmv2 or softswitch processes: blocking time in real time."""

from collections.abc import Iterator
from statistics import mean

from matplotlib.figure import Figure

from evaluation.corpus import Text
from evaluation.figures.tensorexpress import LOOKS, PAPER_BEST, PAPER_MEAN
from evaluation.figures.training_tables import (
    NETWORKS,
    by_layer,
    by_worker,
    gather,
    statistics,
    values,
)
from evaluation.output import Claim, Output, listed
from evaluation.settings import Cell, Settings
from evaluation.style import Sheet
from evaluation.sweep import Results
from evaluation.table import Table
from evaluation.training import AGGREGATED, PLAIN, SCHEMES, WORKERS
from evaluation.training_mininet import (
    FACTOR,
    ITERATIONS,
    MESSAGES_PER_SECOND,
    STRETCH,
    WINDOW,
)
from evaluation.training_mininet import cells as mininet_cells
from traffic.training import MODELS

__all__ = ["OverMininet"]

_BAR = 0.16


class OverMininet:
    """The evaluation on one target."""

    def __init__(self, target: str) -> None:
        self.target = target

    def cells(self, settings: Settings, text: Text) -> list[Cell]:
        """The cells that the figure needs."""
        return mininet_cells(settings, self.target)

    def build(self, results: Results, settings: Settings, text: Text) -> Output:
        """The figure from its results."""
        trained = {
            cell: found
            for cell, found in results.items()
            if cell.experiment == "training-mininet" and cell.text("target") == self.target
        }
        name = f"tensorexpress-{self.target}"
        panels = ("model", "network", "measure", "statistic")
        table = gather(trained, panels, "jobs", statistics)
        workers = gather(trained, ("model", "network", "jobs"), "worker", by_worker)
        layers = gather(trained, ("model", "network", "jobs"), "layer", by_layer)
        return Output(
            name,
            f"Training with a parameter server over Mininet, {self.target}",
            f"{WORKERS} workers, two switches, a process each, real time. Each priority queue has "
            f"room for all and lets go {MESSAGES_PER_SECOND} packets a second; sizes are divided "
            f"by {FACTOR:,}, time is stretched {STRETCH:.1f} times, {WINDOW} messages of each "
            f"tensor are unanswered. {ITERATIONS - 1} iterations, after one that does not count.",
            {name: table, f"{name}-workers": workers, f"{name}-layers": layers},
            {name: self._picture(table, settings)},
            list(_claims(table, workers, trained, settings)),
            list(_findings(table, settings)),
        )

    def _picture(self, table: Table, settings: Settings) -> Figure:
        sheet = Sheet(1, len(NETWORKS), height=2.4)
        sheet.title(
            f"Network blocking time over Mininet, {self.target}",
            f"{WORKERS} workers, milliseconds, mean over workers and iterations; lower is better",
        )
        sheet.legend(list(LOOKS.values()))
        for ax, network in zip(sheet.panels[0], NETWORKS.values(), strict=True):
            sheet.heading(ax, network)
            for i, (scheme, look) in enumerate(LOOKS.items()):
                heights = [_blocking(table, scheme, model, network) for model in settings.models]
                places = [x + (i - 2) * _BAR for x in range(len(heights))]
                ax.bar(places, heights, _BAR, color=look.colour)
            titles = [MODELS[model].title for model in settings.models]
            ax.set_xticks(range(len(titles)), titles)
        sheet.axes("", "blocking time, ms")
        return sheet.figure


def _blocking(table: Table, scheme: str, model: str, network: str) -> float:
    return table.at(scheme, 1, model, network, "blocking", "mean").mean


def _reduction(table: Table, scheme: str, model: str) -> float:
    network = NETWORKS[PLAIN]
    ratio = _blocking(table, scheme, model, network) / _blocking(table, "fifo", model, network)
    return 100 * (1 - ratio)


def _claims(table: Table, workers: Table, trained: Results, settings: Settings) -> Iterator[Claim]:
    reductions = [_reduction(table, "express", model) for model in settings.models]
    yield Claim(
        f"Network blocking time falls by {PAPER_MEAN} % on average (read as: over the models, "
        "parameter server, against FIFO).",
        mean(reductions) >= PAPER_MEAN,
        f"{mean(reductions):.0f} %; "
        + listed(
            f"{MODELS[model].title} {reduction:.0f} %"
            for model, reduction in zip(settings.models, reductions, strict=True)
        )
        + ".",
    )
    best = max(
        100 * (1 - express.mean / fifo.mean)
        for model in settings.models
        for express, fifo in zip(
            workers.line("express", model, NETWORKS[PLAIN], "1"),
            workers.line("fifo", model, NETWORKS[PLAIN], "1"),
            strict=True,
        )
    )
    yield Claim(
        f"It falls by {PAPER_BEST} % at the worker that gains most.",
        best >= PAPER_BEST,
        f"{best:.0f} %.",
    )
    correct = [values(records, "correct")[0] == 1 for records in trained.values()]
    yield Claim(
        "Every sum of every training is exact, aggregated and prioritised or not.",
        all(correct),
        f"{sum(correct)} of {len(correct)} trainings.",
    )


def _findings(table: Table, settings: Settings) -> Iterator[str]:
    for network in (NETWORKS[PLAIN], NETWORKS[AGGREGATED]):
        for measure in ("blocking", "iteration"):
            yield f"{measure.capitalize()} time in ms, {network}: " + listed(
                f"{MODELS[model].title} "
                + ", ".join(
                    f"{scheme} {table.at(scheme, 1, model, network, measure, 'mean').mean:.0f}"
                    for scheme in SCHEMES
                )
                for model in settings.models
            ) + "."  # fmt: skip
    yield (
        "A priority queue of these switches has a rate of its own, so eight of them let more go "
        "than the one of FIFO, and part of the gain is that. On the fabric a port has one rate."
    )
