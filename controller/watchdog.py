"""What a job that does not get on waits for: the chunk, the switch, the workers. Pure.

The destination knows which workers' values it lacks. Where a red way leads to it that is exact;
behind a blue root it lacks all of them, and what the workers say narrows it down:

    a link on the way carries nothing                  it is the place, for those below it, whose
                                                       windows may be full for want of answers
    else some have not sent it, or do not answer       they are missing, at the lowest blue switch
                                                       that all of them are below
    else a switch on the way is lost                   it is the place, for those below it
    else                                               a message was lost on the way: the place is
                                                       the lowest blue switch above all that lack

A chunk that is not held up at a blue switch waits at the destination itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from controller.compile import JobPlan
from controller.cuts import Cut
from topologies.network import Host, Network
from traffic.reports import DestinationProgress, WorkerProgress

STUCK_NS = 800_000_000
"""A job of which no chunk becomes complete for so long is stuck."""
_SHOWN = 8


class Cause(Enum):
    """Why a chunk is stuck."""

    WORKERS = "workers"
    """The workers have not sent it."""
    SWITCH = "switch"
    """The switch does not answer."""
    LINK = "link"
    """What the switch sends over the link is lost."""
    LOSS = "loss"
    """All workers have sent it."""
    DESTINATION = "destination"
    """The destination does not answer."""
    ANSWER = "answer"
    """It is complete, but the workers have no answer."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a job that does not get on.

    Attributes:
        chunk: the first chunk, on the wire, that is not over.
        lacking: names of the workers whose values the destination lacks for it; None where the
            destination does not answer; none where the chunk is complete there.
        next_chunks: by worker, of those that answer, the number above all that have left.
        drained: by worker, of those that answer, the number below which all is answered.
        lost: switches that do not answer P4Runtime.
        cut: directions of links that carry nothing.
    """

    chunk: int
    lacking: tuple[str, ...] | None
    next_chunks: Mapping[str, int]
    drained: Mapping[str, int]
    lost: frozenset[str] = frozenset()
    cut: tuple[Cut, ...] = ()


@dataclass(frozen=True, slots=True)
class Stuck:
    """A stuck chunk.

    Attributes:
        chunk: its number on the wire.
        switch: where it waits, or where its answer does; None is the destination.
        workers: for whom, by name.
        cut: the link that is the cause, if one is.
    """

    job: int
    chunk: int
    switch: str | None
    workers: tuple[str, ...]
    cause: Cause
    cut: Cut | None = None

    @property
    def text(self) -> str:
        """It in one line."""
        place = "the destination" if self.switch is None else f"switch {self.switch}"
        more = len(self.workers) - _SHOWN
        names = ", ".join(self.workers[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        have = "has" if len(self.workers) == 1 else "have"
        why = "" if self.cut is None else self.cut.text
        if self.switch and not why:
            why = f"{place} does not answer"
        what = f"job {self.job} is stuck: chunk {self.chunk}"
        return {
            Cause.WORKERS: f"{what} waits at {place} for {names}",
            Cause.SWITCH: f"{what} waits at {place}, which does not answer, for {names}",
            Cause.LINK: f"{what} waits for {names}: {why}",
            Cause.LOSS: f"{what} waits at {place} for {names}, though all workers have sent it",
            Cause.DESTINATION: f"{what} waits for the destination, which does not answer",
            Cause.ANSWER: f"{what} is complete, but {names} {have} no answer"
            + (f": {why}" if why else ""),
        }[self.cause]


class Standstills:
    """For how long jobs have not got on, on a clock of the caller's."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}

    def since(self, job: int, completed: int, now: int) -> int:
        """Nanoseconds since the number of complete chunks changed, or since the first call."""
        before = self._last.get(job)
        if before is None or before[0] != completed:
            self._last[job] = (completed, now)
            return 0
        return now - before[1]

    def is_stuck(self, job: int, completed: int, now: int, patience: int = STUCK_NS) -> bool:
        """Whether a job has stood still for too long."""
        return self.since(job, completed, now) >= patience

    def forget(self, jobs: Collection[int]) -> None:
        """Keep only these jobs."""
        self._last = {job: seen for job, seen in self._last.items() if job in jobs}


class Telling(Standstills):
    """Tells of stuck jobs, once of each thing that one waits for."""

    def __init__(self, on_stuck: Callable[[Stuck], None] | None) -> None:
        super().__init__()
        self._on_stuck = on_stuck
        self._told: dict[int, Stuck] = {}

    def tell(self, stuck: Stuck) -> None:
        """Tell of it unless that was the last thing told of its job."""
        if self._told.get(stuck.job) != stuck:
            self._told[stuck.job] = stuck
            if self._on_stuck is not None:
                self._on_stuck(stuck)


def facts_of(
    destination: DestinationProgress | None,
    workers: Sequence[WorkerProgress],
    lost: Collection[str] = (),
    cut: Collection[Cut] = (),
) -> Facts:
    """The facts, from what those hosts of a job say that answer."""
    drained = {worker.name: worker.drained_below for worker in workers}
    chunk = min(drained.values(), default=0)
    if destination is not None:
        # Of a job that is all summed, what the workers have yet to take.
        chunk = min(chunk, destination.complete_below - 1)
        chunk = max(chunk, 0) if destination.done else destination.complete_below
    return Facts(
        chunk,
        None if destination is None else destination.lacking,
        {worker.name: worker.next_chunk for worker in workers},
        drained,
        frozenset(lost),
        tuple(cut),
    )


def find_stuck(network: Network, plan: JobPlan, facts: Facts) -> Stuck:
    """Where a chunk waits, and for whom. `plan` is the allocation that the chunk is under."""
    job, chunk = plan.job, facts.chunk
    present = plan.present(network)
    hosts = {host.name: host for host in network.workers if present is None or host.rank in present}
    if facts.lacking is None:
        return Stuck(job, chunk, None, (), Cause.DESTINATION)
    if not facts.lacking:
        # A worker that does not say how far it is has taken nothing.
        behind = [host for host in hosts.values() if facts.drained.get(host.name, chunk) <= chunk]
        switch = _nearest(network, behind, facts.lost)
        below = [host for host in behind if switch in _way(network, host)]
        cut = None if switch else _first_cut(network, behind, facts.cut)
        if cut is not None:
            below = _below(network, behind, cut)
            return Stuck(job, chunk, cut.sender, _names(below), Cause.ANSWER, cut)
        return Stuck(job, chunk, switch, _names(below if switch else behind), Cause.ANSWER)
    lacking = [hosts[name] for name in facts.lacking]
    cut = _first_cut(network, lacking, facts.cut)
    if cut is not None and _nearest(network, lacking, facts.lost) is None:
        below = _below(network, lacking, cut)
        return Stuck(job, chunk, cut.sender, _names(below), Cause.LINK, cut)
    unsent = [
        host
        for host in lacking
        if facts.next_chunks.get(host.name, chunk) <= chunk
        and facts.lost.isdisjoint(_way(network, host))
    ]
    if unsent:
        return Stuck(job, chunk, _meeting(network, plan, unsent), _names(unsent), Cause.WORKERS)
    switch = _nearest(network, lacking, facts.lost)
    if switch is not None:
        below = [host for host in lacking if switch in _way(network, host)]
        return Stuck(job, chunk, switch, _names(below), Cause.SWITCH)
    return Stuck(job, chunk, _meeting(network, plan, lacking), _names(lacking), Cause.LOSS)


def _nearest(network: Network, hosts: Sequence[Host], lost: Collection[str]) -> str | None:
    """Of the lost switches that some of these are below, the one nearest to the destination."""
    ways = [_way(network, host)[::-1] for host in hosts]
    found = {at: depth for way in ways for depth, at in enumerate(way) if at in lost}
    return min(found, key=lambda at: (found[at], at), default=None)


def _first_cut(network: Network, hosts: Sequence[Host], cuts: Collection[Cut]) -> Cut | None:
    """Of the cut links that some of these are below, the first."""
    return next((cut for cut in cuts if _below(network, hosts, cut)), None)


def _below(network: Network, hosts: Sequence[Host], cut: Cut) -> list[Host]:
    """Those of the hosts on whose way to the destination a link is."""
    ends = {(cut.sender, cut.receiver), (cut.receiver, cut.sender)}
    return [host for host in hosts if not ends.isdisjoint(pairwise(_way(network, host)))]


def _way(network: Network, host: Host) -> tuple[str, ...]:
    """The switches from a worker to the destination."""
    overlay = network.topology.overlay
    way, v = [], overlay.names.index(host.switch)
    while v >= 0:
        way.append(overlay.names[v])
        v = overlay.tree.parent[v]
    return tuple(way)


def _meeting(network: Network, plan: JobPlan, hosts: Sequence[Host]) -> str | None:
    """The lowest blue switch that all these workers are below; None is the destination."""
    blue = {network.topology.overlay.names[v] for v in plan.blue}
    first, *others = (_way(network, host) for host in hosts)
    return next((at for at in first if at in blue and all(at in way for way in others)), None)


def _names(hosts: Sequence[Host]) -> tuple[str, ...]:
    return tuple(host.name for host in hosts)
