"""What answers training workers: a parameter server of plain UDP traffic, or a destination.

Both sum what the workers push and answer with the sum, under the ticket that the push came with.
The parameter server hears every worker and answers each by a datagram of its own. The destination
of an AllReduce hears what the switches send it and answers once, by multicast.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p4src.constants import LANES, Kind
from traffic.destination import Destination
from traffic.destination_config import DestinationConfig
from traffic.errors import DecodeError
from traffic.message import (
    DESTINATION_SOURCE,
    Flow,
    FrameEncoder,
    Message,
    decode_datagram,
)
from traffic.ticket import Ticket, add_ticket, read_ticket


class _Server(ABC):
    """An endpoint that speaks when spoken to."""

    @property
    @abstractmethod
    def job(self) -> int:
        """The job that it answers."""

    @property
    @abstractmethod
    def completed(self) -> int:
        """Chunks that all workers have pushed."""

    @property
    def done(self) -> bool:
        """Always: it waits for nothing."""
        return True

    @property
    def failed(self) -> bool:
        """Never."""
        return False

    @property
    def next_deadline(self) -> int | None:
        """Never: the workers keep the time."""
        return None

    def start(self, now: int) -> list[bytes]:
        """Nothing."""
        return []

    def tick(self, now: int) -> list[bytes]:
        """Nothing."""
        return []

    @abstractmethod
    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a frame in; the answers, if it calls for any."""


class AggregationServer(_Server):
    """A destination whose answers carry the tickets of the messages that they answer."""

    def __init__(self, config: DestinationConfig) -> None:
        self._destination = Destination(config)

    @property
    def job(self) -> int:
        return self._destination.job

    @property
    def completed(self) -> int:
        return self._destination.completed

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        answers = self._destination.receive(frame, now)
        return _ticketed(answers, read_ticket(frame)) if answers else []


@dataclass(frozen=True, slots=True)
class Client:
    """A worker as its parameter server knows it."""

    rank: int
    source: int
    mac: str
    ip: str
    udp_port: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is, and how it reaches the network."""

    mac: str
    ip: str
    gateway_mac: str
    udp_port: int


class _Sum:
    """A chunk: who has pushed it, and the sum so far."""

    __slots__ = ("heard", "lanes")

    def __init__(self) -> None:
        self.heard = 0
        self.lanes: NDArray[np.int32] = np.zeros(LANES, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class ParameterServerConfig:
    """What a parameter server is told.

    `horizon`: chunk numbers after which a sum may be forgotten: two iterations.
    """

    job: int
    place: Place
    clients: tuple[Client, ...]
    horizon: int


class ParameterServer(_Server):
    """Sums pushes of the workers of one job, and answers each worker."""

    def __init__(self, config: ParameterServerConfig) -> None:
        clients, place = config.clients, config.place
        self._job = config.job
        self._clients = {client.source: client for client in clients}
        self._all = (1 << len(clients)) - 1
        self._horizon = config.horizon
        self._encoders: Mapping[int, FrameEncoder] = {
            client.source: FrameEncoder(
                Flow(
                    place.mac,
                    place.gateway_mac,
                    place.ip,
                    client.ip,
                    place.udp_port,
                    client.udp_port,
                )
            )
            for client in clients
        }
        self._sums: dict[int, _Sum] = {}
        self._completed = 0

    @property
    def job(self) -> int:
        return self._job

    @property
    def completed(self) -> int:
        return self._completed

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        try:
            message = decode_datagram(frame).message
        except DecodeError:
            return []
        client = self._clients.get(message.source)
        if client is None or message.job != self._job or message.kind != Kind.CONTRIBUTE:
            return []
        chunk = self._sums.get(message.chunk)
        if chunk is None:
            chunk = self._sums[message.chunk] = _Sum()
            self._sums.pop(message.chunk - self._horizon, None)
        again: tuple[int, ...]
        if chunk.heard >> client.rank & 1:
            again = (client.source,) if chunk.heard == self._all else ()
        else:
            chunk.heard |= 1 << client.rank
            chunk.lanes += np.frombuffer(message.lanes, dtype=">i4")
            is_complete = chunk.heard == self._all
            self._completed += is_complete
            again = tuple(self._clients) if is_complete else ()
        answer = Message(
            Kind.RESULT,
            0,
            self._job,
            DESTINATION_SOURCE,
            message.epoch,
            message.chunk,
            len(self._clients),
            chunk.lanes.astype(">i4").tobytes(),
        )
        answers = [self._encoders[source].encode(answer) for source in again]
        return _ticketed(answers, read_ticket(frame))


def server(config: ParameterServerConfig | DestinationConfig) -> _Server:
    """The machine that is told so."""
    if isinstance(config, ParameterServerConfig):
        return ParameterServer(config)
    return AggregationServer(config)


def _ticketed(frames: list[bytes], ticket: Ticket | None) -> list[bytes]:
    return frames if ticket is None else [add_ticket(frame, ticket) for frame in frames]
