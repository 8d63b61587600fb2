"""What jobs ask of switches and put on links, predicted and measured. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from controller.compile import JobPlan, compile_programs, merge_programs
from controller.measurement import LinkCount
from controller.placement import Tree, loads
from controller.program import SwitchProgram
from controller.service.admission import job_tree
from controller.service.store import Allocation, Job, Role
from topologies.network import Host, Network
from topologies.rerooting import link_name, reroot
from traffic.stream import Stream

Part: TypeAlias = tuple[int, int]
"""A job, and a phase of it: the low bit of the epoch. Epochs of a job alternate in it, so that two
which follow each other are counted apart."""
Counts: TypeAlias = Mapping[str, Mapping[Part, LinkCount]]
"""Messages to its parent, by switch and part."""
Shape: TypeAlias = tuple[str | None, tuple[str, ...]]
"""What a job's tree depends on: its root, and the switches that it avoids."""
OWN: Shape = (None, ())
"""The tree that the network was brought up with."""
Link: TypeAlias = tuple[str, str | None]
"""A switch, and its parent in some tree; None is the destination."""


@dataclass(frozen=True, slots=True)
class LinkLine:
    """One link, over all running jobs.

    Attributes:
        root: of the tree that it is a link of.
        predicted, measured: messages a chunk under the newest allocation of each job.
        messages, resent: since the jobs began.
        expected: what `messages` should be for the chunks that are complete.
    """

    switch: str
    parent: str | None
    root: str
    rate: Fraction
    blue: bool
    predicted: int
    measured: float
    messages: int
    expected: float
    resent: int


def rooted(network: Network, job: Job) -> Network:
    """The network as a job has it: its tree leads to the job's own root, round what it avoids."""
    return network if _shape(job) == OWN else reroot(network, job.root, job.avoids)


def _shape(job: Job) -> Shape:
    return (job.root, job.avoids)


def way_of(view: Network, host: Host) -> frozenset[str]:
    """The switches, and links under both names, from a worker to the destination of a network as a
    job has it."""
    overlay = view.topology.overlay
    way = [host.switch]
    while (above := overlay.tree.parent[overlay.names.index(way[-1])]) >= 0:
        way.append(overlay.names[above])
    links = (name for ends in pairwise(way) for name in (link_name(*ends), link_name(*ends[::-1])))
    return frozenset((*way, *links))


def switches_in_use(network: Network, jobs: Sequence[Job]) -> frozenset[str]:
    """The switches of the network's own tree, and of those of jobs that are not over."""
    shapes = {_shape(job): job for job in jobs if not job.phase.is_over}
    views = [network, *(rooted(network, job) for job in shapes.values())]
    return frozenset(name for view in views for name in view.topology.overlay.names)


def plan_of(network: Network, job: Job, allocation: Allocation) -> JobPlan:
    """An allocation as the compiler takes it; tree indices are those of `rooted`."""
    names = rooted(network, job).topology.overlay.names
    index = {name: v for v, name in enumerate(names)}
    return JobPlan(
        job=job.id,
        epoch=allocation.epoch,
        blue=frozenset(index[name] for name in allocation.blue),
        slot_base=job.slot_base,
        window=job.window,
        members=None if job.members is None else frozenset(job.members),
        absent=frozenset(allocation.absent),
    )


def stream_of(network: Network, job: Job) -> Stream:
    """What a job sums."""
    members = network.workers if job.members is None else job.members
    return Stream(job.seed, len(members), lanes=network.build.lanes)


def programs(network: Network, jobs: Sequence[Job]) -> tuple[SwitchProgram, ...]:
    """What every switch must hold for the jobs that there are."""
    by_shape: dict[Shape, list[Job]] = {OWN: []}
    for job in jobs:
        if job.installed:
            by_shape.setdefault(_shape(job), []).append(job)
    return merge_programs(
        *(
            compile_programs(
                rooted(network, these[0]) if these else network,
                [
                    plan_of(network, job, allocation)
                    for job in these
                    for allocation in job.installed
                ],
            )
            for these in by_shape.values()
        )
    )


def messages_of(network: Network, job: Job, allocation: Allocation) -> tuple[int, ...]:
    """Messages a chunk on every link, by index of the job's tree."""
    return loads(_tree(network, job, allocation), plan_of(network, job, allocation).blue).messages


def congestion_of(network: Network, job: Job, allocation: Allocation) -> Fraction:
    """psi of one job alone."""
    return loads(_tree(network, job, allocation), plan_of(network, job, allocation).blue).congestion


def total_congestion(network: Network, jobs: Sequence[Job]) -> Fraction:
    """psi of all jobs that are not over, under their newest allocations.

    Jobs with different roots share the links that both use in the same direction.
    """
    total: dict[Link, Fraction] = {}
    for job in jobs:
        if job.phase.is_over:
            continue
        view = rooted(network, job)
        messages = messages_of(network, job, job.current)
        for link, rate, count in zip(
            _links_of(view), view.topology.overlay.tree.rate, messages, strict=True
        ):
            total[link] = total.get(link, Fraction(0)) + count / rate
    return max(total.values(), default=Fraction(0))


def expected_messages(network: Network, job: Job, completed: float) -> list[float]:
    """Messages that every link should have carried, by index of the job's tree.

    Every chunk from the job's first one up to number `completed` is complete.
    """
    total = [0.0] * rooted(network, job).topology.overlay.tree.n
    known = [one for one in job.allocations if one.role is not Role.NEW] or [job.current]
    for i, allocation in enumerate(known):
        end, kept = (
            (known[i + 1].first_chunk, known[i + 1].kept) if i + 1 < len(known) else (completed, 0)
        )
        # Those that the next one leaves to it, less those that it leaves to the one before.
        own = min(end, completed) - allocation.first_chunk + kept - allocation.kept
        chunks = max(0.0, own)
        for v, count in enumerate(messages_of(network, job, allocation)):
            total[v] += chunks * count
    return total


def why_sent_again(network: Network, job: Job) -> str:
    """Which workers a job was left by, and at which chunks; "" if by none.

    What was in flight then has left twice, as if for the first time, and how much of it links had
    carried before, nobody knows: their totals cannot be compared with `expected_messages`.
    """
    parts = []
    known = [one for one in job.allocations if one.role is not Role.NEW]
    for before, after in pairwise(known):
        lost = sorted(set(after.absent) - set(before.absent))
        if lost:
            names = ", ".join(network.workers[rank].name for rank in lost)
            parts.append(f"{names} left out at chunk {after.first_chunk}")
    return "; ".join(parts)


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
    """Every link of the trees of all jobs that are not over; without one, of the network's own.

    `completed` has the number below which chunks are complete, by job. A link that several trees
    have in the same direction is one line, under the root of the first.
    """
    running = [job for job in jobs if not job.phase.is_over]
    views = {_shape(job): rooted(network, job) for job in running} or {OWN: network}
    users: dict[Link, list[_Use]] = {}
    for job in running:
        predicted = messages_of(network, job, job.current)
        expected = expected_messages(network, job, completed.get(job.id, 0))
        for v, link in enumerate(_links_of(views[_shape(job)])):
            users.setdefault(link, []).append(_Use(job, predicted[v], expected[v]))
    lines: dict[Link, LinkLine] = {}
    for view in views.values():
        rates = view.topology.overlay.tree.rate
        for link, rate in zip(_links_of(view), rates, strict=True):
            if link not in lines:
                root = view.destination.switch
                lines[link] = _line(link, root, rate, users.get(link, []), counts, completed)
    return tuple(lines.values())


@dataclass(frozen=True, slots=True)
class _Use:
    """What a job puts on a link: messages a chunk, and in all so far."""

    job: Job
    predicted: int
    expected: float


def _line(
    link: Link,
    root: str,
    rate: Fraction,
    uses: Sequence[_Use],
    counts: Counts,
    completed: Mapping[int, float],
) -> LinkLine:
    name, parent = link
    carried = sum((total_count(counts, name, use.job.id) for use in uses), LinkCount())
    return LinkLine(
        switch=name,
        parent=parent,
        root=root,
        rate=rate,
        blue=any(name in use.job.current.blue for use in uses),
        predicted=sum(use.predicted for use in uses),
        measured=sum(
            _per_chunk(use.job.current, counts.get(name, {}).get(_part(use.job)), name, done)
            for use in uses
            if (done := completed.get(use.job.id)) is not None
        ),
        messages=carried.first,
        expected=sum(use.expected for use in uses),
        resent=carried.resent,
    )


def _links_of(network: Network) -> tuple[Link, ...]:
    """The links of a tree, by tree index."""
    names, parent = network.topology.overlay.names, network.topology.overlay.tree.parent
    return tuple(
        (name, names[above] if above >= 0 else None)
        for name, above in zip(names, parent, strict=True)
    )


def _part(job: Job) -> Part:
    return (job.id, job.current.epoch % 2)


def _tree(network: Network, job: Job, allocation: Allocation) -> Tree:
    view = rooted(network, job)
    present = plan_of(network, job, allocation).present(network)
    return job_tree(view.topology, None if present is None else sorted(present), view)


def _per_chunk(
    allocation: Allocation, count: LinkCount | None, name: str, completed: float
) -> float:
    """Messages a chunk over a link since an allocation took force."""
    chunks = completed - allocation.first_chunk - allocation.kept
    if count is None or chunks <= 0:
        return 0.0
    return max(0, count.first - dict(allocation.baseline).get(name, 0)) / chunks
