"""Many random trees under heavy loss: `make campaign-loss`.

For each seed S, the command of the table's title as a user runs it:

    bluetree run random-tree:n=40,seed=S -k 8 --op allreduce --loss 0.1 --duplicate 0.1
        --reorder 0.2 --chunks 2000 --seed S --target fabric

A seed passes if the run ends with exit code 0, every sum at every worker is right, and no chunk is
missing. Goodput is on the network's clock; seconds are those of this machine.

    python -m evaluation.campaign_loss --first 1 --seeds 20 --chunks 2000
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

from rich.console import Console
from rich.table import Table

SWITCHES, BUDGET = 40, 8


@dataclass(frozen=True, slots=True)
class Row:
    """One run: goodput in bit/s a worker, `resent` by all workers, `trouble` "" where it passed."""

    seed: int
    workers: int
    resent: int
    goodput: float
    seconds: float
    trouble: str

    def repetitions(self, chunks: int) -> float:
        """Repetitions a worker and chunk."""
        return self.resent / (self.workers * chunks) if self.workers else 0.0


def run(seed: int, chunks: int, loss: float) -> Row:
    """Run the command once."""
    began = time.monotonic()
    faults = ("--loss", loss, "--duplicate", loss, "--reorder", min(1.0, 2 * loss))
    tree = f"random-tree:n={SWITCHES},seed={seed}"
    what = ("run", tree, "-k", BUDGET, "--op", "allreduce", "--chunks", chunks, "--seed", seed)
    command = [sys.executable, "-m", "controller.cli"]
    command += [str(word) for word in (*what, *faults, "--target", "fabric", "--json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError:
        lines = done.stderr.strip().splitlines() or ["nothing was printed"]
        return Row(seed, 0, 0, 0.0, seconds, f"exit {done.returncode}: {lines[-1]}")
    trouble = ""
    if not found["correct"]:
        trouble = "a sum is wrong"
    elif found["chunks"] != chunks:
        trouble = f"{found['chunks']} chunks"
    elif done.returncode:
        trouble = f"exit {done.returncode}"
    return Row(seed, found["workers"], found["retransmissions"], found["goodput"], seconds, trouble)


def show(rows: Sequence[Row], chunks: int, console: Console) -> None:
    """The table, and a line for all."""
    names = ("seed", "workers", "sums", "repetitions a worker and chunk", "Mbit/s a worker", "s")
    table = Table(*names)
    for row in rows:
        table.add_row(
            str(row.seed),
            str(row.workers),
            row.trouble or "right",
            f"{row.repetitions(chunks):.2f}",
            f"{row.goodput / 1e6:.2f}",
            f"{row.seconds:.0f}",
        )
    console.print(table)
    passed = [row for row in rows if not row.trouble]
    goodputs = sorted(row.goodput / 1e6 for row in passed)
    middle = f", goodput median {goodputs[len(goodputs) // 2]:.2f} Mbit/s" if goodputs else ""
    console.print(f"{len(passed)} of {len(rows)} seeds right, all {chunks} chunks each{middle}")


def main(arguments: Sequence[str]) -> int:
    """Run every seed; 1 if one did not pass. See the module's text."""
    parser = argparse.ArgumentParser(prog="evaluation.campaign_loss", description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--loss", type=float, default=0.1)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="runs at once")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.seeds)
    rows = []
    # Each run is a process of its own, which a thread waits for.
    with ThreadPoolExecutor(options.processes) as pool:
        for row in pool.map(run, seeds, repeat(options.chunks), repeat(options.loss)):
            rows.append(row)
            sys.stderr.write(
                f"seed {row.seed}: {row.trouble or 'right'}, {row.workers} workers, "
                f"{row.repetitions(options.chunks):.2f} repetitions a worker and chunk, "
                f"{row.goodput / 1e6:.2f} Mbit/s, {row.seconds:.0f} s\n"
            )
    show(rows, options.chunks, Console(width=100))
    return int(any(row.trouble for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
