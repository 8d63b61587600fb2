"""Mininet as a testbed: one switch process a switch, one process a host, real links and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Self

from controller.comeback import Comeback, resume_destination
from controller.compile import JobPlan
from controller.endpoints import Timing, destination_config, window_time, worker_config
from controller.errors import RunFailedError
from controller.mininet_running import START_DEADLINE_S, RunningMininet
from controller.p4rt import connect_blocking
from controller.peers import Milestone, Watch
from controller.queues import QueueSettings
from controller.rescue import Hands, Jobs, carry_on, outcomes_of
from controller.switches import SwitchControl
from controller.testbed import FailurePoint, OnStuck, Progress
from controller.watchdog import STUCK_NS, Telling, facts_of, find_stuck
from controller.worker_loss import go_on_without
from p4src import artefacts
from topologies.fabric.build import Conditions, link_rates
from topologies.mininet_plan import LinkPlan
from topologies.network import Network
from topologies.rerooting import find_link
from traffic.commands import Answer, AttachDestination, AttachWorker, Command, Start
from traffic.endpoint import Op
from traffic.reports import (
    DestinationProgress,
    JobOutcome,
    Values,
    WorkerProgress,
)

REDUCE_DEADLINE_S = 300.0
DRAIN_S = 60.0
"""How long what a job has sent may take to be answered before a worker comes back into it."""
_POLL_S = 0.01
CHUNK_DEADLINE_S = 0.5
"""Beyond REDUCE_DEADLINE_S, for each chunk."""
_SECOND_NS = 1_000_000_000
PATIENCE_NS = 2 * _SECOND_NS
"""Enough for a loaded machine: without loss nothing is sent twice."""
_TRIES = 20
FAULTY_PATIENCE_NS = _SECOND_NS // 10
_HOP_NS = 200_000
"""What a switch and a relay take for a frame, with as many others at work as the machine has."""
_TRIES_WITH_FAULTS = 200
_TRIES_WITH_FAILURE, _TRIES_WITH_FAILURE_AND_LOSS = 12, 50
"""Few where a switch is going to be killed."""
_UNTOUCHED = Conditions()


class MininetTestbed:
    """A network in Mininet; a context manager."""

    def __init__(
        self,
        network: Network,
        target: str,
        conditions: Conditions = _UNTOUCHED,
        queues: QueueSettings | None = None,
        *,
        records: bool = False,
    ) -> None:
        """`conditions`: of every link; `queues`: of every port, None for the switch's own;
        `records`: the destination records what it completes, and may start anew."""
        self.network = network
        self._links = LinkPlan(
            conditions.base,
            conditions.loss,
            conditions.duplicate,
            conditions.reorder,
            conditions.seed,
        )
        self._running = RunningMininet(network, target, self._links, queues, records=records)
        self._resources = ExitStack()
        self._busy = 0

    def __enter__(self) -> Self:
        """Bring the network up, wait for every switch, push the program."""
        with ExitStack() as resources:
            resources.enter_context(self._running)
            fleet = resources.enter_context(
                connect_blocking(
                    self._running.addresses,
                    artefacts.load(artefacts.folder_of(self.network.build)),
                    deadline=START_DEADLINE_S,
                )
            )
            fleet.push()
            self.switches = SwitchControl(self.network, fleet, int(time.time()))
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

    @property
    def running(self) -> RunningMininet:
        """The network."""
        return self._running

    def tell(self, commands: Sequence[tuple[str, Command]]) -> list[Answer]:
        """Tell hosts; see `Hosts.tell`."""
        return self._running.hosts.tell(commands)

    def timing(self, plans: Sequence[JobPlan], network: Network | None = None) -> Timing:
        """How patient the machines of jobs that run together are here, over one tree."""
        return self._timing(plans, self._window_time(plans, network), None)

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
        timing = self._timing(plans, self._window_time(plans), failure)
        attach: list[tuple[str, Command]] = []
        bases = []
        for plan, tensor in zip(plans, values, strict=True):
            chunks = tensor.shape[1]
            bases.append(self.switches.take_chunks(plan.job, chunks))
            config = destination_config(self.network, plan, op, timing, chunks, bases[-1])
            attach.append((self.network.destination.name, AttachDestination(config)))
            for host in self.network.workers:
                told = worker_config(self.network, plan, host, op, timing, bases[-1])
                attach.append((host.name, AttachWorker(told, tensor[host.rank])))
        self.tell(attach)
        workers = [host.name for host in self.network.workers]
        began = time.monotonic_ns()
        self.tell([(name, Start(plan.job)) for name in workers for plan in plans])
        total = sum(tensor.shape[1] for tensor in values)
        look = _Look(self, plans, on_stuck, 2 * self._window_time(plans))
        rescue = None if failure is None else failure.rescue
        jobs = Jobs(plans, values, bases, op, timing)
        try:
            self._wait(self.network, plans, total, self._watch(failure, progress, look, jobs))
            outcomes = outcomes_of(self.tell, self.network, look.plans)
            if failure is not None and failure.comeback is not None and failure.comeback.plans:
                outcomes = failure.comeback.completed_outcome(outcomes)
        except _NoWayError:
            outcomes = ()
        if rescue is not None and not (outcomes and all(one.complete for one in outcomes)):
            hands = Hands(self.tell, self.switches, self.timing, self._wait_for_rest)
            outcomes = carry_on(rescue, hands, self.network, jobs)
        self._busy += time.monotonic_ns() - began
        if progress is not None:
            progress(total)
        return outcomes

    def _wait_for_rest(self, network: Network, plans: Sequence[JobPlan], chunks: int) -> None:
        """Wait for jobs that go on over another tree."""
        self._wait(network, plans, chunks, Watch(lambda _: self._running.check()))

    def _wait(self, network: Network, plans: Sequence[JobPlan], chunks: int, watch: Watch) -> None:
        """Wait until every worker is done with every job, or has failed in it."""
        workers = [host.name for host in network.workers]
        jobs = [plan.job for plan in plans]
        each = CHUNK_DEADLINE_S + 2 * self._window_time(plans, network) / _SECOND_NS
        patience = REDUCE_DEADLINE_S + chunks * each
        try:
            self._running.hosts.wait(workers, network.destination.name, jobs, patience, watch)
        except _NoWayError:
            raise
        except RunFailedError as error:
            raise self._running.cause(error) from None

    def _watch(
        self, failure: FailurePoint | None, progress: Progress | None, look: _Look, jobs: Jobs
    ) -> Watch:
        def tick(completed: int) -> None:
            self._running.check()
            look(completed)
            if failure is not None and failure.rescue is not None and look.waits_for_lost:
                raise _NoWayError
            if progress is not None:
                progress(completed)

        if failure is None:
            return Watch(tick)
        part, goes_on = failure.part, failure.goes_on
        workers = {host.name for host in self.network.workers}

        def fail() -> None:
            if failure.resumes:
                self._running.kill(part)
                self._running.restart(part)
                resume_destination(self.tell, self.network, jobs)
                return
            if part in workers:
                self._running.kill(part)
                if goes_on:
                    self._running.hosts.dismiss([part])
                    plans = go_on_without(self.tell, self.switches, self.network, look.plans, part)
                    look.leave(part, plans)
                return
            link = find_link(self.network.topology, part)
            if part in self.network.topology.switches or link is None:
                self.switches.bury(part)
                self._running.kill(part)
            else:
                self._running.set_link(*link, up=False)
            look.lost.add(part)

        back, then = failure.comeback, None
        if back is not None:
            then = Milestone(back.completed, lambda: self._bring_back(back, jobs, look))
        return Watch(tick, Milestone(failure.completed, fail, then))

    def _bring_back(self, back: Comeback, jobs: Jobs, look: _Look) -> None:
        """Let a worker come back that jobs have gone on without.

        These hold meanwhile: they would be over before its process is there.
        """
        back.hold(self.tell, look.plans)
        self._running.restart(back.worker)
        self._await(back, lambda: back.is_time(self.tell, look.plans))
        back.begin(self.tell, self.switches, replace(jobs, plans=look.plans))
        self._await(back, lambda: back.has_drained(self.tell, back.plans))
        back.start(self.tell)
        look.welcome(back.worker, back.plans)

    def _await(self, back: Comeback, is_so: Callable[[], bool]) -> None:
        """Wait until what was sent before is answered; RunFailedError if it is not."""
        deadline = time.monotonic() + DRAIN_S
        while not is_so():
            if time.monotonic() > deadline:
                raise RunFailedError(
                    f"{back.worker}: cannot come back, since chunks from before are under way "
                    f"after {DRAIN_S:g} s"
                )
            time.sleep(_POLL_S)

    def _timing(
        self, plans: Sequence[JobPlan], window_ns: int, failure: FailurePoint | None
    ) -> Timing:
        """How patient workers are.

        Without faults nothing is to be sent twice, however loaded the machine; with them nobody
        waits longer than the switches need for what is under way.
        """
        if failure is None and not self._links.has_faults:
            patience = PATIENCE_NS + 2 * window_ns
            return Timing(patience, 2 * patience, _TRIES)
        hops = max(self.network.topology.overlay.tree.depths()) + 1
        frames = sum(plan.window for plan in plans) * len(self.network.workers) * hops
        patience = FAULTY_PATIENCE_NS + 2 * (frames * _HOP_NS + window_ns)
        return Timing(patience, 4 * patience, self._tries(failure))

    def _tries(self, failure: FailurePoint | None) -> int:
        """With faults on links, or a failure."""
        if failure is None or not failure.may_cut_off:
            return _TRIES_WITH_FAULTS
        return _TRIES_WITH_FAILURE_AND_LOSS if self._links.loss else _TRIES_WITH_FAILURE

    def _window_time(self, plans: Sequence[JobPlan], network: Network | None = None) -> int:
        """See `window_time`; 0 where links are as fast as the machine."""
        if self._links.base is None:
            return 0
        network = network or self.network
        return window_time(network, link_rates(network, self._links.base), plans)


class _NoWayError(RunFailedError):
    """Jobs do not get on any more since something has failed: no use in waiting."""

    def __init__(self) -> None:
        super().__init__("a part of the network has failed")


class _Look:
    """Looks at jobs that are waited for, and tells of those that are stuck."""

    def __init__(
        self,
        testbed: MininetTestbed,
        plans: Sequence[JobPlan],
        on_stuck: OnStuck | None,
        slack: int,
    ) -> None:
        """`slack`: nanoseconds that links may hold a chunk up beside what is usual."""
        self.lost: set[str] = set()
        self._is_stuck = False
        self._testbed = testbed
        self.plans = plans
        self.gone: set[str] = set()
        self._patience = STUCK_NS + slack
        self._told = Telling(on_stuck)

    @property
    def waits_for_lost(self) -> bool:
        """Whether nothing gets on, and something has failed."""
        return self._is_stuck and bool(self.lost)

    def leave(self, worker: str, plans: Sequence[JobPlan]) -> None:
        """Jobs have gone on under these plans, without a worker."""
        self.gone.add(worker)
        self.plans = plans

    def welcome(self, worker: str, plans: Sequence[JobPlan]) -> None:
        """Jobs have a worker again under these plans."""
        self.gone.discard(worker)
        self.plans = plans

    def __call__(self, completed: int) -> None:
        # All jobs together: to ask each takes the hosts time.
        self._is_stuck = self._told.is_stuck(0, completed, time.monotonic_ns(), self._patience)
        if not self._is_stuck:
            return
        network = self._testbed.network
        names = [host.name for host in network.hosts if host.name not in self.gone]
        left = len(network.workers) - len(self.gone)
        for plan in self.plans:
            said = self._testbed.running.hosts.survey(names, plan.job)
            workers = [one for one in said.values() if isinstance(one, WorkerProgress)]
            if len(workers) == left and all(one.done for one in workers):
                continue
            above = said.get(network.destination.name)
            destination = above if isinstance(above, DestinationProgress) else None
            self._told.tell(find_stuck(network, plan, facts_of(destination, workers, self.lost)))
