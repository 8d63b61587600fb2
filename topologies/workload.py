"""Workers and rates laid over a network: the --workers, --rates and --seed of the command line."""

import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

from controller.placement import Tree
from topologies.documents import Record, Value, read_document, shown
from topologies.errors import TopologyError, did_you_mean
from topologies.topology import Overlay, Topology

__all__ = ["MOST_WORKERS", "RATE_LAWS", "WorkloadOptions", "apply_workload", "workers_problem"]

MOST_WORKERS = 10**12
"""The most workers that one switch may have."""

_LAWS_OF_WORKERS = ("uniform", "power-law")

# The uniform law has variance 6.67 and standard deviation 2.58: the "variance 2.6" of Sec. V is the
# latter.
# P(x) in proportion to (x - 0.69)^-1.2448 on 1..63: mean 5.0 and variance 97, as in Sec. V of the
# paper. An unshifted power law of mean 5 on this range would have a variance of 79.
_POWER_LAW = list(accumulate(round(10**6 * (x - 0.69) ** -1.2448) for x in range(1, 64)))

RATE_LAWS: dict[str, Callable[[int], Fraction]] = {
    "constant": lambda i: Fraction(1),
    "linear": Fraction,
    "exponential": lambda i: Fraction(3, 2) ** (i - 1),
}
"""The rate of a link by i = 1 + the height of the switch below it: 1 for links of leaves.

On the paper's 255-switch tree the links into the root have i = 7 and (r, d) has i = 8: linear
rates of 7 and 8, exponential rates of 11.4 and 17.1. The paper's text gives 7 and 17 as the
largest rates "in links entering the root", which one law reaches at i = 7, the other at i = 8.
"""


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """What replaces the workers and rates that a topology comes with.

    Attributes:
        workers: None keeps them; "N" puts N at every leaf of the overlay; "uniform" draws 1..9
            and "power-law" 1..63 for every leaf, both with mean 5; anything else is the path of a
            JSON or YAML file that maps switches to workers. All of these leave none elsewhere.
        rates: None keeps them; "constant", "linear" or "exponential" as in RATE_LAWS.
        seed: of the draws, and of a random tree that names no seed of its own.
    """

    workers: str | None = None
    rates: str | None = None
    seed: int = 0


def apply_workload(topology: Topology, options: WorkloadOptions) -> Topology:
    """The same network with the workers and rates that the options ask for.

    Raises:
        TopologyError: an unknown word, a workers file that cannot be read or has problems (all
            of them are in it).
    """
    overlay = topology.overlay
    load: tuple[int, ...] = overlay.tree.load
    rate: tuple[Fraction, ...] = overlay.tree.rate
    if options.workers is not None:
        load = _loads(overlay, options.workers, options.seed)
    if options.rates is not None:
        law = _rate_law(options.rates)
        by_height = {height: law(1 + height) for height in set(overlay.tree.heights())}
        rate = tuple(by_height[height] for height in overlay.tree.heights())
    if load == overlay.tree.load and rate == overlay.tree.rate:
        return topology
    tree = Tree(overlay.tree.parent, rate, load, overlay.tree.available)
    return replace(topology, overlay=replace(overlay, tree=tree))


def workers_problem(value: Value) -> str | None:
    """Why a value of a file is not a number of workers, or None where it is one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return f"{shown(value)} is not a number of workers: write an integer >= 0"
    if value > MOST_WORKERS:
        return f"{value} is too large: at most {MOST_WORKERS} workers a switch"
    return None


def _rate_law(name: str) -> Callable[[int], Fraction]:
    if name not in RATE_LAWS:
        hint = did_you_mean(name, list(RATE_LAWS))
        raise TopologyError("rates", [f'"{name}" is not one of {", ".join(RATE_LAWS)}{hint}'])
    return RATE_LAWS[name]


def _loads(overlay: Overlay, workers: str, seed: int) -> tuple[int, ...]:
    children = overlay.tree.children
    draw = _draw_of(workers, seed)
    if draw is None:
        return _loads_of_file(overlay, Path(workers))
    return tuple(0 if children[v] else draw() for v in range(len(children)))


def _draw_of(workers: str, seed: int) -> Callable[[], int] | None:
    """How to draw the workers of a leaf; None where `workers` is the path of a file."""
    rng = random.Random(seed)
    if workers == "uniform":
        return lambda: rng.randint(1, 9)
    if workers == "power-law":
        return lambda: 1 + bisect_right(_POWER_LAW, rng.randrange(_POWER_LAW[-1]))
    if workers.isascii() and workers.isdigit():
        if len(workers) > len(str(MOST_WORKERS)) or int(workers) > MOST_WORKERS:
            raise TopologyError("workers", [f"{workers} is too large: at most {MOST_WORKERS}"])
        return lambda: int(workers)
    if not Path(workers).exists():
        hint = did_you_mean(workers, _LAWS_OF_WORKERS)
        raise TopologyError(
            "workers",
            [f'"{workers}" is not an integer >= 0, uniform, power-law or an existing file{hint}'],
        )
    return None


def _loads_of_file(overlay: Overlay, path: Path) -> tuple[int, ...]:
    document = read_document(path)
    if not isinstance(document, Record):
        raise TopologyError(str(path), ['expected a mapping of switch to workers, like {"a": 5}'])
    index = {name: v for v, name in enumerate(overlay.names)}
    load = [0] * len(overlay.names)
    problems: list[str] = []
    seen: set[str] = set()
    for key, value in document.pairs:
        name = key if isinstance(key, str) else shown(key)
        place = f'switch "{name}"'
        if name not in index:
            problems.append(f"{place}: not in the overlay{did_you_mean(name, overlay.names)}")
            continue
        if name in seen:
            problems.append(f"{place}: appears more than once")
        seen.add(name)
        problem = workers_problem(value)
        if problem is not None:
            problems.append(f"{place}: {problem}")
        elif isinstance(value, int):
            load[index[name]] = value
    if problems:
        raise TopologyError(str(path), problems)
    return tuple(load)
