"""A worker: sends its chunks up the tree and waits for each to be answered.

States of a chunk:

    unsent --window opens--> in flight --RESULT (allreduce) or ACK (reduce)--> done
                             |    ^                                            |  ^
                             `----'  sent again, RESENT, when                  `--'
                                     the destination asks for it (also when done), REQUEST;
                                     its answer was lost, or it has waited for too long: see
                                     `traffic.in_flight`; after `direct_after` of these also
                                     DIRECT, so that no blue switch holds it up

At most `window` chunks are in flight, see `traffic.window`.

Reallocation: `hold` keeps every chunk back that has not left yet, and says the number of the first
of these; `move` lets chunks from one number on leave under a newer epoch, those below it under the
old one. An endless job ends where it is told to (`finish`), or before chunk numbers wrap.

Another worker is left out: `follow` puts all chunks that are not complete under a newer epoch, and
sends those that are in flight again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from p4src.constants import Flag, Kind
from traffic.endpoint import Op
from traffic.epochs import Epochs, Term
from traffic.errors import ConfigError
from traffic.in_flight import InFlight
from traffic.inbox import Inbox
from traffic.message import Flow, FrameEncoder, Message
from traffic.payload import Payload, Tensor, payload_of
from traffic.stream import Mismatches, Stream, StreamPayload
from traffic.window import Window
from traffic.worker_config import ChunkFailure, WorkerConfig, WorkerCounters

_RESENT = Flag.RESENT.value
_DIRECT = Flag.DIRECT.value
_OVERFLOW = Flag.OVERFLOW.value
_EPOCHS_TIMED = 8
"""Latest epochs whose first answer is remembered."""
_CONTRIBUTE = Kind.CONTRIBUTE.value
_REQUEST = Kind.REQUEST.value
_DUPLICATE = "duplicate"
_ANSWER = {Op.REDUCE: Kind.ACK.value, Op.ALLREDUCE: Kind.RESULT.value}


class Worker:
    """The machine of one worker in one job.

    `values` is an int32 array [chunks, lanes], an endless `Stream`, or whatever says chunk by chunk
    what to send. `clock` gives the times in
    `first_answers`, where `now` is not what others measure by; by default these are `now`. Raises
    ConfigError if the values are neither.
    """

    def __init__(
        self,
        config: WorkerConfig,
        values: NDArray[np.int32] | Stream | Payload,
        clock: Callable[[], int] | None = None,
    ) -> None:
        self.config = config
        self._payload = payload_of(config, values)
        self._lanes = self._payload.lanes
        self._clock = clock
        self._epochs = Epochs(f"worker {config.name}", config.epoch, config.absent)
        to = config.destination_ip
        flow = Flow(config.mac, config.gateway_mac, config.ip, to, config.udp_port)
        self._encoder = FrameEncoder(flow, self._lanes)
        self._inbox = Inbox(config, self._lanes)
        self._answer = _ANSWER[config.op]
        self._window = Window(config.window, self._payload.chunks, self._payload.reach)
        self._in_flight = InFlight(config)
        self._failure: ChunkFailure | None = None
        self._overflowed: set[int] = set()
        self._first_answers: dict[int, int] = {}
        self._sent = self._resent = self._direct = 0
        self._ignored: Counter[str] = Counter()

    @property
    def job(self) -> int:
        """The job it takes part in."""
        return self.config.job

    @property
    def epoch(self) -> int:
        """The latest allocation that it moved to."""
        return self._epochs.newest

    @property
    def moved_at(self) -> int:
        """The chunk number (on the wire) from which it holds."""
        return self._epochs.moved_at

    @property
    def drained(self) -> bool:
        """Whether nothing under an epoch before the latest is without an answer."""
        first, last = self.config.first_chunk, self._epochs.last
        if self._window.low < last.from_chunk - first:
            return False
        return all(self._window.is_answered(chunk - first) for chunk in last.kept)

    @property
    def chunks(self) -> int:
        """How many chunks it has; an endless job has as many as there are numbers."""
        return self._window.chunks

    @property
    def completed(self) -> int:
        """How many chunks are answered."""
        return self._window.done

    @property
    def in_flight(self) -> int:
        """How many chunks are sent and not answered; never more than the window."""
        return len(self._in_flight)

    @property
    def done(self) -> bool:
        """Whether every chunk is answered."""
        return self._window.done == self._window.chunks

    @property
    def failure(self) -> ChunkFailure | None:
        """The chunk that was given up, if one was; the worker then stays silent."""
        return self._failure

    @property
    def failed(self) -> bool:
        """Whether a chunk was given up."""
        return self._failure is not None

    @property
    def results(self) -> NDArray[np.int32]:
        """Sums [chunks, lanes] of an allreduce, zero where not answered.

        Empty for a reduce, and where the values were no array.
        """
        if isinstance(self._payload, Tensor):
            return self._payload.sums
        return np.zeros((0, self._lanes), dtype=np.int32)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows of `results` are answered [chunks]."""
        return np.array([self._window.is_answered(i) for i in range(len(self.results))], dtype=bool)

    @property
    def mismatches(self) -> Mismatches:
        """Sums of an endless job that were wrong, by chunk number on the wire."""
        payload = self._payload
        return payload.mismatches if isinstance(payload, StreamPayload) else Mismatches()

    @property
    def held(self) -> bool:
        """Whether chunks are held back."""
        return self._window.held

    @property
    def next_chunk(self) -> int:
        """The chunk number (on the wire) above all that have left."""
        return self.config.first_chunk + self._window.next

    @property
    def drained_below(self) -> int:
        """The chunk number (on the wire) below which every chunk is answered."""
        return self.config.first_chunk + self._window.low

    @property
    def first_answers(self) -> Mapping[int, int]:
        """When the first chunk of each epoch was answered; the latest epochs only."""
        return MappingProxyType(self._first_answers)

    @property
    def overflowed(self) -> frozenset[int]:
        """Chunks whose answer says that a lane overflowed: their sums are wrong."""
        return frozenset(self._overflowed)

    @property
    def timeout(self) -> int:
        """What a first transmission waits now before it is repeated, in nanoseconds."""
        return self._in_flight.timeout

    @property
    def counters(self) -> WorkerCounters:
        """The frames so far."""
        return WorkerCounters(
            self._sent,
            self._resent,
            self._direct,
            self._window.done,
            MappingProxyType(dict(self._ignored)),
        )

    @property
    def next_deadline(self) -> int | None:
        """When the next chunk must be sent again unless it is answered."""
        return self._in_flight.next_deadline

    def start(self, now: int) -> list[bytes]:
        """The first window of chunks; nothing where it has left."""
        return self._first(self._window.first(), now)

    def hold(self) -> int:
        """Keep back all chunks that have not left; returns `next_chunk`.

        What has left is still repeated and answered. `release` and `move` end it.
        """
        self._window.held = True
        return self.next_chunk

    def release(self, now: int) -> list[bytes]:
        """Let chunks leave again; the frames to send."""
        return self._first(self._window.release(), now)

    def move(
        self, epoch: int, from_chunk: int, now: int, absent: frozenset[int] | None = None
    ) -> list[bytes]:
        """Put chunks from one number on (on the wire) under a newer epoch, and release.

        `absent`: the ranks that it is without; None is as before. Told so once more it only
        releases. Raises ConfigError where the epoch is not newer or such a chunk has left already.
        """
        self._epochs.move(epoch, from_chunk, self.next_chunk, absent)
        return self.release(now)

    def follow(self, term: Term, now: int) -> list[bytes]:
        """Go on without some workers, as the destination has decided, and release.

        What is in flight of the new term is sent as for the first time. Told so once more it only
        releases. Raises ConfigError where the epoch is not newer, it is left out itself, or it has
        an answer to a chunk that is not complete.
        """
        config, window = self.config, self._window
        if config.rank in term.absent:
            raise ConfigError(f"worker {config.name}: is left out of epoch {term.epoch} itself")
        later = range(max(0, term.from_chunk - config.first_chunk), window.next)
        moved = [chunk for chunk in later if term.covers(config.first_chunk + chunk)]
        answered = next((chunk for chunk in moved if window.is_answered(chunk)), None)
        if answered is not None and term.epoch > self.epoch:
            raise ConfigError(
                f"worker {config.name}: has an answer to chunk {config.first_chunk + answered}, "
                f"which is not complete before epoch {term.epoch}: the destination has lost it"
            )
        again = [c for c in moved if c in self._in_flight] if self._epochs.follow(term) else []
        return self._first(again, now) + self.release(now)

    def finish(self, end: int, now: int) -> list[bytes]:
        """End the job before chunk number `end` (on the wire), and release.

        Raises ConfigError if that chunk or a later one has left, or the job has no such chunk.
        """
        window, first = self._window, self.config.first_chunk
        if not window.next <= end - first <= window.chunks:
            raise ConfigError(
                f"worker {self.config.name}: cannot end before chunk {end}: {self.next_chunk} is "
                f"the first that has not left, and its last end is {first + window.chunks}"
            )
        window.chunks = end - first
        return self.release(now)

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a frame in; returns the chunks that its answer lets go."""
        message, reason = self._inbox.read(frame)
        if message is None:
            self._ignored[reason] += 1
            return []
        objection = self._objection(message)
        if objection is not None:
            self._ignored[objection] += 1
            return self._hinted(message, now) if objection is _DUPLICATE else []
        if message.kind == _REQUEST:
            return self._requested(message, now)
        return self._answered(message, now)

    def tick(self, now: int) -> list[bytes]:
        """Send again what has waited too long."""
        frames = self._again(self._in_flight.due(now))
        if self._in_flight.given_up is not None and self._failure is None:
            chunk, tries = self._in_flight.given_up
            config = self.config
            self._failure = ChunkFailure(config.name, config.job, config.first_chunk + chunk, tries)
        return frames

    def _objection(self, message: Message) -> str | None:
        """Why a message is no answer to this worker, None if it is one."""
        term = self._epochs.term(message.chunk)
        if message.epoch != term.epoch:
            return "other-epoch"
        kind = message.kind
        if kind not in (self._answer, _REQUEST):
            return "other-kind"
        chunk = message.chunk - self.config.first_chunk
        if not 0 <= chunk < self._window.chunks:
            return "no-such-chunk"
        if kind == _REQUEST:
            return "given-up" if self._failure is not None else None
        if self._window.is_answered(chunk):
            return _DUPLICATE
        if chunk not in self._in_flight:
            return "not-sent"
        if message.weight != self.config.workers - len(term.absent):
            return "wrong-weight"
        return None

    def _answered(self, message: Message, now: int) -> list[bytes]:
        chunk = message.chunk - self.config.first_chunk
        self._in_flight.answer(chunk, now)
        if message.flags & _OVERFLOW:
            self._overflowed.add(chunk)
        absent = self._epochs.term(message.chunk).absent
        self._payload.answered(chunk, message.lanes, message.exponent, absent)
        if message.epoch not in self._first_answers:
            self._first_answers[message.epoch] = now if self._clock is None else self._clock()
            for old in sorted(self._first_answers)[:-_EPOCHS_TIMED]:
                del self._first_answers[old]
        frames = self._first(self._window.answer(chunk), now)
        return frames + self._learn(message, now)

    def _hinted(self, message: Message, now: int) -> list[bytes]:
        """An answer that has come before may tell of others."""
        if message.flags & _RESENT:
            return self._learn(message, now)
        self._in_flight.hint(message.chunk - self.config.first_chunk, message.source)
        return []

    def _learn(self, message: Message, now: int) -> list[bytes]:
        """Send again what an answer calls complete.

        A repeated answer left some time after the first: those to chunks that were complete by then
        are lost, not late.
        """
        chunk, is_repeated = message.chunk - self.config.first_chunk, bool(message.flags & _RESENT)
        lost = self._in_flight.learn(chunk, message.source, now, repeated=is_repeated)
        return self._again(lost) if lost else []

    def _requested(self, message: Message, now: int) -> list[bytes]:
        """The destination asks for a chunk.

        That it expects one that has not left yet means that those before it in its slots are
        complete: their answers were lost.
        """
        chunk = message.chunk - self.config.first_chunk
        if not self._window.has_left(chunk):
            return self._again(self._in_flight.complete(self._window.before(chunk), now))
        self._in_flight.requested(chunk, now)
        return self._again([(chunk, bool(message.flags & _DIRECT))])

    def _first(self, chunks: Iterable[int], now: int) -> list[bytes]:
        """Send chunks for the first time."""
        frames = []
        for chunk in chunks:
            self._in_flight.send(chunk, now)
            frames.append(self._frame(chunk, 0))
        self._sent += len(frames)
        return frames

    def _again(self, chunks: Iterable[tuple[int, bool]]) -> list[bytes]:
        """Send chunks again, each with whether it is to pass all blue switches."""
        frames = []
        for chunk, direct in chunks:
            frames.append(self._frame(chunk, _RESENT | _DIRECT if direct else _RESENT))
            self._direct += direct
        self._resent += len(frames)
        return frames

    def _frame(self, chunk: int, flags: int) -> bytes:
        config = self.config
        number = config.first_chunk + chunk
        lanes, exponent = self._payload.message(chunk)
        kind, job, source, epoch = _CONTRIBUTE, config.job, config.source, self._epochs.of(number)
        message = Message(kind, flags, job, source, epoch, number, 1, lanes, exponent)
        return self._encoder.encode(message)


__all__ = ["ChunkFailure", "Worker", "WorkerConfig", "WorkerCounters"]
