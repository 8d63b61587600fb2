"""Things that the thread of packets hands to the server's event loop, so many at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

LIMIT = 8192
"""Things that wait for the loop before further ones are refused: it may be busy with a push."""

Thing = TypeVar("Thing")


class Inbox(Generic[Thing]):
    """Calls `take` on the loop with each thing, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Callable[[Thing], None]) -> None:
        self._loop = loop
        self._take = take
        self._waiting: deque[Thing] = deque()

    def put(self, thing: Thing) -> bool:
        """Hand it over; False if too many wait, and it is not. From any thread."""
        if len(self._waiting) >= LIMIT:
            return False
        self._waiting.append(thing)
        self._loop.call_soon_threadsafe(self._next)
        return True

    def _next(self) -> None:
        self._take(self._waiting.popleft())
