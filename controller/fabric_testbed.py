"""The fabric as a testbed: switches that are programmed over P4Runtime, and hosts that send.

with FabricTestbed(network, conditions) as testbed:
    plans = testbed.switches.install([blue], window=32)   # table entries only
    outcomes = testbed.reduce(plans, [values], Op.REDUCE)
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

from controller.comeback import Comeback
from controller.compile import JobPlan
from controller.endpoints import Timing, destination_config, round_trip, window_time, worker_config
from controller.fabric_network import FabricNetwork
from controller.p4rt import connect_blocking
from controller.rescue import Hands, Jobs, carry_on, outcomes_of
from controller.switches import SwitchControl
from controller.testbed import FailurePoint, OnStuck, Progress
from controller.watchdog import STUCK_NS, Telling, facts_of, find_stuck
from controller.worker_loss import go_on_without
from p4src import artefacts
from topologies.fabric import StopReason
from topologies.fabric.build import LINK_DELAY_NS, SLOWEST_LINK_BPS, Conditions, link_rates
from topologies.network import Host, Network, ip_text, mac_text
from topologies.rerooting import find_link
from traffic.commands import Answer, Command, Commands
from traffic.destination import Destination
from traffic.endpoint import Op
from traffic.icmp import Echo
from traffic.journal import Journal, size_of
from traffic.reports import (
    DestinationProgress,
    JobOutcome,
    Values,
    WorkerProgress,
)
from traffic.worker import Worker

_TRIES = 2_000
_TRIES_WITH_FAILURE, _TRIES_WITH_FAILURE_AND_LOSS = 12, 200
"""Sends of a chunk before a worker gives up; few where a switch is going to be killed."""


class FabricTestbed:
    """A network of software switches on a virtual clock; a context manager."""

    def __init__(
        self,
        network: Network,
        conditions: Conditions,
        pcap: Path | None = None,
        epoch: int = 0,
        *,
        records: bool = False,
    ) -> None:
        """Build the network; `pcap` is a file that receives every frame delivered, as pcapng.

        `epoch`: all epochs are above it. `records`: the destination records what it completes, and
        may start anew.
        """
        self._records = records
        self._journals: dict[int, bytearray] = {}
        self.network = network
        # Of links outside the tree as well, or less.
        slowest = max(Fraction(1), min(network.topology.overlay.tree.rate))
        self._base = conditions.base or int(SLOWEST_LINK_BPS / slowest)
        self._up = FabricNetwork(network, conditions)
        self.fabric = self._up.fabric
        self._resources = ExitStack()
        self._busy = 0
        self._pcap = pcap
        self._epoch = epoch
        self._loses = conditions.loss > 0

    def __enter__(self) -> Self:
        """Start the P4Runtime server, become primary everywhere, push the program."""
        with ExitStack() as resources:
            switches = resources.enter_context(self._up.serve())
            program = artefacts.load(artefacts.folder_of(self.network.build))
            fleet = resources.enter_context(connect_blocking(switches, program))
            fleet.push()
            if self._pcap is not None:
                resources.enter_context(self.fabric.capture(self._pcap))
            self.switches = SwitchControl(self.network, fleet, self._epoch)
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
        timing = self.timing(plans, tries=self._tries(failure))
        began = self.fabric.now
        bases = []
        for plan, tensor in zip(plans, values, strict=True):
            bases.append(self.switches.take_chunks(plan.job, tensor.shape[1]))
            self._attach(plan, tensor, op, timing, bases[-1])
        look = _Look(self, self.network, plans, on_stuck, progress, timing)
        if failure is None:
            self._run(look, until_stuck=False)
        else:
            self.fabric.run(until=lambda: look.completed() >= failure.completed, progress=look)
            self._fail(failure.part, look)
            if failure.resumes:
                self._up.restart(failure.part)
                for plan, tensor, base in zip(plans, values, bases, strict=True):
                    self._start_destination(plan, tensor, op, timing, base, resume=True)
                look.renew(plans)
            if failure.goes_on:
                plans = go_on_without(self._tell, self.switches, self.network, plans, failure.part)
                look.leave(failure.part, plans)
                if failure.comeback is not None:
                    jobs = Jobs(plans, values, bases, op, timing)
                    plans = self._bring_back(failure.comeback, jobs, look)
            self._run(look, until_stuck=failure.may_cut_off)
        rescued: tuple[JobOutcome, ...] | None = None
        if failure is not None and failure.rescue is not None and not look.is_over:
            look(now=True)
            jobs = Jobs(plans, values, bases, op, timing)
            hands = Hands(self._tell, self.switches, self.timing, self._run_to_the_end)
            rescued = carry_on(failure.rescue, hands, self.network, jobs)
        self._busy += self.fabric.now - began
        # What is still under way (copies, retransmissions) is counted before anyone reads.
        self.fabric.run()
        if rescued is not None:
            return rescued
        look(now=True)
        outcomes = outcomes_of(self._tell, self.network, plans)
        if failure is not None and failure.comeback is not None and failure.comeback.plans:
            return failure.comeback.completed_outcome(outcomes)
        return outcomes

    def _tries(self, failure: FailurePoint | None) -> int:
        if failure is None or not failure.may_cut_off:
            return _TRIES
        return _TRIES_WITH_FAILURE_AND_LOSS if self._loses else _TRIES_WITH_FAILURE

    def _bring_back(self, back: Comeback, jobs: Jobs, look: _Look) -> tuple[JobPlan, ...]:
        """Let a worker come back when it is time; the plans from then on."""
        # Most events leave the number as it is.
        self.fabric.run(
            until=lambda: (
                look.completed() >= back.completed and back.is_time(self._tell, jobs.plans)
            ),
            progress=look,
        )
        self._up.restart(back.worker)
        back.begin(self._tell, self.switches, jobs)
        self.fabric.run(until=lambda: back.has_drained(self._tell, back.plans))
        back.start(self._tell)
        look.welcome(back.worker, back.plans)
        return back.plans

    def _fail(self, part: str, look: _Look) -> None:
        link = find_link(self.network.topology, part)
        if part in self.network.topology.switches or link is None:
            self.fabric.fail(part)
            look.lost.add(part)
        else:
            self._up.set_link(*link, up=False)

    def _run(self, look: _Look, *, until_stuck: bool) -> None:
        """Let events happen until all jobs have ended or, if wanted, one does not get on."""
        while not (until_stuck and look.is_stuck):
            ended = self.fabric.run(
                until=self.fabric.all_finished,
                deadline=self.fabric.now + look.patience // 4,
                progress=look,
            )
            if ended.reason is not StopReason.DEADLINE:
                return
            look()

    def _run_to_the_end(self, network: Network, plans: Sequence[JobPlan], chunks: int) -> None:
        """Let events happen until all jobs are over."""
        self.fabric.run(until=self.fabric.all_finished)

    def _tell(self, commands: Sequence[tuple[str, Command]]) -> list[Answer]:
        """Have hosts carry out commands, at one moment; their answers in order."""
        answers = []
        for name, command in commands:
            host = Commands(self._up.agents[name])
            answer, frames = host.carry_out(command, self.fabric.now)
            answers.append(answer)
            self.fabric.send(name, frames)
        return answers

    def timing(
        self, plans: Sequence[JobPlan], network: Network | None = None, tries: int = _TRIES
    ) -> Timing:
        """How patient the machines of jobs that run together are here, over one tree."""
        network = network or self.network
        rates = self._up.rates if network is self.network else link_rates(network, self._base)
        there_and_back = round_trip(network, rates, LINK_DELAY_NS)
        patience = 2 * (window_time(network, rates, plans) + there_and_back)
        quiet = 2 * (window_time(network, rates, plans, aggregated=True) + there_and_back)
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
        self, plan: JobPlan, values: Values, op: Op, timing: Timing, first_chunk: int
    ) -> None:
        """Put the job's machines on their hosts, and let them start."""
        self._start_destination(plan, values, op, timing, first_chunk)
        for host in self.network.workers:
            told = worker_config(self.network, plan, host, op, timing, first_chunk)
            self.start(host, Worker(told, values[host.rank]))

    def _start_destination(
        self,
        plan: JobPlan,
        values: Values,
        op: Op,
        timing: Timing,
        first_chunk: int,
        *,
        resume: bool = False,
    ) -> None:
        """Put a job's destination on its host; with `resume` it goes on with what it recorded."""
        config = destination_config(self.network, plan, op, timing, values.shape[1], first_chunk)
        journal = None
        if self._records:
            if not resume:
                self._journals[plan.job] = bytearray(size_of(config))
            journal = Journal(config, self._journals[plan.job], resume=resume)
        self.start(self.network.destination, Destination(config, journal))

    def machines(
        self, network: Network, plan: JobPlan
    ) -> tuple[Destination | None, tuple[Worker, ...]]:
        """The destination and the workers of a job, where they have machines for it."""
        found = [self._up.agents[host.name].endpoints.get(plan.job) for host in network.workers]
        above = self._up.agents[network.destination.name].endpoints.get(plan.job)
        workers = tuple(machine for machine in found if isinstance(machine, Worker))
        return above if isinstance(above, Destination) else None, workers


class _Look:
    """Looks at jobs that run, says how far they are, and tells of those that are stuck."""

    def __init__(
        self,
        testbed: FabricTestbed,
        network: Network,
        plans: Sequence[JobPlan],
        on_stuck: OnStuck | None,
        progress: Progress | None,
        timing: Timing,
    ) -> None:
        self.lost: set[str] = set()
        self.gone: set[str] = set()
        self.is_stuck = False
        # Virtual nanoseconds without a chunk after which a job is stuck.
        self.patience = max(STUCK_NS, 2 * timing.timeout)
        self._testbed = testbed
        self._network = network
        self._jobs = [(plan, *testbed.machines(network, plan)) for plan in plans]
        self._told = Telling(on_stuck)
        self._progress = progress

    def leave(self, worker: str, plans: Sequence[JobPlan]) -> None:
        """Jobs have gone on under these plans, without a worker."""
        self.gone.add(worker)
        self._jobs = [
            (plan, above, tuple(one for one in workers if one.config.name not in self.gone))
            for plan, (_, above, workers) in zip(plans, self._jobs, strict=True)
        ]

    def welcome(self, worker: str, plans: Sequence[JobPlan]) -> None:
        """Jobs have a worker again under these plans."""
        self.gone.discard(worker)
        self.renew(plans)

    def renew(self, plans: Sequence[JobPlan]) -> None:
        """Other machines have these jobs."""
        self._jobs = [(plan, *self._testbed.machines(self._network, plan)) for plan in plans]

    def completed(self) -> int:
        """Chunks complete at the destinations of all jobs."""
        return sum(destination.completed for _, destination, _ in self._jobs if destination)

    @property
    def is_over(self) -> bool:
        """Whether every worker has all its answers."""
        return all(worker.done for _, _, workers in self._jobs for worker in workers)

    def __call__(self, *, now: bool = False) -> None:
        """Look once; `now`: all that are not done are stuck."""
        if self._progress is not None:
            self._progress(self.completed())
        time, patience = self._testbed.fabric.now, 0 if now else self.patience
        self.is_stuck = False
        for plan, destination, workers in self._jobs:
            if destination is None or all(worker.done for worker in workers):
                continue
            if self._told.is_stuck(plan.job, destination.completed, time, patience):
                self.is_stuck = True
                said = [WorkerProgress.of(worker) for worker in workers]
                facts = facts_of(DestinationProgress.of(destination), said, self.lost)
                self._told.tell(find_stuck(self._network, plan, facts))
