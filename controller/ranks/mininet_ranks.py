"""Calls carried out over Mininet: ranks are processes on the hosts and send packets themselves.

The destination is told of each call before the ranks are told to go, so that it knows every chunk.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic_ns

import numpy as np

from controller.compile import JobPlan
from controller.endpoints import call_destination, call_worker, members
from controller.mininet_testbed import MininetTestbed
from controller.ranks.plans import Plans
from controller.ranks.server import Ended, Told, root_lost
from topologies.mininet_net import HOST_INTERFACE
from traffic.collectives.calls import Array, Call, part_of
from traffic.collectives.errors import CollectiveError, MissingRankError
from traffic.collectives.link import Membership
from traffic.commands import AttachDestination, Progress, Report
from traffic.reports import DestinationProgress, DestinationReport


@dataclass(slots=True)
class _Running:
    """A call that is carried out among `ranks`, for the first time or anew, under an epoch."""

    number: int
    call: Call
    began: int
    goes_on: bool
    ranks: tuple[int, ...] = ()
    epoch: int = 0
    done: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)


class MininetRanks:
    """The jobs of `plans` on a network in Mininet that is up."""

    def __init__(self, testbed: MininetTestbed, plans: Sequence[JobPlan]) -> None:
        self._testbed = testbed
        self._plans = Plans(testbed.network, testbed.switches, plans)
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
        ranks = self._plans.ranks(job)
        return Membership(ranks, self._testbed.network.build.lanes, plan.window, HOST_INTERFACE)

    def begin(
        self,
        job: int,
        number: int,
        call: Call,
        arrays: Mapping[int, Array | None],
        *,
        goes_on: bool = False,
    ) -> Mapping[int, tuple[object, ...]]:
        """Tell the destination, then let every rank go."""
        running = self._running[job] = _Running(number, call, monotonic_ns(), goes_on)
        return self._go(job, running, sorted(arrays))

    def _go(
        self, job: int, running: _Running, ranks: Sequence[int]
    ) -> Mapping[int, tuple[object, ...]]:
        """Carry a call out among some ranks, with chunks of its own; what they are to be told."""
        network, call = self._testbed.network, running.call
        plan = self._plans.over(job, ranks)
        running.ranks, running.epoch = tuple(ranks), plan.epoch
        running.done.clear()
        hosts = members(network, plan)
        # The number of chunks is that of any array of this shape and type.
        like = np.zeros(call.shape, dtype=call.dtype or np.int32)
        parts = {
            rank: part_of(call, like, rank, len(ranks), network.build.lanes, plan.window)
            for rank in ranks
        }
        chunks = parts[ranks[0]].payload.chunks
        first = self._testbed.switches.take_chunks(job, chunks)
        config = call_destination(network, plan, call, self._timing, chunks, first)
        self._testbed.tell([(network.destination.name, AttachDestination(config))])
        self.chunks += chunks
        return {
            rank: (
                "go",
                running.number,
                call_worker(network, plan, hosts[rank], call, part.op, self._timing, first),
            )
            for rank, part in parts.items()
        }

    def step(self) -> Sequence[Ended]:
        """Nothing: packets go on by themselves."""
        return ()

    def told(self, job: int, rank: int, words: tuple[object, ...]) -> Told:
        """A rank is done, has given up, or is gone."""
        running = self._running.get(job)
        if running is None or rank not in running.ranks:
            return Told()
        if words[0] == "done":
            _, number, resent, epoch = words
            if (number, epoch) == (running.number, running.epoch):
                running.done.add(rank)
                self.resent += int(str(resent))
            return self._end_if_over(job, running)
        if words[0] == "left" and running.goes_on:
            running.lost.add(rank)
            # Where it was done, all that it had to send is in the sums.
            was_done = rank in running.done
            return self._end_if_over(job, running) if was_done else self._go_on(job, running)
        if rank in running.done or (words[0] == "stuck" and words[2] != running.epoch):
            return Told()
        if words[0] == "stuck" and running.goes_on:
            lacking = self._lacking(job).intersection(running.ranks) - {rank}
            if lacking:
                return self._expel(job, running, lacking)
        del self._running[job]
        if words[0] == "left":
            error: CollectiveError = MissingRankError(
                f"{running.call}: rank {rank} has left in the middle of it", (rank,)
            )
        else:
            error = CollectiveError(f"{running.call}: {self._why(job)}; {words[-1]}")
        return Told((Ended(job, running.number, fatal=error),))

    def _end_if_over(self, job: int, running: _Running) -> Told:
        """End a call that all who are there have the result of."""
        if not running.done.union(running.lost).issuperset(running.ranks):
            return Told()
        del self._running[job]
        self.network_ns += monotonic_ns() - running.began
        return Told((Ended(job, running.number, ranks=running.ranks, committed=running.goes_on),))

    def _go_on(self, job: int, running: _Running) -> Told:
        """Without a rank that is gone: to the end where all others are done, else all anew."""
        left = [rank for rank in running.ranks if rank not in running.lost]
        if running.done.issuperset(left):
            return self._end_if_over(job, running)
        lost = root_lost(running.call, left)
        if lost is not None:
            del self._running[job]
            return Told((Ended(job, running.number, dict.fromkeys(left, lost)),))
        return Told(others=self._go(job, running, left))

    def _expel(self, job: int, running: _Running, lacking: Collection[int]) -> Told:
        """Go on without ranks that are there, and have not sent their part of a call."""
        running.lost.update(lacking)
        who = ", ".join(map(str, sorted(lacking)))
        why = MissingRankError(
            f"{running.call}: left out, since rank {who} has not sent its part of it in time",
            tuple(sorted(lacking)),
        )
        return replace(self._go_on(job, running), expelled=dict.fromkeys(lacking, why))

    def _lacking(self, job: int) -> frozenset[int]:
        """The ranks whose parts the destination lacks."""
        network = self._testbed.network
        (said,) = self._testbed.tell([(network.destination.name, Progress(job))])
        names = said.lacking if isinstance(said, DestinationProgress) else ()
        hosts = members(network, self._plans[job])
        return frozenset(rank for rank, host in enumerate(hosts) if host.name in names)

    def _why(self, job: int) -> str:
        """What the destination waits for."""
        destination = self._testbed.network.destination.name
        (report,) = self._testbed.tell([(destination, Report(job))])
        waits = report.waits_for if isinstance(report, DestinationReport) else ""
        return waits or "the destination has every chunk"
