"""What jobs ask of switches and put on links, predicted and measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from controller.compile import JobPlan, compile_programs
from controller.measurement import LinkCount
from controller.placement import Tree, loads
from controller.program import SwitchProgram
from controller.service.admission import job_tree
from controller.service.store import Allocation, Job, Role
from topologies.network import Network

Part: TypeAlias = tuple[int, int]
"""A job, and a phase of it: the low bit of the epoch. Epochs of a job alternate in it, so that two
which follow each other are counted apart."""
Counts: TypeAlias = Mapping[str, Mapping[Part, LinkCount]]
"""Messages to its parent, by switch and part."""


@dataclass(frozen=True, slots=True)
class LinkLine:
    """One link, over all running jobs.

    Attributes:
        predicted, measured: messages a chunk under the newest allocation of each job.
        messages, resent: since the jobs began.
        expected: what `messages` should be for the chunks that are complete.
    """

    switch: str
    parent: str | None
    rate: Fraction
    blue: bool
    predicted: int
    measured: float
    messages: int
    expected: float
    resent: int


def plan_of(network: Network, job: Job, allocation: Allocation) -> JobPlan:
    """An allocation as the compiler takes it."""
    index = {name: v for v, name in enumerate(network.topology.overlay.names)}
    return JobPlan(
        job=job.id,
        epoch=allocation.epoch,
        blue=frozenset(index[name] for name in allocation.blue),
        slot_base=job.slot_base,
        window=job.window,
        members=None if job.members is None else frozenset(job.members),
    )


def programs(network: Network, jobs: Sequence[Job]) -> tuple[SwitchProgram, ...]:
    """What every switch must hold for the jobs that there are."""
    return compile_programs(
        network,
        [plan_of(network, job, allocation) for job in jobs for allocation in job.installed],
    )


def messages_of(network: Network, job: Job, allocation: Allocation) -> tuple[int, ...]:
    """Messages a chunk on every link, by tree index."""
    return loads(_tree(network, job), plan_of(network, job, allocation).blue).messages


def congestion_of(network: Network, job: Job, allocation: Allocation) -> Fraction:
    """psi of one job alone."""
    return loads(_tree(network, job), plan_of(network, job, allocation).blue).congestion


def total_congestion(network: Network, jobs: Sequence[Job]) -> Fraction:
    """psi of all jobs that are not over, under their newest allocations."""
    overlay = network.topology.overlay
    total = [0] * overlay.tree.n
    for job in jobs:
        if not job.phase.is_over:
            for v, count in enumerate(messages_of(network, job, job.current)):
                total[v] += count
    return max(m / w for m, w in zip(total, overlay.tree.rate, strict=True))


def expected_messages(network: Network, job: Job, completed: float) -> list[float]:
    """Messages that every link should have carried once `completed` chunks are complete."""
    total = [0.0] * network.topology.overlay.tree.n
    known = [one for one in job.allocations if one.role is not Role.NEW] or [job.current]
    for i, allocation in enumerate(known):
        end = known[i + 1].first_chunk if i + 1 < len(known) else completed
        chunks = max(0.0, min(end, completed) - allocation.first_chunk)
        for v, count in enumerate(messages_of(network, job, allocation)):
            total[v] += chunks * count
    return total


def total_count(counts: Counts, switch: str, job: int) -> LinkCount:
    """What a switch has sent of a job in its whole life."""
    parts = counts.get(switch, {})
    return sum((parts[job, phase] for phase in (0, 1) if (job, phase) in parts), LinkCount())


def quiet_counts(counts: Counts, job: Job) -> dict[str, int]:
    """What switches have sent in the phase that the job is not in now.

    Once the epoch before the current one has drained, the next epoch counts from here.
    """
    quiet = (job.id, 1 - job.current.epoch % 2)
    return {name: parts[quiet].first for name, parts in counts.items() if quiet in parts}


def links(
    network: Network, jobs: Sequence[Job], counts: Counts, completed: Mapping[int, float]
) -> tuple[LinkLine, ...]:
    """Every link of the tree, over the jobs that are not over."""
    overlay = network.topology.overlay
    running = [job for job in jobs if not job.phase.is_over]
    predicted = [0] * overlay.tree.n
    expected = [0.0] * overlay.tree.n
    for job in running:
        for v, count in enumerate(messages_of(network, job, job.current)):
            predicted[v] += count
        for v, total in enumerate(expected_messages(network, job, completed.get(job.id, 0))):
            expected[v] += total
    lines = []
    for v, name in enumerate(overlay.names):
        carried = sum((total_count(counts, name, job.id) for job in running), LinkCount())
        parent = overlay.tree.parent[v]
        lines.append(
            LinkLine(
                switch=name,
                parent=overlay.names[parent] if parent >= 0 else None,
                rate=overlay.tree.rate[v],
                blue=any(name in job.current.blue for job in running),
                predicted=predicted[v],
                measured=sum(
                    _per_chunk(job.current, counts.get(name, {}).get(_part(job)), name, done)
                    for job in running
                    if (done := completed.get(job.id)) is not None
                ),
                messages=carried.first,
                expected=expected[v],
                resent=carried.resent,
            )
        )
    return tuple(lines)


def _part(job: Job) -> Part:
    return (job.id, job.current.epoch % 2)


def _tree(network: Network, job: Job) -> Tree:
    return job_tree(network.topology, job.members, network)


def _per_chunk(
    allocation: Allocation, count: LinkCount | None, name: str, completed: float
) -> float:
    """Messages a chunk over a link since an allocation took force."""
    chunks = completed - allocation.first_chunk
    if count is None or chunks <= 0:
        return 0.0
    return max(0, count.first - dict(allocation.baseline).get(name, 0)) / chunks
