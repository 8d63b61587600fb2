"""A rank whose worker sends its own packets, on a raw socket of its network namespace."""

from __future__ import annotations

import selectors
import socket
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from traffic.collectives.calls import Part
from traffic.host import Host
from traffic.raw import occupy, open_raw, received
from traffic.worker import Worker
from traffic.worker_config import ChunkFailure, WorkerConfig

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Exchange:
    """How a call went: done, given up, or interrupted by what the network said."""

    resent: int
    overflowed: frozenset[int]
    failure: ChunkFailure | None
    interrupted: tuple[Any, ...] | None


class PacketRunner:
    """Runs the worker of one call at a time, while it listens to the network's connection."""

    def __init__(self, interface: str, connection: Connection[Any, Any]) -> None:
        self._socket = open_raw(interface)
        self._connection = connection
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._selector.register(connection, selectors.EVENT_READ)
        self._holder: socket.socket | None = None

    def run(self, config: WorkerConfig, part: Part) -> Exchange:
        """Exchange all chunks of a part; EOFError where the network goes meanwhile."""
        if self._holder is None:
            self._holder = occupy(config.ip, config.udp_port)
        worker = Worker(config, part.payload)
        host = Host(config.name, config.mac, config.ip, [worker])
        interrupted = None
        self._send(host.start(_now()))
        while not host.finished and interrupted is None:
            for key, _ in self._selector.select(_patience(host)):
                if key.fileobj is self._socket:
                    for frame in received(self._socket):
                        self._send(host.receive(frame, _now()))
                else:
                    interrupted = self._connection.recv()
            self._send(host.tick(_now()))
        return Exchange(worker.counters.resent, worker.overflowed, worker.failure, interrupted)

    def close(self) -> None:
        """Give the sockets back."""
        self._selector.close()
        self._socket.close()
        if self._holder is not None:
            self._holder.close()

    def _send(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._socket.send(frame)


def _patience(host: Host) -> float | None:
    deadline = host.next_deadline
    return None if deadline is None else max(0.0, (deadline - _now()) / _SECOND_NS)


def _now() -> int:
    return time.monotonic_ns()
