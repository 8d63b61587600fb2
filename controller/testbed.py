"""The fabric as a testbed: switches that are programmed over P4Runtime, and hosts that send.

    with FabricTestbed(network, conditions) as testbed:
        plans = testbed.install([blue], window=32)   # a new epoch: table entries only
        outcomes = testbed.reduce(plans, [values], Op.REDUCE)

Switches run p4c's output in this process and are reached through a real P4Runtime server on
loopback, as those of any other target are; links, queues and hosts live on a virtual clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from controller.compile import JobPlan, compile_programs, destination_sources, share_slots
from controller.measurement import LinkCount
from controller.p4rt import SwitchAddress, connect_blocking
from controller.placement import loads
from p4src import artefacts
from p4src.constants import LANES, Outcome
from softswitch.device import Device
from softswitch.p4runtime import P4RuntimeServer, ServerThread
from topologies.fabric.build import LINK_DELAY_NS, Conditions, build_fabric, link_rates
from topologies.network import CPU_PORT, Host, Network, ip_text, mac_text
from traffic.destination import Destination, DestinationConfig
from traffic.endpoint import Op
from traffic.host import Host as HostAgent
from traffic.icmp import Echo
from traffic.message import ETHERNET_BYTES, HEADER_BYTES, LANE_BYTES, UDP_BYTES, group_ip, group_mac
from traffic.worker import ChunkFailure, Worker, WorkerConfig

Values = NDArray[np.int32]
Progress = Callable[[int], None]
"""Called now and then with the number of chunks complete so far, over all jobs."""

_FRAME_BITS = 8 * (ETHERNET_BYTES + 20 + UDP_BYTES + HEADER_BYTES + LANES * LANE_BYTES)
_SECOND_NS = 1_000_000_000
_TRIES_WITH_FAILURE = 12
"""Sends of a chunk before a worker gives up, in a run that kills a switch."""


@dataclass(frozen=True, slots=True)
class FailurePoint:
    """A switch to kill once `completed` chunks, over all jobs, are complete."""

    switch: str
    completed: int


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What one job came to.

    Attributes:
        sums: int32 [chunks, lanes] at the destination.
        results: by rank, int32 [chunks, lanes] at each worker (allreduce; else empty).
        complete: every worker had every chunk answered.
        resent: retransmissions by the workers.
        failures: chunks that workers gave up.
        waits_for: what the first incomplete chunk waits for, in words; "" if there is none.
        overflowed: chunks with a lane whose sum left int32.
    """

    job: int
    sums: Values
    results: tuple[Values, ...]
    complete: bool
    resent: int
    failures: tuple[ChunkFailure, ...]
    waits_for: str
    overflowed: frozenset[int]


class FabricTestbed:
    """A network of software switches on a virtual clock; a context manager."""

    def __init__(self, network: Network, conditions: Conditions) -> None:
        self.network = network
        self._devices = {
            name: Device(device_id=i, cpu_port=CPU_PORT)
            for i, name in enumerate(network.topology.switches, start=1)
        }
        self._agents = {
            host.name: HostAgent(host.name, mac_text(host.mac), ip_text(host.ip))
            for host in (*network.workers, network.destination)
        }
        self.fabric = build_fabric(network, self._devices, self._agents, conditions)
        # Hosts begin without a job; jobs are attached to them and started one by one.
        self.fabric.run()
        self._resources = ExitStack()
        self._epoch = 0
        self._next_chunk: dict[int, int] = {}

    def __enter__(self) -> Self:
        """Start the P4Runtime server, become primary everywhere, push the program."""
        with ExitStack() as resources:
            server = P4RuntimeServer(self._devices.values())
            address = resources.enter_context(ServerThread(server)).address
            switches = [
                SwitchAddress(name, address, device.device_id)
                for name, device in self._devices.items()
            ]
            self._fleet = resources.enter_context(connect_blocking(switches, artefacts.load()))
            self._fleet.push()
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
    def now(self) -> int:
        """The network's clock, in nanoseconds."""
        return self.fabric.now

    def install(self, blue_sets: Sequence[frozenset[int]], window: int) -> tuple[JobPlan, ...]:
        """Give every job its blue switches, as a new epoch; only differences are written.

        Raises CompileError where a placement does not fit, SwitchError where a switch refuses.
        """
        self._epoch += 1
        plans = share_slots(blue_sets, self._epoch, window)
        self._fleet.reconcile(compile_programs(self.network, plans))
        self._next_chunk = {plan.job: 0 for plan in plans}
        return plans

    def reduce(
        self,
        plans: Sequence[JobPlan],
        values: Sequence[Values],
        op: Op,
        *,
        failure: FailurePoint | None = None,
        progress: Progress | None = None,
    ) -> tuple[JobOutcome, ...]:
        """Run one Reduce of every job, all at once; `values[j]` is int32 [workers, chunks, lanes].

        Ends when every worker has all its answers, or has given up.
        """
        patience = self._window_time(plans)
        jobs = [
            self._attach(plan, tensor, op, patience, failure is not None)
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
        # What is still under way (copies, retransmissions) is counted before anyone reads.
        self.fabric.run()
        report()
        return tuple(_outcome(destination, workers) for destination, workers in jobs)

    def ping(self, sender: Host, receiver: Host, sequence: int) -> None:
        """Let one host ping another, over the switches' ordinary IPv4 routes."""
        gateway = mac_text(self.network.switch_mac(sender.switch))
        frame = self._agents[sender.name].ping(
            gateway, ip_text(receiver.ip), identifier=sender.source, sequence=sequence
        )
        self.fabric.send(sender.name, [frame])

    def echo_replies(self, host: Host) -> tuple[Echo, ...]:
        """The answers to a host's pings so far."""
        return self._agents[host.name].echo_replies

    def link_counts(self) -> Mapping[str, LinkCount]:
        """Messages that each overlay switch has sent to its parent, over all jobs."""
        counters = self._fleet.all_direct_counters("upstream")
        counts = {}
        for name in self.network.topology.overlay.names:
            by_class = [0, 0]
            for entry, value in counters[name].items():
                match = dict(entry.match)
                by_class[match["resent"] == 1] += value.packets
            counts[name] = LinkCount(*by_class)
        return counts

    def outcome_counts(self) -> Counter[str]:
        """Packets by what became of them (names of `outcome_t`), over all switches."""
        total: Counter[str] = Counter()
        for cells in self._fleet.all_counters("outcomes").values():
            for outcome in Outcome:
                total[outcome.name] += cells[outcome].packets
        return total

    def _window_time(self, plans: Sequence[JobPlan]) -> int:
        """Nanoseconds in which the most congested link carries one window of every job.

        Answers take up to that long without any loss, so no timeout may be shorter.
        """
        overlay = self.network.topology.overlay
        rates = link_rates(self.network)
        carried = [0] * overlay.tree.n
        for plan in plans:
            for v, messages in enumerate(loads(overlay.tree, plan.blue).messages):
                carried[v] += messages * plan.window
        busiest = max(
            count * _FRAME_BITS * _SECOND_NS // rates[name]
            for name, count in zip(overlay.names, carried, strict=True)
        )
        hops = max(overlay.tree.depths()) + 2
        return busiest + 2 * hops * LINK_DELAY_NS

    def _attach(
        self, plan: JobPlan, values: Values, op: Op, patience: int, is_to_fail: bool
    ) -> tuple[Destination, tuple[Worker, ...]]:
        """Put the job's machines on their hosts, and let them start."""
        first_chunk = self._next_chunk[plan.job]
        self._next_chunk[plan.job] += values.shape[1]
        destination = self._destination(plan, values, op, first_chunk)
        self._start(self.network.destination, destination)
        workers = []
        for host in self.network.workers:
            config = self._worker_config(plan, host, op, patience, is_to_fail, first_chunk)
            worker = Worker(config, values[host.rank])
            workers.append(worker)
            self._start(host, worker)
        return destination, tuple(workers)

    def _start(self, host: Host, endpoint: Worker | Destination) -> None:
        agent = self._agents[host.name]
        agent.detach(endpoint.job)
        agent.attach(endpoint)
        self.fabric.send(host.name, endpoint.start(self.now))

    def _destination(self, plan: JobPlan, values: Values, op: Op, first_chunk: int) -> Destination:
        host = self.network.destination
        return Destination(
            DestinationConfig(
                job=plan.job,
                epoch=plan.epoch,
                mac=mac_text(host.mac),
                ip=ip_text(host.ip),
                group_mac=group_mac(group_ip(plan.job)),
                group_ip=group_ip(plan.job),
                op=op,
                chunks=values.shape[1],
                first_chunk=first_chunk,
                sources=destination_sources(self.network, plan.blue),
                workers=[worker.name for worker in self.network.workers],
            )
        )

    def _worker_config(
        self,
        plan: JobPlan,
        host: Host,
        op: Op,
        patience: int,
        is_to_fail: bool,
        first_chunk: int,
    ) -> WorkerConfig:
        return WorkerConfig(
            name=host.name,
            job=plan.job,
            epoch=plan.epoch,
            source=host.source,
            rank=host.rank,
            workers=len(self.network.workers),
            mac=mac_text(host.mac),
            ip=ip_text(host.ip),
            udp_port=host.udp_port,
            gateway_mac=mac_text(self.network.switch_mac(host.switch)),
            destination_ip=ip_text(self.network.destination.ip),
            group_ip=group_ip(plan.job),
            window=plan.window,
            first_chunk=first_chunk,
            op=op,
            initial_timeout=2 * patience,
            min_timeout=2 * patience,
            max_timeout=16 * patience,
            **({"max_tries": _TRIES_WITH_FAILURE} if is_to_fail else {}),
        )


def _outcome(destination: Destination, workers: tuple[Worker, ...]) -> JobOutcome:
    waiting = destination.first_incomplete()
    return JobOutcome(
        job=destination.job,
        sums=destination.sums,
        results=tuple(worker.results for worker in workers),
        complete=destination.done and all(worker.done for worker in workers),
        resent=sum(worker.counters.resent for worker in workers),
        failures=tuple(worker.failure for worker in workers if worker.failure is not None),
        waits_for="" if waiting is None else destination.explain(waiting),
        overflowed=destination.overflowed.union(*(worker.overflowed for worker in workers)),
    )
