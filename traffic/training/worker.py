"""A training worker: computes, pushes gradients, waits for parameters, computes again.

    backward L-1 .. 0            each layer's gradient is pushed once it is computed
    wait for layer 0, forward 0
    wait for layer 1, forward 1  ...
    forward L-1, then the next iteration

A layer's parameters are in when each of its messages is answered with the sum over all workers.
The time from the end of the backward pass until layer 0 is in is the *network blocking time*. Each
sum is compared with the one that the worker itself expects. A message without an answer is sent
again, as in `traffic.worker`.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

from p4src.constants import AGG_UDP_PORT, Flag, Kind
from traffic.errors import ConfigError, DecodeError
from traffic.message import (
    Flow,
    FrameEncoder,
    Message,
    decode_datagram,
    ip_bytes,
)
from traffic.ticket import Ticket, add_ticket
from traffic.timeout import RetransmissionTimer
from traffic.training.schedule import Ordering, Schedule, packed_rows, packed_sums, values
from traffic.worker_config import WorkerConfig

_TICKET_VALUES = 1 << 16
_NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class StepTimes:
    """One iteration of one worker, nanoseconds.

    Attributes:
        blocking: from the end of the backward pass until the parameters of layer 0 are in.
        waiting: in all, for layer 0 and those after it.
        iteration: from the beginning of the backward pass to the end of the forward pass.
        latency: of each layer, from the end of its backward computation until it is in.
    """

    blocking: int
    waiting: int
    iteration: int
    latency: tuple[int, ...]


class _Pending:
    """A message without an answer."""

    __slots__ = ("deadline", "first_sent", "tries")

    def __init__(self, now: int, timeout: int) -> None:
        self.first_sent = now
        self.deadline = now + timeout
        self.tries = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConfig:
    """What a training worker is told.

    Attributes:
        worker: addresses, timeouts, and its place in the job; its window is not used.
        schedule: what it computes and sends.
        dst_port: that of the job's messages, or of its parameter server.
        delay: nanoseconds from its start to its first iteration.
        jitter: standard deviation of the time that an iteration's computation takes, as a part of
            it, so that workers differ as real ones do.
        seed: of that chance.
    """

    worker: WorkerConfig
    schedule: Schedule
    dst_port: int = AGG_UDP_PORT
    delay: int = 0
    jitter: float = 0.0
    seed: str = ""


class TrainingWorker:
    """The machine of one worker; an endpoint of a host."""

    def __init__(self, told: TrainerConfig) -> None:
        config = self.config = told.worker
        schedule = self.schedule = told.schedule
        self._told = told
        self._encoder = FrameEncoder(
            Flow(
                config.mac,
                config.gateway_mac,
                config.ip,
                config.destination_ip,
                config.udp_port,
                told.dst_port,
            )
        )
        self._own = (ip_bytes(config.ip), config.udp_port)
        self._sums_from = (ip_bytes(config.destination_ip), told.dst_port)
        self._rows = packed_rows()
        self._sums = packed_sums(config.workers)
        self._first_chunks = schedule.first_chunks()
        self._layer_of = schedule.layer_of()
        self._iteration = 0
        self._steps: list[StepTimes] = []
        self._failed = False
        self._wrong = 0
        self._resent = 0
        # What is computed now, until when: a layer of the backward pass or of the forward pass.
        self._layer = len(schedule.layers) - 1
        self._forward = False
        self._busy_until = _NEVER
        # When it began to wait for the next layer of the forward pass, if it waits.
        self._waits_since: int | None = None
        self._began = self._backward_done = self._blocking = self._waiting = 0
        # By layer: messages sent, messages answered; which layers have something to send.
        self._sent = [0] * len(schedule.layers)
        self._answered = [0] * len(schedule.layers)
        self._computed_at = [0] * len(schedule.layers)
        self._latency = [0] * len(schedule.layers)
        # Tensors are streams of their own: some wait long behind others, so each is timed alone.
        self._timers = [_timer(config) for _ in schedule.layers]
        self._ready: list[int] = []
        self._pending: dict[int, _Pending] = {}
        self._deadlines: list[tuple[int, int]] = []

    @property
    def job(self) -> int:
        """The job it takes part in."""
        return self.config.job

    @property
    def done(self) -> bool:
        """Whether all iterations are done."""
        return self._iteration == self.schedule.iterations

    @property
    def completed(self) -> int:
        """How many messages are answered."""
        return self._iteration * self.schedule.chunks + sum(self._answered)

    @property
    def failed(self) -> bool:
        """Whether a message was given up, after `max_tries` times; it then stays silent."""
        return self._failed

    @property
    def steps(self) -> tuple[StepTimes, ...]:
        """The iterations so far."""
        return tuple(self._steps)

    @property
    def correct(self) -> bool:
        """Whether all iterations are done and every answer was the sum over all workers."""
        return self.done and not self._wrong

    @property
    def resent(self) -> int:
        """Messages sent again."""
        return self._resent

    @property
    def next_deadline(self) -> int | None:
        """When something is computed, or a message must be sent again."""
        deadlines, pending = self._deadlines, self._pending
        while deadlines:
            deadline, chunk = deadlines[0]
            entry = pending.get(chunk)
            if entry is not None and entry.deadline == deadline:
                break
            heapq.heappop(deadlines)
        repeat = deadlines[0][0] if deadlines else _NEVER
        earliest = min(repeat, self._busy_until)
        return None if earliest == _NEVER else earliest

    def start(self, now: int) -> list[bytes]:
        """Begin the first iteration at its time."""
        self._begin(now + self._told.delay)
        return []

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take an answer in; what may be sent now."""
        try:
            datagram = decode_datagram(frame)
        except DecodeError:
            return []
        message = datagram.message
        if (
            message.kind != Kind.RESULT
            or message.job != self.config.job
            or message.chunk not in self._pending
            or (datagram.dst_ip, datagram.dst_port) != self._own
            or (datagram.src_ip, datagram.src_port) != self._sums_from
        ):
            return []
        entry = self._pending.pop(message.chunk)
        if message.lanes != self._sums[message.chunk % len(self._sums)]:
            self._wrong += 1
        layer = self._layer_of[message.chunk - self._iteration * self.schedule.pool]
        self._answered[layer] += 1
        self._timers[layer].answered(now - entry.first_sent, unambiguous=entry.tries == 1)
        if self._answered[layer] == self.schedule.layers[layer].chunks:
            self._latency[layer] = now - self._computed_at[layer]
        if self._waits_since is not None and layer == self._layer:
            self._go_forward(now)
        return self._send(now, layer)

    def tick(self, now: int) -> list[bytes]:
        """What is computed, and what must be sent again."""
        frames: list[bytes] = []
        if self._busy_until <= now:
            frames += self._computed(now)
        while (deadline := self.next_deadline) is not None and deadline <= now:
            if self._busy_until <= now:
                frames += self._computed(now)
                continue
            chunk = heapq.heappop(self._deadlines)[1]
            if self._pending[chunk].tries >= self.config.max_tries:
                self._give_up()
                break
            frames.append(self._again(chunk, now))
        return frames

    # --- computation ----------------------------------------------------------------------------

    def _begin(self, now: int) -> None:
        """The backward pass of an iteration."""
        self._began = now
        self._waiting = self._blocking = 0
        self._forward = False
        self._layer = len(self.schedule.layers) - 1
        self._speed = self._draw_speed()
        self._compute(now)

    def _draw_speed(self) -> float:
        stream = random.Random(f"{self._told.seed}|{self.config.rank}|{self._iteration}")
        return max(0.5, stream.gauss(1.0, self._told.jitter))

    def _compute(self, now: int) -> None:
        work = self.schedule.layers[self._layer]
        self._busy_until = now + int(
            (work.forward if self._forward else work.backward) * self._speed
        )

    def _computed(self, now: int) -> list[bytes]:
        """A layer is done: send its gradient, or go on to the next."""
        self._busy_until = _NEVER
        if self._forward:
            self._layer += 1
            if self._layer == len(self.schedule.layers):
                self._end(now)
            else:
                self._waits_since = now
                self._go_forward(now)
            return []
        layer = self._layer
        self._computed_at[layer] = now
        heapq.heappush(self._ready, layer)
        if layer:
            self._layer -= 1
            self._compute(now)
        else:
            self._forward = True
            self._backward_done = now
            self._waits_since = now
        return self._send(now, layer)

    def _go_forward(self, now: int) -> None:
        """Compute the next layer of the forward pass, if its parameters are in."""
        layer = self._layer
        if self._answered[layer] < self.schedule.layers[layer].chunks:
            return
        assert self._waits_since is not None
        waited = now - self._waits_since
        self._waiting += waited
        if layer == 0:
            self._blocking = waited
        self._waits_since = None
        self._compute(now)

    def _end(self, now: int) -> None:
        self._steps.append(
            StepTimes(self._blocking, self._waiting, now - self._began, tuple(self._latency))
        )
        self._iteration += 1
        self._sent = [0] * len(self.schedule.layers)
        self._answered = [0] * len(self.schedule.layers)
        if not self.done:
            self._begin(now)

    # --- messages -------------------------------------------------------------------------------

    def _send(self, now: int, layer: int) -> list[bytes]:
        """Fill the window of one tensor, or send from the lowest layer that is ready.

        In order of layers, a tensor waits for what is unanswered of itself and of lower layers, not
        of higher ones: those may wait for a worker that sends this one first.
        """
        if self.schedule.ordering is Ordering.READY:
            room = self.schedule.window - (self._sent[layer] - self._answered[layer])
            left = self.schedule.layers[layer].chunks - self._sent[layer]
            return [self._first(layer, now) for _ in range(min(room, left))]
        frames: list[bytes] = []
        while self._ready:
            lowest = self._ready[0]
            if self._sent[lowest] == self.schedule.layers[lowest].chunks:
                heapq.heappop(self._ready)
                continue
            urgent = sum(self._sent[: lowest + 1]) - sum(self._answered[: lowest + 1])
            if urgent >= self.schedule.window:
                break
            frames.append(self._first(lowest, now))
        return frames

    def _first(self, layer: int, now: int) -> bytes:
        chunk = self._iteration * self.schedule.pool + self._first_chunks[layer] + self._sent[layer]
        self._sent[layer] += 1
        entry = self._pending[chunk] = _Pending(now, self._timers[layer].timeout())
        heapq.heappush(self._deadlines, (entry.deadline, chunk))
        return self._frame(chunk, 0)

    def _again(self, chunk: int, now: int) -> bytes:
        entry = self._pending[chunk]
        layer = self._layer_of[chunk - self._iteration * self.schedule.pool]
        direct = entry.tries > self.config.direct_after
        entry.deadline = now + self._timers[layer].timeout(entry.tries)
        entry.tries += 1
        heapq.heappush(self._deadlines, (entry.deadline, chunk))
        self._resent += 1
        return self._frame(chunk, Flag.RESENT | Flag.DIRECT if direct else Flag.RESENT)

    def _frame(self, chunk: int, flags: int) -> bytes:
        config = self.config
        layer = self._layer_of[chunk - self._iteration * self.schedule.pool]
        message = Message(
            Kind.CONTRIBUTE,
            flags,
            config.job,
            config.source,
            config.epoch,
            chunk,
            1,
            self._rows[values(config.rank, chunk)],
        )
        ticket = Ticket(layer, self._iteration % _TICKET_VALUES)
        return add_ticket(self._encoder.encode(message), ticket)

    def _give_up(self) -> None:
        self._failed = True
        self._busy_until = _NEVER
        self._pending.clear()
        self._deadlines.clear()


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What became of a worker: its iterations, whether all was right, what it sent again."""

    steps: tuple[StepTimes, ...]
    correct: bool
    resent: int

    @classmethod
    def of(cls, worker: TrainingWorker) -> TrainingReport:
        """Report a worker as it is now."""
        return cls(worker.steps, worker.correct, worker.resent)


def _timer(config: WorkerConfig) -> RetransmissionTimer:
    return RetransmissionTimer(
        config.initial_timeout, config.min_timeout, config.max_timeout, config.max_doublings
    )


def check_room(schedule: Schedule, window: int) -> None:
    """Raise ConfigError unless a job's slots hold an iteration, a slot for each chunk."""
    if schedule.pool > window:
        raise ConfigError(
            f"an iteration of {schedule.chunks} messages needs {schedule.pool} slots and the job "
            f"has {window}: compress the model more"
        )
