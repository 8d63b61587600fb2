"""A worker: sends its chunks up the tree and waits for each to be answered.

States of a chunk:

    unsent --window opens--> pending --RESULT (allreduce) or ACK (reduce)--> done
                             |    ^
                             `----'  timeout: sent again, RESENT; after `direct_after` of
                                     these also DIRECT, so that no blue switch holds it up

The window is self-clocked: chunk c + window leaves only when the answer to c is in, so that at most
`window` chunks are in flight. The slots of a switch are a power of two, which a window that is none
does not divide: then chunk c + pool, with pool the next power of two, waits for c too. So no two
chunks in flight share a slot, in any pool of a power of two that holds the window.
"""

import heapq
from collections import Counter
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from p4src.constants import AGG_UDP_PORT, Flag, Kind
from traffic.endpoint import Op
from traffic.errors import ConfigError, DecodeError
from traffic.message import (
    Datagram,
    Flow,
    FrameEncoder,
    Message,
    decode_datagram,
    ip_bytes,
)
from traffic.payload import Payload, Tensor
from traffic.timeout import RetransmissionTimer
from traffic.worker_config import ChunkFailure, WorkerConfig, WorkerCounters

_RESENT = Flag.RESENT.value
_DIRECT = Flag.DIRECT.value
_OVERFLOW = Flag.OVERFLOW.value
_ANSWER = {Op.REDUCE: Kind.ACK.value, Op.ALLREDUCE: Kind.RESULT.value}


class _Pending:
    """A chunk in flight."""

    __slots__ = ("deadline", "first_sent", "tries")

    def __init__(self, now: int, timeout: int) -> None:
        self.first_sent = now
        self.deadline = now + timeout
        self.tries = 1


class Worker:
    """The machine of one worker in one job.

    `values` is an int32 array [chunks, lanes], or whatever says chunk by chunk what to send. Raises
    ConfigError if it is neither.
    """

    def __init__(self, config: WorkerConfig, values: NDArray[np.int32] | Payload) -> None:
        self.config = config
        if isinstance(values, np.ndarray):
            values = Tensor(values, with_sums=config.op == Op.ALLREDUCE)
        self._payload: Payload = values
        self._chunks, self._lanes = values.chunks, values.lanes
        self._epoch = config.epoch
        self._encoder = FrameEncoder(
            Flow(
                config.mac,
                config.gateway_mac,
                config.ip,
                config.destination_ip,
                config.udp_port,
            ),
            self._lanes,
        )
        # How results come in: rewritten by the last switch, or still to the group.
        self._own = (ip_bytes(config.ip), config.udp_port)
        self._group = (ip_bytes(config.group_ip), AGG_UDP_PORT)
        # How many chunks back lie those whose answers let a chunk go.
        pool = 1 << (config.window - 1).bit_length()
        self._distances = tuple(sorted({config.window, pool, values.reach} - {0}))
        self._sent_once = bytearray(self._chunks)
        self._is_done = bytearray(self._chunks)
        self._done_count = 0
        self._pending: dict[int, _Pending] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._timer = RetransmissionTimer(
            config.initial_timeout, config.min_timeout, config.max_timeout, config.max_doublings
        )
        self._failure: ChunkFailure | None = None
        self._overflowed: set[int] = set()
        self._sent = self._resent = self._direct = 0
        self._ignored: Counter[str] = Counter()

    @property
    def job(self) -> int:
        """The job it takes part in."""
        return self.config.job

    @property
    def epoch(self) -> int:
        """The allocation that it now sends under."""
        return self._epoch

    @property
    def chunks(self) -> int:
        """How many chunks it has."""
        return self._chunks

    @property
    def completed(self) -> int:
        """How many chunks are answered."""
        return self._done_count

    @property
    def in_flight(self) -> int:
        """How many chunks are sent and not answered; never more than the window."""
        return len(self._pending)

    @property
    def done(self) -> bool:
        """Whether every chunk is answered."""
        return self._done_count == self._chunks

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
    def overflowed(self) -> frozenset[int]:
        """Chunks whose answer says that a lane overflowed: their sums are wrong."""
        return frozenset(self._overflowed)

    @property
    def timeout(self) -> int:
        """What a first transmission waits now before it is repeated, in nanoseconds."""
        return self._timer.timeout()

    @property
    def counters(self) -> WorkerCounters:
        """The frames so far."""
        return WorkerCounters(
            self._sent,
            self._resent,
            self._direct,
            self._done_count,
            MappingProxyType(dict(self._ignored)),
        )

    @property
    def next_deadline(self) -> int | None:
        """When the next chunk must be sent again unless it is answered."""
        deadlines, pending = self._deadlines, self._pending
        while deadlines:
            deadline, chunk = deadlines[0]
            entry = pending.get(chunk)
            if entry is not None and entry.deadline == deadline:
                return deadline
            heapq.heappop(deadlines)
        return None

    def start(self, now: int) -> list[bytes]:
        """The first window of chunks."""
        first = min(self._distances[0], self._chunks)
        return [self._first(chunk, now) for chunk in range(first)]

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a frame in; returns the chunks that its answer lets go."""
        try:
            datagram = decode_datagram(frame, self._lanes)
        except DecodeError as error:
            self._ignored[error.reason.value] += 1
            return []
        reason = self._objection(datagram)
        if reason is not None:
            self._ignored[reason] += 1
            return []
        return self._answered(datagram.message, now)

    def tick(self, now: int) -> list[bytes]:
        """Send again what has waited too long."""
        frames: list[bytes] = []
        while (deadline := self.next_deadline) is not None and deadline <= now:
            chunk = heapq.heappop(self._deadlines)[1]
            if self._pending[chunk].tries >= self.config.max_tries:
                self._give_up(chunk)
                break
            frames.append(self._again(chunk, now))
        return frames

    def enter_epoch(self, epoch: int, now: int) -> list[bytes]:
        """Go on under a newer allocation: chunks in flight are sent again under it.

        Answers of the old one are no longer accepted; the destination answers again.
        """
        if epoch <= self._epoch:
            raise ConfigError(
                f"worker {self.config.name}: epoch {epoch} is not newer than {self._epoch}"
            )
        self._epoch = epoch
        for entry in self._pending.values():
            entry.tries = 0
        return [self._again(chunk, now) for chunk in sorted(self._pending)]

    def _objection(self, datagram: Datagram) -> str | None:
        """Why a message is no answer to this worker, None if it is one."""
        message = datagram.message
        if (datagram.dst_ip, datagram.dst_port) not in (self._own, self._group):
            return "not-addressed"
        if message.job != self.config.job:
            return "other-job"
        if message.epoch != self._epoch:
            return "other-epoch"
        if message.kind != _ANSWER[self.config.op]:
            return "other-kind"
        chunk = message.chunk - self.config.first_chunk
        if not 0 <= chunk < self._chunks:
            return "no-such-chunk"
        if self._is_done[chunk]:
            return "duplicate"
        if chunk not in self._pending:
            return "not-sent"
        if message.weight != self.config.workers:
            return "wrong-weight"
        return None

    def _answered(self, message: Message, now: int) -> list[bytes]:
        chunk = message.chunk - self.config.first_chunk
        entry = self._pending.pop(chunk)
        self._timer.answered(now - entry.first_sent, unambiguous=entry.tries == 1)
        if message.flags & _OVERFLOW:
            self._overflowed.add(chunk)
        self._payload.answered(chunk, message.lanes, message.exponent)
        self._is_done[chunk] = 1
        self._done_count += 1
        candidates = [chunk + distance for distance in self._distances]
        return [self._first(next_, now) for next_ in candidates if self._may_leave(next_)]

    def _may_leave(self, chunk: int) -> bool:
        if chunk >= self._chunks or self._sent_once[chunk]:
            return False
        return all(
            chunk < distance or self._is_done[chunk - distance] for distance in self._distances
        )

    def _first(self, chunk: int, now: int) -> bytes:
        entry = _Pending(now, self._timer.timeout())
        self._pending[chunk] = entry
        self._sent_once[chunk] = 1
        self._sent += 1
        heapq.heappush(self._deadlines, (entry.deadline, chunk))
        return self._frame(chunk, 0)

    def _again(self, chunk: int, now: int) -> bytes:
        entry = self._pending[chunk]
        direct = entry.tries > self.config.direct_after
        is_slow = entry.tries >= self.config.slow_after
        wait = self.config.max_timeout if is_slow else self._timer.timeout(entry.tries)
        entry.deadline = now + wait + self._spread(wait, chunk, entry.tries)
        # After a change of epoch tries is 0, yet an answer may be one to an earlier transmission.
        entry.tries = max(entry.tries + 1, 2)
        heapq.heappush(self._deadlines, (entry.deadline, chunk))
        self._resent += 1
        self._direct += direct
        return self._frame(chunk, _RESENT | _DIRECT if direct else _RESENT)

    def _spread(self, wait: int, chunk: int, tries: int) -> int:
        """Up to a quarter of a wait, differing by worker, chunk and try but always the same.

        Workers whose messages were lost together in a full queue would else meet there again.
        """
        mixed = self.config.source * 0x9E3779B1 + chunk * 0x85EBCA77 + tries * 0xC2B2AE3D
        return wait * (mixed & 0xFFFFFFFF) >> 34

    def _frame(self, chunk: int, flags: int) -> bytes:
        config = self.config
        lanes, exponent = self._payload.message(chunk)
        return self._encoder.encode(
            Message(
                Kind.CONTRIBUTE.value,
                flags,
                config.job,
                config.source,
                self._epoch,
                config.first_chunk + chunk,
                1,
                lanes,
                exponent,
            )
        )

    def _give_up(self, chunk: int) -> None:
        self._failure = ChunkFailure(
            self.config.name,
            self.config.job,
            self.config.first_chunk + chunk,
            self._pending[chunk].tries,
        )
        self._pending.clear()
        self._deadlines.clear()


__all__ = ["ChunkFailure", "Worker", "WorkerConfig", "WorkerCounters"]
