"""Machines alone, over a network that delays, loses and repeats frames at will."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from p4src.constants import Flag
from tests.unit.traffic.hosts import destination, worker
from traffic.endpoint import Op
from traffic.message import decode_frame
from traffic.stream import Stream
from traffic.worker import Worker


class Cloud:
    """Machines alone, over a network that delays, loses and repeats frames at will."""

    def __init__(self, workers: int, window: int, op: Op, seed: int) -> None:
        self.rng = random.Random(seed)
        self.workers = workers
        stream = Stream(seed=2, workers=workers, period=5)
        sources = [frozenset({rank}) for rank in range(workers)]
        self.destination = destination(
            sources, workers, chunks=0, window=window, stream=stream, op=op
        )
        told: dict[str, Any] = {"initial_timeout": 60, "min_timeout": 60}
        self.everyone = [
            Worker(worker(rank, workers, chunks=0, window=window, op=op, **told).config, stream)
            for rank in range(workers)
        ]
        self.up: list[bytes] = []
        self.down: list[tuple[int, bytes]] = []
        self.first_sends: Counter[int] = Counter()

    def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            message = decode_frame(frame)
            if not message.flags & Flag.RESENT:
                self.first_sends[message.chunk] += 1
            self.up.extend([frame] * self.rng.choice([0, 1, 1, 1, 2]))

    def step(self, now: int) -> None:
        rng = self.rng
        for w in self.ticking:
            self.send(w.tick(now))
        if self.up:
            for frame in self.destination.receive(self.up.pop(rng.randrange(len(self.up))), now):
                reached = [rank for rank in range(self.workers) if rng.random() > 0.2]
                self.down.extend((rank, frame) for rank in reached)
        if self.down:
            rank, frame = self.down.pop(rng.randrange(len(self.down)))
            self.deliver(rank, frame, now)

    def deliver(self, rank: int, frame: bytes, now: int) -> None:
        self.send(self.everyone[rank].receive(frame, now))

    @property
    def left(self) -> list[Worker]:
        """Who takes part."""
        return self.everyone

    @property
    def ticking(self) -> list[Worker]:
        """Whose deadlines count."""
        return self.everyone

    def move(self, now: int) -> None:
        start = max(w.hold() for w in self.left)
        epoch = self.destination.epoch + self.rng.randint(1, 3)
        sources = {w.config.source: frozenset({w.config.rank}) for w in self.left}
        self.destination.move(epoch, start, sources)
        for w in self.rng.sample(self.left, len(self.left)):
            self.send(w.move(epoch, start, now))
            self.step(now)
