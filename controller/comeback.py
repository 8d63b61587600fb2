"""What died in a run comes back into it: a worker, a destination.

A worker comes back under its rank, from a chunk on, by a reallocation to an epoch whose sources
include it, as in a testbed (`controller.service`): what is sent before it is answered without the
worker; the worker starts when all of that is. A destination goes on with what it had completed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from controller.compile import JobPlan, destination_bits
from controller.endpoints import (
    absent_ranks,
    attach_workers,
    destination_config,
    job_sources,
)
from controller.measurement import LinkCount, Measurement, add_measurements, measure
from controller.planning import Plan
from controller.rescue import Jobs, Tell
from controller.switches import SwitchControl
from topologies.network import Network
from traffic.commands import AttachDestination, Command, Hold, Move, Progress, Release, Start
from traffic.reports import DestinationProgress, JobOutcome, WorkerProgress


def resume_destination(tell: Tell, network: Network, jobs: Jobs) -> None:
    """Give jobs to their destination again, which has started anew and has its journals still."""
    name = network.destination.name
    for plan, tensor, base in zip(jobs.plans, jobs.values, jobs.bases, strict=True):
        chunks = tensor.shape[1]
        config = destination_config(network, plan, jobs.op, jobs.timing, chunks, base)
        tell([(name, AttachDestination(config, resume=True)), (name, Start(plan.job))])


class Comeback:
    """The return of one worker, once `completed` chunks over all jobs are complete."""

    def __init__(self, network: Network, worker: str, completed: int) -> None:
        self.completed = completed
        self.worker = worker
        self.plans: tuple[JobPlan, ...] = ()
        self.firsts: tuple[int | None, ...] = ()
        """By job: the first chunk within its tensor that has the worker again; None: it had sent
        all."""
        self._before: tuple[Mapping[str, LinkCount], ...] = ()
        self._network = network
        self._host = next(host for host in network.workers if host.name == worker)

    def hold(self, tell: Tell, plans: Sequence[JobPlan]) -> None:
        """Let the jobs send nothing new until it has begun, which takes some time."""
        tell([(name, Hold(plan.job)) for plan in plans for name in self._left(plan)])

    def begin(self, tell: Tell, switches: SwitchControl, jobs: Jobs) -> None:
        """Give the jobs to the worker, whose host has none, and let all move.

        It is time: see `is_time`.
        """
        rank = self._host.rank
        others = tuple(
            replace(plan, epoch=plan.epoch + 1, absent=plan.absent - {rank}) for plan in jobs.plans
        )
        switches.install_beside(jobs.plans, self._network, others)
        self._before = tuple(switches.link_counts(plan.job, plan.epoch) for plan in others)
        firsts: list[int | None] = []
        for i, (plan, new) in enumerate(zip(jobs.plans, others, strict=True)):
            hosts = [*self._left(plan), self._network.destination.name]
            answers = tell([(name, Hold(plan.job)) for name in hosts])
            first = max(answer for answer in answers if isinstance(answer, int))
            at = first - jobs.bases[i]
            if at >= jobs.values[i].shape[1]:
                tell([(name, Release(plan.job)) for name in self._left(plan)])
                firsts.append(None)
                continue
            rest = list(jobs.values[i][:, at:])
            back = {rank}
            tell(attach_workers(self._network, plan, jobs.op, jobs.timing, rest, first, back))
            self._move(tell, plan, new, first)
            firsts.append(at)
        self.firsts = tuple(firsts)
        self.plans = tuple(
            plan if at is None else new
            for plan, new, at in zip(jobs.plans, others, self.firsts, strict=True)
        )

    def start(self, tell: Tell) -> None:
        """Let the worker send: what is before its first chunks has drained."""
        tell([(self.worker, Start(job)) for job in self._jobs()])

    def has_drained(self, tell: Tell, plans: Sequence[JobPlan]) -> bool:
        """Whether what the jobs have sent before these plans is answered."""
        return all(one.drained for one in self._said(tell, plans))

    def is_time(self, tell: Tell, plans: Sequence[JobPlan]) -> bool:
        """Whether so much is complete, and links carry nothing of before these plans, which are
        without the worker."""
        asked: list[tuple[str, Command]] = [
            (self._network.destination.name, Progress(plan.job)) for plan in plans
        ]
        above = [one for one in tell(asked) if isinstance(one, DestinationProgress)]
        if sum(one.completed for one in above) < self.completed:
            return False
        # What they sent before has gone its way when something that they sent later is answered.
        return all(
            one.done or (one.drained and one.epoch in one.first_answers)
            for one in self._said(tell, plans)
        )

    def _said(self, tell: Tell, plans: Sequence[JobPlan]) -> list[WorkerProgress]:
        asked: list[tuple[str, Command]] = [
            (name, Progress(plan.job)) for plan in plans for name in self._left(plan)
        ]
        return [one for one in tell(asked) if isinstance(one, WorkerProgress)]

    def completed_outcome(self, outcomes: Sequence[JobOutcome]) -> tuple[JobOutcome, ...]:
        """What jobs came to, with the answers of the worker at the places that they are of."""
        place = self._host.rank
        told = []
        for outcome, first in zip(outcomes, self.firsts, strict=True):
            if first is None:
                told.append(outcome)
                continue
            workers = list(outcome.workers)
            workers[place] = workers[place].placed_at(first)
            told.append(replace(outcome, workers=tuple(workers)))
        return tuple(told)

    def measured(self, switches: SwitchControl, planned: Plan, chunks: int) -> Measurement | None:
        """What links carried of the chunks that have the worker again; None if there are none."""
        parts = []
        for plan, first, before in zip(self.plans, self.firsts, self._before, strict=True):
            if first is not None:
                now = switches.link_counts(plan.job, plan.epoch)
                counts = {name: now[name] - before[name] for name in now}
                parts.append(measure([planned], counts, chunks - first))
        return add_measurements(parts) if parts else None

    def _move(self, tell: Tell, plan: JobPlan, new: JobPlan, first: int) -> None:
        network = self._network
        absent = absent_ranks(network, new)
        sources = job_sources(network, new)
        asked = destination_bits(network, new)
        move = Move(new.job, new.epoch, first, sources, asked, absent)
        tell([(network.destination.name, move)])
        told = Move(new.job, new.epoch, first, absent=absent)
        tell([(name, told) for name in (*self._left(plan), self.worker)])

    def _left(self, plan: JobPlan) -> list[str]:
        """The workers that a plan has, but for the one that comes back."""
        gone = plan.absent | {self._host.rank}
        return [host.name for host in self._network.workers if host.rank not in gone]

    def _jobs(self) -> list[int]:
        """The jobs that it has a part in again."""
        known = zip(self.plans, self.firsts, strict=True)
        return [plan.job for plan, first in known if first is not None]
