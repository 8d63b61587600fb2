"""What answers training workers: a parameter server of plain UDP traffic, or a destination.

Both sum what the workers push and answer with the sum, under the ticket that the push came with.
The parameter server hears every worker and answers each by a datagram of its own. The destination
of an AllReduce hears what the switches send it and answers once, by multicast.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p4src.constants import LANES, Kind
from traffic.destination import Destination
from traffic.errors import DecodeError
from traffic.message import (
    DESTINATION_SOURCE,
    ETHERNET_BYTES,
    Flow,
    FrameEncoder,
    Message,
    decode_datagram,
)
from traffic.ticket import Ticket, add_ticket, read_ticket


class AggregationServer:
    """A destination whose answers carry the tickets of the messages that they answer."""

    def __init__(self, destination: Destination) -> None:
        self.destination = destination

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a message in; the answer, if it calls for one."""
        answers = self.destination.receive(frame, now)
        if not answers:
            return answers
        return _ticketed(answers, read_ticket(frame))


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


class ParameterServer:
    """Sums pushes of the workers of one job, and answers each worker.

    `horizon`: chunk numbers after which a sum may be forgotten: two iterations.
    """

    def __init__(self, job: int, place: Place, clients: tuple[Client, ...], horizon: int) -> None:
        self._job = job
        self._clients = {client.source: client for client in clients}
        self._all = (1 << len(clients)) - 1
        self._horizon = horizon
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

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a push in; the answers to all workers, or again to the one that asks."""
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
            again = tuple(self._clients) if chunk.heard == self._all else ()
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


class ServerHost:
    """The host of the servers of several jobs, told apart by UDP port and job; an agent."""

    def __init__(self, servers: Mapping[tuple[int, int], AggregationServer | ParameterServer]):
        self._servers = servers

    @property
    def finished(self) -> bool:
        """Always: it speaks when spoken to."""
        return True

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

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a frame in; the answers of its server."""
        udp = ETHERNET_BYTES + 4 * (frame[ETHERNET_BYTES] & 0x0F)
        port = int.from_bytes(frame[udp + 2 : udp + 4], "big")
        job = int.from_bytes(frame[udp + 12 : udp + 14], "big")
        server = self._servers.get((port, job))
        return [] if server is None else server.receive(frame, now)


def _ticketed(frames: list[bytes], ticket: Ticket | None) -> list[bytes]:
    return frames if ticket is None else [add_ticket(frame, ticket) for frame in frames]
