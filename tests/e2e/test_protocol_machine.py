"""The real program, workers and destination against an adversary who has the network.

Two blue switches, three workers, five chunks, a window of two. The adversary delivers what is under
way in any order, loses it, doubles it, lets time pass, starts a switch anew with empty registers,
or starts the destination anew. Whatever it does, nobody may ever hold a wrong sum; and once it
stops, everyone must come to have all of them. The oracle adds plain integers. Machines turn to
direct messages at once, so that parts and sums of parts meet at the destination.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import p4src
from controller.compile import JobPlan, compile_programs
from controller.endpoints import Timing, destination_config, worker_config
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
ENTRIES = {program.name: program for program in compile_programs(NETWORK, [PLAN])}
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
        self.switches = {name: self._switch(name) for name in ENTRIES}
        self.destination = self._destination()
        self.workers = {host.name: self._worker(host) for host in NETWORK.workers}
        self._leave(NETWORK.destination.name, self.destination.start(0))
        for name, worker in self.workers.items():
            self._leave(name, worker.start(0))

    def _switch(self, name: str) -> Switch:
        switch = Switch.load(PROGRAM)
        for entry in ENTRIES[name].entries:
            switch.insert(entry.table, dict(entry.match), entry.action, dict(entry.params))
        for group in ENTRIES[name].groups:
            switch.multicast_group(group.id, group.replicas)
        return switch

    def _destination(self) -> Destination:
        config = destination_config(NETWORK, PLAN, Op.ALLREDUCE, TIMING, CHUNKS, 0)
        assert config.requests is not None
        hasty = replace(config.requests, direct_after=0, direct_time=1)
        return Destination(replace(config, requests=hasty))

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

    @rule(name=st.sampled_from(sorted(ENTRIES)))
    def restart_switch(self, name: str) -> None:
        """A switch starts anew: its registers are empty, its entries are there again."""
        self.switches[name] = self._switch(name)

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
        for _ in range(MOST_STEPS):
            if all(host.done for _, host in self._hosts()):
                break
            if self.flight:
                self._arrive(0)
            else:
                assert self._pass_time()
        assert all(host.done for _, host in self._hosts())
        for worker in self.workers.values():
            assert worker.results.tolist() == self.sums
        assert self.destination.sums.tolist() == self.sums


TestAdversary = Adversary.TestCase
TestAdversary.settings = settings(
    max_examples=30,
    stateful_step_count=60,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
