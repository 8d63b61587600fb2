"""Jobs on the fabric that are reallocated at random moments, told by a controller of the tests.

Everything is real but the clock: the compiled program, P4Runtime over gRPC, the hosts' machines. A
few events happen between any two commands, so that hosts hear of a change at different moments.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Self

from controller.compile import (
    JobPlan,
    compile_programs,
    destination_bits,
    epoch_entries,
    merge_programs,
)
from controller.endpoints import (
    Timing,
    absent_ranks,
    destination_config,
    job_sources,
    worker_config,
)
from controller.fabric_network import FabricNetwork
from controller.p4rt import connect_blocking
from controller.placement import loads
from controller.program import Op as WriteOp
from controller.program import Update
from controller.switches import SwitchControl
from p4src import artefacts
from topologies.fabric import StopReason
from topologies.fabric.build import Conditions
from topologies.network import Host, Network
from topologies.rerooting import reroot
from traffic.commands import (
    Answer,
    AttachDestination,
    AttachWorker,
    Command,
    Commands,
    Exclude,
    Finish,
    Follow,
    Hold,
    Move,
    Progress,
    Release,
    Start,
)
from traffic.endpoint import Op
from traffic.epochs import Term
from traffic.reports import DestinationProgress, WorkerProgress
from traffic.stream import Stream
from traffic.worker import Worker

WINDOW = 4
_MILLISECOND = 1_000_000
_TIMING = Timing(2 * _MILLISECOND, 8 * _MILLISECOND, max_tries=2_000)
_STEP_EVENTS = 20


@dataclass(slots=True)
class Epoch:
    """One allocation of a job, and what each switch's counter of its phase said at its start."""

    plan: JobPlan
    first_chunk: int
    before: dict[str, int]


@dataclass(slots=True)
class MovingJob:
    """A job with its epochs so far; the last one is in force."""

    op: Op
    network: Network
    stream: Stream
    epochs: list[Epoch] = field(default_factory=list)
    gone: frozenset[int] = frozenset()

    @property
    def plan(self) -> JobPlan:
        return self.epochs[-1].plan


class MovingNetwork:
    """A network and its jobs; a context manager."""

    def __init__(self, network: Network, conditions: Conditions, rng: random.Random) -> None:
        self.network = network
        self.rng = rng
        self.jobs: dict[int, MovingJob] = {}
        self.is_exact = not (conditions.loss or conditions.duplicate or conditions.reorder)
        self._epoch = 0
        self._killed: set[str] = set()
        self._up = FabricNetwork(network, conditions)
        self._commands = {name: Commands(agent) for name, agent in self._up.agents.items()}
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        addresses = self._resources.enter_context(self._up.serve())
        self.fleet = self._resources.enter_context(connect_blocking(addresses, artefacts.load()))
        self.fleet.push()
        self.switches = SwitchControl(self.network, self.fleet)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    def run(self, events: int) -> None:
        self._up.fabric.run(max_events=events)

    def cut_switch(self, name: str, nanoseconds: int) -> None:
        """Let a switch hear and send nothing for a time; what it held it holds afterwards."""
        fabric = self._up.fabric
        fabric.fail(name)
        fabric.call_at(fabric.now + nanoseconds, partial(fabric.restart, name))

    def cut_link(self, one: str, other: str, nanoseconds: int) -> None:
        """Let a link lose everything for a time, and what is on it."""
        fabric = self._up.fabric
        fabric.set_link(one, other, up=False)
        fabric.call_at(fabric.now + nanoseconds, partial(fabric.set_link, one, other, up=True))

    def add(self, job: int, blue: frozenset[int], op: Op) -> None:
        """Entries first, then the hosts."""
        stream = Stream(seed=job, workers=len(self.network.workers), period=7)
        self._prepare(job, MovingJob(op, self.network, stream), blue)
        self._attach(job, 0)
        self._tell_workers(job, Start(job))

    def change_root(self, job: int, number: int, root: str, blue: frozenset[int]) -> None:
        """Go on as job `number` with another root, from the chunk on that all have agreed on."""
        old = self.jobs[job]
        self._prepare(number, MovingJob(old.op, reroot(self.network, root), old.stream), blue)
        self._step()
        first = self.hold(job)
        self._attach(number, first)
        self.tell(old.network.destination.name, Finish(job, first))
        for host in self.rng.sample(self.network.workers, len(self.network.workers)):
            self.tell(host.name, Finish(job, first))
            self._step()
            self.tell(host.name, Start(number))
            self._step()
        self.drain(job, first)
        self.check(job, first)
        for counted, predicted in self.measured(job, first) if self.is_exact else ():
            assert counted == predicted
        del self.jobs[job]
        self._reconcile()

    def _prepare(self, job: int, moving: MovingJob, blue: frozenset[int]) -> None:
        plan = JobPlan(job, self._next_epoch(job), blue, job * WINDOW, WINDOW)
        moving.epochs.append(Epoch(plan, 0, {}))
        self.jobs[job] = moving
        self._reconcile()
        moving.epochs[0].before = self._counts(plan)

    def _attach(self, job: int, first_chunk: int) -> None:
        moving = self.jobs[job]
        moving.epochs[0].first_chunk = first_chunk
        network, plan = moving.network, moving.plan
        to = destination_config(
            network, plan, moving.op, _TIMING, 0, first_chunk, stream=moving.stream
        )
        self.tell(network.destination.name, AttachDestination(to))
        for host in network.workers:
            told = worker_config(network, plan, host, moving.op, _TIMING, first_chunk)
            self.tell(host.name, AttachWorker(told, moving.stream))

    def _reconcile(self) -> None:
        """Every switch holds what all jobs need, and routes, and nothing else."""
        programs = [compile_programs(self.network, [])]
        programs += [compile_programs(job.network, [job.plan]) for job in self.jobs.values()]
        self.fleet.reconcile(merge_programs(*programs))

    def end(self, job: int) -> int:
        """Let a job end and drain; the number above its last chunk."""
        end = self.hold(job)
        self._tell_workers(job, Finish(job, end))
        self.tell(self.jobs[job].network.destination.name, Finish(job, end))
        self.drain(job, end)
        self.check(job, end)
        return end

    def remove(self, job: int) -> None:
        """The hosts first: it ends, and only then leaves the switches."""
        self.end(job)
        del self.jobs[job]
        self._reconcile()

    def hold(self, job: int) -> int:
        """The chunk to move or to end at."""
        answers = self._tell_workers(job, Hold(job))
        return max(answer for answer in answers if isinstance(answer, int))

    def hold_in_vain(self, job: int) -> None:
        self.hold(job)
        self._tell_workers(job, Release(job))

    def move(self, job: int, blue: frozenset[int]) -> None:
        """A whole reallocation, until the old epoch has drained and is removed."""
        moving = self.jobs[job]
        old = moving.plan
        new = replace(old, epoch=self._next_epoch(job), blue=blue)
        before = self._counts(new)
        self._write(WriteOp.INSERT, new)
        self._step()
        first = self.hold(job)
        sources = job_sources(moving.network, new)
        self.tell(moving.network.destination.name, Move(job, new.epoch, first, sources))
        self._step()
        self._tell_workers(job, Move(job, new.epoch, first))
        moving.epochs.append(Epoch(new, first, before))
        self.drain(job, first)
        self._write(WriteOp.DELETE, old)

    def exclude(self, job: int, ranks: frozenset[int], *, kill: bool) -> Term:
        """Go on without workers, until the old epochs have drained and are removed.

        Those that are not killed do not know it, and go on.
        """
        moving = self.jobs[job]
        old = moving.plan
        new = replace(old, epoch=self._next_epoch(job), absent=old.absent | ranks)
        before = self._counts(new)
        for host in self.network.workers:
            if kill and host.rank in ranks:
                self._up.kill(host.name)
                self._killed.add(host.name)
        self._step()
        self._write(WriteOp.INSERT, new)
        self._step()
        network = moving.network
        absent, sources = absent_ranks(network, new), job_sources(network, new)
        asked = destination_bits(network, new)
        told = Exclude(job, new.epoch, absent, sources, asked)
        term = self.tell(network.destination.name, told)
        assert isinstance(term, Term)
        self._step()
        moving.gone |= ranks
        self._tell_workers(job, Follow(job, term))
        assert self.tell(network.destination.name, told) == term
        moving.epochs.append(Epoch(new, term.from_chunk, before))
        self._until(job, lambda worker: worker.drained)
        self._write(WriteOp.DELETE, old)
        return term

    def readmit(self, job: int, ranks: frozenset[int]) -> int:
        """Bring workers back that a job went on without, until the old epoch has drained, they have
        begun, and its entries are removed; the first chunk that is theirs again.
        """
        moving, network = self.jobs[job], self.jobs[job].network
        old = moving.plan
        new = replace(old, epoch=self._next_epoch(job), absent=old.absent - ranks)
        before = self._counts(new)
        back = [host for host in network.workers if host.rank in ranks]
        for host in back:
            if host.name in self._killed:
                self._killed.discard(host.name)
                self._up.restart(host.name)
                self._commands[host.name] = Commands(self._up.agents[host.name])
        self._write(WriteOp.INSERT, new)
        self._step()
        first = self.hold(job)
        for host in back:
            told = worker_config(network, old, host, moving.op, _TIMING, first)
            self.tell(host.name, AttachWorker(told, moving.stream))
            self._step()
        absent, sources = absent_ranks(network, new), job_sources(network, new)
        asked = destination_bits(network, new)
        self.tell(network.destination.name, Move(job, new.epoch, first, sources, asked, absent))
        self._step()
        moving.gone -= ranks
        self._tell_workers(job, Move(job, new.epoch, first, absent=absent))
        moving.epochs.append(Epoch(new, first, before))
        self._until(job, lambda worker: worker.drained)
        for host in back:
            self.tell(host.name, Start(job))
            self._step()
        self._write(WriteOp.DELETE, old)
        return first

    def drain(self, job: int, below: int) -> None:
        """Let events happen until every worker has the answer to each chunk below a number."""
        self._until(job, lambda worker: worker.drained_below >= below)

    def _until(self, job: int, holds: Callable[[Worker], bool]) -> None:
        machines = [self._up.agents[host.name].endpoints[job] for host in self._hosts(job)]
        workers = [machine for machine in machines if isinstance(machine, Worker)]
        ended = self._up.fabric.run(until=lambda: all(holds(worker) for worker in workers))
        assert ended.reason is StopReason.DONE, self.destination(job).waits_for

    def _hosts(self, job: int) -> Sequence[Host]:
        """The hosts of the workers that take part."""
        gone = self.jobs[job].gone
        return [host for host in self.network.workers if host.rank not in gone]

    def check(self, job: int, end: int) -> None:
        """Every sum was right, everywhere, and each chunk complete once."""
        destination = self.destination(job)
        assert destination.done
        chunks = end - self.jobs[job].epochs[0].first_chunk
        assert (destination.completed, destination.mismatches) == (chunks, 0)
        for worker in self.workers(job):
            # One that came back has those from its first on.
            assert (worker.done, worker.mismatches) == (True, 0)
            assert worker.first_chunk + worker.completed == end
            assert worker.failure == ""

    def measured(self, job: int, end: int) -> list[tuple[dict[str, int], dict[str, int]]]:
        """For each epoch of a job that has ended and drained, still in the switches: messages on
        the links as counted, and as predicted for its chunks.

        Only the last two epochs can be told from the counters as they are now; for the earlier
        ones the count is what the counter said when the next epoch of the phase began.
        """
        moving = self.jobs[job]
        rows = []
        ends = [*(epoch.first_chunk for epoch in moving.epochs[1:]), end]
        for i, epoch in enumerate(moving.epochs):
            later = moving.epochs[i + 2].before if i + 2 < len(ends) else self._counts(epoch.plan)
            overlay = moving.network.topology.overlay
            messages = loads(overlay.tree, epoch.plan.blue).messages
            chunks = ends[i] - epoch.first_chunk
            names = overlay.names
            counted = {name: later[name] - epoch.before[name] for name in names}
            predicted = {name: messages[v] * chunks for v, name in enumerate(names)}
            rows.append((counted, predicted))
        return rows

    def workers(self, job: int) -> list[WorkerProgress]:
        answers = [self.tell(host.name, Progress(job)) for host in self._hosts(job)]
        return [answer for answer in answers if isinstance(answer, WorkerProgress)]

    def destination(self, job: int) -> DestinationProgress:
        answer = self.tell(self.jobs[job].network.destination.name, Progress(job))
        assert isinstance(answer, DestinationProgress)
        return answer

    def tell(self, host: str, command: Command) -> Answer:
        answer, frames = self._commands[host].carry_out(command, self._up.fabric.now)
        self._up.fabric.send(host, frames)
        return answer

    def _tell_workers(self, job: int, command: Command) -> list[Answer]:
        hosts = self._hosts(job)
        answers = []
        for host in self.rng.sample(hosts, len(hosts)):
            answers.append(self.tell(host.name, command))
            self._step()
        return answers

    def _step(self) -> None:
        self.run(self.rng.randrange(_STEP_EVENTS))

    def _next_epoch(self, job: int) -> int:
        """A number of the other phase than the job's last."""
        self._epoch += 1
        if job in self.jobs and (self._epoch - self.jobs[job].plan.epoch) % 2 == 0:
            self._epoch += 1
        return self._epoch

    def _write(self, op: WriteOp, plan: JobPlan) -> None:
        for switch, entries in epoch_entries(self.jobs[plan.job].network, plan).items():
            self.fleet.write(switch, [Update(op, entry) for entry in entries])

    def _counts(self, plan: JobPlan) -> dict[str, int]:
        network = self.jobs[plan.job].network
        counts = SwitchControl(network, self.fleet).link_counts(plan.job, plan.epoch)
        return {name: count.first for name, count in counts.items()}

    def outcomes(self) -> Counter[str]:
        return self.switches.outcome_counts()
