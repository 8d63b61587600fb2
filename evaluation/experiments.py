"""The experiments by name: what a worker process runs for a cell."""

import hashlib
from pathlib import Path

from evaluation import applications, many, offline, single, training, training_mininet
from evaluation.corpus import Words
from evaluation.settings import Cell, Record

__all__ = ["code_digest", "measure", "needs_words"]

_MEASURES = {
    "single": single.measure,
    "many": many.measure,
    "offline": offline.measure,
    "training": training.measure,
    "training-mininet": training_mininet.measure,
}


def needs_words(cell: Cell) -> bool:
    """Whether the text of the word count is needed for a cell."""
    return any(name == "text" for name, _ in cell.setting)


def measure(cell: Cell, words: Words | None) -> tuple[Record, ...]:
    """The records of a cell; `words` only where it needs them."""
    if cell.experiment == "applications":
        return applications.measure(cell, words)
    return _MEASURES[cell.experiment](cell)


def code_digest() -> str:
    """A digest of the code that results depend on: other code's results are not reused."""
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    files = [
        *(root / "evaluation" / f"{name}.py" for name in _EXPERIMENT_FILES),
        *sorted((root / "controller" / "placement").glob("*.py")),
        *(root / "topologies" / f"{name}.py" for name in _TOPOLOGY_FILES),
        *(root / "controller" / f"{name}.py" for name in _CONTROLLER_FILES),
        *sorted((root / "topologies" / "fabric").glob("*.py")),
        *sorted((root / "traffic" / "training").glob("*.py")),
        root / "p4src" / "build" / "bluetree.json",
    ]
    for path in files:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


_EXPERIMENT_FILES = (
    "applications",
    "cluster",
    "cluster_mininet",
    "corpus",
    "experiments",
    "many",
    "offline",
    "settings",
    "single",
    "training",
    "training_jobs",
    "training_mininet",
)
_CONTROLLER_FILES = ("compile", "endpoints", "scheduling")
_TOPOLOGY_FILES = ("families", "spec", "topology", "workload")
