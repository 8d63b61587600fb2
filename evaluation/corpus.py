"""The text of the word count: a file, a MediaWiki dump, or English that a package ships.

A text is read as a stream of words, lower case, and kept as word numbers: four bytes a word, so
the 54 million words of the paper's dump take 216 MB, and nothing holds the text itself.
"""

import ast
import bz2
import hashlib
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from evaluation.errors import EvaluationError

__all__ = ["SHIPPED", "Text", "Words", "default_text", "read_words", "text_of_file"]

SHIPPED = ("scipy", "scikit-learn", "networkx")
"""The default text: documentation strings of these distributions, all needed by the project."""

_MODULES = {"scikit-learn": "sklearn"}
_WORD = re.compile(r"[^\W\d_]+")
_HEAD = 4096
_FEWEST_WORDS = 10_000

# Markup of a dump, roughly: templates and tables, references, tags, and the targets of links.
_MARKUP = re.compile(
    r"\{\{[^{}]*\}\}|\{\|.*?\|\}|<ref[^>]*?/>|<ref.*?</ref>|<[^>]*>|\[\[[^\[\]|]*\|"
    r"|\bhttps?://\S+|&[a-z]+;",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Text:
    """Where words come from.

    Attributes:
        name: what to call it in figures and texts, without the folder it lies in.
        identity: changes whenever the words could.
        path: the file, or None for the documentation strings of installed packages.
    """

    name: str
    identity: str
    path: Path | None


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A text as numbers.

    Attributes:
        numbers: the word at every position of the text, numbered from 0 by first occurrence.
        distinct: how many different words there are.
    """

    numbers: NDArray[np.uint32]
    distinct: int


def default_text() -> Text:
    """The documentation strings of the packages of SHIPPED, as installed."""
    versions = [f"{name} {metadata.version(name)}" for name in SHIPPED]
    return Text(f"documentation strings of {', '.join(versions)}", "; ".join(versions), None)


def text_of_file(path: Path) -> Text:
    """A text file, plain or a MediaWiki XML dump, compressed by bzip2 or not.

    Raises:
        EvaluationError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise EvaluationError(f"--text {path}: {error.strerror or error}") from None
    return Text(path.name, digest, path)


def read_words(text: Text) -> Words:
    """Read a text once, as a stream.

    Raises:
        EvaluationError: it is not UTF-8, broken XML or bzip2, or has too few words to share out.
    """
    pieces = _docstrings() if text.path is None else _pieces(text.path)
    numbers, known = array("I"), dict[str, int]()
    try:
        for piece in pieces:
            for word in _WORD.findall(piece.lower()):
                numbers.append(known.setdefault(word, len(known)))
    except (OSError, EOFError) as error:
        raise EvaluationError(f"--text {text.path}: {error}") from None
    except UnicodeDecodeError as error:
        raise EvaluationError(f"--text {text.path}: not UTF-8 at byte {error.start}") from None
    except ElementTree.ParseError as error:
        raise EvaluationError(f"--text {text.path}: broken XML: {error}") from None
    if len(numbers) < _FEWEST_WORDS:
        raise EvaluationError(
            f"--text {text.path}: {len(numbers)} words are too few for every worker to have some, "
            f"give a text of at least {_FEWEST_WORDS}"
        )
    return Words(np.frombuffer(numbers, dtype=np.uint32), len(known))


def _pieces(path: Path) -> Iterator[str]:
    with _opened(path) as file:
        head = file.read(_HEAD)
    with _opened(path) as file:
        if b"<mediawiki" in head:
            yield from _articles(file)
        else:
            for line in file:
                yield line.decode("utf-8")


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        compressed = file.read(3) == b"BZh"
    return bz2.open(path, "rb") if compressed else path.open("rb")


def _articles(file: IO[bytes]) -> Iterator[str]:
    """The text of every page of a dump; what has been read is forgotten."""
    root: ElementTree.Element | None = None
    for event, element in ElementTree.iterparse(file, events=("start", "end")):
        if root is None:
            root = element
        elif event == "end" and element.tag.rpartition("}")[2] == "text":
            yield _MARKUP.sub(" ", element.text or "")
        elif event == "end" and element.tag.rpartition("}")[2] == "page":
            root.clear()


def _docstrings() -> Iterator[str]:
    """The documentation strings of every module of the packages, in order of their paths."""
    for name in SHIPPED:
        spec = util.find_spec(_MODULES.get(name, name))
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent
        for path in sorted(folder.rglob("*.py")):
            if "tests" not in path.parts:
                yield from _strings_of(ast.parse(path.read_bytes()))


def _strings_of(module: ast.Module) -> Iterable[str]:
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(module):
        if isinstance(node, documented):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                yield text
