"""When a destination asks for what a chunk lacks.

    expected --complete--> (forgotten)
     |  ^
     |  `-- asked: at once when `REORDERING` chunks that are newer are complete, which means loss
     |      rather than reordering, or when no chunk has become complete for twice as long as one
     |      took of late; then again and again, each time after a timeout of RFC 6298 on how long
     |      requests take to help
     `----- given up: after `max_tries` rounds of requests without any chunk becoming complete

A chunk is expected from when the workers may send it: the first window from the start, chunk
c + window from when c is complete. If for `direct_after` rounds of requests no chunk becomes
complete, requests are marked direct: what they ask for passes all blue switches, one of which must
be in the way. They stay so until a chunk becomes complete with nothing marked direct in it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

from traffic.errors import ConfigError
from traffic.timeout import HORIZON, RoundTripTimer

REORDERING = 3
"""Newer chunks complete before an older one counts as lost, as TCP's duplicate acknowledgements."""

MAX_COPIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestConfig:
    """How a destination asks; times in nanoseconds.

    Attributes:
        quiet: how long no chunk may become complete, before anything was measured.
        timeout: the least time between two requests for a chunk.
        max_timeout: the most.
        max_doublings: how often a timeout is doubled at most.
        direct_after, direct_time: rounds of requests, and time, without progress before they are
            marked direct.
        max_tries: rounds of requests without progress before the destination gives up.
    """

    quiet: int
    timeout: int
    max_timeout: int
    direct_time: int
    max_doublings: int = 2
    direct_after: int = 8
    max_tries: int = 2_000

    def __post_init__(self) -> None:
        for name in ("quiet", "timeout", "max_timeout", "max_tries"):
            if getattr(self, name) < 1:
                raise ConfigError(f"requests: {name} is {getattr(self, name)}: at least 1")


class _Expected:
    """A chunk that the workers may have sent and that is not complete."""

    __slots__ = ("asked", "asked_at", "deadline", "newer", "since")

    def __init__(self, now: int) -> None:
        self.since = now
        self.deadline = -1
        self.newer = 0
        self.asked = 0
        self.asked_at = now


class Requests:
    """Keeps the time of every expected chunk of a tensor, `window` of them in flight."""

    def __init__(
        self, config: RequestConfig, chunks: int, window: int, due: Sequence[int] | None = None
    ) -> None:
        """`due`: the chunks that are expected at the start; None is the first window."""
        self.config = config
        self._chunks = chunks
        self._window = window
        self._due = range(min(window, chunks)) if due is None else due
        self._expected: dict[int, _Expected] = {}
        self._began = False
        self._deadlines: list[tuple[int, int]] = []
        self._overdue: list[int] = []
        # How long the last chunks took from when they were expected.
        self._took: deque[int] = deque(maxlen=HORIZON)
        self._asking = RoundTripTimer(
            2 * config.timeout, config.timeout, config.max_timeout, config.max_doublings
        )
        self._unasked = 0
        self._fruitless = 0
        self._helped_at = 0
        self._is_direct = False

    @property
    def given_up(self) -> bool:
        """Whether requests have helped no chunk for too long; then no more are made."""
        return self._rounds >= self.config.max_tries

    @property
    def _rounds(self) -> int:
        """How often, on average, each expected chunk was asked for since one became complete."""
        return self._fruitless // max(1, len(self._expected))

    @property
    def direct(self) -> bool:
        """Whether requests are to pass all blue switches."""
        return self._is_direct

    @property
    def expected(self) -> tuple[int, ...]:
        """The chunks that are under way, oldest first."""
        return tuple(sorted(self._expected))

    @property
    def next_deadline(self) -> int | None:
        """When the next request is due."""
        if self.given_up:
            return None
        stalled = self._helped_at + self._patience if self._unasked else None
        deadlines, expected = self._deadlines, self._expected
        while deadlines:
            deadline, chunk = deadlines[0]
            entry = expected.get(chunk)
            if entry is not None and entry.deadline == deadline:
                return deadline if stalled is None else min(deadline, stalled)
            heapq.heappop(deadlines)
        return stalled

    @property
    def _patience(self) -> int:
        """How long no chunk may become complete."""
        if not self._took:
            return self.config.quiet
        return min(self.config.quiet, max(self.config.timeout, 2 * max(self._took)))

    def start(self, now: int) -> None:
        """The workers may send, or do: the first window is expected. Counts once."""
        if self._began:
            return
        self._began = True
        self._helped_at = now
        for chunk in self._due:
            self._expect(chunk, now)

    def completed(self, chunk: int, now: int, *, direct: bool) -> None:
        """A chunk is complete; `direct` if some message in it was marked so."""
        self._fruitless = 0
        self._helped_at = now
        self._is_direct &= direct
        entry = self._expected.pop(chunk, None)
        if entry is not None:
            self._took.append(now - entry.since)
            self._unasked -= not entry.asked
            if entry.asked == 1:
                # Karn: of several requests it is not known which one helped.
                self._asking.took(now - entry.asked_at)
        following = chunk + self._window
        if following < self._chunks:
            self._expect(following, now)
        for older, waiting in self._expected.items():
            if older < chunk and not waiting.asked:
                waiting.newer += 1
                if waiting.newer == REORDERING:
                    self._overdue.append(older)

    def renew(self, now: int) -> None:
        """Chunks are gathered anew: what was asked for in vain says nothing of them."""
        self._fruitless = 0
        self._helped_at = now
        self._is_direct = False

    def end_at(self, chunks: int) -> None:
        """The tensor ends after so many chunks."""
        self._chunks = chunks
        for chunk in [chunk for chunk in self._expected if chunk >= chunks]:
            self._unasked -= not self._expected.pop(chunk).asked

    def due(self, now: int) -> Iterator[int]:
        """The chunks to ask for now; one that was asked for in vain several times, to be sure.

        The more links lie between, the fewer requests get there and back. A request is small
        beside what waits for it.
        """
        overdue, self._overdue = self._overdue, []
        if self._unasked and self._helped_at + self._patience <= now:
            overdue = list(self._expected)
        for chunk in overdue:
            if chunk in self._expected and not self._expected[chunk].asked:
                yield self._ask(chunk, now)
        while (deadline := self.next_deadline) is not None and deadline <= now:
            chunk = self._ask(heapq.heappop(self._deadlines)[1], now)
            copies = 1 if self._is_direct else min(self._expected[chunk].asked, MAX_COPIES)
            yield from repeat(chunk, copies)

    def _expect(self, chunk: int, now: int) -> None:
        self._expected[chunk] = _Expected(now)
        self._unasked += 1

    def _ask(self, chunk: int, now: int) -> int:
        entry = self._expected[chunk]
        # While requests help some chunk, it is loss that keeps others waiting, not congestion.
        is_helping = self._helped_at > entry.asked_at
        wait = self._asking.timeout(0 if is_helping else entry.asked)
        if self._is_direct:
            # All workers answer, and nothing sums what they say.
            wait = max(wait, self.config.direct_time)
        entry.deadline = now + wait
        self._unasked -= not entry.asked
        entry.asked += 1
        entry.asked_at = now
        heapq.heappush(self._deadlines, (entry.deadline, chunk))
        self._fruitless += 1
        is_long = now - self._helped_at > self.config.direct_time
        self._is_direct |= is_long and self._rounds > self.config.direct_after
        return chunk
