"""Where the files of the project are, for tests about the project itself."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PACKAGES = ("controller", "evaluation", "p4src", "softswitch", "topologies", "traffic")
"""Top-level packages of the product."""

_TEXT_SUFFIXES = frozenset({".md", ".p4", ".py", ".toml", ".txt", ".lua"})
_FOLDERS = (*PACKAGES, ".ci", "docker", "docs", "examples", "tests")


def python_files() -> list[Path]:
    """Every Python file of the product and its tests."""
    folders = (*PACKAGES, "examples", "tests")
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def p4_files() -> list[Path]:
    """Every P4 file, those of the tests included."""
    folders = ("p4src", "tests")
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.p4"))]


def text_files() -> Iterator[Path]:
    """Every file that people write here: code, settings and prose, outputs of p4c left out."""
    yield from (
        path for path in sorted(ROOT.iterdir()) if path.is_file() and path.name != "LICENSE"
    )
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and (path.suffix in _TEXT_SUFFIXES or not path.suffix):
                yield path


def markdown_files() -> list[Path]:
    """README and its siblings, and everything in docs/."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
