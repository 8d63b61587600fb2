"""The settings of Sec. V, and how an experiment is cut into cells.

A cell is the smallest piece that is computed, stored and resumed: one experiment at one setting,
repeated once. It holds everything that its result depends on, so an equal cell has an equal
result, in whatever order and on whatever machine it is computed.
"""

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from controller.placement import Tree
from topologies import WorkloadOptions, parse

__all__ = [
    "LOADS",
    "RATES",
    "Cell",
    "Record",
    "Settings",
    "paper_tree",
    "seed_of",
]

LOADS = ("power-law", "uniform")
"""The two load distributions, in the order of the paper's figures, top to bottom."""

RATES = ("constant", "linear", "exponential")
"""The three rate laws, in the order of the paper's figures, left to right."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the paper fixes, and what a user may change.

    Attributes:
        repeats: how often every experiment is repeated, each time with other loads.
        seed: of all chance.
        levels: of the complete binary tree; 8 levels are 255 switches, 128 of them leaves.
        budgets: the values of k in Figs. 2, 3 and 6.
        workloads: how many workloads, in Fig. 4.
        budget: k of every workload in Figs. 4 and 5.
        capacity: a(s) in Fig. 4.
        capacities: the values of a(s) in Fig. 5.
        features: of the parameter server, Fig. 6.
        dropout: the chance that a worker drops a feature, in percent.
        models: that are trained, in the evaluation of TensorExpress.
        trainings: at most so many repeats of each training, as they are long.
        sweeps: whether to train at other rates, windows, depths and losses as well.
    """

    repeats: int = 10
    seed: int = 0
    levels: int = 8
    budgets: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    workloads: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    budget: int = 16
    capacity: int = 4
    capacities: tuple[int, ...] = (4, 8, 16, 32)
    features: int = 10_000
    dropout: int = 50
    models: tuple[str, ...] = ("alexnet", "vgg16", "resnet50", "bert-base")
    trainings: int = 3
    sweeps: bool = True


Value = str | int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One experiment at one setting, repeated once.

    Attributes:
        experiment: its name, a key of `evaluation.experiments.EXPERIMENTS`.
        setting: names and values that the result depends on, in a fixed order.
        repeat: which repeat, from 0.
    """

    experiment: str
    setting: tuple[tuple[str, Value], ...]
    repeat: int

    def text(self, name: str) -> str:
        """A setting that is a word."""
        value = dict(self.setting)[name]
        assert isinstance(value, str)
        return value

    def number(self, name: str) -> int:
        """A setting that is an integer."""
        value = dict(self.setting)[name]
        assert isinstance(value, int)
        return value

    def numbers(self, name: str) -> tuple[int, ...]:
        """A setting that is a list of integers."""
        value = dict(self.setting)[name]
        assert isinstance(value, tuple)
        return value


@dataclass(frozen=True, slots=True)
class Record:
    """One measured value: what the series is, where on the x axis, and how much, exactly."""

    series: str
    x: int
    value: Fraction


def seed_of(*parts: str | int) -> int:
    """A seed that depends on the parts alone, the same on every machine and in every order."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6])


@lru_cache(maxsize=512)
def paper_tree(levels: int, load: str, rates: str, seed: int) -> Tree:
    """A complete binary tree with a load distribution at its leaves and a rate law."""
    spec = f"binary-tree:levels={levels}"
    return parse(spec, WorkloadOptions(workers=load, rates=rates, seed=seed)).overlay.tree
