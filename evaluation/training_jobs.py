"""Training jobs on a network: what switches, workers and servers are told, on any target.

servers (destination)
    |            10 x
  core
    |            the shared link, both ways
  edge
 / ... \\         10 x
workers, those of all jobs in turn
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from controller.compile import JobPlan, compile_programs
from controller.endpoints import Timing, destination_config, members, worker_config
from controller.placement import Tree, smc
from controller.program import SwitchProgram
from controller.scheduling import Scheduling, tensor_flow
from p4src.constants import AGG_UDP_PORT, JOBS, LANES, SLOTS
from topologies.network import Host, Network, ip_text, mac_text, wire
from topologies.topology import Overlay, Topology
from traffic.destination_config import DestinationConfig
from traffic.endpoint import Op
from traffic.message import LANE_BYTES
from traffic.training import ParameterServerConfig, Schedule, TrainerConfig, TrainingReport
from traffic.training.server import Client, Place
from traffic.training.worker import check_room
from traffic.worker_config import WorkerConfig

__all__ = [
    "CORE",
    "EDGE",
    "FAST",
    "JobResult",
    "TrainingJobs",
    "TrainingSettings",
    "message_time",
]

CORE, EDGE = "core", "edge"
FAST = 10
"""How many times the shared link's rate the others have."""
_SECOND_NS = 1_000_000_000
_SERVER_UDP_PORT = 9600
_TRIES = 200
_PAYLOAD_BITS = LANES * LANE_BYTES * 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
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
    """What became of a job, its workers by rank."""

    workers: tuple[TrainingReport, ...]

    @property
    def correct(self) -> bool:
        """Whether every worker did all its iterations with sums over all workers."""
        return all(worker.correct for worker in self.workers)

    @property
    def resent(self) -> int:
        """Messages that workers sent again."""
        return sum(worker.resent for worker in self.workers)


def message_time(payload_rate: int) -> int:
    """Nanoseconds that a message takes on the shared link."""
    return _PAYLOAD_BITS * _SECOND_NS // payload_rate


class TrainingJobs:
    """Jobs of one schedule each, on a network of their own."""

    def __init__(self, schedules: tuple[Schedule, ...], settings: TrainingSettings) -> None:
        """Plan the jobs.

        Raises ConfigError where an iteration has more messages than an aggregated job has slots.
        """
        self.settings = settings
        self.schedules = schedules
        self.network = _network(settings.workers * len(schedules))
        if settings.budget is not None:
            for schedule in schedules:
                check_room(schedule, SLOTS // len(schedules))
        self.plans = self._plan(max(schedule.pool for schedule in schedules))

    def programs(self) -> tuple[SwitchProgram, ...]:
        """What each switch must hold: the jobs, the windows of plain traffic, the queues' rule."""
        scheduling = self.settings.scheduling
        extra = [] if scheduling is None else [*scheduling.entries()]
        for plan in self.plans:
            port = _SERVER_UDP_PORT + plan.job
            extra.append(tensor_flow(JOBS + plan.job, dst_port=port))
            extra.append(tensor_flow(JOBS + plan.job, src_port=port))
        return tuple(
            replace(program, entries=(*program.entries, *extra))
            for program in compile_programs(self.network, self.plans)
        )

    def trainers(self) -> Iterator[tuple[Host, TrainerConfig]]:
        """Every worker with what it is told, job by job, by rank."""
        is_plain = self.settings.budget is None
        for plan, schedule in zip(self.plans, self.schedules, strict=True):
            begin = random.Random(f"{self.settings.seed}|{plan.job}|begin").random()
            for host in members(self.network, plan):
                yield (
                    host,
                    TrainerConfig(
                        worker=self._worker_config(plan, host),
                        schedule=schedule,
                        dst_port=_SERVER_UDP_PORT + plan.job if is_plain else AGG_UDP_PORT,
                        # The first job at once, others at any time of an iteration's computation.
                        delay=int(begin * schedule.compute) if plan.job > 1 else 0,
                        jitter=self.settings.jitter,
                        seed=f"{self.settings.seed}|{plan.job}",
                    ),
                )

    def servers(self) -> tuple[ParameterServerConfig | DestinationConfig, ...]:
        """What the server of each job is told; all are at the destination."""
        return tuple(map(self._server, self.plans, self.schedules))

    def results(self, reports: Sequence[TrainingReport]) -> tuple[JobResult, ...]:
        """Reports in the order of `trainers`, by job."""
        each = self.settings.workers
        return tuple(
            JobResult(tuple(reports[i * each : (i + 1) * each])) for i in range(len(self.plans))
        )

    def _plan(self, window: int) -> tuple[JobPlan, ...]:
        budget = self.settings.budget
        blue = smc(self.network.topology.overlay.tree, budget).blue if budget else frozenset()
        count = len(self.schedules)
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

    def _iteration_time(self) -> int:
        """Nanoseconds in which the shared link carries what all workers push in an iteration."""
        pushed = sum(schedule.chunks for schedule in self.schedules) * self.settings.workers
        return pushed * message_time(self.settings.payload_rate)

    def _timing(self) -> Timing:
        """A message is sent again at first when the link could have carried two iterations."""
        return Timing(2 * self._iteration_time(), 8 * self._iteration_time(), _TRIES)

    def _worker_config(self, plan: JobPlan, host: Host) -> WorkerConfig:
        """Later than at first, a message is sent again when its tensor's answers say so, but never
        sooner than it could have waited behind all others of an iteration."""
        told = worker_config(self.network, plan, host, Op.ALLREDUCE, self._timing(), 0)
        return replace(told, min_timeout=self._iteration_time())

    def _server(
        self, plan: JobPlan, schedule: Schedule
    ) -> ParameterServerConfig | DestinationConfig:
        if self.settings.budget is not None:
            chunks = schedule.pool * schedule.iterations
            told = destination_config(self.network, plan, Op.ALLREDUCE, self._timing(), chunks, 0)
            # Layers come last to first: a newer chunk that is complete says nothing of older ones,
            # so the workers keep the time, and the destination asks for nothing.
            return replace(told, requests=None)
        root = self.network.destination
        place = Place(
            mac_text(root.mac),
            ip_text(root.ip),
            mac_text(self.network.switch_mac(root.switch)),
            _SERVER_UDP_PORT + plan.job,
        )
        clients = tuple(
            Client(rank, host.source, mac_text(host.mac), ip_text(host.ip), host.udp_port)
            for rank, host in enumerate(members(self.network, plan))
        )
        return ParameterServerConfig(plan.job, place, clients, 2 * schedule.pool)


def _network(workers: int) -> Network:
    tree = Tree(
        parent=[-1, 0],
        rate=[Fraction(FAST), Fraction(1)],
        load=[0, workers],
        available=[True, True],
    )
    overlay = Overlay((CORE, EDGE), tree, (None, None))
    return wire(Topology("training", (CORE, EDGE), overlay, ((EDGE, CORE),)))
