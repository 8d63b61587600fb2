"""What clients do wrong, in the log: one line a kind and second, however often it happens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

LOG = logging.getLogger("softswitch")

EVERY_S = 1.0


class Complaints:
    """Logs warnings; those of a kind that come within a second of one are only counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, kind: str, text: str) -> None:
        """Something of a kind happened; `text` says what and who, `kind` is the same each time."""
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        now = self._clock()
        said = self._said.get(kind)
        if said is None or now - said >= EVERY_S:
            self._said[kind] = now
            LOG.warning("P4Runtime: %s: %s (%d so far)", kind, text, count)
