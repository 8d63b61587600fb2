"""The virtual clock: events in order of time, and of their making where times are equal."""

from collections.abc import Callable
from heapq import heapify, heappush
from itertools import count
from typing import Protocol


class Target(Protocol):
    """Something that events happen to."""

    def fire(self, now: int, frame: bytes) -> None:
        """The event: `now` is its time in nanoseconds, `frame` what came with it."""


class Clock:
    """The heap of events and the present time, integer nanoseconds from 0."""

    __slots__ = ("heap", "next_number", "now", "unfinished")

    def __init__(self) -> None:
        self.now = 0
        self.heap: list[tuple[int, int, Target, bytes]] = []
        self.next_number: Callable[[], int] = count().__next__
        # Hosts that still have something to do; kept here since hosts change it in passing.
        self.unfinished = 0

    def at(self, time: int, target: Target, frame: bytes = b"") -> None:
        """Schedule an event."""
        heappush(self.heap, (time, self.next_number(), target, frame))

    def cancel(self, unwanted: Callable[[int, Target], bool]) -> list[tuple[int, Target]]:
        """Remove the events for which unwanted(time, target) holds, and return these; slow."""
        removed = [(entry[0], entry[2]) for entry in self.heap if unwanted(entry[0], entry[2])]
        if removed:
            self.heap[:] = [entry for entry in self.heap if not unwanted(entry[0], entry[2])]
            heapify(self.heap)
        return removed


class Call:
    """An event that calls a function."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def fire(self, now: int, frame: bytes) -> None:
        """Call it."""
        self._function()
