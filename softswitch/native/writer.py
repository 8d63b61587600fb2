"""C source, line by line."""

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects indented lines; names of temporaries are unique in one writer."""

    __slots__ = ("_level", "_temps", "lines")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._level = 0
        self._temps = 0

    def line(self, text: str) -> None:
        self.lines.append(" " * self._level + text)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Lines written inside stand in the braces that `head` opens."""
        self.line(f"{head} {{")
        self._level += 1
        try:
            yield
        finally:
            self._level -= 1
            self.line(tail)

    def temp(self) -> str:
        """A fresh name."""
        self._temps += 1
        return f"x{self._temps}"

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
