"""The fabric as a testbed: switches that are programmed over P4Runtime, and hosts that send.

with FabricTestbed(network, conditions) as testbed:
    plans = testbed.switches.install([blue], window=32)   # table entries only
    outcomes = testbed.reduce(plans, [values], Op.REDUCE)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from controller.compile import JobPlan
from controller.endpoints import Timing, destination_config, round_trip, window_time, worker_config
from controller.fabric_network import FabricNetwork
from controller.p4rt import connect_blocking
from controller.switches import SwitchControl
from controller.testbed import FailurePoint, OnStuck, Progress
from controller.watchdog import STUCK_NS, Telling, facts_of, find_stuck
from p4src import artefacts
from topologies.fabric.build import LINK_DELAY_NS, Conditions
from topologies.network import Host, Network, ip_text, mac_text
from traffic.destination import Destination
from traffic.endpoint import Op
from traffic.icmp import Echo
from traffic.reports import (
    DestinationProgress,
    DestinationReport,
    JobOutcome,
    Values,
    WorkerProgress,
    WorkerReport,
)
from traffic.worker import Worker

_TRIES = 2_000
_TRIES_WITH_FAILURE = 12
"""Sends of a chunk before a worker gives up; few where a switch is going to be killed."""


class FabricTestbed:
    """A network of software switches on a virtual clock; a context manager."""

    def __init__(self, network: Network, conditions: Conditions, pcap: Path | None = None) -> None:
        """Build the network; `pcap` is a file that receives every frame delivered, as pcapng."""
        self.network = network
        self._up = FabricNetwork(network, conditions)
        self.fabric = self._up.fabric
        self._resources = ExitStack()
        self._busy = 0
        self._pcap = pcap

    def __enter__(self) -> Self:
        """Start the P4Runtime server, become primary everywhere, push the program."""
        with ExitStack() as resources:
            switches = resources.enter_context(self._up.serve())
            fleet = resources.enter_context(connect_blocking(switches, artefacts.load()))
            fleet.push()
            if self._pcap is not None:
                resources.enter_context(self.fabric.capture(self._pcap))
            self.switches = SwitchControl(self.network, fleet)
            self._resources = resources.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    @property
    def busy(self) -> int:
        """See `Testbed.busy`."""
        return self._busy

    def reduce(
        self,
        plans: Sequence[JobPlan],
        values: Sequence[Values],
        op: Op,
        *,
        failure: FailurePoint | None = None,
        progress: Progress | None = None,
        on_stuck: OnStuck | None = None,
    ) -> tuple[JobOutcome, ...]:
        """See `Testbed.reduce`."""
        timing = self.timing(plans, _TRIES if failure is None else _TRIES_WITH_FAILURE)
        began = self.fabric.now
        jobs = [
            self._attach(plan, tensor, op, timing)
            for plan, tensor in zip(plans, values, strict=True)
        ]

        def completed() -> int:
            return sum(destination.completed for destination, _ in jobs)

        look = _Look(self, plans, jobs, on_stuck, max(STUCK_NS, 2 * timing.timeout))

        def report() -> None:
            if progress is not None:
                progress(completed())
            look()

        if failure is not None:
            self.fabric.run(until=lambda: completed() >= failure.completed, progress=report)
            self.fabric.fail(failure.switch)
            look.lost.add(failure.switch)
        self.fabric.run(until=self.fabric.all_finished, progress=report)
        self._busy += self.fabric.now - began
        # What is still under way (copies, retransmissions) is counted before anyone reads.
        self.fabric.run()
        report()
        look(now=True)
        return tuple(
            JobOutcome(DestinationReport.of(destination), tuple(map(WorkerReport.of, workers)))
            for destination, workers in jobs
        )

    def timing(self, plans: Sequence[JobPlan], tries: int = _TRIES) -> Timing:
        """How patient the machines of jobs that run together are here."""
        rates = self._up.rates
        there_and_back = round_trip(self.network, rates, LINK_DELAY_NS)
        patience = 2 * (window_time(self.network, rates, plans) + there_and_back)
        quiet = 2 * (window_time(self.network, rates, plans, aggregated=True) + there_and_back)
        return Timing(patience, 8 * patience, tries, quiet, there_and_back)

    def start(self, host: Host, endpoint: Worker | Destination) -> None:
        """Put a job's machine on a host, in place of the one before, and let it start."""
        agent = self._up.agents[host.name]
        agent.detach(endpoint.job)
        agent.attach(endpoint)
        self.fabric.send(host.name, endpoint.start(self.fabric.now))

    def ping(self, sender: Host, receiver: Host, sequence: int) -> None:
        """Let one host ping another, over the switches' ordinary IPv4 routes."""
        gateway = mac_text(self.network.switch_mac(sender.switch))
        frame = self._up.agents[sender.name].ping(
            gateway, ip_text(receiver.ip), identifier=sender.source, sequence=sequence
        )
        self.fabric.send(sender.name, [frame])

    def echo_replies(self, host: Host) -> tuple[Echo, ...]:
        """The answers to a host's pings so far."""
        return self._up.agents[host.name].echo_replies

    def _attach(
        self, plan: JobPlan, values: Values, op: Op, timing: Timing
    ) -> tuple[Destination, tuple[Worker, ...]]:
        """Put the job's machines on their hosts, and let them start."""
        chunks = values.shape[1]
        first_chunk = self.switches.take_chunks(plan.job, chunks)
        config = destination_config(self.network, plan, op, timing, chunks, first_chunk)
        destination = Destination(config)
        self.start(self.network.destination, destination)
        workers = []
        for host in self.network.workers:
            told = worker_config(self.network, plan, host, op, timing, first_chunk)
            workers.append(Worker(told, values[host.rank]))
            self.start(host, workers[-1])
        return destination, tuple(workers)


class _Look:
    """Looks at jobs that run, and tells of those that are stuck."""

    def __init__(
        self,
        testbed: FabricTestbed,
        plans: Sequence[JobPlan],
        jobs: Sequence[tuple[Destination, Sequence[Worker]]],
        on_stuck: OnStuck | None,
        patience: int,
    ) -> None:
        """`patience`: virtual nanoseconds without a chunk after which a job is stuck."""
        self.lost: set[str] = set()
        self._testbed = testbed
        self._jobs = list(zip(plans, jobs, strict=True))
        self._patience = patience
        self._told = Telling(on_stuck)

    def __call__(self, *, now: bool = False) -> None:
        """Look once; `now`: all that are not done are stuck."""
        time, patience = self._testbed.fabric.now, 0 if now else self._patience
        for plan, (destination, workers) in self._jobs:
            if all(worker.done for worker in workers):
                continue
            if self._told.is_stuck(plan.job, destination.completed, time, patience):
                said = [WorkerProgress.of(worker) for worker in workers]
                facts = facts_of(DestinationProgress.of(destination), said, self.lost)
                self._told.tell(find_stuck(self._testbed.network, plan, facts))
