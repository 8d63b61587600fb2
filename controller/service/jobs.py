"""A job and its allocations, as the database has them."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise


class Phase(enum.StrEnum):
    """Where a job is in its life.

    A job that is being reallocated goes running -> installing -> moving -> draining -> running.
    One whose root changes ends after draining, and its successor runs when it drains.
    """

    STARTING = "starting"
    """Its entries are being installed; its workers wait."""
    RUNNING = "running"
    INSTALLING = "installing"
    """A new allocation's entries are being installed beside the current ones: can be undone."""
    MOVING = "moving"
    """All switches hold both; the workers are being moved: has to be finished."""
    DRAINING = "draining"
    """The workers have moved; chunks of the old epoch are still under way."""
    STOPPING = "stopping"
    """Its workers are stopped, then its entries removed."""
    FINISHED = "finished"
    """All its chunks are complete; it holds nothing any more."""
    FAILED = "failed"
    """It ended without completing; it holds nothing any more."""

    @property
    def is_over(self) -> bool:
        """Whether the job holds nothing in any switch."""
        return self in (Phase.FINISHED, Phase.FAILED)


class Role(enum.StrEnum):
    """What an allocation is to its job."""

    NEW = "new"
    CURRENT = "current"
    OLD = "old"
    PAST = "past"
    """Nothing of it is in the switches; kept for the account of the links."""


class OnLoss(enum.StrEnum):
    """What becomes of a job that loses a worker."""

    FAIL = "fail"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Allocation:
    """Blue switches of a job, from a chunk on.

    Attributes:
        blue: their names, sorted.
        baseline: by switch, what its counter of this phase stood at before.
        absent: ranks of the job's workers that have no part in it.
        kept: how many chunks from its first on belong to earlier ones nevertheless.
    """

    epoch: int
    strategy: str
    budget: int | None
    blue: tuple[str, ...]
    first_chunk: int
    role: Role
    baseline: tuple[tuple[str, int], ...] = ()
    absent: tuple[int, ...] = ()
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A workload.

    Attributes:
        id: also its multicast group, and its number on the wire.
        chunks: how many; None until it is stopped.
        members: ranks of its workers; None is all.
        allocations: by rising epoch.
        result: what is to be told about a job that is over.
        root: the switch of its destination; None is the network's own root.
        successor: the job as which it goes on with another root.
        on_loss: what becomes of it when it loses a worker.
        avoids: the switches and links that its tree goes round, since they had failed.
    """

    id: int
    op: str
    chunks: int | None
    seed: int
    members: tuple[int, ...] | None
    slot_base: int
    window: int
    phase: Phase
    allocations: tuple[Allocation, ...] = ()
    result: str = "{}"
    root: str | None = None
    successor: int | None = None
    on_loss: str = OnLoss.FAIL
    avoids: tuple[str, ...] = ()

    def allocation(self, role: Role) -> Allocation | None:
        """The allocation in a role, or None."""
        return next((one for one in self.allocations if one.role is role), None)

    def present(self, ranks: Iterable[int]) -> tuple[int, ...]:
        """The ranks of its workers that take part now, of those that the network has."""
        there = ranks if self.members is None else self.members
        return tuple(rank for rank in there if rank not in self.current.absent)

    @property
    def returning(self) -> tuple[int, ...]:
        """Ranks of the workers that come back with its newest allocation, and do not send yet.

        They do once nothing before that allocation is under way.
        """
        newest = self.allocation(Role.NEW) or self.current
        before = (one for one in self.allocations if one.role in (Role.OLD, Role.CURRENT))
        gone = {rank for one in before for rank in one.absent}
        return tuple(sorted(gone.difference(newest.absent)))

    @property
    def returned(self) -> Mapping[int, int]:
        """The first chunk of each worker that it went on without and has again, by rank."""
        known = [one for one in self.allocations if one.role is not Role.NEW]
        first = {
            rank: after.first_chunk
            for before, after in pairwise(known)
            for rank in set(before.absent).difference(after.absent)
        }
        return {rank: first[rank] for rank in sorted(first) if rank not in self.current.absent}

    @property
    def begins(self) -> int:
        """Its first chunk: that from which on it goes on with another root, else 0."""
        return self.allocations[0].first_chunk

    @property
    def current(self) -> Allocation:
        """The allocation under which its newest chunks are sent."""
        found = self.allocation(Role.CURRENT) or self.allocation(Role.NEW)
        return found or self.allocations[-1]

    @property
    def installed(self) -> tuple[Allocation, ...]:
        """The allocations whose entries switches must hold."""
        if self.phase.is_over:
            return ()
        return tuple(one for one in self.allocations if one.role is not Role.PAST)
