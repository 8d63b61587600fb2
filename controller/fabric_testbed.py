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
from controller.testbed import FailurePoint, Progress
from p4src import artefacts
from topologies.fabric.build import LINK_DELAY_NS, Conditions
from topologies.network import Host, Network, ip_text, mac_text
from traffic.destination import Destination
from traffic.endpoint import Op
from traffic.icmp import Echo
from traffic.reports import DestinationReport, JobOutcome, Values, WorkerReport
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

        def report() -> None:
            if progress is not None:
                progress(completed())

        if failure is not None:
            self.fabric.run(until=lambda: completed() >= failure.completed, progress=report)
            self.fabric.fail(failure.switch)
        self.fabric.run(until=self.fabric.all_finished, progress=report)
        self._busy += self.fabric.now - began
        # What is still under way (copies, retransmissions) is counted before anyone reads.
        self.fabric.run()
        report()
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
