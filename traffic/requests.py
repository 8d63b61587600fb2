"""When a destination asks for what a chunk lacks, and repeats its last answers.

    expected --complete--> (forgotten)
     |  ^
     |  `-- asked: at once when `REORDERING` chunks that were expected later are complete, which
     |      means loss rather than reordering, when it has been expected for twice as long as the
     |      fastest chunks took of late, or when no chunk has become complete for twice as long as
     |      any took of late; then again and again, each time after a timeout of RFC 6298 on how
     |      long requests take to help, at least as long as chunks usually took
     `----- given up: after `max_tries` rounds of requests without any chunk becoming complete

A chunk is expected from when the workers may send it: the first window from the start, chunk
c + window from when c is complete. If for `direct_after` rounds of requests no chunk becomes
complete, requests are marked direct: what they ask for passes all blue switches, one of which must
be in the way. They stay so until a chunk becomes complete with nothing marked direct in it.

A worker that has lost an answer learns of it from later ones, or from the request for the chunk
that it would have sent next. Neither follows the last window, so, where anything was asked for, its
answers are repeated.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

from traffic.errors import ConfigError
from traffic.message import ANSWER_HISTORY
from traffic.timeout import HORIZON, RoundTripTimer

REORDERING = 3
"""Newer chunks complete before an older one counts as lost, as TCP's duplicate acknowledgements."""

MAX_COPIES = 3

FASTEST = 10
"""One chunk in so many says how long one takes of which nothing is lost: no chunk takes less."""

MORE_COPIES = (0.5, 2)
"""Losses a chunk, on average of the last, above which an answer is sent twice, and thrice."""

REPEATS = 8
"""How often a destination repeats its last answers when all chunks are complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestConfig:
    """How a destination asks; times in nanoseconds.

    Attributes:
        quiet: how long a chunk may take before it is asked for, at most.
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

    __slots__ = ("asked", "asked_at", "deadline", "losses", "newer", "order", "since")

    def __init__(self, now: int, order: int) -> None:
        self.since = now
        self.order = order
        self.deadline = -1
        self.newer = 0
        self.asked = 0
        self.asked_at = now
        # Requests for it while others were helped.
        self.losses = 0


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
        # Those that were not asked for, in the order in which they came to be expected.
        self._fresh: dict[int, _Expected] = {}
        self._order = 0
        self._repeated = 0
        self._has_asked = False
        self._repeat_at: int | None = None
        self._began = False
        self._deadlines: list[tuple[int, int]] = []
        self._overdue: list[int] = []
        # How long chunks take from when they are expected.
        self._took: deque[int] = deque(maxlen=HORIZON)
        # How often each of the last complete chunks lost something.
        self._losses: deque[int] = deque(maxlen=HORIZON)
        self._complete = 0
        # How long a chunk may take, how long none may become complete, and the least time between
        # two requests for one.
        self._patience = self._lull = config.quiet
        self._again = config.quiet // 2
        self._asking = RoundTripTimer(
            2 * config.timeout, config.timeout, config.max_timeout, config.max_doublings
        )
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
    def copies(self) -> int:
        """How often an answer is sent at once: where much is lost, more than once.

        One that is lost near the root is lost to all workers. Each would ask for it, and nothing
        sums what they send; the links down carry little else.
        """
        losses = sum(self._losses)
        return 1 + sum(losses > most * len(self._losses) for most in MORE_COPIES)

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
        """When the next request is due, or, when nothing is expected any more, `repeats`."""
        if self.given_up:
            return None
        if not self._expected:
            return self._repeat_at
        again = self._next_again
        first = next(iter(self._fresh.values()), None)
        if first is None:
            return again
        overdue = min(first.since + self._patience, self._helped_at + self._lull)
        return overdue if again is None else min(again, overdue)

    @property
    def _next_again(self) -> int | None:
        """When the next request that is not the first for its chunk is due."""
        deadlines, expected = self._deadlines, self._expected
        while deadlines:
            deadline, chunk = deadlines[0]
            entry = expected.get(chunk)
            if entry is not None and entry.deadline == deadline:
                return deadline
            heapq.heappop(deadlines)
        return None

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
            self._fresh.pop(chunk, None)
            self._measure(now - entry.since)
            self._losses.append(entry.losses)
            if entry.asked == 1:
                # Karn: of several requests it is not known which one helped.
                self._asking.took(now - entry.asked_at)
            self._outrun(entry.order)
        following = chunk + self._window
        if following < self._chunks:
            self._expect(following, now)
        self._end(now)

    def renew(self, now: int) -> None:
        """Chunks are gathered anew: what was asked for in vain says nothing of them."""
        self._fruitless = 0
        self._helped_at = now
        self._is_direct = False

    def end_at(self, chunks: int) -> None:
        """The tensor ends after so many chunks."""
        self._chunks = chunks
        for chunk in [chunk for chunk in self._expected if chunk >= chunks]:
            del self._expected[chunk]
            self._fresh.pop(chunk, None)
        self._end(self._helped_at)

    def repeats(self, now: int) -> Sequence[int]:
        """The chunks whose answers are to be sent again now, since no other will follow them.

        What an answer says of those before it (`ANSWER_HISTORY`) covers the last window together.
        """
        if self._expected or self._repeat_at is None or self._repeat_at > now:
            return ()
        self._repeated += 1
        wait = self.config.timeout << self._repeated
        self._repeat_at = None if self._repeated == REPEATS else now + wait
        lowest = max(0, self._chunks - self._window)
        return range(self._chunks - 1, lowest - 1, -(ANSWER_HISTORY + 1))

    def _end(self, now: int) -> None:
        """Every chunk of the tensor is complete, if none is expected.

        Where nothing had to be asked for, the last answers will not have been lost either.
        """
        if self._began and self._has_asked and not self._expected and not self._repeated:
            self._repeat_at = now + self.config.timeout

    def due(self, now: int) -> Iterator[int]:
        """The chunks to ask for now; one that was asked for in vain several times, to be sure.

        The more links lie between, the fewer requests get there and back. A request is small
        beside what waits for it.
        """
        overdue, self._overdue = self._overdue, []
        expected_by = now if self._helped_at + self._lull <= now else now - self._patience
        for chunk, entry in self._fresh.items():
            if entry.since > expected_by:
                break
            overdue.append(chunk)
        for chunk in overdue:
            if chunk in self._fresh:
                yield self._ask(chunk, now)
        while (deadline := self._next_again) is not None and deadline <= now:
            if self.given_up:
                return
            chunk = self._ask(heapq.heappop(self._deadlines)[1], now)
            copies = 1 if self._is_direct else min(self._expected[chunk].asked, MAX_COPIES)
            yield from repeat(chunk, copies)

    def _expect(self, chunk: int, now: int) -> None:
        self._expected[chunk] = self._fresh[chunk] = _Expected(now, self._order)
        self._order += 1

    def _measure(self, elapsed: int) -> None:
        """A chunk has become complete, so long after it was expected."""
        self._complete += 1
        self._took.append(elapsed)
        # The first window leaves at once, and each of it waits for those before it, and for the
        # windows of other jobs. What follows says how long chunks take once so many are complete.
        if self._complete < self._window + HORIZON:
            return
        took = sorted(self._took)
        self._lull = self._twice(took[-1])
        self._patience = self._twice(took[len(took) // FASTEST])
        self._again = self._twice(took[len(took) // 2]) // 2

    def _twice(self, time: int) -> int:
        """Twice a time, within what it may be."""
        return min(self.config.quiet, max(self.config.timeout, 2 * time))

    def _outrun(self, order: int) -> None:
        """A chunk is complete before those that were expected earlier: they count it.

        Chunks of different slots may be far apart, so it is not their numbers that say which was
        sent first.
        """
        for older, waiting in self._fresh.items():
            if waiting.order > order:
                break
            waiting.newer += 1
            if waiting.newer == REORDERING:
                self._overdue.append(older)

    def _ask(self, chunk: int, now: int) -> int:
        self._has_asked = True
        entry = self._expected[chunk]
        # While requests help some chunk, it is loss that keeps others waiting, not congestion.
        is_helping = self._helped_at > entry.asked_at
        entry.losses += is_helping
        wait = self._asking.timeout(0 if is_helping else entry.asked)
        # What was asked for waits in the queues that everything else does.
        wait = max(wait, self._again)
        if self._is_direct:
            # All workers answer, and nothing sums what they say.
            wait = max(wait, self.config.direct_time)
        entry.deadline = now + wait
        self._fresh.pop(chunk, None)
        entry.asked += 1
        entry.asked_at = now
        heapq.heappush(self._deadlines, (entry.deadline, chunk))
        self._fruitless += 1
        is_long = now - self._helped_at > self.config.direct_time
        self._is_direct |= is_long and self._rounds > self.config.direct_after
        return chunk
