"""What a run does when a part of its network fails: it goes on over another tree, or says why not.

Its jobs leave their hosts. What every worker has the answer to stays; all chunks from the first
other one on are summed anew on a tree that avoids what has failed, under other job numbers and a
newer epoch, so nothing that is still under way can be taken for a part of them. Where no way is
left to a worker, nothing is begun anew, and what is complete is what the run came to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from controller.compile import JobPlan
from controller.endpoints import Timing, destination_config, worker_config
from controller.planning import Plan
from controller.switches import SwitchControl
from p4src.constants import JOBS, SLOTS
from topologies.network import Host, Network
from topologies.rerooting import Detour, find_detour
from topologies.topology import Topology
from traffic.commands import (
    Answer,
    AttachDestination,
    AttachWorker,
    Command,
    Detach,
    Progress,
    Report,
    Start,
)
from traffic.endpoint import Op
from traffic.reports import (
    DestinationReport,
    JobOutcome,
    Values,
    WorkerProgress,
    WorkerReport,
)

Place = Callable[[Topology], Plan]
"""Chooses the blue switches of a tree."""
Tell = Callable[[Sequence[tuple[str, Command]]], Sequence[Answer]]
"""Has hosts carry out commands; their answers in order."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a run as their hosts have them: `values[j]` is int32 [workers, chunks, lanes].

    `bases` are the first chunks of their tensors, on the wire.
    """

    plans: Sequence[JobPlan]
    values: Sequence[Values]
    bases: Sequence[int]
    op: Op
    timing: Timing


@dataclass(frozen=True, slots=True)
class Hands:
    """What a testbed lends to a rescue.

    Attributes:
        timing: how patient the machines of jobs are, over one tree.
        wait: until jobs with so many chunks in all are over, on a tree.
    """

    tell: Tell
    switches: SwitchControl
    timing: Callable[[Sequence[JobPlan], Network], Timing]
    wait: Callable[[Network, Sequence[JobPlan], int], None]


@dataclass(frozen=True, slots=True)
class Continuation:
    """The jobs that go on over another tree.

    Attributes:
        detour: the tree, and where its destination is.
        plan: the placement on it.
        jobs: of the jobs before, by their place, and as what each goes on.
        first: the first chunk of all that is summed anew, from 0 within the tensors.
    """

    detour: Detour
    plan: Plan
    jobs: tuple[tuple[int, JobPlan], ...]
    first: int


class Rescue:
    """The way out of one failure; it remembers what came of it."""

    def __init__(self, network: Network, part: str, place: Place, jobs: int) -> None:
        """`part`: a switch or a link, by name; `place`: chooses the blue switches of a tree."""
        self._network = network
        self._place = place
        self.is_possible = 2 * jobs <= JOBS
        self.continuation: Continuation | None = None
        self.detour = find_detour(network, {part})

    @property
    def cut_off(self) -> tuple[Host, ...]:
        """The workers that no way leads to any more."""
        return self._network.workers if self.detour is None else self.detour.cut_off

    def plan(
        self, plans: Sequence[JobPlan], outcomes: Sequence[JobOutcome], first: int
    ) -> Continuation | None:
        """How the jobs that are not complete go on from a chunk; None if they cannot."""
        if self.detour is None or self.detour.cut_off or not self.is_possible:
            return None
        placed = self._place(self.detour.network.topology)
        slots = max(plan.slot_base + plan.window for plan in plans)
        # Where there are no others, their own do: nothing newer comes for them, and a newer epoch
        # takes a slot over.
        base = slots if 2 * slots <= SLOTS else 0
        jobs = tuple(
            (
                i,
                replace(
                    plan,
                    job=plan.job + len(plans),
                    epoch=plan.epoch + 1,
                    blue=placed.blue,
                    slot_base=plan.slot_base + base,
                ),
            )
            for i, (plan, outcome) in enumerate(zip(plans, outcomes, strict=True))
            if not outcome.complete
        )
        self.continuation = Continuation(self.detour, placed, jobs, first)
        return self.continuation


def carry_on(rescue: Rescue, hands: Hands, network: Network, jobs: Jobs) -> tuple[JobOutcome, ...]:
    """Let jobs that are stuck go on over another tree; what they came to in all."""
    before, first = take_off(hands.tell, network, jobs.plans, jobs.bases)
    continuation = rescue.plan(jobs.plans, before, first)
    if continuation is None:
        return before
    view, others = continuation.detour.network, [plan for _, plan in continuation.jobs]
    hands.switches.install_beside(jobs.plans, view, others)
    go_on(hands.tell, continuation, jobs.values, jobs.op, hands.timing(others, view))
    rest = sum(jobs.values[i].shape[1] - first for i, _ in continuation.jobs)
    hands.wait(view, others, rest)
    return joined(before, continuation, outcomes_of(hands.tell, view, others))


def take_off(
    tell: Tell, network: Network, plans: Sequence[JobPlan], bases: Sequence[int]
) -> tuple[tuple[JobOutcome, ...], int]:
    """Take jobs off their hosts: what they came to, and the first chunk that has to be done again.

    `bases` are the first chunks of the jobs' tensors, on the wire.
    """
    hosts = [*(host.name for host in network.workers), network.destination.name]
    outcomes, firsts = [], []
    for plan, base in zip(plans, bases, strict=True):
        progress = [
            one
            for one in tell([(name, Progress(plan.job)) for name in hosts])
            if isinstance(one, WorkerProgress)
        ]
        outcome = outcome_of(tell([(name, Report(plan.job)) for name in hosts]))
        tell([(name, Detach(plan.job)) for name in hosts])
        outcomes.append(outcome)
        if not outcome.complete:
            firsts.append(min(one.drained_below for one in progress) - base)
    return tuple(outcomes), min(firsts, default=0)


def go_on(
    tell: Tell,
    continuation: Continuation,
    values: Sequence[Values],
    op: Op,
    timing: Timing,
) -> None:
    """Put jobs on their hosts again, from the continuation's first chunk on, and let them send."""
    network, first = continuation.detour.network, continuation.first
    attach: list[tuple[str, Command]] = []
    start: list[tuple[str, Command]] = []
    for i, plan in continuation.jobs:
        rest = values[i][:, first:]
        config = destination_config(network, plan, op, timing, rest.shape[1], 0)
        attach.append((network.destination.name, AttachDestination(config)))
        start.append((network.destination.name, Start(plan.job)))
        for host in network.workers:
            told = worker_config(network, plan, host, op, timing, 0)
            attach.append((host.name, AttachWorker(told, rest[host.rank])))
            start.append((host.name, Start(plan.job)))
    tell(attach)
    tell(start)


def hosts_of(network: Network, plan: JobPlan) -> list[str]:
    """The destination of a job, and the workers that have a part in it now."""
    left = [host.name for host in network.workers if host.rank not in plan.absent]
    return [network.destination.name, *left]


def outcomes_of(tell: Tell, network: Network, plans: Sequence[JobPlan]) -> tuple[JobOutcome, ...]:
    """What jobs came to, as their hosts report."""
    return tuple(
        outcome_of(tell([(name, Report(plan.job)) for name in hosts_of(network, plan)]))
        for plan in plans
    )


def outcome_of(reports: Sequence[Answer]) -> JobOutcome:
    """What a job came to, from what its hosts report."""
    return JobOutcome(
        next(one for one in reports if isinstance(one, DestinationReport)),
        tuple(one for one in reports if isinstance(one, WorkerReport)),
    )


def joined(
    before: Sequence[JobOutcome], continuation: Continuation, after: Sequence[JobOutcome]
) -> tuple[JobOutcome, ...]:
    """What jobs came to in all, whose rest went on over another tree."""
    outcomes = list(before)
    for (i, _), rest in zip(continuation.jobs, after, strict=True):
        outcomes[i] = before[i].continued(rest, continuation.first)
    return tuple(outcomes)
