"""The real program, workers and destination against an adversary who has the network.

Two switches, three workers, five chunks, a window of two. The adversary delivers what is under
way in any order, loses it, doubles it, lets time pass, starts a switch anew with empty registers,
or even without its entries until they are written again, or starts the destination anew. It tells
each host in its own time of changes of the blue switches, step by step, and takes some back.
Whatever it does, nobody may ever hold a wrong sum; and once it stops, everyone must come to have
all of them. The oracle adds plain integers. Machines turn to direct messages at once, so that parts
and sums of parts meet at the destination.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import p4src
from controller.compile import JobPlan, compile_programs, destination_bits, epoch_entries
from controller.endpoints import Timing, destination_config, job_sources, worker_config
from controller.placement import Tree
from p4src.constants import LANES
from softswitch import Switch
from tests.unit.controller.trees import topology_of
from topologies.network import Host, wire
from traffic.destination import Destination
from traffic.endpoint import Op
from traffic.worker import Worker

PROGRAM = Path(p4src.__file__).parent / "build" / "bluetree.json"
CHUNKS, WINDOW = 5, 2
NETWORK = wire(topology_of(Tree(parent=[-1, 0], rate=[1, 1], load=[1, 2])))
PLAN = JobPlan(job=1, epoch=1, blue=frozenset({0, 1}), slot_base=0, window=WINDOW)
SWITCHES = NETWORK.topology.switches
COLOURS = [frozenset[int](), frozenset({0}), frozenset({1}), frozenset({0, 1})]
TIMING = Timing(timeout=1_000_000, max_timeout=4_000_000, max_tries=100_000)
MOST_STEPS = 20_000
HOST_PORT = 0
_PICK = st.integers(0, 1 << 16)


def _ends() -> dict[tuple[str, int], tuple[str, int]]:
    """What each port is connected to."""
    pairs = [
        ((link.lower, link.lower_port), (link.upper, link.upper_port)) for link in NETWORK.links
    ]
    hosts = (*NETWORK.workers, NETWORK.destination)
    pairs += [((host.name, HOST_PORT), (host.switch, host.port)) for host in hosts]
    return {**dict(pairs), **{far: near for near, far in pairs}}


ENDS = _ends()


@dataclass(slots=True)
class Change:
    """A change of the blue switches; `first` is the chunk it begins at, once that is chosen."""

    plan: JobPlan
    held: list[str] = field(default_factory=list)
    first: int = -1
    moved: list[str] = field(default_factory=list)


class Adversary(RuleBasedStateMachine):
    """The network and everything on it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.flight: list[tuple[str, int, bytes]] = []
        rng = np.random.default_rng(1)
        shape = (len(NETWORK.workers), CHUNKS, LANES)
        self.values = rng.integers(-(2**28), 2**28, shape, dtype=np.int32)
        self.sums = [
            [sum(int(value) for value in column) for column in zip(*rows, strict=True)]
            for rows in (self.values[:, chunk].tolist() for chunk in range(CHUNKS))
        ]
        self.plans = [PLAN]
        self.change: Change | None = None
        self.changes: list[Change] = []
        self.bare: set[str] = set()
        self.switches = {name: self._switch(name) for name in SWITCHES}
        self.destination = self._destination()
        self.workers = {host.name: self._worker(host) for host in NETWORK.workers}
        self._leave(NETWORK.destination.name, self.destination.start(0))
        for name, worker in self.workers.items():
            self._leave(name, worker.start(0))

    def _switch(self, name: str) -> Switch:
        switch = Switch.load(PROGRAM)
        program = next(p for p in compile_programs(NETWORK, self.plans) if p.name == name)
        for entry in program.entries:
            switch.insert(entry.table, dict(entry.match), entry.action, dict(entry.params))
        for group in program.groups:
            switch.multicast_group(group.id, group.replicas)
        return switch

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

    def _destination(self) -> Destination:
        config = destination_config(NETWORK, PLAN, Op.ALLREDUCE, TIMING, CHUNKS, 0)
        assert config.requests is not None
        hasty = replace(config.requests, direct_after=0, direct_time=1)
        destination = Destination(replace(config, requests=hasty))
        for change in self.changes:
            self._tell(destination, change)
        return destination

    def _tell(self, destination: Destination, change: Change) -> None:
        plan = change.plan
        bits = destination_bits(NETWORK, plan)
        destination.move(plan.epoch, change.first, job_sources(NETWORK, plan), bits)

    def _worker(self, host: Host) -> Worker:
        config = worker_config(NETWORK, PLAN, host, Op.ALLREDUCE, TIMING, 0)
        return Worker(replace(config, direct_after=0), self.values[host.rank])

    def _host(self, name: str) -> Worker | Destination:
        return self.workers.get(name) or self.destination

    def _leave(self, host: str, frames: list[bytes]) -> None:
        self.flight += [(*ENDS[host, HOST_PORT], frame) for frame in frames]

    def _arrive(self, at: int) -> None:
        node, port, frame = self.flight.pop(at)
        if node not in self.switches:
            self._leave(node, self._host(node).receive(frame, self.now))
            return
        for out, copy in self.switches[node].process(port, frame):
            self.flight.append((*ENDS[node, out], copy))

    def _hosts(self) -> tuple[tuple[str, Worker | Destination], ...]:
        return (*self.workers.items(), (NETWORK.destination.name, self.destination))

    def _pass_time(self) -> bool:
        """Let time pass until someone's deadline; False if nobody waits for one."""
        deadlines = [host.next_deadline for _, host in self._hosts()]
        due = min((deadline for deadline in deadlines if deadline is not None), default=None)
        if due is None:
            return False
        self.now = max(self.now + 1, due)
        for name, host in self._hosts():
            self._leave(name, host.tick(self.now))
        return True

    @precondition(lambda self: self.flight)
    @rule(pick=_PICK)
    def deliver(self, pick: int) -> None:
        """Something under way arrives."""
        self._arrive(pick % len(self.flight))

    @precondition(lambda self: self.flight)
    @rule()
    def deliver_all(self) -> None:
        """All that is under way now arrives, oldest first."""
        for _ in range(len(self.flight)):
            self._arrive(0)

    @precondition(lambda self: self.flight)
    @rule(pick=_PICK)
    def lose(self, pick: int) -> None:
        """Something under way is lost."""
        del self.flight[pick % len(self.flight)]

    @precondition(lambda self: 0 < len(self.flight) < 200)
    @rule(pick=_PICK)
    def double(self, pick: int) -> None:
        """Something under way arrives twice."""
        self.flight.append(self.flight[pick % len(self.flight)])

    @precondition(lambda self: len(self.flight) < 200)
    @rule()
    def pass_time(self) -> None:
        """The next deadline comes, before anything arrives."""
        self._pass_time()

    @rule(name=st.sampled_from(sorted(SWITCHES)))
    def restart_switch(self, name: str) -> None:
        """A switch starts anew: its registers are empty, its entries are there again."""
        self.switches[name] = self._switch(name)
        self.bare.discard(name)

    @rule(name=st.sampled_from(sorted(SWITCHES)))
    def lose_entries(self, name: str) -> None:
        """A switch starts anew, and for now nobody gives it its entries."""
        self.switches[name] = Switch.load(PROGRAM)
        self.bare.add(name)

    @precondition(lambda self: self.change is None)
    @rule(blue=st.sampled_from(COLOURS))
    def begin_change(self, blue: frozenset[int]) -> None:
        """The switches get the entries of another allocation."""
        self.change = Change(replace(PLAN, epoch=self.plans[-1].epoch + 1, blue=blue))
        self._write(self.change.plan)

    @precondition(lambda self: self.change is not None)
    @rule(pick=_PICK)
    def go_on_with_change(self, pick: int) -> None:
        """The next step: one more worker holds, or moves; the old entries go if they may."""
        change = self.change
        assert change is not None
        done = change.held if change.first < 0 else change.moved
        left = [name for name in sorted(self.workers) if name not in done]
        if not left:
            if all(worker.drained for worker in self.workers.values()):
                self._remove(self.plans[0])
                self.change = None
            return
        name = left[pick % len(left)]
        done.append(name)
        worker = self.workers[name]
        if change.first >= 0:
            self._leave(name, worker.move(change.plan.epoch, change.first, self.now))
            return
        worker.hold()
        if len(left) == 1:
            change.first = max(worker.next_chunk for worker in self.workers.values())
            self.changes.append(change)
            self._tell(self.destination, change)

    @precondition(lambda self: self.change is not None and self.change.first < 0)
    @rule()
    def take_change_back(self) -> None:
        """The change is given up: who holds is released, and the new entries go."""
        assert self.change is not None
        for name in self.change.held:
            self._leave(name, self.workers[name].release(self.now))
        self._remove(self.change.plan)
        self.change = None

    @rule()
    def restart_destination(self) -> None:
        """The destination starts anew and knows nothing."""
        self.destination = self._destination()
        self._leave(NETWORK.destination.name, self.destination.start(self.now))

    @invariant()
    def no_sum_is_wrong(self) -> None:
        """What is answered is answered right."""
        for chunk, expected in enumerate(self.sums):
            for worker in self.workers.values():
                got = worker.results[chunk].tolist()
                assert got in (expected, [0] * LANES)
            got = self.destination.sums[chunk].tolist()
            assert got in (expected, [0] * LANES)

    def teardown(self) -> None:
        """Left alone, everyone comes to have every sum."""
        for name in sorted(self.bare):
            self.restart_switch(name)
        for _ in range(MOST_STEPS):
            if self.change is not None:
                self.go_on_with_change(0)
            elif all(host.done for _, host in self._hosts()):
                break
            if self.flight:
                self._arrive(0)
            else:
                assert self._pass_time() or self.change is not None
        assert all(host.done for _, host in self._hosts())
        for worker in self.workers.values():
            assert worker.results.tolist() == self.sums
        assert self.destination.sums.tolist() == self.sums


TestAdversary = Adversary.TestCase
TestAdversary.settings = settings(
    max_examples=int(os.environ.get("ADVERSARY_EXAMPLES", "30")),
    stateful_step_count=60,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
