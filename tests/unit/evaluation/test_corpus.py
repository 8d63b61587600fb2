"""Words from a file, from a dump and from what is installed."""

import bz2
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evaluation.corpus import Words, default_text, read_words, text_of_file
from evaluation.errors import EvaluationError

SENTENCE = "Über den Fluss, over the river: the river's 3 banks.\n"
WORDS = ["über", "den", "fluss", "over", "the", "river", "the", "river", "s", "banks"]
LINES = 2000

PAGE = """  <page>
    <title>Rivers</title>
    <revision><text xml:space="preserve">'''Rivers''' {{cite|hidden}} flow to
[[the sea|the ocean]]&lt;ref name="x"&gt;hidden&lt;/ref&gt; slowly &lt;br/&gt;
down.</text></revision>
  </page>
"""
PAGE_WORDS = ["rivers", "flow", "to", "the", "ocean", "slowly", "down"]


def _dump(pages: int) -> str:
    namespace = "http" + "://www.mediawiki.org/xml/export-0.10/"
    return f'<mediawiki xmlns="{namespace}">\n{PAGE * pages}</mediawiki>\n'


def _read(path: Path) -> Words:
    return read_words(text_of_file(path))


def test_words_are_letters_in_lower_case_in_order(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text(SENTENCE * LINES, encoding="utf-8")
    words = _read(path)
    numbers = {word: i for i, word in enumerate(dict.fromkeys(WORDS))}
    assert words.distinct == len(numbers)
    assert words.numbers.dtype == np.uint32
    assert words.numbers.tolist() == [numbers[word] for word in WORDS] * LINES


def test_compression_makes_no_difference(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain.txt", tmp_path / "packed"
    plain.write_text(SENTENCE * LINES, encoding="utf-8")
    packed.write_bytes(bz2.compress(plain.read_bytes()))
    assert _read(packed).numbers.tolist() == _read(plain).numbers.tolist()


@pytest.mark.parametrize("compressed", [False, True])
def test_a_dump_gives_the_words_of_its_articles_without_markup(
    tmp_path: Path, compressed: bool
) -> None:
    path = tmp_path / "dump.xml"
    content = _dump(LINES).encode()
    path.write_bytes(bz2.compress(content) if compressed else content)
    words = _read(path)
    assert words.distinct == len(PAGE_WORDS)
    assert words.numbers.tolist() == list(range(len(PAGE_WORDS))) * LINES


def test_other_content_is_another_text(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("one")
    first = text_of_file(path)
    path.write_text("two")
    assert text_of_file(path).identity != first.identity
    assert first.name == "text"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"few words", r"--text .*text: 2 words are too few"),
        (b"word \xff" * LINES, r"--text .*text: not UTF-8 at byte 5"),
        (b"<mediawiki><page>", r"--text .*text: broken XML"),
        (bz2.compress(SENTENCE.encode() * LINES)[:-20], r"--text .*text: Compressed file ended"),
        (b"BZh9 is not bzip2", r"--text .*text: Invalid data stream"),
    ],
)
def test_refuses_a_text_in_one_line(tmp_path: Path, content: bytes, line: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(EvaluationError, match=line) as caught:
        _read(path)
    assert "\n" not in str(caught.value)


def test_refuses_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="No such file"):
        text_of_file(tmp_path / "none")


def test_the_default_text_is_english_and_large() -> None:
    text = default_text()
    words = read_words(text)
    assert len(words.numbers) > 10**6
    assert 10_000 < words.distinct < len(words.numbers) / 10
    commonest, count = Counter(words.numbers.tolist()).most_common(1)[0]
    # "the" is the commonest word of English, about one word in twenty.
    assert 0.03 < count / len(words.numbers) < 0.1
    assert commonest < 100
    assert "scipy" in text.name
