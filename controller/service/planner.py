"""From what is asked for to a job, or to another allocation of one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from controller.errors import BadInputError
from controller.service import admission, ledger
from controller.service.admission import Choice, Wish
from controller.service.store import Allocation, Job, OnLoss, Phase, Role, Store
from topologies.network import Network, NetworkError
from topologies.rerooting import reroot
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
    on_loss: str = OnLoss.FAIL


class Planner:
    """Decides, on what the database says of the jobs that there are."""

    def __init__(self, network: Network, store: Store) -> None:
        self.network = network
        self._store = store

    def choose(self, job: Job, wish: Wish) -> Choice:
        """Other blue switches for a job; the budget that is not said stays as it is."""
        if wish.blue is None and wish.budget is None:
            wish = Wish(wish.strategy, job.current.budget, None)
        return self._choose(job.id, self._present(job), wish, ledger.rooted(self.network, job))

    def succeed(
        self, job: Job, root: str, wish: Wish | None, avoids: Collection[str] = ()
    ) -> tuple[Job, Choice]:
        """As which job one goes on with another root, not stored yet; without a wish as before.

        One that drains before another job leaves its end, and that job, to the new one.

        Its tree goes round the switches that it `avoids`, and it goes on without the workers that
        are cut off with them. Switches that were named stay blue, where the tree has them. Raises
        BadInputError for a root that cannot be one, and what `admit` raises.
        """
        try:
            view = reroot(self.network, root, avoids)
        except NetworkError as error:
            raise BadInputError(f"--root {error}: `bluetree up TOPOLOGY --root SWITCH`") from error
        if wish is None:
            now = job.current
            named = None
            if now.strategy == admission.GIVEN:
                there = view.topology.overlay.names
                named = tuple(name for name in now.blue if name in there)
            wish = Wish(now.strategy, now.budget, named)
        elif wish.blue is None and wish.budget is None:
            wish = Wish(wish.strategy, job.current.budget)
        # What it has now is given back before long, so it does not count against it.
        cut_off = {host.rank for host in view.workers if not host.source}
        # Who was about to come back has no values for the chunks that are summed anew.
        out = {*cut_off, *job.returning}
        absent = tuple(sorted({*job.current.absent, *out}))
        present = self._present(job)
        if out:
            ranks = range(len(view.workers)) if present is None else present
            present = tuple(rank for rank in ranks if rank not in out)
        choice = self._choose(job.id, present, wish, view)
        successor = replace(
            job,
            id=admission.free_job(other.id for other in self._store.jobs()),
            slot_base=self._free_slots(job.window),
            phase=Phase.STARTING,
            allocations=(replace(self.allocation(choice, view), absent=absent),),
            root=None if root == self.network.destination.switch else root,
            avoids=tuple(sorted(avoids)),
        )
        return successor, choice

    def admit(self, order: Order) -> tuple[Job, Choice]:
        """A new job that fits, not stored yet; raises AdmissionError, BadInputError."""
        members = self._members(order.workers)
        jobs = self._store.jobs()
        _check_choice("op", order.op, Op)
        _check_choice("on-worker-loss", order.on_loss, OnLoss)
        number = admission.free_job(job.id for job in jobs)
        base = self._free_slots(order.window)
        choice = self._choose(number, members, order.wish, self.network)
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
                allocations=(self.allocation(choice, self.network),),
                on_loss=order.on_loss,
            ),
            choice,
        )

    def _free_slots(self, window: int) -> int:
        taken = {
            job.id: range(job.slot_base, job.slot_base + job.window)
            for job in self._store.jobs()
            if not job.phase.is_over
        }
        return admission.free_slots(taken, window)

    def _members(self, names: Iterable[str]) -> tuple[int, ...] | None:
        if not self.network.workers:
            raise BadInputError(f"{self.network.topology.name}: has no workers; give it some")
        rank = {host.name: host.rank for host in self.network.workers}
        chosen = set()
        for name in names:
            if name not in rank:
                raise BadInputError(
                    f"--workers {name}: no such worker; there are {self.network.worker_names}"
                )
            chosen.add(rank[name])
        return tuple(sorted(chosen)) or None

    def _choose(
        self, number: int, members: tuple[int, ...] | None, wish: Wish, view: Network
    ) -> Choice:
        topology = view.topology
        # Trees to other roots may have switches that this one has not.
        index = {name: v for v, name in enumerate(topology.overlay.names)}
        others = {
            job.id: frozenset(
                index[name] for one in job.installed for name in one.blue if name in index
            )
            for job in self._store.jobs()
            if job.id != number and not job.phase.is_over
        }
        tree = admission.job_tree(topology, members, view)
        return admission.choose(topology, tree, others, wish)

    def allocation(
        self, choice: Choice, view: Network, after: Allocation | None = None
    ) -> Allocation:
        """A choice on a network as the job has it as a new allocation, with an epoch of its own.

        It differs in its low bit from that of the allocation `after` which it comes: the switches
        count the two apart.
        """
        names = view.topology.overlay.names
        return Allocation(
            epoch=self._epoch(after),
            strategy=choice.strategy,
            budget=choice.budget,
            blue=tuple(sorted(names[v] for v in choice.blue)),
            first_chunk=0,
            role=Role.NEW,
            absent=() if after is None else after.absent,
        )

    def without(self, job: Job, ranks: Iterable[int]) -> Allocation:
        """The allocation of a job as it is, but for some workers; with an epoch of its own."""
        return self._changed(job, {*job.current.absent, *ranks})

    def with_again(self, job: Job, ranks: Iterable[int]) -> Allocation:
        """The allocation of a job as it is, with some workers again; with an epoch of its own."""
        return self._changed(job, set(job.current.absent).difference(ranks))

    def _changed(self, job: Job, absent: Collection[int]) -> Allocation:
        now = job.current
        return replace(
            now,
            epoch=self._epoch(now),
            first_chunk=0,
            role=Role.NEW,
            absent=tuple(sorted(absent)),
            kept=0,
        )

    def _epoch(self, after: Allocation | None) -> int:
        epoch = self._store.next_number("epoch")
        if after is not None and epoch % 2 == after.epoch % 2:
            epoch = self._store.next_number("epoch")
        return epoch

    def _present(self, job: Job) -> tuple[int, ...] | None:
        if job.members is None and not job.current.absent:
            return None
        return job.present(range(len(self.network.workers)))


def _check_choice(option: str, given: str, known: Iterable[str]) -> None:
    if given not in set(known):
        raise BadInputError(f"--{option} {given}: choose {' or '.join(known)}")
