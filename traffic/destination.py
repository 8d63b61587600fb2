"""The destination of a job: decides when a chunk is complete, and answers.

A source, worker or blue switch, speaks for a set of workers. These sets are laminar (nested or
disjoint), since each is what lies below one switch of a tree. A chunk is complete when the largest
sources heard cover every worker; being disjoint, they cover each exactly once, and the sum of their
lanes is the sum of all workers. What arrives for workers that are covered already adds nothing, and
a larger source replaces the smaller ones within it: so bypass, late and repeated messages may come
in any order and number.

Reallocation: from one chunk number on another set of sources counts, under a newer epoch (`move`).
Each chunk has one epoch and is gathered and answered under it alone, for as long as anyone may ask.
Workers are left out (`exclude`) of all chunks that are not complete: these are gathered anew.

    gathering --all workers covered--> complete: answered once by multicast
     |  ^                               |  ^
     `--'  lacks something for too      `--'  any further message for it: answered again, RESENT
           long: asked for, REQUEST

When to ask is `traffic.requests`. A request's lanes are a set: bit i is the i-th of the sources
that the root of the tree sends, so that the switches ask only where something is missing.
"""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from p4src.constants import AGG_UDP_PORT, Flag, Kind
from traffic.allocations import Allocations
from traffic.destination_config import DestinationConfig, DestinationStats, Recipient, Verdict
from traffic.epochs import Term
from traffic.errors import ConfigError, DecodeError
from traffic.gathering import Gathering, Total
from traffic.journal import Entry, Journal
from traffic.ledger import due, open_ledger, resume
from traffic.message import Message, decode_datagram, ip_bytes
from traffic.outgoing import Outgoing
from traffic.requests import Requests
from traffic.stream import Mismatches

_OVERFLOW = Flag.OVERFLOW.value
_RESENT = Flag.RESENT.value
_CONTRIBUTE = Kind.CONTRIBUTE.value
_MARKS = (Flag.DIRECT, Flag.LATE, Flag.RESENT)


class Destination:
    """The machine of the destination in one job."""

    def __init__(self, config: DestinationConfig, journal: Journal | None = None) -> None:
        """Begin with the complete chunks that a journal has; further ones are recorded there."""
        self.config = config
        self._who = f"destination of job {config.job}"
        self._allocations = Allocations(self._who, config)
        self._epochs = self._allocations.epochs
        self._ip = ip_bytes(config.ip)
        self._gathering: dict[int, Gathering] = {}
        self._ledger = open_ledger(config)
        self._out = Outgoing(config, self._ledger)
        self._complete_count = self._next = 0
        self._mismatches = Mismatches()
        self._answered_at: dict[int, int] = {}
        self._overflowed: set[int] = set()
        self._frames: Counter[str] = Counter()
        self._marks: Counter[Flag] = Counter()
        self._answers = self._answers_again = self._requests_sent = 0
        self._journal = journal
        if journal is not None:
            self._overflowed |= resume(self._ledger, journal)
            self._complete_count, self._next = self._ledger.count, self._ledger.end_of_complete
            self._mismatches.count = journal.wrong
        self._requests: Requests | None = None
        if config.requests is not None:
            expected = due(self._ledger, config.window)
            self._requests = Requests(config.requests, self._ledger.chunks, config.window, expected)

    @property
    def job(self) -> int:
        """The job it is the destination of."""
        return self.config.job

    @property
    def epoch(self) -> int:
        """The latest allocation that it moved to."""
        return self._epochs.newest

    @property
    def moved_at(self) -> int:
        """The chunk number (on the wire) from which that allocation holds."""
        return self._epochs.moved_at

    @property
    def terms(self) -> tuple[Term, ...]:
        """Its allocations that chunks may still be asked for of, and whom each leaves out."""
        return self._epochs.terms

    @property
    def completed(self) -> int:
        """How many chunks are complete."""
        return self._complete_count

    @property
    def done(self) -> bool:
        """Whether every chunk is complete."""
        return self._complete_count == self._ledger.chunks

    @property
    def failed(self) -> bool:
        """Whether it has given up asking, since nothing helped."""
        return self._requests is not None and self._requests.given_up

    @property
    def next_deadline(self) -> int | None:
        """When it asks for what is missing."""
        return None if self._requests is None else self._requests.next_deadline

    @property
    def sums(self) -> NDArray[np.int32]:
        """Sums [chunks, lanes] modulo 2**32, zero where not complete; none of an endless job."""
        return self._ledger.sums

    @property
    def mismatches(self) -> Mismatches:
        """Sums of an endless job that were wrong, by chunk number on the wire."""
        return self._mismatches

    @property
    def next_chunk(self) -> int:
        """The chunk number (on the wire) above all that anything has come for."""
        return self.config.first_chunk + self._next

    @property
    def complete_below(self) -> int:
        """The chunk number (on the wire) below which every chunk is complete."""
        incomplete = self._ledger.first_incomplete()
        return self.config.first_chunk + (self._ledger.chunks if incomplete is None else incomplete)

    @property
    def exponents(self) -> NDArray[np.uint16]:
        """Largest exponent of each chunk over the workers [chunks], 0 where not complete."""
        return self._ledger.exponents

    @property
    def overflowed(self) -> frozenset[int]:
        """Chunks with a lane whose sum left int32, here or at a switch."""
        return frozenset(self._overflowed)

    @property
    def stats(self) -> DestinationStats:
        """What has been received and sent so far."""
        direct, late, resent = (self._marks[flag] for flag in _MARKS)
        return DestinationStats(
            MappingProxyType(dict(self._frames)),
            direct,
            late,
            resent,
            self._answers,
            self._answers_again,
            len(self._overflowed),
            self._requests_sent,
        )

    @property
    def without(self) -> Mapping[int, frozenset[int]]:
        """Ranks whose values are not in a sum, by chunk; none of an endless job."""
        chunks = 0 if self.config.stream is not None else self._ledger.chunks
        return self._epochs.without(self.config.first_chunk, chunks)

    def first_incomplete(self) -> int | None:
        """The lowest chunk that is not complete."""
        return self._ledger.first_incomplete()

    def missing(self, chunk: int) -> tuple[int, ...]:
        """Ranks of the workers that a chunk still waits for; raises ConfigError if there is none
        of that number."""
        last = self._ledger.chunks - 1
        if not 0 <= chunk <= last:
            raise ConfigError(f"job {self.job} has no chunk {chunk}: 0 to {last}")
        if self._ledger.is_complete(chunk):
            return ()
        gathering = self._gathering.get(chunk)
        epoch = self._epochs.of(self.config.first_chunk + chunk)
        all_workers = self._allocations.sources(epoch).all
        missing = all_workers & ~(gathering.covered if gathering else 0)
        return tuple(rank for rank in range(len(self.config.workers)) if missing >> rank & 1)

    def lacking(self, chunk: int) -> tuple[str, ...]:
        """Names of the workers that a chunk still waits for; raises as `missing`."""
        return tuple(self.config.workers[rank] for rank in self.missing(chunk))

    def explain(self, chunk: int) -> str:
        """One line that says what a chunk waits for."""
        names = self.lacking(chunk)
        if not names:
            return f"chunk {self.config.first_chunk + chunk} of job {self.job} is complete"
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        return f"chunk {self.config.first_chunk + chunk} of job {self.job} waits for {shown}"

    def start(self, now: int) -> list[bytes]:
        """Nothing yet; from now on it expects the first window."""
        if self._requests is not None:
            self._requests.start(now)
        return []

    def tick(self, now: int) -> list[bytes]:
        """Ask for what has been missing for too long, or repeat the last answers of all."""
        if self._requests is None:
            return []
        frames = [self._request(chunk) for chunk in self._requests.due(now)]
        for chunk in self._requests.repeats(now):
            self._answers_again += 1
            frames += self._answer(chunk, _RESENT, now)
        return frames

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a frame in; returns the answer if the frame calls for one."""
        try:
            datagram = decode_datagram(frame, self.config.lanes)
        except DecodeError as error:
            self._frames[error.reason.value] += 1
            return []
        if datagram.dst_ip != self._ip or datagram.dst_port != AGG_UDP_PORT:
            self._frames[Verdict.NOT_ADDRESSED.value] += 1
            return []
        message = datagram.message
        verdict = self._objection(message)
        if verdict is None:
            self._note_marks(message.flags)
            if self._requests is not None:
                self._requests.start(now)
            verdict = self._take(message, now)
        self._frames[verdict.value] += 1
        if verdict is Verdict.COMPLETING:
            return self._answer(self._index(message), 0, now) + self.tick(now)
        if verdict is Verdict.ANSWERED_AGAIN:
            self._answers_again += 1
            return self._answer(self._index(message), _RESENT, now)
        return []

    def move(
        self,
        epoch: int,
        from_chunk: int,
        sources: Mapping[int, frozenset[int]],
        asked: Mapping[int, int] | None = None,
        absent: frozenset[int] | None = None,
    ) -> None:
        """Gather chunks from one number on (on the wire) under a newer epoch, from these sources.

        `asked` is as in the configuration; without it every request goes to all. `absent` are the
        ranks that have no part in it; None is as before.
        Told so once more it changes nothing. Raises ConfigError where the epoch is not newer,
        something has come for such a chunk, or the sources do not fit the workers.
        """
        self._allocations.move(epoch, from_chunk, self.next_chunk, sources, asked, absent)
        self._allocations.forget_below(self.complete_below - self.config.pool)

    def exclude(
        self,
        epoch: int,
        absent: frozenset[int],
        sources: Mapping[int, frozenset[int]],
        now: int,
        asked: Mapping[int, int] | None = None,
    ) -> Term:
        """Gather all chunks that are not complete anew, under a newer epoch without some workers.

        Returns which chunks these are; told so once more, the same. Complete ones stay as they
        are. Raises ConfigError where the epoch is not newer, has back whom the one before leaves
        out, or a chunk that is not complete, or the sources do not fit the workers.
        """
        if epoch == self.epoch:
            return self._epochs.last
        number, first = self.config.first_chunk, self.complete_below
        later = range(first, max(self.next_chunk, self.moved_at))
        kept = frozenset(chunk for chunk in later if self._ledger.is_complete(chunk - number))
        self._epochs.check_absent(epoch, absent, set(later) - kept)
        term = Term(epoch, first, kept, absent)
        self.follow(term, sources, now, asked)
        return term

    def follow(
        self,
        term: Term,
        sources: Mapping[int, frozenset[int]],
        now: int,
        asked: Mapping[int, int] | None = None,
    ) -> None:
        """Enter a term that was decided by `exclude`, here or by a destination before this one."""
        if self._allocations.follow(term, sources, asked):
            self._gathering.clear()
            # Who has gone may have been ahead of all that are left.
            self._next = self._ledger.end_of_complete
            if self._requests is not None:
                self._requests.renew(now)
        self._allocations.forget_below(self.complete_below - self.config.pool)

    def finish(self, end: int) -> None:
        """End the job before chunk number `end` (on the wire).

        Raises ConfigError if something has come for that chunk or a later one, or the job has none.
        """
        chunks, most = end - self.config.first_chunk, self._ledger.chunks
        if not self._next <= chunks <= most:
            raise ConfigError(
                f"{self._who}: cannot end before chunk {end}: {self.next_chunk} is the first that "
                f"nothing has come for, and its last end is {self.config.first_chunk + most}"
            )
        self._ledger.end_at(chunks)
        if self._requests is not None:
            self._requests.end_at(chunks)

    def _index(self, message: Message) -> int:
        """The row of `sums` that a message's chunk is."""
        return message.chunk - self.config.first_chunk

    def _objection(self, message: Message) -> Verdict | None:
        """Why a message is no contribution to this job, None if it is one."""
        if message.job != self.config.job:
            return Verdict.OTHER_JOB
        if message.epoch != self._epochs.of(message.chunk):
            return Verdict.OTHER_EPOCH
        if message.kind != _CONTRIBUTE:
            return Verdict.OTHER_KIND
        if not 0 <= message.chunk - self.config.first_chunk < self._ledger.chunks:
            return Verdict.NO_SUCH_CHUNK
        weight = self._allocations.sources(message.epoch).weights.get(message.source)
        if weight is None:
            return Verdict.UNKNOWN_SOURCE
        if message.weight != weight:
            return Verdict.WRONG_WEIGHT
        return None

    def _note_marks(self, flags: int) -> None:
        if flags:
            self._marks.update(flag for flag in _MARKS if flags & flag)

    def _take(self, message: Message, now: int) -> Verdict:
        chunk = self._index(message)
        if self._ledger.is_complete(chunk):
            if not self._ledger.keeps(chunk):
                return Verdict.LONG_COMPLETE
            last = self._answered_at.get(chunk)
            if last is not None and now - last < self.config.answer_interval:
                return Verdict.ANSWERED_LATELY
            return Verdict.ANSWERED_AGAIN
        gathering = self._gathering.get(chunk)
        if gathering is None:
            gathering = self._gathering[chunk] = Gathering()
            self._next = max(self._next, chunk + 1)
        verdict = gathering.take(message, self._allocations.sources(message.epoch))
        if verdict is Verdict.COMPLETING:
            self._complete(chunk, self._gathering.pop(chunk).total(), now)
        return verdict

    def _complete(self, chunk: int, total: Total, now: int) -> None:
        if total.overflowed:
            self._overflowed.add(chunk)
        number = self.config.first_chunk + chunk
        absent = self._epochs.term(number).absent
        is_right = self._ledger.complete(chunk, total.lanes, total.exponent, absent)
        if not is_right:
            self._mismatches.note(number)
        if self._journal is not None:
            lanes = self._ledger.lanes_of(chunk)
            entry = Entry(chunk, lanes, total.exponent, total.overflowed)
            self._journal.note(entry, right=is_right)
        self._complete_count += 1
        if self.config.stream is not None:
            self._answered_at.pop(chunk - self.config.pool, None)
        if self._requests is not None:
            self._requests.completed(chunk, now, direct=total.direct)

    def _answer(self, chunk: int, flags: int, now: int) -> list[bytes]:
        if self.config.answer_interval:
            self._answered_at[chunk] = now
        if chunk in self._overflowed:
            flags |= _OVERFLOW
        copies = 1 if self._requests is None else self._requests.copies
        self._answers += copies
        self._answers_again += copies - 1
        frames = self._out.answer(chunk, self._epochs.term(self.config.first_chunk + chunk), flags)
        return frames * copies

    def _request(self, chunk: int) -> bytes:
        """Ask for the sources of a chunk that are not covered, or for all, past all switches."""
        term = self._epochs.term(self.config.first_chunk + chunk)
        gathering = self._gathering.get(chunk)
        covered = gathering.covered if gathering is not None else 0
        asked = self._allocations.asked(term.epoch)
        masks = self._allocations.sources(term.epoch).masks
        bits = {bit for source, bit in asked.items() if masks[source] & ~covered}
        direct = self._requests is not None and self._requests.direct
        self._requests_sent += 1
        return self._out.request(chunk, term, bits if asked else None, direct=direct)


__all__ = ["Destination", "DestinationConfig", "DestinationStats", "Recipient", "Verdict"]
