"""From what is asked for to a job, or to another allocation of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controller.errors import BadInputError
from controller.service import admission
from controller.service.admission import Choice, Wish
from controller.service.store import Allocation, Job, Phase, Role, Store
from topologies.network import Network
from traffic.endpoint import Op


@dataclass(frozen=True, slots=True)
class Order:
    """A job that is asked for; see `bluetree start`."""

    op: str
    chunks: int | None
    seed: int
    wish: Wish
    window: int
    workers: tuple[str, ...]


class Planner:
    """Decides, on what the database says of the jobs that there are."""

    def __init__(self, network: Network, store: Store) -> None:
        self.network = network
        self._store = store

    def choose(self, job: Job, wish: Wish) -> Choice:
        """Other blue switches for a job; the budget that is not said stays as it is."""
        if wish.blue is None and wish.budget is None:
            wish = Wish(wish.strategy, job.current.budget, None)
        return self._choose(job.id, job.members, wish)

    def admit(self, order: Order) -> tuple[Job, Choice]:
        """A new job that fits, not stored yet; raises AdmissionError, BadInputError."""
        members = self._members(order.workers)
        jobs = self._store.jobs()
        if order.op not in {op.value for op in Op}:
            raise BadInputError(f"--op {order.op}: choose {' or '.join(op.value for op in Op)}")
        number = admission.free_job(job.id for job in jobs)
        taken = {
            job.id: range(job.slot_base, job.slot_base + job.window)
            for job in jobs
            if not job.phase.is_over
        }
        base = admission.free_slots(taken, order.window)
        choice = self._choose(number, members, order.wish)
        return (
            Job(
                id=number,
                op=order.op,
                chunks=order.chunks,
                seed=order.seed,
                members=members,
                slot_base=base,
                window=order.window,
                phase=Phase.STARTING,
                allocations=(self.allocation(choice),),
            ),
            choice,
        )

    def _members(self, names: Iterable[str]) -> tuple[int, ...] | None:
        if not self.network.workers:
            raise BadInputError(f"{self.network.topology.name}: has no workers; give it some")
        rank = {host.name: host.rank for host in self.network.workers}
        chosen = set()
        for name in names:
            if name not in rank:
                raise BadInputError(f"--workers {name}: no such worker; there are {len(rank)}")
            chosen.add(rank[name])
        return tuple(sorted(chosen)) or None

    def _choose(self, number: int, members: tuple[int, ...] | None, wish: Wish) -> Choice:
        topology = self.network.topology
        others = {
            job.id: frozenset(
                topology.overlay.index(name) for one in job.installed for name in one.blue
            )
            for job in self._store.jobs()
            if job.id != number and not job.phase.is_over
        }
        tree = admission.job_tree(topology, members, self.network)
        return admission.choose(topology, tree, others, wish)

    def allocation(self, choice: Choice, after: Allocation | None = None) -> Allocation:
        """A choice as a new allocation, with an epoch of its own.

        It differs in its low bit from that of the allocation `after` which it comes: the switches
        count the two apart.
        """
        names = self.network.topology.overlay.names
        epoch = self._store.next_number("epoch")
        if after is not None and epoch % 2 == after.epoch % 2:
            epoch = self._store.next_number("epoch")
        return Allocation(
            epoch=epoch,
            strategy=choice.strategy,
            budget=choice.budget,
            blue=tuple(sorted(names[v] for v in choice.blue)),
            first_chunk=0,
            role=Role.NEW,
        )
