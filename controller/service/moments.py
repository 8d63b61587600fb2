"""How long each step of a change took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a change, in words, and the seconds that it took."""

    name: str
    seconds: float


class Stopwatch:
    """Runs from when it is made, on the monotonic clock in nanoseconds that hosts use too."""

    def __init__(self) -> None:
        self.began = self._since = time.monotonic_ns()
        self._steps: list[Step] = []

    @property
    def steps(self) -> Sequence[Step]:
        """The steps so far, in their order; one after the other, they leave nothing out."""
        return tuple(self._steps)

    def lap(self, name: str, until: int | None = None) -> None:
        """A step is over: now, or at a moment that has passed since the last one was."""
        now = time.monotonic_ns() if until is None else max(until, self._since)
        self._steps.append(Step(name, (now - self._since) / 1e9))
        self._since = now

    def elapsed(self, until: int | None = None) -> float:
        """Seconds since it was made, until now or a moment."""
        return ((time.monotonic_ns() if until is None else until) - self.began) / 1e9
