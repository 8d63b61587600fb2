"""A worker that is slow for a whole job, on the fabric: it is waited for, every sum is right."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import pytest

from controller.fabric_network import FabricNetwork
from controller.fabric_testbed import FabricTestbed
from controller.watchdog import STUCK_NS, Cause, Stuck
from p4src.constants import Kind
from topologies import WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.network import Host as NetworkHost
from topologies.network import wire
from traffic.endpoint import Op
from traffic.host import Host
from traffic.message import decode_datagram
from traffic.reports import JobOutcome
from traffic.workloads import exact_sums, synthetic

CHUNKS = 60
WINDOW = 4
SLOW = "w4"
RATE_BPS = 200_000


class SlowHost(Host):
    """A host whose worker takes so long over each answer, and over nothing else.

    That is the time that it computes what it contributes next; meanwhile it hears nothing.
    """

    def __init__(self, host: Host, nanoseconds: int) -> None:
        super().__init__(host.name, host.mac, host.ip)
        self._each = nanoseconds
        self._waiting: deque[bytes] = deque()
        self._answered: set[int] = set()
        self._free_at = 0

    @property
    def next_deadline(self) -> int | None:
        return self._free_at if self._waiting else super().next_deadline

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        self._waiting.append(frame)
        return self.tick(now)

    def tick(self, now: int) -> list[bytes]:
        frames: list[bytes] = []
        while self._waiting and now >= self._free_at:
            message = decode_datagram(self._waiting[0]).message
            if message.kind != Kind.REQUEST and message.chunk not in self._answered:
                self._answered.add(message.chunk)
                self._free_at = now + self._each
                return frames
            frames += super().receive(self._waiting.popleft(), now)
        return frames if self._waiting else frames + super().tick(now)


@dataclass(frozen=True, slots=True)
class Told:
    """What a run came to, how long it took, in virtual nanoseconds, and what was said."""

    outcome: JobOutcome
    took: int
    stuck: tuple[Stuck, ...]

    @property
    def resent(self) -> list[int]:
        return [worker.resent for worker in self.outcome.workers]


def _run(tree: str, op: Op) -> Told:
    network = wire(parse(tree, WorkloadOptions()))
    told: list[Stuck] = []
    with FabricTestbed(network, Conditions(base=RATE_BPS)) as testbed:
        (plan,) = testbed.switches.install([frozenset({0, 2})], window=WINDOW)
        values = synthetic(len(network.workers), CHUNKS, seed=5)
        (outcome,) = testbed.reduce([plan], [values], op, on_stuck=told.append)
        assert outcome.is_right(exact_sums(values))
        return Told(outcome, testbed.busy, tuple(told))


@pytest.mark.parametrize(
    ("op", "factor"), [(Op.REDUCE, 10), (Op.ALLREDUCE, 10), (Op.ALLREDUCE, 100)]
)
def test_a_slow_worker_slows_its_job_and_no_more(
    tree: str, op: Op, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job takes as much longer, and is repeated as much as that time asks for."""
    usual = _run(tree, op)
    assert (usual.resent, usual.stuck) == ([0] * 6, ())
    each = factor * usual.took // CHUNKS
    plain = FabricNetwork.new_agent

    def new_agent(host: NetworkHost) -> Host:
        agent = plain(host)
        return SlowHost(agent, each) if host.name == SLOW else agent

    monkeypatch.setattr(FabricNetwork, "new_agent", staticmethod(new_agent))
    slow = _run(tree, op)
    assert 0.9 * factor < slow.took / usual.took < 1.1 * factor
    *others, _ = sorted(slow.resent)
    # One that is asked for late answers each request once it hears it.
    assert max(others) <= CHUNKS * factor / 10
    assert max(slow.resent) <= CHUNKS * factor / 2
    if each < STUCK_NS:
        assert slow.stuck == ()
    else:
        first = slow.stuck[0]
        assert (first.switch, first.workers, first.cause) == ("b", (SLOW,), Cause.WORKERS)
        named = {one.workers for one in slow.stuck if one.cause is Cause.WORKERS}
        assert named == {(SLOW,)}
