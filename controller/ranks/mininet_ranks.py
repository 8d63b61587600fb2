"""Calls carried out over Mininet: ranks are processes on the hosts and send packets themselves.

The destination is told of each call before the ranks are told to go, so that it knows every chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic_ns

import numpy as np

from controller.compile import JobPlan
from controller.endpoints import call_destination, call_worker, members
from controller.mininet_testbed import MininetTestbed
from controller.ranks.server import Ended
from topologies.mininet_net import HOST_INTERFACE
from traffic.collectives.calls import Array, Call, part_of
from traffic.collectives.errors import CollectiveError, MissingRankError
from traffic.collectives.link import Membership
from traffic.commands import AttachDestination, Report
from traffic.reports import DestinationReport


@dataclass(slots=True)
class _Running:
    number: int
    call: Call
    began: int
    done: set[int] = field(default_factory=set)


class MininetRanks:
    """The jobs of `plans` on a network in Mininet that is up."""

    def __init__(self, testbed: MininetTestbed, plans: Sequence[JobPlan]) -> None:
        self._testbed = testbed
        self._plans = {plan.job: plan for plan in plans}
        self._timing = testbed.timing(plans)
        self._running: dict[int, _Running] = {}
        self.chunks = 0
        self.resent = 0
        self.network_ns = 0

    @property
    def busy(self) -> bool:
        """Never: ranks say when they are done."""
        return False

    def membership(self, job: int) -> Membership:
        """The workers that take part, and their hosts' interface."""
        plan = self._plans[job]
        ranks = len(members(self._testbed.network, plan))
        return Membership(ranks, self._testbed.network.build.lanes, plan.window, HOST_INTERFACE)

    def begin(
        self, job: int, number: int, call: Call, arrays: Mapping[int, Array | None]
    ) -> Mapping[int, tuple[object, ...]]:
        """Tell the destination, then let every rank go."""
        network, plan = self._testbed.network, self._plans[job]
        hosts = members(network, plan)
        # The number of chunks is that of any array of this shape and type.
        like = np.zeros(call.shape, dtype=call.dtype or np.int32)
        parts = [
            part_of(call, like, rank, len(hosts), network.build.lanes, plan.window)
            for rank in range(len(hosts))
        ]
        chunks = parts[0].payload.chunks
        first = self._testbed.switches.take_chunks(job, chunks)
        config = call_destination(network, plan, call, self._timing, chunks, first)
        self._testbed.tell([(network.destination.name, AttachDestination(config))])
        self._running[job] = _Running(number, call, monotonic_ns())
        self.chunks += chunks
        return {
            rank: (
                "go",
                number,
                call_worker(network, plan, host, call, part.op, self._timing, first),
            )
            for rank, (host, part) in enumerate(zip(hosts, parts, strict=True))
        }

    def step(self) -> Sequence[Ended]:
        """Nothing: packets go on by themselves."""
        return ()

    def told(self, job: int, rank: int, words: tuple[object, ...]) -> Sequence[Ended]:
        """A rank is done, has given up, or is gone."""
        running = self._running.get(job)
        if running is None:
            return ()
        if words[0] == "done" and words[1] == running.number:
            running.done.add(rank)
            self.resent += int(str(words[2]))
            if len(running.done) < len(members(self._testbed.network, self._plans[job])):
                return ()
            del self._running[job]
            self.network_ns += monotonic_ns() - running.began
            return (Ended(job, running.number),)
        if rank in running.done:
            return ()
        del self._running[job]
        if words[0] == "left":
            error: CollectiveError = MissingRankError(
                f"{running.call}: rank {rank} has left in the middle of it", (rank,)
            )
        else:
            error = CollectiveError(f"{running.call}: {self._why(job)}; {words[-1]}")
        return (Ended(job, running.number, fatal=error),)

    def _why(self, job: int) -> str:
        """What the destination waits for."""
        destination = self._testbed.network.destination.name
        (report,) = self._testbed.tell([(destination, Report(job))])
        waits = report.waits_for if isinstance(report, DestinationReport) else ""
        return waits or "the destination has every chunk"
