"""AllReduce on the fabric: by the switch program, and by what is done without it.

Every link, those of hosts too, has the same rate, so that links are what limits each method. Times
are of the virtual clock, from the first frame to the last sum at the last worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from controller.endpoints import Timing, call_destination, window_time, worker_config
from controller.fabric_network import FabricNetwork
from controller.p4rt import connect_blocking
from controller.placement import STRATEGIES
from controller.switches import SwitchControl
from evaluation.allreduce_hosts import (
    Agent,
    Place,
    PushAgent,
    RingAgent,
    ServerAgent,
    TreeAgent,
    Values,
)
from p4src import artefacts
from topologies.fabric.build import Conditions
from topologies.network import Host, Network, ip_text, mac_text
from traffic.collectives.calls import Array, Call, Kind, part_of
from traffic.destination import Destination
from traffic.host import Host as HostAgent
from traffic.worker import Worker

WINDOW = 16
"""Chunks in flight: twice what is under way on the longest path here."""
METHODS = (
    "smc k=1",
    "smc k=4",
    "all-blue",
    "all-red",
    "parameter server",
    "parameter server, chunk by chunk",
    "ring",
    "tree",
)
_TRIES = 1_000
_SECOND_NS = 1_000_000_000


class WrongSumError(Exception):
    """A method came to other sums than NumPy, beyond what rounding explains."""


@dataclass(frozen=True, slots=True)
class Time:
    """What a method took: virtual seconds, and the bytes on the link that carried most."""

    seconds: float
    busiest_bytes: int
    blue: int | None


class Bench:
    """A network whose links all have `rate` bits a second."""

    def __init__(
        self, network: Network, rate: int, up: FabricNetwork, control: SwitchControl
    ) -> None:
        self._network, self._rate, self._up = network, rate, up
        self._control = control

    def measure(self, method: str, values: Values) -> Time:
        """Run a method on values [workers, elements]; raises WrongSumError."""
        if method in _BASELINES:
            return self._baseline(method, values)
        return self._aggregated(method, values)

    def _aggregated(self, method: str, values: Values) -> Time:
        name, _, budget = method.partition(" k=")
        tree = self._network.topology.overlay.tree
        blue = STRATEGIES[name](tree, int(budget or tree.n)).blue
        (plan,) = self._control.install([blue], WINDOW)
        rates = dict.fromkeys(self._network.topology.overlay.names, self._rate)
        patience = 2 * window_time(self._network, rates, [plan]) + _SECOND_NS // 100
        timing = Timing(patience, 8 * patience, _TRIES)
        call = Call(Kind.ALLREDUCE, "float32", values.shape[1:])
        hosts = self._network.workers
        parts = [
            part_of(call, array, rank, len(hosts), self._network.build.lanes, WINDOW)
            for rank, array in enumerate(values)
        ]
        config = call_destination(self._network, plan, call, timing, parts[0].payload.chunks, 0)
        agents = {self._network.destination.name: _agent(self._network.destination)}
        agents[self._network.destination.name].attach(Destination(config))
        workers = []
        for host, part in zip(hosts, parts, strict=True):
            told = worker_config(self._network, plan, host, part.op, timing, 0)
            workers.append(Worker(told, part.payload))
            agents[host.name] = _agent(host)
            agents[host.name].attach(workers[-1])
        time = self._run(agents, len(blue))
        for part, worker in zip(parts, workers, strict=True):
            sums = part.result(worker.overflowed)
            if worker.counters.resent or sums is None:
                raise WrongSumError(f"{method}: repetitions without loss")
            _check(method, sums, values)
        return time

    def _baseline(self, method: str, values: Values) -> Time:
        hosts = (*self._network.workers, self._network.destination)
        places = [self._place(host) for host in hosts]
        workers = range(len(self._network.workers))
        agents: dict[str, Agent | HostAgent] = {}
        if method.startswith("parameter server"):
            server = ServerAgent(
                places[-1], places, values.shape[1], in_turns=method == "parameter server"
            )
            agents[hosts[-1].name] = server
            agents |= {hosts[r].name: PushAgent(places[r], r, places, values[r]) for r in workers}
        else:
            kind = RingAgent if method == "ring" else TreeAgent
            others = places[:-1]
            agents |= {hosts[r].name: kind(places[r], r, others, values[r]) for r in workers}
        time = self._run(agents, None)
        for agent in agents.values():
            if isinstance(agent, Agent):
                _check(method, agent.sums, values)
        return time

    def _run(self, agents: Mapping[str, Agent | HostAgent], blue: int | None) -> Time:
        fabric = self._up.fabric
        fabric.run()
        before = {d.name: d.counters.sent_bytes for d in fabric.directions}
        began = fabric.now
        for name, agent in agents.items():
            fabric.restart(name, agent=agent)
        fabric.run(until=fabric.all_finished)
        seconds = (fabric.now - began) / _SECOND_NS
        fabric.run()
        carried = [d.counters.sent_bytes - before[d.name] for d in fabric.directions]
        return Time(seconds, max(carried), blue)

    def _place(self, host: Host) -> Place:
        gateway = self._network.switch_mac(host.switch)
        return Place(mac_text(host.mac), ip_text(host.ip), mac_text(gateway))


_BASELINES = frozenset(METHODS[4:])


@contextmanager
def bench(network: Network, rate: int, program: artefacts.Artefacts) -> Iterator[Bench]:
    """A network that runs `program`, of the network's build, on links of `rate` bits a second."""
    conditions = Conditions(base=rate, hosts=rate)
    up = FabricNetwork(network, conditions)
    with ExitStack() as stack:
        fleet = stack.enter_context(connect_blocking(stack.enter_context(up.serve()), program))
        fleet.push()
        yield Bench(network, rate, up, SwitchControl(network, fleet))


def _agent(host: Host) -> HostAgent:
    return HostAgent(host.name, mac_text(host.mac), ip_text(host.ip))


def _check(method: str, sums: Array, values: Values) -> None:
    exact = values.sum(axis=0, dtype=np.float64)
    if not np.allclose(sums, exact, rtol=0, atol=1e-4 * float(np.abs(exact).max())):
        raise WrongSumError(f"{method}: the sums are not those of NumPy")
