"""Results on disk, one file a cell, so that an interrupted evaluation goes on where it stopped.

A file is written beside its place and then moved there: it is whole or absent. It repeats the cell
and the digest of the code that computed it; where either differs, or the file cannot be read, the
cell is computed again.
"""

import hashlib
import json
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.corpus import Text, Words, read_words
from evaluation.errors import EvaluationError
from evaluation.settings import Cell, Record

__all__ = ["Store", "load_words", "write_whole"]


class Store:
    """The cells' results in a folder."""

    def __init__(self, folder: Path, code: str) -> None:
        """Open a folder, made where it is missing; `code` is the digest of the code.

        Raises:
            EvaluationError: the folder cannot be made.
        """
        self._folder = folder
        self._code = code
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EvaluationError(f"--out {folder}: {error.strerror or error}") from None

    def read(self, cell: Cell) -> tuple[Record, ...] | None:
        """The result of a cell, or None where there is none that still counts."""
        try:
            document = json.loads(self.path(cell).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(document, dict) or "records" not in document:
            return None
        if document != self._document(cell, document["records"]):
            return None
        return tuple(Record(series, x, Fraction(value)) for series, x, value in document["records"])

    def write(self, cell: Cell, records: tuple[Record, ...]) -> None:
        """Keep the result of a cell.

        Raises:
            EvaluationError: the file cannot be written.
        """
        rows = [[record.series, record.x, str(record.value)] for record in records]
        text = json.dumps(self._document(cell, rows), indent=0)
        write_whole(self.path(cell), lambda path: path.write_text(text, encoding="utf-8"))

    def path(self, cell: Cell) -> Path:
        """The file of a cell; other settings have other files."""
        named = hashlib.sha256(json.dumps(cell.setting).encode()).hexdigest()[:12]
        return self._folder / f"{cell.experiment}-{named}-{cell.repeat:03d}.json"

    def words(self, text: Text) -> Path:
        """The file with a text's words, read now unless an earlier run has.

        Raises:
            EvaluationError: the text cannot be used, or the file not be written.
        """
        named = hashlib.sha256(text.identity.encode()).hexdigest()[:12]
        path = self._folder / f"words-{named}-{self._code}.npy"
        if not path.exists():
            numbers = read_words(text).numbers
            for old in self._folder.glob(f"words-{named}-*.npy"):
                old.unlink(missing_ok=True)  # another code's, and perhaps large
            write_whole(path, lambda beside: _save(beside, numbers))
        return path

    def _document(self, cell: Cell, rows: Any) -> dict[str, Any]:
        setting = [
            [name, list(value) if isinstance(value, tuple) else value]
            for name, value in cell.setting
        ]
        return {
            "format": "bluetree/cell-1",
            "code": self._code,
            "experiment": cell.experiment,
            "setting": setting,
            "repeat": cell.repeat,
            "records": rows,
        }


def load_words(path: Path) -> Words:
    """Words from the file of `Store.words`, mapped into memory: processes share its pages."""
    numbers = np.load(path, mmap_mode="r")
    return Words(numbers, int(numbers.max()) + 1)


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `path`, and move it there.

    Raises:
        EvaluationError: the file cannot be written.
    """
    beside = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        write(beside)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise EvaluationError(f"--out {path}: {error.strerror or error}") from None


def _save(path: Path, numbers: Any) -> None:
    with path.open("wb") as file:
        np.save(file, numbers)
