"""The way to a network that lives: start one, find one, tell its hosts what to do.

client = launch(state, "fat-tree:k=4", target="fabric")     or NetworkClient(state)
description = client.describe()                             addresses for P4Runtime, ...
client.attach(plan, Op.ALLREDUCE, Stream(seed=1, workers=16))
client.start(job=1)
first = client.hold(1)                                      once the new entries are installed
client.move(new_plan, first)
client.progress(1).drained_below >= first                   then the old ones may go
client.stop(1); client.detach(1)
client.down()
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from controller.compile import JobPlan, destination_bits
from controller.endpoints import (
    Timing,
    absent_ranks,
    attach_workers,
    destination_config,
    job_sources,
    window_time,
)
from controller.errors import (
    RunFailedError,
    SilentHostsError,
    silence_text,
)
from controller.live import state as folder
from controller.live.lane import Lane
from controller.live.progress import JobProgress
from controller.live.requests import (
    GONE,
    Describe,
    Down,
    Faults,
    JobHosts,
    Jobs,
    Kill,
    LookForFaults,
    NetworkDescription,
    Part,
    Restart,
    SurveyJob,
    Tell,
    TellJob,
)
from controller.live.starting import start_daemon
from topologies.network import Network
from topologies.rerooting import reroot
from traffic.commands import (
    Answer,
    AttachDestination,
    Command,
    Detach,
    Exclude,
    Finish,
    Follow,
    Hold,
    Move,
    Release,
    Report,
    Start,
)
from traffic.endpoint import Op
from traffic.epochs import Term
from traffic.reports import (
    DestinationProgress,
    DestinationReport,
    JobOutcome,
    Values,
    WorkerProgress,
    WorkerReport,
)
from traffic.stream import Stream

DOWN_DEADLINE_S = 90.0
TRIES = 200
"""Sends of a chunk before a worker gives up."""
_POLL_S = 0.02


class NetworkClient:
    """A connection to the network that lives in a folder. Threads may share it.

    Raises NetworkDownError where there is none, or it ends; RunFailedError with the network's own
    words where it refuses; SilentHostsError where hosts do not do what they are told in time.
    """

    def __init__(self, state: Path) -> None:
        self.state = state
        self._lane = Lane(state)
        # Questions how far a job is come often, and may wait for a host: no command waits for them.
        self._looking = Lane(state)
        self._description: NetworkDescription | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the network lives on."""
        self._lane.close()
        self._looking.close()

    def describe(self) -> NetworkDescription:
        """What is up."""
        description = self._lane.ask(Describe())
        if not isinstance(description, NetworkDescription):
            raise RunFailedError(f"the network describes itself as {description!r}")
        self._description = description
        return description

    @property
    def network(self) -> Network:
        """The network, as it was wired."""
        return self._wiring.network

    @property
    def _wiring(self) -> NetworkDescription:
        """What is up, as far as it stays the same."""
        return self._description or self.describe()

    def rooted(self, root: str | None, avoids: Collection[str] = ()) -> Network:
        """The network as it is from a root, round some switches; NetworkError as `reroot`."""
        return self.network if root is None and not avoids else reroot(self.network, root, avoids)

    def jobs(self) -> tuple[JobHosts, ...]:
        """Who takes part in which job."""
        jobs: tuple[JobHosts, ...] = self._lane.ask(Jobs())
        return jobs

    def timing(self, plan: JobPlan) -> Timing:
        """How patient the hosts of a job are, beside the jobs that run."""
        description = self._wiring
        others = sum(job.window for job in self.jobs() if job.job != plan.job)
        patience = description.patience
        if description.rates is not None:
            each = window_time(description.network, description.rates, [plan])
            patience += 2 * each * (plan.window + others) // plan.window
        return Timing(timeout=patience, max_timeout=8 * patience, max_tries=TRIES)

    def attach(
        self,
        plan: JobPlan,
        op: Op,
        values: Stream | Sequence[Values],
        *,
        first_chunk: int = 0,
        timing: Timing | None = None,
        root: str | None = None,
        avoids: Collection[str] = (),
    ) -> None:
        """Give a job to its hosts, which do not send before `start`.

        `values`: an endless tensor, or int32 [chunks, lanes] for each worker by rank in the job.
        `root`: the switch of its destination, where that is not the network's own root; `avoids`:
        the switches that its tree goes round.
        """
        network, timing = self.rooted(root, avoids), timing or self.timing(plan)
        stream = values if isinstance(values, Stream) else None
        chunks = 0 if isinstance(values, Stream) else len(values[0])
        to = destination_config(network, plan, op, timing, chunks, first_chunk, stream)
        workers = attach_workers(network, plan, op, timing, values, first_chunk)
        self.tell([(network.destination.name, AttachDestination(to)), *workers])

    def join(
        self,
        plan: JobPlan,
        ranks: Collection[int],
        op: Op,
        stream: Stream,
        *,
        first_chunk: int,
        root: str | None = None,
        avoids: Collection[str] = (),
    ) -> None:
        """Give a job to workers that its plan is without, by rank in the network, as in `attach`.

        They move with the others to a plan that has them, from their first chunk on, which nobody
        may have sent, and start when what is before it has drained.
        """
        network, timing = self.rooted(root, avoids), self.timing(plan)
        self.tell(attach_workers(network, plan, op, timing, stream, first_chunk, ranks))

    def start(self, job: int) -> None:
        """Let the workers of a job send."""
        self.tell_job(Start(job))

    def hold(self, job: int) -> int:
        """Have the workers send no new chunk; the number above all that have left anywhere.

        The destination is asked too: what is to follow needs it. Where this raises, `release`.
        """
        answers = self.tell_job(Hold(job), Part.ALL).values()
        return max((answer for answer in answers if isinstance(answer, int)), default=0)

    def release(self, job: int) -> None:
        """End a hold without a change; hosts that do not answer do so when they go on."""
        with suppress(SilentHostsError):
            self.tell_job(Release(job))

    def move(
        self,
        plan: JobPlan,
        from_chunk: int,
        root: str | None = None,
        avoids: Collection[str] = (),
    ) -> None:
        """Put the chunks of a job from one number on under a new plan: destination, then workers.

        `root` and `avoids` are those of the job. Told so once more it changes nothing. All have
        just been held, so one that does not answer now moves when it goes on.
        """
        network = self.rooted(root, avoids)
        sources = job_sources(network, plan)
        asked = destination_bits(network, plan)
        absent = absent_ranks(network, plan)
        move = Move(plan.job, plan.epoch, from_chunk, sources, asked, absent)
        with suppress(SilentHostsError):
            if not self.tell_job(move, Part.DESTINATION):
                raise RunFailedError(f"job {plan.job}: its destination is gone, and moves nowhere")
        with suppress(SilentHostsError):
            self.tell_job(Move(plan.job, plan.epoch, from_chunk, absent=absent))

    def exclude(self, plan: JobPlan, root: str | None = None, avoids: Collection[str] = ()) -> Term:
        """Go on without the workers that a plan leaves out: destination, then those that are left.

        The switches hold the entries of the plan, beside those of the one before. Returns which
        chunks are under it; told so once more it changes nothing. `root`, `avoids`: the job's.
        """
        network = self.rooted(root, avoids)
        sources = job_sources(network, plan)
        asked = destination_bits(network, plan)
        absent = absent_ranks(network, plan)
        exclude = Exclude(plan.job, plan.epoch, absent, sources, asked)
        told = self.tell_job(exclude, Part.DESTINATION)
        term = next((answer for answer in told.values() if isinstance(answer, Term)), None)
        if term is None:
            raise RunFailedError(
                f"job {plan.job}: its destination was killed, so it cannot go on without a worker"
            )
        # From here on the network counts those that are left out to the job no more.
        self.tell_job(Follow(plan.job, term))
        return term

    def finish(self, job: int, end: int) -> None:
        """End a job before a chunk number that has not left anywhere; hosts as in `move`."""
        with suppress(SilentHostsError):
            self.tell_job(Finish(job, end), Part.ALL)

    def stop(self, job: int) -> int:
        """End a job after what has left; the number above its last chunk. It has yet to drain."""
        end = self.hold(job)
        self.finish(job, end)
        return end

    def progress(self, job: int) -> JobProgress:
        """How far a job is; hosts that do not answer within half a second are named as silent."""
        said: Mapping[str, Answer | str] = self._looking.ask(SurveyJob(job))
        answers = said.values()
        return JobProgress(
            next((one for one in answers if isinstance(one, DestinationProgress)), None),
            tuple(one for one in answers if isinstance(one, WorkerProgress)),
            tuple(name for name, one in said.items() if one is None),
            tuple(name for name, one in said.items() if one == GONE),
        )

    @property
    def host_seconds(self) -> float:
        """How long a host may take to do what it is told."""
        return self._wiring.host_seconds

    def silence(self, names: Sequence[str]) -> str:
        """That hosts do not answer, in words, with the remedy."""
        pids = self.describe().pids
        return silence_text({name: pids.get(name) for name in names}, self.host_seconds)

    def report(self, job: int) -> JobOutcome:
        """What a job came to, with its sums where it had an end."""
        answers = self.tell_job(Report(job), Part.ALL).values()
        return JobOutcome(
            next(one for one in answers if isinstance(one, DestinationReport)),
            tuple(one for one in answers if isinstance(one, WorkerReport)),
        )

    def detach(self, job: int) -> None:
        """Let the hosts forget a job; it is no error if none has it, or if one does so later."""
        if any(known.job == job for known in self.jobs()):
            # Workers first: the destination is what the network knows a job by.
            for part in (Part.WORKERS, Part.DESTINATION):
                with suppress(SilentHostsError):
                    self.tell_job(Detach(job), part)

    def dismiss(self, job: int, names: Collection[str]) -> None:
        """Let some hosts forget a job that goes on; those that are silent do so later."""
        down = self.describe().down
        with suppress(SilentHostsError):
            self.tell([(name, Detach(job)) for name in names if name not in down])

    def tell(self, commands: Sequence[tuple[str, Command]]) -> list[Answer]:
        """Have hosts carry out commands; their answers in order."""
        answers: list[Answer] = self._lane.ask(Tell(tuple(commands)))
        return answers

    def tell_job(self, command: Command, part: Part = Part.WORKERS) -> Mapping[str, Answer]:
        """Have hosts of a job carry out a command; their answers by host."""
        answers: Mapping[str, Answer] = self._lane.ask(TellJob(command, part))
        return answers

    def kill(self, name: str, *, one_way: bool = False) -> None:
        """Kill a switch or a host where it stands, or let a link A-B lose every frame.

        `one_way`: of the link, only those that A sends to B. Once more is no error; BadInputError
        where there is nothing of the name.
        """
        self._lane.ask(Kill(name, one_way))

    def fail(self, name: str, *, one_way: bool = False) -> None:
        """As `kill`; BadInputError too where it is dead or cut already."""
        self._lane.ask(Kill(name, one_way, again=False))

    def restart(self, name: str) -> None:
        """Start a switch or host anew that was killed or has ended: it has no program, or job; or
        let a link carry all again. BadInputError where it runs, or is not cut."""
        self._lane.ask(Restart(name))

    def faults(self) -> Faults:
        """What is the matter with switches and links; others may lose all too."""
        faults: Faults = self._looking.ask(LookForFaults())
        return faults

    def down(self) -> None:
        """Take the network down, and wait until nothing of it is left."""
        self._lane.ask(Down())
        deadline = time.monotonic() + DOWN_DEADLINE_S
        while folder.is_locked(self.state):
            if time.monotonic() > deadline:
                raise RunFailedError(
                    f"the network of {self.state} has not ended for {DOWN_DEADLINE_S:g} s: "
                    f"kill process {folder.owner(self.state)}"
                )
            time.sleep(_POLL_S)
        self.close()


def launch(
    state: Path,
    topology: str,
    options: Sequence[str] = (),
    *,
    target: str = "auto",
) -> NetworkClient:
    """Start a network in a process that outlives this one, and connect to it once it is up.

    `options` are further words for the daemon, such as ("--workers", "2"). Raises the error that
    the daemon ends with.
    """
    start_daemon(state, [*("--target", target), *options, "--", topology])
    return NetworkClient(state)
