"""A job on the real program and the real hosts, at the mercy of whoever steps it.

Two switches, three workers, ten chunks, a window of two. Everything happens when it is told to:
a frame arrives, time passes, a controller takes its next step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import p4src
from controller.compile import JobPlan, compile_programs, destination_bits, epoch_entries
from controller.endpoints import (
    Timing,
    absent_ranks,
    destination_config,
    job_sources,
    worker_config,
)
from controller.placement import Tree
from p4src.constants import LANES
from softswitch import Switch
from tests.e2e.adversary_oracle import Oracle
from tests.unit.controller.trees import topology_of
from topologies.network import Host, wire
from traffic.destination import Destination
from traffic.endpoint import Op
from traffic.epochs import Term
from traffic.journal import RECORDS_AT, Journal, record_bytes, size_of
from traffic.worker import Worker

PROGRAM = Path(p4src.__file__).parent / "build" / "bluetree.json"
CHUNKS, WINDOW = 10, 2
NETWORK = wire(topology_of(Tree(parent=[-1, 0], rate=[1, 1], load=[1, 2])))
PLAN = JobPlan(job=1, epoch=1, blue=frozenset({0, 1}), slot_base=0, window=WINDOW)
SWITCHES = NETWORK.topology.switches
HOSTS = {host.name: host for host in NETWORK.workers}
EVERYONE = frozenset(host.rank for host in NETWORK.workers)
_TIMING = Timing(timeout=1_000_000, max_timeout=4_000_000, max_tries=100_000)
_HOST_PORT = 0


def _ends() -> dict[tuple[str, int], tuple[str, int]]:
    """What each port is connected to."""
    pairs = [
        ((link.lower, link.lower_port), (link.upper, link.upper_port)) for link in NETWORK.links
    ]
    hosts = (*NETWORK.workers, NETWORK.destination)
    pairs += [((host.name, _HOST_PORT), (host.switch, host.port)) for host in hosts]
    return {**dict(pairs), **{far: near for near, far in pairs}}


_ENDS = _ends()


@dataclass(slots=True)
class Change:
    """A change of the blue switches, or a worker's return. `first` is the chunk it begins at, once
    that is chosen."""

    plan: JobPlan
    back: str | None = None
    held: list[str] = field(default_factory=list)
    first: int = -1
    moved: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Leave:
    """The others go on without a worker: once the destination has decided, there is a term."""

    plan: JobPlan
    term: Term | None = None
    followed: list[str] = field(default_factory=list)


class World:
    """The network, everything on it, and the controller's steps."""

    def __init__(self) -> None:
        self.now = 0
        self.flight: list[tuple[str, int, bytes]] = []
        self.past: list[tuple[str, int, bytes]] = []
        rng = np.random.default_rng(1)
        shape = (len(NETWORK.workers), CHUNKS, LANES)
        self.values = rng.integers(-(2**28), 2**28, shape, dtype=np.int32)
        self.oracle = Oracle(self.values.tolist())
        self.plans = [PLAN]
        self.epoch = PLAN.epoch
        self.step: Change | Leave | None = None
        self.terms: list[tuple[Term, JobPlan]] = []
        self.unstarted: str | None = None
        self.forgotten: frozenset[int] = frozenset()
        self.bare: set[str] = set()
        self.switches = {name: self._switch(name) for name in SWITCHES}
        config = destination_config(NETWORK, PLAN, Op.ALLREDUCE, _TIMING, CHUNKS, 0)
        assert config.requests is not None
        hasty = replace(config.requests, direct_after=0, direct_time=1)
        self._config = replace(config, requests=hasty)
        self._journal = bytearray(size_of(self._config))
        self.destination = self._destination(resume=False)
        self._leave(NETWORK.destination.name, self.destination.start(0))
        self.workers = {host.name: self._worker(host, PLAN, 0) for host in NETWORK.workers}
        for name, worker in self.workers.items():
            self._leave(name, worker.start(0))

    # --- the network ------------------------------------------------------------------------------

    def _switch(self, name: str) -> Switch:
        switch = Switch.load(PROGRAM)
        program = next(p for p in compile_programs(NETWORK, self.plans) if p.name == name)
        for entry in program.entries:
            switch.insert(entry.table, dict(entry.match), entry.action, dict(entry.params))
        for group in program.groups:
            switch.multicast_group(group.id, group.replicas)
        return switch

    def restart_switch(self, name: str, *, bare: bool) -> None:
        """A switch starts anew with empty registers; `bare`: and nobody gives it its entries."""
        self.switches[name] = Switch.load(PROGRAM) if bare else self._switch(name)
        (self.bare.add if bare else self.bare.discard)(name)

    def _leave(self, host: str, frames: Sequence[bytes]) -> None:
        if host == NETWORK.destination.name:
            for frame in frames:
                self.oracle.check_answer(frame)
        self._send([(*_ENDS[host, _HOST_PORT], frame) for frame in frames])

    def _send(self, sent: Sequence[tuple[str, int, bytes]]) -> None:
        self.flight += sent
        self.past += sent

    def arrive(self, at: int) -> None:
        """Something in flight arrives; at a host that is dead, nowhere."""
        node, port, frame = self.flight.pop(at)
        if node in self.switches:
            out = self.switches[node].process(port, frame)
            self._send([(*_ENDS[node, port], copy) for port, copy in out])
        elif node == NETWORK.destination.name:
            self._leave(node, self.destination.receive(frame, self.now))
        elif node in self.workers:
            self._leave(node, self.workers[node].receive(frame, self.now))

    def pass_time(self) -> bool:
        """Let time pass until someone's deadline; False if nobody waits for one."""
        hosts: Mapping[str, Worker | Destination] = {
            **self.workers,
            NETWORK.destination.name: self.destination,
        }
        deadlines = [host.next_deadline for host in hosts.values()]
        due = min((deadline for deadline in deadlines if deadline is not None), default=None)
        if due is None:
            return False
        self.now = max(self.now + 1, due)
        for name, host in hosts.items():
            self._leave(name, host.tick(self.now))
        return True

    # --- the hosts --------------------------------------------------------------------------------

    def _worker(self, host: Host, plan: JobPlan, first: int) -> Worker:
        config = worker_config(NETWORK, plan, host, Op.ALLREDUCE, _TIMING, first)
        return Worker(replace(config, direct_after=0), self.values[host.rank, first:])

    def _destination(self, *, resume: bool) -> Destination:
        """With what is on record, and the epochs of the job as they were decided."""
        destination = Destination(self._config, Journal(self._config, self._journal, resume=resume))
        for term, plan in self.terms:
            sources, bits = job_sources(NETWORK, plan), self._bits(plan)
            destination.follow(term, sources, self.now, bits)
        return destination

    @staticmethod
    def _bits(plan: JobPlan) -> Mapping[int, int]:
        return destination_bits(NETWORK, plan)

    @property
    def gone(self) -> frozenset[int]:
        """Ranks that the newest decision leaves out."""
        return self.terms[-1][0].absent if self.terms else frozenset()

    @property
    def members(self) -> list[str]:
        """Workers that live and take part."""
        return [name for name in HOSTS if name in self.workers and not self._is_out(name)]

    @property
    def staying(self) -> list[str]:
        """Those who live and will take part after the step that has begun, or may have to."""
        absent = self.step.plan.absent if isinstance(self.step, Leave) else frozenset[int]()
        ranks = {name: HOSTS[name].rank for name in self.members if name != self.unstarted}
        return [name for name, rank in ranks.items() if rank not in absent]

    @property
    def dead(self) -> list[str]:
        """Workers that take part but are dead."""
        return [name for name in HOSTS if name not in self.workers and not self._is_out(name)]

    def _is_out(self, name: str) -> bool:
        return HOSTS[name].rank in self.gone

    @property
    def complete(self) -> list[bool]:
        """Which chunks the destination has a sum of; none of these is zero."""
        return [any(row) for row in self.destination.sums.tolist()]

    @property
    def recalls(self) -> bool:
        """Whether the destination has all that it ever had."""
        complete = self.complete
        return all(complete[chunk] for chunk in self.forgotten)

    def kill_worker(self, name: str) -> None:
        """It is silent from now on, whether or not it still took part."""
        del self.workers[name]

    def restart_destination(self, amid: int | None, torn: int) -> None:
        """It is killed, and started anew with its journal.

        `amid`: something in flight that is for it, with which it was busy; what it would have sent
        is lost. `torn`: of what it was recording, so many bytes were written, or all.
        """
        before, had = bytes(self._journal), self.destination.completed
        if amid is not None:
            self.destination.receive(self.flight.pop(amid)[2], self.now)
        if self.destination.completed > had:
            step = record_bytes(LANES)
            changed = next(
                i for i in range(RECORDS_AT, len(before)) if before[i] != self._journal[i]
            )
            at = changed - (changed - RECORDS_AT) % step
            if torn < step:
                # The number comes last, and is void until then.
                self._journal[at + torn : at + step] = before[at + torn : at + step]
                self._journal[at : at + 8] = bytes(8)
        self._begin_anew(resume=True)

    def forget(self) -> None:
        """The destination is killed, and its journal is lost too."""
        had = frozenset(chunk for chunk, is_complete in enumerate(self.complete) if is_complete)
        self.forgotten |= had
        self._begin_anew(resume=False)

    def _begin_anew(self, *, resume: bool) -> None:
        self.destination = self._destination(resume=resume)
        self._leave(NETWORK.destination.name, self.destination.start(self.now))

    # --- the controller ---------------------------------------------------------------------------

    def _write(self, plan: JobPlan) -> None:
        """Give all switches the entries of an epoch."""
        self.plans.append(plan)
        for name, entries in epoch_entries(NETWORK, plan).items():
            for entry in entries if name not in self.bare else ():
                params = dict(entry.params)
                self.switches[name].insert(entry.table, dict(entry.match), entry.action, params)

    def _remove(self, plan: JobPlan) -> None:
        """Take the entries of an epoch from all switches."""
        self.plans.remove(plan)
        for name, entries in epoch_entries(NETWORK, plan).items():
            for entry in entries if name not in self.bare else ():
                self.switches[name].delete(entry.table, dict(entry.match))

    def _next_plan(self, blue: frozenset[int], absent: frozenset[int]) -> JobPlan:
        self.epoch += 1
        return replace(PLAN, epoch=self.epoch, blue=blue, absent=absent)

    def begin_change(self, blue: frozenset[int], back: str | None = None) -> None:
        """The switches get the entries of another allocation, perhaps with a worker back."""
        absent = self.gone - ({HOSTS[back].rank} if back else set())
        self.step = Change(self._next_plan(blue, absent), back)
        self._write(self.step.plan)

    def begin_leave(self, name: str) -> None:
        """The switches get the entries of an epoch without a worker."""
        # Who is to come back has no part in chunks that may have to be summed anew.
        names = {name, self.unstarted or name}
        absent = self.gone | {HOSTS[one].rank for one in names}
        self.step = Leave(self._next_plan(self.plans[-1].blue, absent))
        self._write(self.step.plan)

    def go_on(self, pick: int) -> None:
        """The controller's next step; one more host is told."""
        if isinstance(self.step, Change):
            self._go_on_with_change(self.step, pick)
        elif isinstance(self.step, Leave):
            self._go_on_with_leave(self.step, pick)

    def _go_on_with_change(self, change: Change, pick: int) -> None:
        done = change.held if change.first < 0 else change.moved
        left = [name for name in self.members if name not in done]
        if left:
            name = left[pick % len(left)]
            done.append(name)
            worker, plan = self.workers[name], change.plan
            if change.first < 0:
                worker.hold()
            else:
                absent = absent_ranks(NETWORK, plan)
                self._leave(name, worker.move(plan.epoch, change.first, self.now, absent))
        elif change.first < 0:
            self._choose(change)
        else:
            self.step = None

    def _choose(self, change: Change) -> None:
        """All are held: the destination moves, from the largest number on."""
        numbers = [self.workers[name].next_chunk for name in self.members]
        change.first = max(self.destination.next_chunk, *numbers)
        plan, back = change.plan, change.back
        if back is not None and change.first >= CHUNKS:
            self.take_back()
            return
        if back is not None:
            # Under the epoch of the others so far; whoever was taken for dead makes room.
            self.workers[back] = self._worker(HOSTS[back], self.plans[-2], change.first)
            self.unstarted = back
        absent = absent_ranks(NETWORK, plan)
        sources, bits = job_sources(NETWORK, plan), self._bits(plan)
        self.destination.move(plan.epoch, change.first, sources, bits, absent)
        self.terms.append((Term(plan.epoch, change.first, absent=absent), plan))
        self.oracle.decide([chunk < change.first for chunk in range(CHUNKS)], EVERYONE - absent)

    def _go_on_with_leave(self, leave: Leave, pick: int) -> None:
        plan = leave.plan
        if leave.term is None:
            absent, sources = absent_ranks(NETWORK, plan), job_sources(NETWORK, plan)
            self.oracle.decide(self.complete, EVERYONE - absent)
            leave.term = self.destination.exclude(
                plan.epoch, absent, sources, self.now, self._bits(plan)
            )
            self.terms.append((leave.term, plan))
            return
        left = [name for name in self.members if name not in leave.followed]
        if not left:
            self.step = None
            return
        name = left[pick % len(left)]
        leave.followed.append(name)
        self._leave(name, self.workers[name].follow(leave.term, self.now))

    def lose_decision(self) -> None:
        """The destination has decided and is killed before anyone hears of it."""
        assert isinstance(self.step, Leave)
        self.terms.pop()
        self.oracle.undo()
        self.step.term = None
        self._begin_anew(resume=True)

    def take_back(self) -> None:
        """A change is given up: who holds is released, and the new entries go."""
        assert isinstance(self.step, Change)
        for name in self.step.held:
            if name in self.workers:
                self._leave(name, self.workers[name].release(self.now))
        self._remove(self.step.plan)
        self.step = None

    @property
    def has_drained(self) -> bool:
        """Whether nobody needs the entries of the epochs before the newest."""
        return all(self.workers[name].drained for name in self.members)

    def settle(self) -> None:
        """The old entries go, and who came back starts."""
        for plan in self.plans[:-1]:
            self._remove(plan)
        name, self.unstarted = self.unstarted, None
        if name in self.members:
            self._leave(name, self.workers[name].start(self.now))
