"""What a figure gives: tables, pictures, and what its data say about the paper's claims."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from evaluation.store import write_whole
from evaluation.style import save
from evaluation.table import Table

__all__ = ["Claim", "Output", "claims_text", "listed", "times", "write"]

_WIDTH = 98


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, and what the data say.

    Attributes:
        text: what is claimed.
        holds: whether the data agree.
        evidence: the numbers that decide it.
    """

    text: str
    holds: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class Output:
    """One figure of the paper.

    Attributes:
        name: fig1 to fig6.
        title: what it shows.
        setting: how it was measured, in a sentence.
        tables: by the stem of their CSV files.
        pictures: by the stem of their files.
        claims: of the paper's text about the figure.
        findings: what else the data say, about what the paper does not do or say.
    """

    name: str
    title: str
    setting: str
    tables: Mapping[str, Table]
    pictures: Mapping[str, Figure]
    claims: Sequence[Claim]
    findings: Sequence[str]


def listed(parts: Iterable[str]) -> str:
    """Parts of a sentence, one after the other."""
    return "; ".join(parts)


def times(factor: float) -> str:
    """A factor as the paper writes it: x9.71, x31.4."""
    return f"x{factor:.2f}" if factor < 10 else f"x{factor:.1f}"


def write(output: Output, folder: Path) -> list[Path]:
    """Write the CSV, PNG, SVG and text files of a figure, and name them.

    Raises:
        EvaluationError: a file cannot be written.
    """
    files: list[Path] = []

    def put(name: str, text: str) -> None:
        path = folder / name
        write_whole(path, lambda beside: beside.write_text(text, encoding="utf-8"))
        files.append(path)

    for stem, table in output.tables.items():
        put(f"{stem}.csv", table.csv())
        put(f"{stem}-runs.csv", table.runs_csv())
    for stem, picture in output.pictures.items():
        for kind in ("png", "svg"):
            path = folder / f"{stem}.{kind}"
            save(picture, path, kind)
            files.append(path)
    put(f"{output.name}.txt", claims_text(output))
    return files


def claims_text(output: Output) -> str:
    """What agrees with the paper, what does not, and what else was found."""
    lines = [f"{output.name}: {output.title}", *_folded(output.setting, ""), ""]
    for claim in output.claims:
        verdict = "agrees" if claim.holds else "DIFFERS"
        lines += _folded(claim.text, f"  {verdict:<9}")
        lines += _folded(claim.evidence, " " * 11)
    for finding in output.findings:
        lines += _folded(finding, "  found    ")
    return "\n".join(lines) + "\n"


def _folded(text: str, start: str) -> list[str]:
    """The text in lines of at most _WIDTH, the first after `start`, the others as deep."""
    lines, line = [], start
    for word in text.split():
        if len(line) + len(word) + 1 > _WIDTH and line.strip():
            lines.append(line.rstrip())
            line = " " * len(start)
        line += word + " "
    return [*lines, line.rstrip()]
