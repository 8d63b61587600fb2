"""Links that lose, double and delay frames, in real time: one process that joins their halves.

With faults, a link over Mininet is two veth pairs. This process holds the inner ends of all of
them, hands frames on from each to the other, and lets `topologies.faults` decide the fate of each.
So any switch and any host gets the same faults, whatever the kernel can do. It reads a `RelayPlan`,
pickled, from its standard input, says "ready" once every interface is open, and ends with its
standard input. In real time a seed fixes the fate of the n-th frame of a direction, not which
frame that is.
"""

from __future__ import annotations

import pickle
import select
import socket
import sys
import time
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import BinaryIO

from softswitch.ports.interface import Interface, open_socket
from softswitch.ports.ring import Ring
from softswitch.ports.sender import Sender
from topologies.faults import Faults, direction_name
from topologies.mininet_plan import RELAY_READY, Half, RelayPlan

REORDER_DELAY_NS = 2_000_000
"""Up to so late is a delayed frame: longer than the next ones take to overtake it."""
RING_BYTES = 512 * 1024
"""Of each interface, 256 frames: links of a testbed carry few at a time, and there are many."""
_BATCH = 64
_NS_IN_MS = 1_000_000


def faults_of(plan: RelayPlan, source: Half, target: Half) -> Faults:
    """The chances of frames that come in through `source`."""
    return Faults(
        plan.seed,
        direction_name(source.node, source.port, target.node, target.port),
        loss=plan.loss,
        duplicate=plan.duplicate,
        reorder=plan.reorder,
        reorder_delay=REORDER_DELAY_NS,
    )


class _End:
    """This process's interface of one half."""

    def __init__(self, half: Half) -> None:
        sock = open_socket(half.interface)
        self.ring = Ring(sock, Interface.look_at(half.interface), RING_BYTES)
        self.sender = Sender(sock)
        self.number = sock.fileno()
        self._socket = sock

    def clear_error(self) -> None:
        """Forget what the kernel has noted, such as that the interface went: it says so for ever
        otherwise."""
        self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


class _Way:
    """One direction: frames that come in at `source` leave at `target`, or later, or never."""

    def __init__(self, source: _End, target: _End, faults: Faults) -> None:
        self.source, self.sender = source, target.sender
        self._faults = faults

    def carry(self, late: list[tuple[int, int, Sender, bytes]], number: int) -> int:
        """Hand on what is there; what is late goes to the heap, numbered from `number`."""
        now: int | None = None
        in_time = []
        for frame in self.source.ring.receive(_BATCH):
            for delay in self._faults.fate():
                if delay:
                    now = now or time.monotonic_ns()
                    heappush(late, (now + delay, number, self.sender, frame))
                    number += 1
                else:
                    in_time.append(frame)
        if in_time:
            self.sender.send(in_time)
        return number


class Relay:
    """All links of a network."""

    def __init__(self, plan: RelayPlan) -> None:
        """Open every interface; raises PortError."""
        self._ways: dict[int, _Way] = {}
        for one, other in plan.links:
            ends = _End(one), _End(other)
            self._ways[ends[0].number] = _Way(ends[0], ends[1], faults_of(plan, one, other))
            self._ways[ends[1].number] = _Way(ends[1], ends[0], faults_of(plan, other, one))

    def run(self, stop: BinaryIO) -> None:
        """Carry frames until there is something to read from `stop`, or it ends."""
        poll = select.epoll()
        for number in self._ways:
            poll.register(number, select.EPOLLIN)
        poll.register(stop.fileno(), select.EPOLLIN | select.EPOLLHUP)
        late: list[tuple[int, int, Sender, bytes]] = []
        following = 0
        while True:
            # Waits are rounded up to whole milliseconds: a frame is late by a little more.
            wait = None
            if late:
                wait = max(0.0, (late[0][0] - time.monotonic_ns()) / _NS_IN_MS / 1000)
            for number, events in poll.poll(wait, _BATCH):
                way = self._ways.get(number)
                if way is None:
                    return
                if events & select.EPOLLERR:
                    way.source.clear_error()
                following = way.carry(late, following)
            while late and late[0][0] <= time.monotonic_ns():
                _, _, sender, frame = heappop(late)
                sender.send([frame])


def main(arguments: Sequence[str]) -> int:
    """Relay what the plan on standard input says; see the module's text."""
    plan = pickle.load(sys.stdin.buffer)
    relay = Relay(plan)
    sys.stdout.buffer.write(RELAY_READY)
    sys.stdout.buffer.flush()
    relay.run(sys.stdin.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
