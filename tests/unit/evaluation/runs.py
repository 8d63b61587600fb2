"""Small evaluations to test with: a tree of 31 switches, two repeats, a text of its own."""

from pathlib import Path

from evaluation.corpus import Text, text_of_file
from evaluation.paper import Evaluation, evaluate
from evaluation.settings import Settings
from evaluation.sweep import Engine, LocalEngine

SMALL = Settings(repeats=2, levels=5, budgets=(1, 4, 32), workloads=(1, 4), capacities=(4, 8))
"""The paper's settings, cut down; 32 and 4 stay, since claims speak of them."""


def small_text(folder: Path) -> Text:
    """A text with a vocabulary that grows, so that shares differ."""
    path = folder / "text.txt"
    if not path.exists():
        words = (_word(i * i % 977 % (1 + i // 9)) for i in range(20_000))
        path.write_text(" ".join(words), encoding="utf-8")
    return text_of_file(path)


def _word(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def run(
    folder: Path,
    *names: str,
    settings: Settings = SMALL,
    engine: Engine | None = None,
) -> Evaluation:
    """The named figures in folder / "out"."""
    return evaluate(
        names,
        folder / "out",
        settings,
        small_text(folder),
        engine or LocalEngine(1),
        lambda done, total: None,
    )


def files(folder: Path, suffix: str) -> dict[str, bytes]:
    """The files of an evaluation by name."""
    return {path.name: path.read_bytes() for path in sorted((folder / "out").glob(f"*{suffix}"))}
