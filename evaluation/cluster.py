"""Training jobs on the fabric: a parameter server behind one shared link, and who is scheduled how.

    servers (destination)
        |            10 x
      core
        |            the shared link, both ways
      edge
     / ... \\         10 x
    workers, those of all jobs in turn

Both switches run the compiled P4 program, with eight queues a port. Pushes meet in the edge
switch's queues of the shared link, answers in those of the core switch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from controller.compile import JobPlan, compile_programs
from controller.endpoints import Timing, destination_config, members, worker_config
from controller.placement import Tree, smc
from controller.program import TableEntry
from controller.scheduling import Scheduling, tensor_flow
from p4src import artefacts
from p4src.constants import AGG_UDP_PORT, JOBS, LANES, QUEUES, SLOTS
from softswitch import Switch
from topologies.fabric import HOST_PORT, Direction, Fabric, LinkSpec, PortQueues
from topologies.network import Host, Network, ip_text, mac_text, wire
from topologies.topology import Overlay, Topology
from traffic.destination import Destination
from traffic.endpoint import Op
from traffic.message import ETHERNET_BYTES, HEADER_BYTES, IPV4_BYTES, LANE_BYTES, UDP_BYTES
from traffic.ticket import TICKET_OPTIONS_BYTES
from traffic.training import (
    AggregationServer,
    ParameterServer,
    Schedule,
    ServerHost,
    StepTimes,
    TrainingWorker,
)
from traffic.training.server import Client, Place
from traffic.training.worker import check_room
from traffic.worker_config import WorkerConfig

__all__ = ["CORE", "EDGE", "Cluster", "ClusterSettings", "JobResult", "message_time"]

CORE, EDGE = "core", "edge"
_FAST = 10
_DELAY_NS = 1_000
_SECOND_NS = 1_000_000_000
_SERVER_UDP_PORT = 9600
_TRIES = 200
_PAYLOAD_BYTES = LANES * LANE_BYTES
_FRAME_BYTES = (
    ETHERNET_BYTES + IPV4_BYTES + TICKET_OPTIONS_BYTES + UDP_BYTES + HEADER_BYTES + _PAYLOAD_BYTES
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """How the jobs share the network.

    Attributes:
        workers: of each job.
        payload_rate: bits a second of values on the shared link; frames are longer than their
            values, and the link is faster by as much. The other links are ten times as fast.
        scheduling: of the switches; None leaves all packets in one FIFO queue.
        budget: blue switches of each job (`smc`), 0 to 2. None: plain traffic of a parameter
            server.
        depth: packets that each queue of the shared link holds; None for any number.
        loss: probability that a link loses a frame, each way.
        jitter: standard deviation of the time of computation, as a part of it.
        seed: of jitter, loss and when jobs begin.
    """

    workers: int
    payload_rate: int
    scheduling: Scheduling | None = None
    budget: int | None = None
    depth: int | None = None
    loss: float = 0.0
    jitter: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class JobResult:
    """What became of a job: its workers' iterations, by rank, and whether all sums were right.

    Attributes:
        steps: of each worker, the iterations in order.
        correct: every answer was the sum over all workers, and none was given up.
        resent: messages that workers sent again.
    """

    steps: tuple[tuple[StepTimes, ...], ...]
    correct: bool
    resent: int


def message_time(payload_rate: int) -> int:
    """Nanoseconds that a message takes on the shared link."""
    return _PAYLOAD_BYTES * 8 * _SECOND_NS // payload_rate


class Cluster:
    """Jobs of one schedule each on a network of their own; run it once."""

    def __init__(self, schedules: tuple[Schedule, ...], settings: ClusterSettings) -> None:
        """Build the network and program its switches.

        Raises ConfigError where an iteration has more messages than a job has slots.
        """
        self.settings = settings
        self._schedules = schedules
        self.network = _network(settings.workers * len(schedules))
        window = 1 << (max(schedule.pool for schedule in schedules) - 1).bit_length()
        self._plans = self._plan(window)
        self._switches = {
            name: Switch.load(artefacts.load().json, device_id=i, queues=QUEUES)
            for i, name in enumerate((CORE, EDGE), start=1)
        }
        self._program()
        self.workers = [
            self._workers(plan, schedule)
            for plan, schedule in zip(self._plans, schedules, strict=True)
        ]
        self._servers = ServerHost(dict(map(self._server, self._plans, schedules)))
        self.fabric = self._connect()

    def run(self, progress: Callable[[], None] | None = None) -> tuple[JobResult, ...]:
        """Train; the results of each job."""
        self.fabric.run(until=self.fabric.all_finished, progress=progress)
        return tuple(
            JobResult(
                steps=tuple(worker.steps for worker in workers),
                correct=all(
                    worker.wrong == 0
                    and worker.given_up is None
                    and len(worker.steps) == schedule.iterations
                    for worker in workers
                ),
                resent=sum(worker.resent for worker in workers),
            )
            for workers, schedule in zip(self.workers, self._schedules, strict=True)
        )

    @property
    def shared_links(self) -> tuple[Direction, Direction]:
        """The shared link, towards the servers and back."""
        return self.fabric.direction(EDGE, CORE), self.fabric.direction(CORE, EDGE)

    def queues(self, switch: str) -> PortQueues:
        """The queues of a switch at the shared link."""
        port = self.network.parent_port[1] if switch == EDGE else self.network.child_port[1]
        return self.fabric.queues(switch, port)

    def queued(self, switch: str) -> Mapping[int, int]:
        """Packets that a switch has placed so far, by priority."""
        return {
            priority: self._switches[switch].counter("queued", priority)[0]
            for priority in range(QUEUES)
        }

    # --- what the network is --------------------------------------------------------------------

    def _plan(self, window: int) -> tuple[JobPlan, ...]:
        budget = self.settings.budget
        blue = smc(self.network.topology.overlay.tree, budget).blue if budget else frozenset()
        count = len(self._schedules)
        if budget is not None:
            for schedule in self._schedules:
                check_room(schedule, SLOTS // count)
        return tuple(
            JobPlan(
                job=job + 1,
                epoch=1,
                blue=blue,
                slot_base=job * window,
                window=window,
                members=frozenset(range(job, self.settings.workers * count, count)),
            )
            for job in range(count)
        )

    def _program(self) -> None:
        extra: list[TableEntry] = []
        if self.settings.scheduling is not None:
            extra += self.settings.scheduling.entries()
        for plan in self._plans:
            port = _SERVER_UDP_PORT + plan.job
            extra.append(tensor_flow(JOBS + plan.job, dst_port=port))
            extra.append(tensor_flow(JOBS + plan.job, src_port=port))
        for program in compile_programs(self.network, self._plans):
            switch = self._switches[program.name]
            for entry in (*program.entries, *extra):
                switch.insert(
                    entry.table,
                    dict(entry.match),
                    entry.action,
                    dict(entry.params),
                    entry.priority,
                )
            for group in program.groups:
                switch.multicast_group(group.id, group.replicas)

    def _connect(self) -> Fabric:
        settings, network = self.settings, self.network
        frame_rate = settings.payload_rate * _FRAME_BYTES // _PAYLOAD_BYTES
        shared = LinkSpec(
            rate=frame_rate, delay=_DELAY_NS, queue_frames=settings.depth, loss=settings.loss
        )
        fast = LinkSpec(rate=_FAST * frame_rate, delay=_DELAY_NS, loss=settings.loss)
        fabric = Fabric(seed=settings.seed)
        for name, switch in self._switches.items():
            fabric.add_queued_switch(name, switch.device, QUEUES)
        (link,) = network.links
        fabric.connect((link.lower, link.lower_port), (link.upper, link.upper_port), shared)
        by_name = {worker.config.name: worker for workers in self.workers for worker in workers}
        for host in network.workers:
            fabric.add_host(host.name, by_name[host.name])
            fabric.connect((host.name, HOST_PORT), (host.switch, host.port), fast)
        root = network.destination
        fabric.add_host(root.name, self._servers)
        fabric.connect((root.name, HOST_PORT), (root.switch, root.port), fast)
        return fabric

    # --- who is on it ---------------------------------------------------------------------------

    def _timing(self) -> Timing:
        """A message is sent again at first when the link could have carried two iterations."""
        return Timing(2 * self._iteration_time(), 8 * self._iteration_time(), _TRIES)

    def _iteration_time(self) -> int:
        """Nanoseconds in which the shared link carries what all workers push in an iteration."""
        pushed = sum(schedule.chunks for schedule in self._schedules) * self.settings.workers
        return pushed * message_time(self.settings.payload_rate)

    def _worker_config(self, plan: JobPlan, host: Host) -> WorkerConfig:
        """Later than at first, a message is sent again when its tensor's answers say so, but never
        sooner than it could have waited behind all others of an iteration."""
        told = worker_config(self.network, plan, host, Op.ALLREDUCE, self._timing(), 0)
        return replace(told, min_timeout=self._iteration_time())

    def _workers(self, plan: JobPlan, schedule: Schedule) -> tuple[TrainingWorker, ...]:
        is_plain = self.settings.budget is None
        begin = random.Random(f"{self.settings.seed}|{plan.job}|begin").random()
        return tuple(
            TrainingWorker(
                self._worker_config(plan, host),
                schedule,
                dst_port=_SERVER_UDP_PORT + plan.job if is_plain else AGG_UDP_PORT,
                # The first job at once, the others at any time of an iteration's computation.
                start_at=int(begin * schedule.compute) if plan.job > 1 else 0,
                jitter=_jitter(self.settings, plan.job, host.rank),
            )
            for host in members(self.network, plan)
        )

    def _server(
        self, plan: JobPlan, schedule: Schedule
    ) -> tuple[tuple[int, int], AggregationServer | ParameterServer]:
        if self.settings.budget is not None:
            config = destination_config(
                self.network,
                plan,
                Op.ALLREDUCE,
                self._timing(),
                schedule.pool * schedule.iterations,
                0,
            )
            return (AGG_UDP_PORT, plan.job), AggregationServer(Destination(config))
        root = self.network.destination
        port = _SERVER_UDP_PORT + plan.job
        place = Place(
            mac_text(root.mac),
            ip_text(root.ip),
            mac_text(self.network.switch_mac(root.switch)),
            port,
        )
        clients = tuple(
            Client(rank, host.source, mac_text(host.mac), ip_text(host.ip), host.udp_port)
            for rank, host in enumerate(members(self.network, plan))
        )
        server = ParameterServer(plan.job, place, clients, 2 * schedule.pool)
        return (port, plan.job), server


def _network(workers: int) -> Network:
    tree = Tree(
        parent=[-1, 0],
        rate=[Fraction(_FAST), Fraction(1)],
        load=[0, workers],
        available=[True, True],
    )
    overlay = Overlay((CORE, EDGE), tree, (None, None))
    return wire(Topology("training", (CORE, EDGE), overlay, ((EDGE, CORE),)))


def _jitter(settings: ClusterSettings, job: int, rank: int) -> Callable[[int], float]:
    def factor(iteration: int) -> float:
        draw = random.Random(f"{settings.seed}|{job}|{rank}|{iteration}|jitter").gauss(
            1.0, settings.jitter
        )
        return max(0.5, draw)

    return factor
