"""Goodput under loss: `make bench-loss` writes docs/loss.csv and docs/figures/loss.png.

The run is `bluetree run random-tree:n=40,seed=S -k 8 --op allreduce --duplicate P --reorder 2P
--loss P` on the fabric, for several seeds, each a tree and a sequence of losses of its own; the
figure and the printed table have the median over the seeds, the least and the most. Goodput is on
the network's clock, so the machine's load does not matter. Every sum of every run is checked; a
wrong one ends the benchmark.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from statistics import median

from matplotlib.figure import Figure
from rich.console import Console

from controller import run
from controller.errors import BluetreeError
from controller.p4rt import SwitchError
from controller.planning import plan
from controller.running import RunOptions
from evaluation.style import save
from topologies import WorkloadOptions, parse

LOSSES = (0.0, 0.001, 0.01, 0.05, 0.1, 0.2)
DOCS = Path(__file__).resolve().parent.parent / "docs"


@dataclass(frozen=True, slots=True)
class Row:
    """One run: goodput in bit/s a worker, retransmissions a worker and chunk."""

    loss: float
    seed: int
    workers: int
    chunks: int
    goodput: float
    resent: float


def measure(loss: float, seed: int, chunks: int) -> Row:
    """Run once; raises SystemExit if a sum is wrong."""
    topology = parse(f"random-tree:n=40,seed={seed}", WorkloadOptions(seed=seed))
    options = RunOptions(
        op="allreduce",
        chunks=chunks,
        loss=loss,
        duplicate=loss,
        reorder=min(1.0, 2 * loss),
        seed=seed,
    )
    result = run.run_synthetic(plan(topology, 8, "smc"), options, Console(quiet=True))
    if not result.correct:
        raise SystemExit(f"seed {seed}, loss {loss:g}: a sum is wrong")
    resent = result.retransmissions / (result.workers * chunks)
    return Row(loss, seed, result.workers, chunks, result.goodput, resent)


@dataclass(frozen=True, slots=True)
class Spread:
    """Over the seeds, at one loss: goodput in bit/s a worker, and the median of repetitions."""

    median: float
    least: float
    most: float
    resent: float


def spread_of(rows: Sequence[Row], loss: float) -> Spread:
    """The runs at one loss together."""
    goodputs = [row.goodput for row in rows if row.loss == loss]
    return Spread(
        median(goodputs),
        min(goodputs),
        max(goodputs),
        median(row.resent for row in rows if row.loss == loss),
    )


def markdown(rows: Sequence[Row]) -> str:
    """The table as docs/protocol.md has it."""
    lines = [
        "| Loss | Goodput, Mbit/s a worker | Least | Most | Repetitions a worker and chunk |",
        "|---|---|---|---|---|",
    ]
    for loss in LOSSES:
        spread = spread_of(rows, loss)
        low, high = spread.least / 1e6, spread.most / 1e6
        lines.append(
            f"| {100 * loss:g} % | {spread.median / 1e6:.2f} | {low:.2f} | {high:.2f} "
            f"| {spread.resent:.2f} |"
        )
    return "\n".join(lines)


def write(rows: Sequence[Row], table: Path, figure: Path) -> None:
    """The CSV with a line a run, and the figure of goodput over loss: the median and the range."""
    with table.open("w", newline="", encoding="utf-8") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(["loss", "seed", "workers", "chunks", "goodput_bit_s", "resent_a_chunk"])
        for row in rows:
            numbers = [row.loss, row.seed, row.workers, row.chunks]
            out.writerow([*numbers, round(row.goodput), f"{row.resent:.4f}"])
    drawing = Figure(figsize=(5, 3.2))
    axes = drawing.subplots()
    spreads = [spread_of(rows, loss) for loss in LOSSES]
    losses = [100 * loss for loss in LOSSES]
    axes.fill_between(
        losses,
        [spread.least / 1e6 for spread in spreads],
        [spread.most / 1e6 for spread in spreads],
        alpha=0.25,
        label="least to most",
    )
    seeds = len({row.seed for row in rows})
    axes.plot(
        losses,
        [spread.median / 1e6 for spread in spreads],
        marker="o",
        label=f"median of {seeds} trees",
    )
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_yscale("log")
    axes.set_xlabel("loss on every link, each way (%)")
    axes.set_ylabel("goodput (Mbit/s a worker)")
    axes.legend()
    drawing.tight_layout()
    save(drawing, figure, "png")


def main(arguments: Sequence[str]) -> int:
    """Measure every loss for every seed; see the module's text."""
    parser = argparse.ArgumentParser(prog="evaluation.bench_loss", description=__doc__)
    parser.add_argument("--chunks", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=DOCS)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="runs at once")
    options = parser.parse_args(arguments)
    (options.out / "figures").mkdir(parents=True, exist_ok=True)
    work = [(loss, seed) for seed in range(1, options.seeds + 1) for loss in LOSSES]
    rows: list[Row] = []
    with ProcessPoolExecutor(options.processes) as pool:
        try:
            for row in pool.map(measure, *zip(*work, strict=True), repeat(options.chunks)):
                rows.append(row)
                sys.stderr.write(
                    f"seed {row.seed}, loss {100 * row.loss:g} %: {row.goodput / 1e6:.3f} Mbit/s a "
                    f"worker, {row.resent:.2f} repetitions a worker and chunk\n"
                )
                # After each seed, so that a run that is broken off leaves what it has.
                if row.loss == LOSSES[-1]:
                    write(rows, options.out / "loss.csv", options.out / "figures" / "loss.png")
        except (BluetreeError, SwitchError) as error:
            raise SystemExit(f"bench_loss: {error}") from error
    print(markdown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
