"""The chunks that a worker has sent and that are not answered: when each is sent again.

    in flight --answered--> (forgotten)
     |  ^
     |  `-- asked for by the destination, which lacks it: at once, whenever it is
     |      its answer is known to exist, but was lost: at once, then each time after a timeout of
     |      RFC 6298 on how long such a repetition takes to be answered
     |      nothing was answered for a timeout; or others were, for as long as a whole window may
     |      take, and this one was not
     `----- given up after `max_tries` timeouts

An answer says which of the chunks before its own are complete (`ANSWER_HISTORY`). A chunk that
`REORDERING` answers call complete has lost its own, or that one does which is itself a repetition:
its own left long before. Sent again, it meets the stored answer at the next switch that has it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from traffic.message import ANSWER_HISTORY
from traffic.requests import REORDERING
from traffic.timeout import RetransmissionTimer, RoundTripTimer
from traffic.worker_config import WorkerConfig

_ALL_HISTORY = (1 << ANSWER_HISTORY) - 1


class _Entry:
    """One chunk: `known` counts answers that call it complete, `asks` repetitions since."""

    __slots__ = (
        "asked_at",
        "asks",
        "deadline",
        "first_sent",
        "known",
        "sent_at",
        "timeouts",
        "tries",
    )

    def __init__(self, now: int, timeout: int) -> None:
        self.first_sent = self.sent_at = self.asked_at = now
        self.deadline = now + timeout
        self.tries = 1
        self.timeouts = self.known = self.asks = 0


class InFlight:
    """The chunks of one worker between its first transmission and its answer."""

    def __init__(self, config: WorkerConfig) -> None:
        self.config = config
        self._entries: dict[int, _Entry] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._timer = RetransmissionTimer(
            config.initial_timeout, config.min_timeout, config.max_timeout, config.max_doublings
        )
        self._asking = RoundTripTimer(
            2 * config.ask_timeout, config.ask_timeout, config.max_timeout, config.max_doublings
        )
        # Chunks that are not known to be complete: bit i is the one i below the highest so far.
        # Most answers that come again say nothing of them, which shows at once.
        self._unsure = 0
        self._highest = 0
        self._answered_at = 0
        self.given_up: tuple[int, int] | None = None
        """The chunk that was given up, if one was, and how often it had been sent."""

    def __contains__(self, chunk: int) -> bool:
        return chunk in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def timeout(self) -> int:
        """What a first transmission waits now, in nanoseconds, before it is repeated."""
        return self._timer.timeout()

    @property
    def next_deadline(self) -> int | None:
        """When a chunk may have to be sent again."""
        deadlines, entries = self._deadlines, self._entries
        while deadlines:
            deadline, chunk = deadlines[0]
            entry = entries.get(chunk)
            if entry is not None and entry.deadline == deadline:
                return deadline
            heapq.heappop(deadlines)
        return None

    def send(self, chunk: int, now: int) -> None:
        """A chunk leaves for the first time."""
        entry = self._entries[chunk] = _Entry(now, self._timer.timeout())
        if chunk > self._highest:
            self._unsure <<= chunk - self._highest
            self._highest = chunk
        self._unsure |= 1 << self._highest - chunk
        heapq.heappush(self._deadlines, (entry.deadline, chunk))

    def answer(self, chunk: int, now: int) -> None:
        """A chunk is answered."""
        entry = self._entries.pop(chunk)
        self._unsure &= ~(1 << self._highest - chunk)
        self._answered_at = now
        self._timer.answered(now - entry.first_sent, unambiguous=entry.tries == 1)
        if entry.asks == 1:
            self._asking.took(now - entry.asked_at)

    def learn(
        self, chunk: int, history: int, now: int, *, repeated: bool
    ) -> list[tuple[int, bool]]:
        """Take in what the answer to `chunk` says of others; one that is `repeated` is proof.

        Of any other it counts as one of `REORDERING` that it takes, so it is told once. Returns the
        chunks to send again, as `due` does.
        """
        proofs = REORDERING if repeated else 1
        lost = []
        for older in self._completed(chunk, history):
            entry = self._entries[older]
            entry.known += proofs
            if entry.known >= REORDERING:
                lost.append(older)
        return [self._lost(older, now) for older in lost]

    def hint(self, chunk: int, history: int) -> None:
        """Take in what an answer that had come before says: no proof, however often it comes."""
        for older in self._completed(chunk, history):
            entry = self._entries[older]
            entry.known = max(entry.known, 1)

    def _completed(self, chunk: int, history: int) -> list[int]:
        """The chunks that the answer to one calls complete and that were not known to be so,
        latest first."""
        past = self._highest + 1 - chunk
        unsure = self._unsure >> past if past >= 0 else self._unsure << -past
        news = ~history & unsure & _ALL_HISTORY
        found = []
        while news:
            found.append(chunk - (news & -news).bit_length())
            news &= news - 1
        return found

    def _lost(self, chunk: int, now: int) -> tuple[int, bool]:
        """The answer to a chunk is known to exist; the first repetition that asks for it."""
        self._entries[chunk].known = REORDERING
        self._unsure &= ~(1 << self._highest - chunk)
        return self._ask(chunk, now)

    def complete(self, chunks: Iterable[int], now: int) -> list[tuple[int, bool]]:
        """Chunks are known to be complete; returns those to send again, as `due` does."""
        frames = []
        for chunk in chunks:
            entry = self._entries.get(chunk)
            if entry is not None and entry.known < REORDERING:
                frames.append(self._lost(chunk, now))
        return frames

    def requested(self, chunk: int, now: int) -> None:
        """A chunk is sent again because the destination asked."""
        entry = self._entries.get(chunk)
        if entry is not None:
            entry.tries += 1
            entry.sent_at = now

    def due(self, now: int) -> Iterator[tuple[int, bool]]:
        """The chunks to send again now, each with whether it is to pass all blue switches."""
        while (deadline := self.next_deadline) is not None and deadline <= now:
            chunk = heapq.heappop(self._deadlines)[1]
            entry = self._entries[chunk]
            if entry.known >= REORDERING:
                yield self._ask(chunk, now)
            elif (until := self._waits_until(entry)) > now:
                self._wait(chunk, until)
            elif entry.known:
                # Fewer answers than usual are proof when none has come for so long.
                yield self._lost(chunk, now)
            elif entry.timeouts + 1 >= self.config.max_tries:
                self.given_up = (chunk, entry.tries)
                self._entries.clear()
                self._deadlines.clear()
                self._unsure = 0
            else:
                entry.timeouts += 1
                is_slow = entry.timeouts >= self.config.slow_after
                wait = self.config.max_timeout if is_slow else self._backed_off(entry.timeouts)
                yield self._again(chunk, wait, now)

    def _waits_until(self, entry: _Entry) -> int:
        """When a chunk is repeated: once no answer at all has come for a timeout (RFC 6298, 5.3).

        While others are answered, the destination knows what this one lacks and asks for it. Only
        if that does not help for as long as a whole window may take, the chunk is repeated anyway.
        """
        config = self.config
        quiet = max(self._answered_at, entry.sent_at) + self._backed_off(entry.timeouts)
        longest = config.patience << min(entry.timeouts, config.max_doublings)
        return min(quiet, entry.sent_at + min(config.max_timeout, longest))

    def _backed_off(self, timeouts: int) -> int:
        """What a chunk waits that was sent again after so many timeouts."""
        config = self.config
        base = min(self._timer.timeout(), config.patience)
        return min(config.max_timeout, base << min(timeouts, config.max_doublings))

    def _ask(self, chunk: int, now: int) -> tuple[int, bool]:
        """Send a chunk again whose answer exists: it comes from wherever it was stored."""
        entry = self._entries[chunk]
        entry.asks += 1
        entry.asked_at = now
        return self._again(chunk, self._asking.timeout(entry.asks - 1), now)

    def _again(self, chunk: int, wait: int, now: int) -> tuple[int, bool]:
        entry = self._entries[chunk]
        entry.sent_at = now
        self._wait(chunk, now + wait + self._spread(wait, chunk, entry.tries))
        entry.tries += 1
        return chunk, entry.timeouts + entry.asks > self.config.direct_after

    def _wait(self, chunk: int, deadline: int) -> None:
        self._entries[chunk].deadline = deadline
        heapq.heappush(self._deadlines, (deadline, chunk))

    def _spread(self, wait: int, chunk: int, tries: int) -> int:
        """Up to a quarter of a wait, differing by worker, chunk and try but always the same.

        Workers whose messages were lost together in a full queue would else meet there again.
        """
        mixed = self.config.source * 0x9E3779B1 + chunk * 0x85EBCA77 + tries * 0xC2B2AE3D
        return wait * (mixed & 0xFFFFFFFF) >> 34
