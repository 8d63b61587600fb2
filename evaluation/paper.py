"""The evaluation of the papers: their figures by name, from cells to files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from evaluation.corpus import Text
from evaluation.experiments import code_digest
from evaluation.figures import fig1, fig2, fig3, fig4, fig5, fig6, tensorexpress
from evaluation.figures.tensorexpress_mininet import OverMininet
from evaluation.output import Output, write
from evaluation.settings import Cell, Settings
from evaluation.store import Store
from evaluation.sweep import Engine, Results, run_sweep

__all__ = ["FIGURES", "ON_TARGETS", "Evaluation", "Kind", "evaluate"]

_CELLS = "cells"


@dataclass(frozen=True, slots=True)
class Kind:
    """A figure: the cells that it needs, and how it is made from their results."""

    cells: Callable[[Settings, Text], list[Cell]]
    build: Callable[[Results, Settings, Text], Output]


FIGURES: Mapping[str, Kind] = MappingProxyType(
    {
        "fig1": Kind(fig1.cells, fig1.build),
        "fig2": Kind(fig2.cells, fig2.build),
        "fig3": Kind(fig3.cells, fig3.build),
        "fig4": Kind(fig4.cells, fig4.build),
        "fig5": Kind(fig5.cells, fig5.build),
        "fig6": Kind(fig6.cells, fig6.build),
        "tensorexpress": Kind(tensorexpress.cells, tensorexpress.build),
    }
)
"""Every figure of the papers, by the name that the command line takes."""

_OVER_MININET = {name: OverMininet(name) for name in ("softswitch", "bmv2")}
ON_TARGETS: Mapping[str, Kind] = MappingProxyType(
    {f"tensorexpress-{name}": Kind(each.cells, each.build) for name, each in _OVER_MININET.items()}
)
"""Figures of other targets than the fabric: `tensorexpress-bmv2` and `tensorexpress-softswitch`."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation gave.

    Attributes:
        outputs: every figure asked for, and the files that were written for it.
        computed: cells computed now.
        reused: cells found on disk.
    """

    outputs: tuple[tuple[Output, tuple[Path, ...]], ...]
    computed: int
    reused: int


def evaluate(
    names: Sequence[str],
    folder: Path,
    settings: Settings,
    text: Text,
    engine: Engine,
    progress: Callable[[int, int], None],
) -> Evaluation:
    """Make the named figures in a folder; what an earlier run has left there is used.

    Args:
        names: keys of FIGURES or ON_TARGETS.
        folder: for all files; results of cells go into its folder "cells".
        settings: of all experiments.
        text: of the word count.
        engine: where cells are computed.
        progress: told (cells done, cells in all).

    Raises:
        EvaluationError: the folder or the text cannot be used.
        MissingError: the engine lacks something.
        PlacementError: a joint optimum could not be proven.
    """
    kinds = {**FIGURES, **ON_TARGETS}
    wanted = dict.fromkeys(cell for name in names for cell in kinds[name].cells(settings, text))
    store = Store(folder / _CELLS, code_digest())
    sweep = run_sweep(list(wanted), store, text, engine, progress)
    outputs = []
    for name in names:
        output = kinds[name].build(sweep.results, settings, text)
        outputs.append((output, tuple(write(output, folder))))
    return Evaluation(tuple(outputs), sweep.computed, sweep.reused)
