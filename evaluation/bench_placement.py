"""How long placements take and what they reach: ``python -m evaluation.bench_placement``.

Every cell of the table runs in a process of its own, so that its peak of memory is its own, and
has a limit of time (``--limit`` seconds, 60 by default). A cell that ends is shown with

  seconds      of the call, by the clock, the least of some calls; smc is given arrays from 65,535
               switches on and checks and orders them within that time, all else is given a Tree
  CPU          the same in CPU time, which other work on the machine disturbs less
  MiB          the largest resident memory of the process, Python and the input included
  compiled     seconds for compiling, or loading from the disk what an earlier run compiled

and the congestion that it reaches. The trees are complete binary trees with 1 to 9 workers at
every leaf, rates drawn from seven different ones, and 7 in 10 switches available. A second table
has smc on 1,048,575 switches of other shapes.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from time import perf_counter, process_time

import numpy as np
from rich.console import Console
from rich.table import Table

from controller.placement import (
    Placement,
    PlacementError,
    Tree,
    TreeArrays,
    greedy,
    milp,
    smc,
    smc_arrays,
    smc_dp,
)

SIZES = (255, 4_095, 65_535, 1_048_575)
BUDGETS = (16, 128, 1_024)
STRATEGIES: dict[str, Callable[[Tree, int], Placement]] = {
    "smc": smc,
    "smc-dp": smc_dp,
    "greedy": greedy,
    "milp": milp,
}
SHAPES = ("random", "path", "star")
_ARRAYS_FROM = 65_535
_RATES = ((1, 1), (2, 1), (3, 1), (3, 2), (7, 3), (7, 4), (11, 5))
_MIB = 1024


@dataclass(frozen=True, slots=True)
class Setting:
    """What one cell places: a strategy, a tree by shape and size, a budget."""

    strategy: str
    n: int
    k: int
    shape: str = "binary"
    extreme: bool = False
    """Rates all different, of twelve digits, and up to 10^9 workers at every switch."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a setting; `refused` says why there are no figures."""

    setting: Setting
    seconds: float = 0.0
    cpu: float = 0.0
    compiled: float = 0.0
    mebibytes: int = 0
    congestion: float = 0.0
    blue: int = 0
    refused: str = ""


def instance(setting: Setting) -> TreeArrays:
    """The tree of a setting, always the same."""
    n = setting.n
    draw = np.random.default_rng(n)
    later = np.arange(1, n)
    above = {
        "binary": (later - 1) // 2,
        "random": (draw.random(n - 1) * later).astype(np.int64),
        "path": later - 1,
        "star": np.zeros(n - 1, np.int64),
    }[setting.shape]
    if setting.extreme:
        numerator, denominator = draw.integers(10**11, 10**12, (2, n))
        load = draw.integers(0, 10**9, n)
    else:
        numerator, denominator = np.array(_RATES)[draw.integers(0, len(_RATES), n)].T
        load = np.where(np.arange(n) >= n // 2, draw.integers(1, 10, n), 0)
    return TreeArrays(
        np.concatenate([[-1], above]), numerator, denominator, load, draw.random(n) < 0.7
    )


def as_tree(arrays: TreeArrays) -> Tree:
    """The same tree with exact rates in Python's numbers."""
    pairs = zip(arrays.rate_numerator.tolist(), arrays.rate_denominator.tolist(), strict=True)
    return Tree(
        arrays.parent.tolist(),
        [Fraction(a, b) for a, b in pairs],
        arrays.load.tolist(),
        arrays.available.tolist(),
    )


def measured(setting: Setting) -> Outcome:
    """Run one setting in this process."""
    compiled = 0.0
    if setting.strategy == "smc" and setting.n >= _ARRAYS_FROM:
        start = perf_counter()
        smc_arrays(instance(Setting("smc", 255, 16)), 16)
        compiled = perf_counter() - start
        given = instance(setting)

        def call() -> Placement:
            checked = TreeArrays(
                given.parent,
                given.rate_numerator,
                given.rate_denominator,
                given.load,
                given.available,
            )
            return smc_arrays(checked, setting.k)
    else:
        tree = as_tree(instance(setting))

        def call() -> Placement:
            return STRATEGIES[setting.strategy](tree, setting.k)

    seconds: list[float] = []
    cpu: list[float] = []
    try:
        while len(seconds) < 5 and sum(seconds) < 3:
            clock, processor = perf_counter(), process_time()
            placement = call()
            seconds.append(perf_counter() - clock)
            cpu.append(process_time() - processor)
    except PlacementError as error:
        return Outcome(setting, refused=str(error))
    return Outcome(
        setting,
        min(seconds),
        min(cpu),
        compiled,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // _MIB,
        float(placement.congestion),
        len(placement.blue),
    )


def in_own_process(setting: Setting, limit: float) -> Outcome:
    """Run one setting in a process that is given up after the limit."""
    command = [sys.executable, "-m", "evaluation.bench_placement", "--cell"]
    try:
        done = subprocess.run(
            [*command, json.dumps(asdict(setting))], capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return Outcome(setting, refused=f"over {limit:g} s")
    if done.returncode:
        return Outcome(setting, refused=(done.stderr.strip().splitlines() or ["died"])[-1][:60])
    fields = json.loads(done.stdout)
    return Outcome(**(fields | {"setting": setting}))


def outcomes(limit: float, most: int) -> Iterator[Outcome]:
    """All cells; a strategy that ran out of time is not tried on a larger tree."""
    for strategy in STRATEGIES:
        over: set[int] = set()
        for n in (n for n in SIZES if n <= most):
            for k in BUDGETS:
                if k in over:
                    continue
                outcome = in_own_process(Setting(strategy, n, k), limit)
                if outcome.refused:
                    over.add(k)
                yield outcome
    for shape in SHAPES:
        for extreme in (False, True):
            yield in_own_process(Setting("smc", min(SIZES[-1], most), 1024, shape, extreme), limit)


def table(title: str, rows: list[Outcome]) -> Table:
    """The outcomes as a table."""
    shown = Table(title=title, title_justify="left")
    for name in ("strategy", "tree"):
        shown.add_column(name)
    for name in ("switches", "k", "seconds", "CPU", "MiB", "congestion", "blue", "compiled"):
        shown.add_column(name, justify="right")
    last = ""
    for row in rows:
        setting = row.setting
        if last and last != setting.strategy:
            shown.add_section()
        last = setting.strategy
        tree = setting.shape + (", extreme" if setting.extreme else "")
        cells = [setting.strategy, tree, f"{setting.n:,}", f"{setting.k:,}"]
        if row.refused:
            cells.append(row.refused)
        else:
            cells += [
                f"{row.seconds:.4f}",
                f"{row.cpu:.4f}",
                str(row.mebibytes),
                f"{row.congestion:.6g}",
                str(row.blue),
                f"{row.compiled:.1f}" if row.compiled else "",
            ]
        shown.add_row(*cells)
    return shown


def promises(rows: list[Outcome]) -> list[tuple[str, bool]]:
    """What is promised of smc, and whether these figures keep it."""
    cells = {(r.setting.n, r.setting.k): r for r in rows if r.setting == _plain(r.setting)}
    kept = []
    for (n, k), limit in {(255, 16): 0.02, (4_095, 16): 0.2, (1_048_575, 1_024): 5.0}.items():
        if (n, k) in cells:
            seconds = cells[n, k].seconds
            kept.append((f"n = {n:,}, k = {k:,}: {seconds:.4f} s < {limit:g} s", seconds < limit))
    if (1_048_575, 1_024) in cells:
        peak = cells[1_048_575, 1_024].mebibytes
        kept.append((f"n = 1,048,575: peak {peak} MiB < 1,024 MiB", peak < 1024))
    for k in BUDGETS:
        small, large = cells.get((65_535, k)), cells.get((1_048_575, k))
        if small and large and not small.refused and not large.refused:
            growth = large.cpu / small.cpu / (1_048_575 / 65_535)
            text = f"65,535 to 1,048,575 switches, k = {k:,}: {growth:.2f} x linear"
            kept.append((text + " <= 1.3 (CPU)", growth <= 1.3))
    return kept


def _plain(setting: Setting) -> Setting:
    return Setting("smc", setting.n, setting.k)


def main(arguments: list[str]) -> int:
    """Print the tables; exit 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="bench_placement", description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for a cell")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the largest tree")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.cell:
        print(json.dumps(asdict(measured(Setting(**json.loads(given.cell))))))
        return 0
    progress = Console(stderr=True)
    rows = []
    for row in outcomes(given.limit, given.most):
        rows.append(row)
        progress.print(
            f"{row.setting.strategy} n={row.setting.n} k={row.setting.k}", highlight=False
        )
    kept = promises(rows)
    if given.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        console = Console(width=110)
        plain = [row for row in rows if row.setting.shape == "binary"]
        console.print(table("complete binary trees", plain))
        console.print(table("smc, other shapes", [row for row in rows if row not in plain]))
        for text, good in kept:
            console.print(f"{'kept' if good else 'BROKEN'}: smc, {text}", highlight=False)
    return 0 if all(good for _, good in kept) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
