"""What a host can be told, on the fabric and in a process of its own alike.

Each command is a value; `Commands.carry_out` gives the answer and the frames to send. Chunk numbers
are those on the wire. Reallocation of job j from epoch e to epoch f, without losing a chunk:

    all switches       entries of f, beside those of e
    all workers        Hold(j)                            -> number of the next chunk
    the destination    Hold(j)                            -> the same, of what it has heard of
    the destination    Move(j, f, C, sources)             C: the largest of these numbers
    all workers        Move(j, f, C)
    all workers        Progress(j)                        until drained_below >= C
    all switches       entries of e removed

Going on without some workers, under epoch f; nobody need hold:

    all switches       entries of f, beside those of e
    the destination    Exclude(j, f, absent, sources)     -> the term: which chunks are of f
    all that are left  Follow(j, term)
    all that are left  Progress(j)                        until drained
    all switches       entries of e removed

A hold that is not followed by a move is ended by `Release`. `Finish` ends an endless job alike:
hold all workers, then the largest number is the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from traffic.destination import Destination, DestinationConfig
from traffic.endpoint import Endpoint
from traffic.epochs import Term
from traffic.errors import CommandError
from traffic.host import Host
from traffic.journal import Journal
from traffic.reports import (
    DestinationProgress,
    DestinationReport,
    Values,
    WorkerProgress,
    WorkerReport,
)
from traffic.stream import Stream
from traffic.training import (
    AggregationServer,
    ParameterServer,
    ParameterServerConfig,
    TrainerConfig,
    TrainingReport,
    TrainingWorker,
    server,
)
from traffic.worker import Worker, WorkerConfig


@dataclass(frozen=True, slots=True)
class AttachWorker:
    """Take part in a job as a worker, in place of an earlier part in it; nothing is sent yet."""

    config: WorkerConfig
    values: Values | Stream


@dataclass(frozen=True, slots=True)
class AttachDestination:
    """Be the destination of a job, in place of an earlier one.

    With `resume`, in place of one that was killed: with the complete chunks that it has recorded,
    and under the `terms` that were decided. It has these before it hears any message, since under
    an earlier one it would take what is late for chunks that are another's now.
    """

    config: DestinationConfig
    resume: bool = False
    terms: tuple[Follow, ...] = ()


@dataclass(frozen=True, slots=True)
class AttachTrainer:
    """Take part in a job as a training worker."""

    config: TrainerConfig

    @property
    def job(self) -> int:
        """The job."""
        return self.config.worker.job


@dataclass(frozen=True, slots=True)
class AttachServer:
    """Answer the training workers of a job."""

    config: ParameterServerConfig | DestinationConfig

    @property
    def job(self) -> int:
        """The job."""
        return self.config.job


@dataclass(frozen=True, slots=True)
class Start:
    """Send the first chunks of a job."""

    job: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep back what has not left; answered with the chunk number above all that has."""

    job: int


@dataclass(frozen=True, slots=True)
class Release:
    """End a hold without a change."""

    job: int


@dataclass(frozen=True, slots=True)
class Move:
    """Put chunks from one number on under a newer epoch.

    The destination is told its sources, and their bits in requests. `absent` are the ranks within
    the job that have no part in it; None is as before.
    """

    job: int
    epoch: int
    from_chunk: int
    sources: Mapping[int, frozenset[int]] | None = None
    asked: Mapping[int, int] | None = None
    absent: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Exclude:
    """Let a destination go on without some workers, from now on; answered with the `Term`."""

    job: int
    epoch: int
    absent: frozenset[int]
    sources: Mapping[int, frozenset[int]]
    asked: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Follow:
    """Enter the term that a destination has decided; one in its place is told its sources too."""

    job: int
    term: Term
    sources: Mapping[int, frozenset[int]] | None = None
    asked: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """End a job before a chunk number."""

    job: int
    end: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Answered with `WorkerProgress` or `DestinationProgress`."""

    job: int


@dataclass(frozen=True, slots=True)
class Report:
    """Answered with `WorkerReport` or `DestinationReport`, sums included."""

    job: int


@dataclass(frozen=True, slots=True)
class Detach:
    """Leave a job; it is no error if the host has no part in it."""

    job: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Answered once the machine of a job is done or has failed; of processes only."""

    job: int


@dataclass(frozen=True, slots=True)
class WaitForChunks:
    """Answered once so many chunks of jobs together are complete here; of processes only."""

    jobs: tuple[int, ...]
    completed: int


Command: TypeAlias = (
    AttachWorker
    | AttachDestination
    | AttachTrainer
    | AttachServer
    | Start
    | Hold
    | Release
    | Move
    | Exclude
    | Follow
    | Finish
    | Progress
    | Report
    | Detach
)
Answer: TypeAlias = (
    int
    | Term
    | WorkerProgress
    | DestinationProgress
    | WorkerReport
    | DestinationReport
    | TrainingReport
    | None
)


class Journals(Protocol):
    """Where the destinations of a host record what they complete."""

    def open(self, config: DestinationConfig, *, resume: bool) -> Journal:
        """The journal of a job, empty or as it was left; raises TrafficError."""

    def forget(self, job: int) -> None:
        """Remove the journal of a job, if there is one."""


class Commands:
    """Carries commands out on one host.

    `clock` gives the times that are reported, where `now` is not what others measure by.
    """

    def __init__(
        self,
        host: Host,
        clock: Callable[[], int] | None = None,
        journals: Journals | None = None,
    ) -> None:
        """`journals`: where destinations record what they complete; None: nowhere."""
        self._host = host
        self._clock = clock
        self._journals = journals

    def carry_out(self, command: Command, now: int) -> tuple[Answer, list[bytes]]:
        """The answer, and frames to send; raises TrafficError, in which case nothing changed."""
        match command:
            case AttachWorker(config, values):
                self._attach(Worker(config, values, self._clock))
                return None, []
            case AttachDestination(to, resume, terms):
                destination = Destination(to, self._journal(to, resume=resume))
                for told in terms:
                    destination.follow(told.term, _known(told), now, told.asked)
                self._attach(destination)
                return None, []
            case AttachTrainer(trainer):
                self._attach(TrainingWorker(trainer))
                return None, []
            case AttachServer(served):
                self._attach(server(served))
                return None, []
            case Detach(job):
                self._host.detach(job)
                if self._journals is not None:
                    self._journals.forget(job)
                return None, []
            case _:
                return self._tell(self._endpoint(command.job), command, now)

    def _tell(self, endpoint: Endpoint, command: Command, now: int) -> tuple[Answer, list[bytes]]:
        match command, endpoint:
            case Start(), _:
                return None, endpoint.start(now)
            case Hold(), Worker():
                return endpoint.hold(), []
            case Hold(), Destination():
                return endpoint.next_chunk, []
            case Release(), Worker():
                return None, endpoint.release(now)
            case Move(epoch=epoch, from_chunk=first, absent=absent), Worker():
                return None, endpoint.move(epoch, first, now, absent)
            case Move() as move, Destination():
                sources = _known(move)
                endpoint.move(move.epoch, move.from_chunk, sources, move.asked, move.absent)
            case Exclude(epoch=epoch, absent=absent, sources=sources, asked=asked), Destination():
                return endpoint.exclude(epoch, absent, sources, now, asked), []
            case Follow(term=term), Worker():
                return None, endpoint.follow(term, now)
            case Follow(term=term, asked=asked) as follow, Destination():
                endpoint.follow(term, _known(follow), now, asked)
            case Finish(end=end), Worker():
                return None, endpoint.finish(end, now)
            case Finish(end=end), Destination():
                endpoint.finish(end)
            case Progress(), Worker():
                return WorkerProgress.of(endpoint), []
            case Progress(), Destination():
                return DestinationProgress.of(endpoint), []
            case Progress(), ParameterServer() | AggregationServer():
                return None, []
            case Report(), TrainingWorker():
                return TrainingReport.of(endpoint), []
            case Report(), Worker():
                return WorkerReport.of(endpoint), []
            case Report(), Destination():
                return DestinationReport.of(endpoint), []
            case _:
                raise CommandError(
                    f"job {endpoint.job}: {type(endpoint).__name__.lower()} "
                    f"{self._host.name} cannot {type(command).__name__.lower()}"
                )
        return None, []

    def _journal(self, config: DestinationConfig, *, resume: bool) -> Journal | None:
        if self._journals is not None:
            return self._journals.open(config, resume=resume)
        if resume:
            raise CommandError(f"host {self._host.name} keeps no record of job {config.job}")
        return None

    def _endpoint(self, job: int) -> Endpoint:
        endpoint = self._host.endpoints.get(job)
        if endpoint is None:
            raise CommandError(f"host {self._host.name} has no part in job {job}: attach it first")
        return endpoint

    def _attach(self, endpoint: Endpoint) -> None:
        self._host.detach(endpoint.job)
        self._host.attach(endpoint)


def _known(command: Move | Follow) -> Mapping[int, frozenset[int]]:
    """The sources that a destination is told; raises CommandError where it is not."""
    if command.sources is None:
        raise CommandError(f"job {command.job}: the destination must know its sources")
    return command.sources
