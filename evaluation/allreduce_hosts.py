"""AllReduce without aggregation in the network: ring, tree and parameter server, as UDP datagrams.

Agents for the hosts of a fabric. Every datagram carries as many float32 as fit 1,500 bytes and is
sent on as soon as it has been added to: nothing waits for the rest of a step, which is the best
that these algorithms can do. There is no retransmission: the fabric they run on loses nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traffic.message import ETHERTYPE_IPV4, ip_bytes, ipv4_header, mac_bytes

_PORT = 7000
_UDP = 17
_UDP_BYTES = 8
_HEADER = struct.Struct("!HHI")
"""Step, sender's rank, first element."""
_PAYLOAD_AT = 14 + 20 + _UDP_BYTES
MTU_ELEMENTS = (1500 - 20 - _UDP_BYTES - _HEADER.size) // 4

Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a host is: addresses as text, and the MAC address of its switch."""

    mac: str
    ip: str
    gateway_mac: str


class Sender:
    """Makes datagrams from one host to others."""

    def __init__(self, own: Place, rank: int, others: Sequence[Place]) -> None:
        self._rank = rank
        self._ethernet = mac_bytes(own.gateway_mac) + mac_bytes(own.mac) + ETHERTYPE_IPV4
        self._own = own
        self._others = others
        self._heads: dict[tuple[int, int], bytes] = {}

    def datagram(self, to: int, step: int, first: int, values: Values) -> bytes:
        """A frame for the host of that number."""
        data = values.tobytes()
        head = self._heads.get((to, len(data)))
        if head is None:
            size = _UDP_BYTES + _HEADER.size + len(data)
            # UDP checksum 0: none (RFC 768).
            udp = struct.pack("!HHHH", _PORT, _PORT, size, 0)
            ipv4 = ipv4_header(self._own.ip, self._others[to].ip, _UDP, size)
            head = self._heads[to, len(data)] = self._ethernet + ipv4 + udp
        return head + _HEADER.pack(step, self._rank, first) + data


def cut(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Bounds of the datagrams that carry elements `start` to `end`."""
    for first in range(start, end, MTU_ELEMENTS):
        yield first, min(first + MTU_ELEMENTS, end)


class Agent:
    """What the machines have in common: they start, and answer datagrams."""

    next_deadline: int | None = None

    def __init__(self, own: Place, rank: int, others: Sequence[Place], values: Values) -> None:
        self.sums = values.copy()
        self._ip = ip_bytes(own.ip)
        self._sender = Sender(own, rank, others)
        self._rank = rank
        self._missing = len(values)

    @property
    def finished(self) -> bool:
        """Whether it has every sum."""
        return self._missing == 0

    def start(self, now: int) -> list[bytes]:
        """The first datagrams."""
        raise NotImplementedError

    def tick(self, now: int) -> list[bytes]:
        """Nothing: it keeps no time."""
        return []

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a frame in, if it is for this host."""
        if frame[30:34] != self._ip:
            return []
        step, sender, first = _HEADER.unpack_from(frame, _PAYLOAD_AT)
        values = np.frombuffer(frame, dtype=np.float32, offset=_PAYLOAD_AT + _HEADER.size)
        return self.take(step, sender, first, values)

    def take(self, step: int, sender: int, first: int, values: Values) -> list[bytes]:
        """A datagram: what it makes this host send."""
        raise NotImplementedError

    def _keep(self, first: int, values: Values) -> None:
        self.sums[first : first + len(values)] = values
        self._missing -= len(values)


class RingAgent(Agent):
    """Reduce-scatter and all-gather around the ranks: 2 (n - 1) steps of 1/n of the array."""

    def __init__(self, own: Place, rank: int, others: Sequence[Place], values: Values) -> None:
        super().__init__(own, rank, others, values)
        self._ranks = len(others)
        self._next = (rank + 1) % self._ranks
        self._bounds = [len(values) * i // self._ranks for i in range(self._ranks + 1)]

    def start(self, now: int) -> list[bytes]:
        """The segment that begins its way here."""
        start, end = self._bounds[self._rank], self._bounds[self._rank + 1]
        return [self._sender.datagram(self._next, 0, a, self.sums[a:b]) for a, b in cut(start, end)]

    def take(self, step: int, sender: int, first: int, values: Values) -> list[bytes]:
        """Add and pass on; from step n - 2 on it is the sum."""
        if step < self._ranks - 1:
            values = values + self.sums[first : first + len(values)]
        if step >= self._ranks - 2:
            self._keep(first, values)
        if step == 2 * self._ranks - 3:
            return []
        return [self._sender.datagram(self._next, step + 1, first, values)]


class TreeAgent(Agent):
    """A binary tree of the hosts themselves: sums go up to its root, and come down again.

    Each host sums a run of neighbouring ranks: it is in the middle, its children in the middle of
    either half. So most of the tree's edges stay within the same switches.
    """

    _UP, _DOWN = 0, 1

    def __init__(self, own: Place, rank: int, others: Sequence[Place], values: Values) -> None:
        super().__init__(own, rank, others, values)
        self._parent, self._children = neighbours(len(others), rank)
        self._heard: dict[int, int] = {}

    def start(self, now: int) -> list[bytes]:
        """A leaf's whole array."""
        if self._children:
            return []
        return self._up(0, self.sums)

    def take(self, step: int, sender: int, first: int, values: Values) -> list[bytes]:
        """Add what comes from below; spread what comes from above."""
        if step == self._UP:
            own = self.sums[first : first + len(values)]
            own += values
            heard = self._heard[first] = self._heard.get(first, 0) + 1
            if heard < len(self._children):
                return []
            if self._parent is not None:
                return self._up(first, own)
            values = own
        self._keep(first, values)
        return [self._sender.datagram(c, self._DOWN, first, values) for c in self._children]

    def _up(self, first: int, values: Values) -> list[bytes]:
        if self._parent is None:
            return []
        return [
            self._sender.datagram(self._parent, self._UP, first + a, values[a:b])
            for a, b in cut(0, len(values))
        ]


def neighbours(ranks: int, rank: int) -> tuple[int | None, tuple[int, ...]]:
    """Parent (None at the root) and children of a rank in the binary tree over neighbours."""
    low, high, parent = 0, ranks, None
    while True:
        middle = (low + high) // 2
        if middle == rank:
            halves = ((low, middle), (middle + 1, high))
            return parent, tuple((a + b) // 2 for a, b in halves if a < b)
        parent = middle
        low, high = (low, middle) if rank < middle else (middle + 1, high)


class PushAgent(Agent):
    """A worker of a parameter server, which is the last of the hosts."""

    def __init__(self, own: Place, rank: int, others: Sequence[Place], values: Values) -> None:
        super().__init__(own, rank, others, values)
        self._server = len(others) - 1

    def start(self, now: int) -> list[bytes]:
        """The whole array."""
        return [
            self._sender.datagram(self._server, 0, a, self.sums[a:b])
            for a, b in cut(0, len(self.sums))
        ]

    def take(self, step: int, sender: int, first: int, values: Values) -> list[bytes]:
        """A sum."""
        self._keep(first, values)
        return []


class ServerAgent(Agent):
    """The parameter server: sums what all workers push, and sends each the sums.

    In turns it sends nothing before it has everything (push, then pull); else each datagram's sum
    as soon as it is there.
    """

    def __init__(
        self, own: Place, others: Sequence[Place], elements: int, *, in_turns: bool
    ) -> None:
        rank = len(others) - 1
        super().__init__(own, rank, others, np.zeros(elements, dtype=np.float32))
        self._workers = rank
        self._in_turns = in_turns
        self._heard: dict[int, int] = {}

    def start(self, now: int) -> list[bytes]:
        """Nothing: it waits for the workers."""
        return []

    def take(self, step: int, sender: int, first: int, values: Values) -> list[bytes]:
        """Add; answer when it is time."""
        own = self.sums[first : first + len(values)]
        own += values
        heard = self._heard[first] = self._heard.get(first, 0) + 1
        if heard < self._workers:
            return []
        self._missing -= len(values)
        if not self._in_turns:
            return self._answers(first, first + len(values))
        if self._missing:
            return []
        return [frame for a, b in cut(0, len(self.sums)) for frame in self._answers(a, b)]

    def _answers(self, start: int, end: int) -> list[bytes]:
        return [
            self._sender.datagram(worker, 1, start, self.sums[start:end])
            for worker in range(self._workers)
        ]
