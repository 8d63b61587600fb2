"""Calls carried out on the fabric: every rank's worker is on the rank's host, in virtual time.

Calls of different jobs run at the same time and share links and switches; the virtual clock stands
still while no job has a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.compile import JobPlan
from controller.endpoints import call_destination, call_worker, members
from controller.fabric_testbed import FabricTestbed
from controller.ranks.plans import Plans
from controller.ranks.server import Ended, Told
from topologies.fabric import StopReason
from traffic.collectives.calls import Array, Call, Part, part_of
from traffic.collectives.errors import CollectiveError
from traffic.collectives.link import Membership
from traffic.destination import Destination
from traffic.worker import Worker

_EVENTS_AT_ONCE = 5_000
"""Between two looks at what the ranks say: some 50 ms."""


@dataclass(frozen=True, slots=True)
class _Running:
    number: int
    call: Call
    parts: tuple[Part, ...]
    ranks: tuple[int, ...]
    workers: tuple[Worker, ...]
    destination: Destination

    @property
    def over(self) -> bool:
        return self.failed or all(worker.done for worker in self.workers)

    @property
    def failed(self) -> bool:
        return any(worker.failed for worker in self.workers)


class FabricRanks:
    """The jobs of `plans` on a fabric that is up."""

    def __init__(self, testbed: FabricTestbed, plans: Sequence[JobPlan]) -> None:
        self._testbed = testbed
        self._plans = Plans(testbed.network, testbed.switches, plans)
        self._timing = testbed.timing(plans)
        self._running: dict[int, _Running] = {}
        self.chunks = 0
        self.resent = 0
        self.network_ns = 0

    @property
    def busy(self) -> bool:
        """Whether a call is running."""
        return bool(self._running)

    def membership(self, job: int) -> Membership:
        """The workers that take part, no interface."""
        plan = self._plans[job]
        return Membership(self._plans.ranks(job), self._testbed.network.build.lanes, plan.window)

    def begin(
        self,
        job: int,
        number: int,
        call: Call,
        arrays: Mapping[int, Array | None],
        *,
        goes_on: bool = False,
    ) -> Mapping[int, tuple[object, ...]]:
        """Put a worker on the host of every rank that takes part, and the destination on its own.

        Whoever is lost from here on has had its part in the call: its array is here.
        """
        network, ranks = self._testbed.network, tuple(sorted(arrays))
        plan = self._plans.over(job, ranks)
        hosts = [members(network, plan)[rank] for rank in ranks]
        lanes, window = network.build.lanes, plan.window
        parts = tuple(
            part_of(call, _given(arrays, rank), rank, len(ranks), lanes, window) for rank in ranks
        )
        chunks = parts[0].payload.chunks
        first = self._testbed.switches.take_chunks(job, chunks)
        destination = Destination(
            call_destination(network, plan, call, self._timing, chunks, first)
        )
        workers = tuple(
            Worker(
                call_worker(network, plan, host, call, part.op, self._timing, first), part.payload
            )
            for host, part in zip(hosts, parts, strict=True)
        )
        self._running[job] = _Running(number, call, parts, ranks, workers, destination)
        self._testbed.start(network.destination, destination)
        for host, worker in zip(hosts, workers, strict=True):
            self._testbed.start(host, worker)
        self.chunks += chunks
        return {}

    def step(self) -> Sequence[Ended]:
        """Let virtual time go on until a call is over, or for some thousand events."""
        fabric = self._testbed.fabric
        began = fabric.now

        def over() -> bool:
            # Asked before every event: mostly one comparison a job. Failures can wait.
            return any(
                running.destination.done and running.over for running in self._running.values()
            )

        reason = fabric.run(until=over, max_events=_EVENTS_AT_ONCE).reason
        self.network_ns += fabric.now - began
        ended = []
        for job, running in list(self._running.items()):
            if running.over or reason is StopReason.IDLE:
                del self._running[job]
                ended.append(self._ended(job, running))
        return ended

    def told(self, job: int, rank: int, words: tuple[object, ...]) -> Told:
        """Nothing: ranks only call, and one that has left has had its part in a running call."""
        return Told()

    def _ended(self, job: int, running: _Running) -> Ended:
        self.resent += sum(worker.counters.resent for worker in running.workers)
        if not all(worker.done for worker in running.workers):
            waiting = running.destination.first_incomplete()
            failure = next((w.failure for w in running.workers if w.failure is not None), None)
            why = str(failure) if waiting is None else running.destination.explain(waiting)
            return Ended(job, running.number, fatal=CollectiveError(f"{running.call}: {why}"))
        results: dict[int, Array | CollectiveError | None] = {}
        for rank, part, worker in zip(running.ranks, running.parts, running.workers, strict=True):
            try:
                results[rank] = part.result(worker.overflowed)
            except CollectiveError as error:
                results[rank] = error
        return Ended(job, running.number, results, ranks=running.ranks)


def _given(arrays: Mapping[int, Array | None], rank: int) -> Array:
    array = arrays[rank]
    if array is None:
        raise CollectiveError(f"rank {rank} gave no array")
    return array
