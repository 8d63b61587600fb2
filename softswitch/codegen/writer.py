"""Python source, line by line."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_NAME = re.compile(r"\b[a-z]_\w+")


class Writer:
    """Collects indented lines; one space a level, so that deep controls stay readable to Python."""

    __slots__ = ("_level", "_temps", "lines")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._level = 0
        self._temps = 0

    @property
    def level(self) -> int:
        return self._level

    def line(self, text: str) -> None:
        self.lines.append(" " * self._level + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines written inside belong to `head`; an empty block becomes ``pass``."""
        self.line(head)
        self._level += 1
        before = len(self.lines)
        try:
            yield
            if len(self.lines) == before:
                self.line("pass")
        finally:
            self._level -= 1

    def temp(self) -> str:
        """A fresh local name."""
        self._temps += 1
        return f"x{self._temps}"

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def names(self) -> set[str]:
        """Every state variable (``f_...``, ``v_...`` and so on) that the lines mention."""
        return {name for line in self.lines for name in _NAME.findall(line)}


def identifier(text: str) -> str:
    """`text` with everything that Python does not allow in a name made an underscore."""
    return re.sub(r"\W", "_", text)
