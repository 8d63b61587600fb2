"""A job that misbehaves changes nothing for another: sums, slots, counters of links, or time.

The victim, a job of four workers, runs alone and then beside a host that sends all through its run
what no honest host sends: everything else is the same, so what the victim comes to must be, to the
nanosecond. The host belongs to a second job that both switches of the tree sum as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
import pytest

from controller.compile import JobPlan, compile_programs
from controller.endpoints import Timing, destination_config, members, worker_config
from controller.fabric_network import FabricNetwork
from controller.measurement import LinkCount
from controller.p4rt import connect_blocking
from controller.placement import Tree
from controller.running import RunOptions
from controller.switches import SwitchControl
from controller.targets import FABRIC, bring_up
from p4src import artefacts
from p4src.constants import AGG_UDP_PORT, LANES, Flag, Kind, Outcome
from tests.unit.controller.trees import topology_of
from topologies.fabric.build import Conditions
from topologies.network import Host, Network, ip_text, mac_text, wire
from traffic.destination import Destination
from traffic.endpoint import Endpoint, Op
from traffic.message import (
    DESTINATION_SOURCE,
    Flow,
    Message,
    decode_frame,
    encode_frame,
    group_ip,
    group_mac,
    pack_lanes,
)
from traffic.worker import Worker
from traffic.workloads import exact_sums, synthetic

CHUNKS, WINDOW = 60, 8
LINK_BPS = 100_000_000
EVERY_NS = 10_000
"""Between two frames of the flood: more than the host's link carries."""
VICTIM = JobPlan(1, 7, frozenset({0, 1}), 0, WINDOW, frozenset({0, 1, 4, 5}))
ROGUE = JobPlan(2, 8, frozenset({0, 1}), WINDOW, WINDOW, frozenset({2, 3, 6}))
ROGUE_RANK = 2
"""Below the same switches as the victim's workers 0 and 1."""
BAD = tuple(range(666, 666 + LANES))


@dataclass(frozen=True, slots=True)
class Seen:
    """What the victim came to."""

    correct: bool
    nanoseconds: int
    links: Mapping[str, LinkCount]
    slots: tuple[tuple[int, ...], ...]
    resent: int


class Scene:
    """The network, with the victim's job and without a worker of the other's."""

    def __init__(self, network: Network, up: FabricNetwork, switches: SwitchControl) -> None:
        self.network = network
        self.up = up
        self.switches = switches
        self.rogue = network.workers[ROGUE_RANK]
        self.victims = members(network, VICTIM)

    def outcomes(self) -> Counter[Outcome]:
        """Packets by what became of them, over all switches, so far."""
        counted = self.switches.outcome_counts()
        return Counter({Outcome[name]: count for name, count in counted.items()})

    def frame(
        self,
        *,
        kind: Kind = Kind.CONTRIBUTE,
        plan: JobPlan = ROGUE,
        source: int | None = None,
        chunk: int = 0,
        flags: int = 0,
        weight: int = 1,
        to: Host | None = None,
    ) -> bytes:
        """A frame of the rogue's: up, or, where it is no contribution, to the group or a host."""
        host, destination = self.rogue, self.network.destination
        own = source if source is not None else host.source
        message = Message(
            kind.value, flags, plan.job, own, plan.epoch, chunk, weight, pack_lanes(BAD)
        )
        gateway = mac_text(self.network.switch_mac(host.switch))
        claimed = ip_text(destination.ip)
        if kind is Kind.CONTRIBUTE:
            flow = Flow(mac_text(host.mac), gateway, ip_text(host.ip), claimed, host.udp_port)
        elif to is None:
            group = group_ip(plan.job)
            flow = Flow(mac_text(host.mac), group_mac(group), claimed, group, AGG_UDP_PORT)
        else:
            ports = (AGG_UDP_PORT, to.udp_port)
            flow = Flow(mac_text(host.mac), gateway, claimed, ip_text(to.ip), *ports)
        return encode_frame(flow, message)

    def run(self, flood: Iterator[bytes] | None, until_ns: int = 50_000_000) -> Seen:
        """Let the victim's job run, and the rogue send a frame every EVERY_NS."""
        fabric, agents = self.up.fabric, self.up.agents
        values = synthetic(len(self.victims), CHUNKS, 1)
        timing = Timing(8_000_000, 64_000_000, 200)
        destination = Destination(
            destination_config(self.network, VICTIM, Op.ALLREDUCE, timing, CHUNKS, 0)
        )
        workers = [
            Worker(worker_config(self.network, VICTIM, host, Op.ALLREDUCE, timing, 0), values[rank])
            for rank, host in enumerate(self.victims)
        ]

        def send_one() -> None:
            if flood is not None and not all(worker.done for worker in workers):
                fabric.send(self.rogue.name, [next(flood)])
                fabric.call_at(fabric.now + EVERY_NS, send_one)

        began = fabric.now
        machines: list[tuple[Host, Endpoint]] = [(self.network.destination, destination)]
        machines += zip(self.victims, workers, strict=True)
        for host, endpoint in machines:
            agents[host.name].attach(endpoint)
            fabric.send(host.name, endpoint.start(fabric.now))
        send_one()
        fabric.run(lambda: all(worker.done for worker in workers), deadline=began + until_ns)
        expected = exact_sums(values)
        registers = [
            [
                device.register(register, slot)
                for register in _registers(device.program.registers)
                for slot in range(VICTIM.slot_base, VICTIM.slot_base + WINDOW)
            ]
            for device in self.up.devices.values()
        ]
        return Seen(
            all(np.array_equal(worker.results, expected) for worker in workers),
            fabric.now - began,
            self.switches.link_counts(VICTIM.job),
            tuple(tuple(cells) for cells in registers),
            sum(worker.counters.resent for worker in workers),
        )


def replace_epoch(frame: bytes, epoch: int) -> bytes:
    """A worker's frame under another epoch."""
    flow = Flow(
        ":".join(f"{byte:02x}" for byte in frame[6:12]),
        ":".join(f"{byte:02x}" for byte in frame[:6]),
        ".".join(map(str, frame[26:30])),
        ".".join(map(str, frame[30:34])),
        int.from_bytes(frame[34:36], "big"),
    )
    return encode_frame(flow, replace(decode_frame(frame), epoch=epoch, lanes=pack_lanes(BAD)))


def _registers(names: Mapping[str, object]) -> list[str]:
    return sorted(name for name in names if "slot_" in name or "answer_" in name)


@contextmanager
def scene() -> Iterator[Scene]:
    """A fresh network: a root, and below it two switches with four workers and three."""
    tree = Tree(parent=[-1, 0, 0], rate=[1, 1, 1], load=[0, 4, 3], available=[True] * 3)
    network = wire(topology_of(tree))
    up = FabricNetwork(network, Conditions(base=LINK_BPS, hosts=LINK_BPS))
    with up.serve() as addresses, connect_blocking(addresses, artefacts.load()) as fleet:
        fleet.push()
        fleet.reconcile(compile_programs(network, [VICTIM, ROGUE]))
        yield Scene(network, up, SwitchControl(network, fleet))


@pytest.fixture(scope="module")
def alone() -> Seen:
    """What the victim comes to where nobody misbehaves."""
    with scene() as stage:
        return stage.run(None)


def _wrong_sources(at: Scene) -> list[bytes]:
    numbers = (0, 1, at.victims[0].source, at.victims[-1].source, 65_535)
    return [at.frame(plan=plan, source=number) for plan in (VICTIM, ROGUE) for number in numbers]


def _another_jobs_number(at: Scene) -> list[bytes]:
    chunks = (0, 1, WINDOW, CHUNKS, 2**32 - 1)
    return [at.frame(plan=VICTIM, chunk=at_) for at_ in chunks] + [
        at.frame(plan=replace(ROGUE, job=job)) for job in (0, 3, 65_535)
    ]


def _another_jobs_packets(at: Scene) -> list[bytes]:
    """Those of the victim's workers, byte for byte."""
    timing = Timing(8_000_000, 64_000_000, 200)
    values = synthetic(len(at.victims), CHUNKS, 1)
    return [
        frame
        for rank, host in enumerate(at.victims)
        for frame in Worker(
            worker_config(at.network, VICTIM, host, Op.ALLREDUCE, timing, 0), values[rank]
        ).start(0)
    ]


def _forged_answers(at: Scene) -> list[bytes]:
    """To the victim's group and to its workers' own sockets, for any chunk under way."""
    return [
        at.frame(kind=kind, plan=VICTIM, source=DESTINATION_SOURCE, chunk=chunk, weight=4, to=to)
        for chunk in (0, 1, WINDOW, CHUNKS - 1)
        for kind in (Kind.RESULT, Kind.REQUEST)
        for to in (None, *at.victims)
    ]


def _wrong_weights(at: Scene) -> list[bytes]:
    return [at.frame(weight=weight, chunk=chunk) for weight in (0, 2, 65_535) for chunk in (0, 9)]


def _own_slots(at: Scene) -> list[bytes]:
    """Of its own job, each chunk further ahead: it takes over slot after slot, all in vain."""
    return [at.frame(chunk=chunk) for chunk in (*range(1_000), 2**32 - 1)]


FLOODS = {
    "wrong sources": (_wrong_sources, Outcome.UNREGISTERED),
    "another job's number": (_another_jobs_number, Outcome.UNREGISTERED),
    "another job's packets": (_another_jobs_packets, Outcome.UNREGISTERED),
    "forged answers": (_forged_answers, Outcome.UNREGISTERED),
    "wrong weights": (_wrong_weights, Outcome.BAD_WEIGHT),
    "chunks far ahead": (_own_slots, Outcome.ABSORBED),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_changes_nothing_for_another_job(alone: Seen, name: str) -> None:
    make, outcome = FLOODS[name]
    with scene() as stage:
        before = stage.outcomes()[outcome]
        seen = stage.run(cycle(make(stage)))
        flooded = stage.outcomes()[outcome] - before
    assert seen.correct
    assert seen == alone
    # It was a flood, and ended where it should.
    assert flooded > 100


def test_what_a_job_may_send_takes_no_more_than_its_link_carries(alone: Seen) -> None:
    """Marked to pass all switches, for a chunk of long ago, or under an epoch that is none, it goes
    up like any traffic.

    So it takes its share of the links, and nothing else: a host's link is as fast as the root's.
    """
    with scene() as stage:
        frames = [stage.frame(chunk=2**32 - 1 - chunk) for chunk in range(2 * WINDOW)]
        frames += [stage.frame(chunk=chunk, flags=Flag.DIRECT) for chunk in range(8)]
        frames += [
            stage.frame(plan=replace(ROGUE, epoch=epoch)) for epoch in (1, VICTIM.epoch, 2**32 - 1)
        ]
        seen = stage.run(cycle(frames))
    assert seen.correct
    assert replace(seen, nanoseconds=0, resent=0) == replace(alone, nanoseconds=0, resent=0)
    assert seen.nanoseconds < 3 * alone.nanoseconds


def test_packets_of_an_earlier_run_are_nobodys() -> None:
    """From the very ports that sent them, under the same job, sources and chunks."""
    with scene() as stage:
        earlier = replace(VICTIM, epoch=VICTIM.epoch - 2)
        recorded = [replace_epoch(frame, earlier.epoch) for frame in _another_jobs_packets(stage)]
        hosts = [host for host in stage.victims for _ in range(WINDOW)]

        def replay() -> None:
            for host, frame in zip(hosts, recorded, strict=True):
                stage.up.fabric.send(host.name, [frame])

        for moment in range(0, 2_000_000, 200_000):
            stage.up.fabric.call_at(stage.up.fabric.now + moment, replay)
        seen = stage.run(None)
    assert seen.correct


def test_runs_that_differ_have_epochs_that_differ() -> None:
    """And the same run has the same: a seed repeats it packet by packet."""
    network = wire(topology_of(Tree(parent=[-1], rate=[1], load=[2], available=[True])))

    def first(options: RunOptions) -> int:
        with bring_up(network, FABRIC, options) as testbed:
            return testbed.switches.install([frozenset()], WINDOW)[0].epoch

    options = RunOptions(chunks=4, seed=1)
    epochs = [
        first(one)
        for one in (options, replace(options, seed=2), replace(options, chunks=5), options)
    ]
    assert len(set(epochs)) == 3
    assert epochs[0] == epochs[3]
