"""TensorExpress: tensors needed next go first, against FIFO and ordering at the hosts."""

from collections.abc import Callable, Iterator, Mapping

from matplotlib.figure import Figure

from evaluation.corpus import Text
from evaluation.figures.training_tables import (
    NETWORKS,
    by_layer,
    by_worker,
    gather,
    statistics,
    swept,
    values,
)
from evaluation.output import Claim, Output, listed
from evaluation.settings import Cell, Settings
from evaluation.style import INK, Look, Sheet, plot
from evaluation.sweep import Results
from evaluation.table import Table
from evaluation.training import (
    AGGREGATED,
    BATCH,
    DEPTHS,
    FACTOR,
    ITERATIONS,
    JITTER_PERCENT,
    LOSSES,
    MULTIPLICATIONS_PER_SECOND,
    PLAIN,
    RATE_GBPS,
    RATES_GBPS,
    SCHEMES,
    UNLIMITED,
    WINDOW,
    WINDOWS,
    WORKERS,
)
from evaluation.training import cells as training_cells
from traffic.training import MODELS

__all__ = ["LOOKS", "PAPER_BEST", "PAPER_MEAN", "build", "cells"]

PAPER_MEAN, PAPER_BEST, _PAPER_LATENCY = 46, 59, 2.5
LOOKS: Mapping[str, Look] = {
    "fifo": Look(SCHEMES["fifo"].title, "#d6594c", "", "--"),
    "host": Look(SCHEMES["host"].title, "#e07b00", "^"),
    "express": Look(SCHEMES["express"].title, "#2563a8", "o"),
    "express-host": Look(SCHEMES["express-host"].title, "#2a9d6f", "s"),
    "ahead": Look(SCHEMES["ahead"].title, "#8e5bb5", "D"),
}


def cells(settings: Settings, text: Text) -> list[Cell]:
    """The cells that the figure needs."""
    return training_cells(settings)


def build(results: Results, settings: Settings, text: Text) -> Output:
    """The figure from its results."""
    trained = {cell: found for cell, found in results.items() if cell.experiment == "training"}
    main = {cell: found for cell, found in trained.items() if cell.text("sweep") == "none"}
    table = gather(main, ("model", "network", "measure", "statistic"), "jobs", statistics)
    workers = gather(main, ("model", "network", "jobs"), "worker", by_worker)
    layers = gather(main, ("model", "network", "jobs"), "layer", by_layer)
    tables = {
        "tensorexpress": table,
        "tensorexpress-workers": workers,
        "tensorexpress-layers": layers,
    }
    pictures = {"tensorexpress": _picture(table, settings)}
    sweeps = {
        name: gather(
            {cell: found for cell, found in trained.items() if cell.text("sweep") == name},
            ("measure",),
            unit,
            swept(setting),
        )
        for name, unit, setting in (
            ("rate", "Gbit/s", "gbps"),
            ("window", "messages", "window"),
            ("depth", "packets", "depth"),
            ("loss", "lost of a million", "loss"),
        )
        if settings.sweeps
    }
    tables |= {f"tensorexpress-{name}": swept for name, swept in sweeps.items()}
    if sweeps:
        pictures["tensorexpress-sweeps"] = _sweeps_picture(sweeps)
    return Output(
        "tensorexpress",
        "Training with a parameter server: tensors needed next go first",
        _setting(settings),
        tables,
        pictures,
        list(_claims(table, workers, layers, main, settings)),
        list(_findings(table, sweeps, trained, settings)),
    )


def _setting(settings: Settings) -> str:
    speed = 2 * MULTIPLICATIONS_PER_SECOND / 1e12
    repeats = min(settings.repeats, settings.trainings)
    return (
        f"{WORKERS} workers a job, one shared link of {RATE_GBPS} Gbit/s to the servers, ten times "
        f"that elsewhere; batches of {BATCH}, {speed:.0f} TFLOP/s a worker, whose time of "
        f"computation varies by {JITTER_PERCENT} %; {WINDOW} MiB of each tensor unanswered; eight "
        f"queues a port, none ever full. Sizes and rates are divided by {FACTOR:,}. {repeats} "
        f"{'repeat' if repeats == 1 else 'repeats'} of {ITERATIONS - 1} iterations, after one that "
        "does not count. All packets go through the compiled P4 program."
    )


# --- pictures -----------------------------------------------------------------------------------


def _picture(table: Table, settings: Settings) -> Figure:
    sheet = Sheet(2, len(settings.models), height=1.9)
    sheet.title(
        "Network blocking time: what the next iteration waits for",
        f"{WORKERS} workers a job, milliseconds, mean over workers and iterations; lower is better",
    )
    sheet.legend(list(LOOKS.values()))
    sheet.axes("jobs on the link", "blocking time, ms")
    for row, network in zip(sheet.panels, NETWORKS.values(), strict=True):
        for ax, model in zip(row, settings.models, strict=True):
            sheet.heading(ax, f"{MODELS[model].title}, {network.removeprefix('parameter ')}")
            for i, (scheme, look) in enumerate(LOOKS.items()):
                line = table.line(scheme, model, network, "blocking", "mean")
                plot(ax, line, look, (1, 2), 0.03 * (i - 2))
            ax.set_ylim(bottom=0)
    return sheet.figure


def _sweeps_picture(sweeps: Mapping[str, Table]) -> Figure:
    sheet = Sheet(1, 3, height=2.4)
    sheet.title(
        "Network blocking time by load, by window and by depth of the queues",
        "milliseconds, on a logarithmic scale; lower is better",
    )
    sheet.legend(list(LOOKS.values()))
    for ax, (name, heading, xs, label) in zip(
        sheet.panels[0],
        (
            ("rate", "Shared link, two jobs", RATES_GBPS, "Gbit/s"),
            ("window", "Window of a tensor, one job", WINDOWS, "MiB unanswered"),
            ("depth", "Depth of a queue, two jobs", DEPTHS, "MiB"),
        ),
        strict=True,
    ):
        sheet.heading(ax, heading)
        for scheme, look in LOOKS.items():
            line = sweeps[name].line(scheme, "blocking")
            if line:
                plot(ax, line, look, xs)
        ax.set_xticklabels(["any" if x == UNLIMITED else f"{x:,}" for x in xs])
        ax.set_yscale("log")
        ax.set_xlabel(label, color=INK, fontsize=8.5)
    return sheet.figure


# --- text ---------------------------------------------------------------------------------------


def _blocking(table: Table, scheme: str, model: str, jobs: int, network: int = PLAIN) -> float:
    return table.at(scheme, jobs, model, NETWORKS[network], "blocking", "mean").mean


def _reduction(table: Table, scheme: str, model: str, jobs: int, network: int = PLAIN) -> float:
    """By how many percent a scheme's mean blocking time is below FIFO's."""
    fifo = _blocking(table, "fifo", model, jobs, network)
    return 100 * (1 - _blocking(table, scheme, model, jobs, network) / fifo)


def _claims(
    table: Table, workers: Table, layers: Table, main: Results, settings: Settings
) -> Iterator[Claim]:
    subject = "vgg16" if "vgg16" in settings.models else settings.models[0]
    title = MODELS[subject].title
    yield Claim(
        f"Network blocking time falls by {PAPER_MEAN} % on average (read as: {title}, one job of "
        f"{WORKERS} workers with a parameter server, against FIFO).",
        _reduction(table, "express", subject, 1) >= PAPER_MEAN,
        f"{title}: {_reduction(table, 'express', subject, 1):.0f} %. "
        + _by_model(settings, lambda model: f"{_reduction(table, 'express', model, 1):.0f} %")
        + " with one job, "
        + _by_model(settings, lambda model: f"{_reduction(table, 'express', model, 2):.0f} %")
        + " with two.",
    )
    best = max(_worker_reductions(workers, subject))
    yield Claim(
        f"It falls by {PAPER_BEST} % at the worker that gains most (the same setting).",
        best >= PAPER_BEST,
        f"{best:.0f} %; the least that a worker gains is "
        f"{min(_worker_reductions(workers, subject)):.0f} %.",
    )
    ratio, layer = max(_latency_ratios(layers, subject))
    yield Claim(
        f"Latency improves by up to {_PAPER_LATENCY} times (read as: of a layer's tensor, from its "
        "gradient to its sum; the same setting).",
        ratio >= _PAPER_LATENCY,
        f"{ratio:.1f} times, layer {layer}.",
    )
    yield Claim(
        f"With two jobs TensorExpress reduces blocking time by more than host-side ordering alone "
        f"({title}).",
        _reduction(table, "express", subject, 2) > _reduction(table, "host", subject, 2),
        f"{_reduction(table, 'express', subject, 2):.1f} % and "
        f"{_reduction(table, 'host', subject, 2):.1f} % below FIFO.",
    )
    correct = [values(records, "correct")[0] == 1 for records in main.values()]
    yield Claim(
        "Every sum of every training is exact, aggregated and prioritised or not.",
        all(correct),
        f"{sum(correct)} of {len(correct)} trainings.",
    )


def _by_model(settings: Settings, value: Callable[[str], str]) -> str:
    return listed(f"{MODELS[model].title} {value(model)}" for model in settings.models)


def _worker_reductions(workers: Table, model: str) -> list[float]:
    panel = (model, NETWORKS[PLAIN], "1")
    fifo = {point.x: point.mean for point in workers.line("fifo", *panel)}
    express = workers.line("express", *panel)
    return [100 * (1 - point.mean / fifo[point.x]) for point in express]


def _latency_ratios(layers: Table, model: str) -> list[tuple[float, int]]:
    panel = (model, NETWORKS[PLAIN], "1")
    fifo = {point.x: point.mean for point in layers.line("fifo", *panel)}
    express = layers.line("express", *panel)
    return [(fifo[point.x] / point.mean, point.x) for point in express]


def _findings(
    table: Table, sweeps: Mapping[str, Table], trained: Results, settings: Settings
) -> Iterator[str]:
    yield f"Blocking time in ms, one job: {_all_blocking(table, settings, 1)}."
    yield f"Blocking time in ms, two jobs: {_all_blocking(table, settings, 2)}."
    for model in settings.models:
        yield f"{MODELS[model].title}, the gain of each alone and of both: " + _both(table, model)
    yield "Iteration time in ms, two jobs: " + _by_model(
        settings,
        lambda model: ", ".join(
            f"{scheme} "
            f"{table.at(scheme, 2, model, NETWORKS[PLAIN], 'iteration', 'mean').mean:.0f}"
            for scheme in SCHEMES
        ),
    ) + "."  # fmt: skip
    if sweeps:
        window = sweeps["window"]
        at = {s: window.at(s, UNLIMITED, "blocking").mean for s in ("fifo", "express", "ahead")}
        yield (
            "Whole tensors at once instead of a window: blocking time "
            + ", ".join(f"{scheme} {value:.1f}" for scheme, value in at.items())
            + " ms. What is queued while its layer is the lowest stays in the highest queue, "
            "before the layers that follow; a window that opens ahead keeps it free."
        )
        exact = sweeps["loss"].line("express", "correct")
        lost = sweeps["loss"].line("express", "resent")
        yield (
            "Aggregated and prioritised under loss, two jobs: "
            + listed(
                f"{point.x / 10_000:g} % of frames, {again.mean:.0f} sent again, "
                f"sums {'exact' if point.mean == 1 else 'WRONG OR MISSING'}"
                for point, again in zip(exact, lost, strict=True)
            )
            + f" ({len(LOSSES)} runs)."
        )


def _all_blocking(table: Table, settings: Settings, jobs: int) -> str:
    def schemes(model: str) -> str:
        return ", ".join(
            f"{scheme} {_blocking(table, scheme, model, jobs):.1f}" for scheme in SCHEMES
        )

    return _by_model(settings, schemes)


def _both(table: Table, model: str) -> str:
    """Blocking and iteration time of the four combinations, two jobs."""
    parts = []
    for scheme, network in (
        ("fifo", PLAIN),
        ("express", PLAIN),
        ("fifo", AGGREGATED),
        ("express", AGGREGATED),
    ):
        iteration = table.at(scheme, 2, model, NETWORKS[network], "iteration", "mean").mean
        parts.append(
            f"{SCHEMES[scheme].title} with {NETWORKS[network]} "
            f"{_blocking(table, scheme, model, 2, network):.1f} ms, iteration {iteration:.0f} ms"
        )
    return listed(parts) + " (two jobs)."
