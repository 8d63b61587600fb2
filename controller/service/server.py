"""The controller's API, served: requests in, messages out, errors as statuses."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping
from typing import Any, NoReturn, Protocol, TypeVar

import grpc

from controller.compile import CompileError
from controller.errors import BadInputError, BluetreeError
from controller.live.progress import JobProgress
from controller.p4rt import SwitchAddress, SwitchError
from controller.placement import PlacementError
from controller.service import bluetree_pb2 as api
from controller.service import ledger, messages
from controller.service.admission import Wish
from controller.service.engine import Engine
from controller.service.errors import (
    AdmissionError,
    ChangeRefusedError,
    NotNowError,
    UnknownJobError,
)
from controller.service.folder import Folder, Process
from controller.service.ledger import LinkLine
from controller.service.planner import Order
from controller.service.progress import completed
from controller.service.store import Job, OnLoss

_LOG = logging.getLogger(__name__)
_Reply = TypeVar("_Reply")
_Value = TypeVar("_Value")
_STATUS: tuple[tuple[type[Exception], grpc.StatusCode], ...] = (
    (AdmissionError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (UnknownJobError, grpc.StatusCode.NOT_FOUND),
    (ChangeRefusedError, grpc.StatusCode.ABORTED),
    (NotNowError, grpc.StatusCode.FAILED_PRECONDITION),
    (BadInputError, grpc.StatusCode.INVALID_ARGUMENT),
    (PlacementError, grpc.StatusCode.INVALID_ARGUMENT),
    (CompileError, grpc.StatusCode.INVALID_ARGUMENT),
    (SwitchError, grpc.StatusCode.INTERNAL),
    (BluetreeError, grpc.StatusCode.INTERNAL),
)
"""The status of each error; the first that fits."""


class Context(Protocol):
    """What gRPC gives to each call, as far as it is used here."""

    async def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        """End the call with a status."""


class Servicer:
    """The methods of the API; GetStatus of the proto is `get_status` here."""

    def __init__(
        self,
        engine: Engine,
        addresses: Mapping[str, SwitchAddress],
        target: str,
        default_window: int,
        me: Process,
        folder: Folder,
    ) -> None:
        self._engine = engine
        self._addresses = addresses
        self._target = target
        self._window = default_window
        self._me = me
        self._folder = folder
        self._changes: set[asyncio.Task[Any]] = set()

    async def get_status(self, request: api.GetStatusRequest, context: Context) -> api.Status:
        """See the proto."""
        return await _answered(self._status(), context)

    async def watch_status(
        self, request: api.WatchStatusRequest, context: Context
    ) -> AsyncIterator[api.Status]:
        """See the proto."""
        while True:
            yield await _answered(self._status(), context)
            await asyncio.sleep(request.seconds or 1.0)

    async def get_counters(self, request: api.GetCountersRequest, context: Context) -> api.Counters:
        """See the proto."""

        async def read() -> api.Counters:
            outcomes = await self._engine.board.outcome_counts()
            _, lines = await self._measure()
            return api.Counters(
                switches=[
                    api.SwitchCounters(
                        name=name, outcomes={k: n for k, n in outcomes[name].items() if n}
                    )
                    for name in self._addresses
                    if name in outcomes
                ],
                links=[messages.link_message(line) for line in lines],
            )

        return await _answered(read(), context)

    async def start_job(self, request: api.StartJobRequest, context: Context) -> api.Change:
        """See the proto."""
        order = Order(
            op=request.op or "reduce",
            chunks=request.chunks if request.HasField("chunks") else None,
            seed=request.seed,
            wish=messages.wish_of(request.choice, self._engine.defaults()),
            window=request.window if request.HasField("window") else self._window,
            workers=tuple(request.workers),
            on_loss=request.on_worker_loss or OnLoss.FAIL,
        )
        return messages.change_message(
            await _answered(self._whole(self._engine.start(order)), context)
        )

    async def reallocate(self, request: api.ReallocateRequest, context: Context) -> api.Change:
        """See the proto."""
        job = request.job if request.HasField("job") else None
        # What is not said stays as it is, rather than becoming the default.
        choice = request.choice
        is_said = choice.given or choice.strategy or choice.HasField("k")
        wish = messages.wish_of(choice, Wish()) if is_said or not request.root else None
        change = self._engine.reallocate(job, wish, request.root or None)
        return messages.change_message(await _answered(self._whole(change), context))

    async def rejoin(self, request: api.RejoinRequest, context: Context) -> api.Change:
        """See the proto."""
        job = request.job if request.HasField("job") else None
        change = self._engine.rejoin(job, tuple(request.workers))
        return messages.change_message(await _answered(self._whole(change), context))

    async def stop_job(self, request: api.StopJobRequest, context: Context) -> api.StopJobReply:
        """See the proto."""
        job = request.job if request.HasField("job") else None
        ended = await _answered(self._whole(self._engine.stop(job)), context)
        network = self._engine.network
        return api.StopJobReply(jobs=[messages.job_message(network, one, None) for one in ended])

    async def set_defaults(self, request: api.Choice, context: Context) -> api.Choice:
        """See the proto."""
        before = self._engine.defaults()
        wish = messages.wish_of(request, before)
        self._engine.set_defaults(wish.strategy, wish.budget)
        return api.Choice(strategy=wish.strategy, k=wish.budget)

    async def get_switch(self, request: api.GetSwitchRequest, context: Context) -> api.SwitchStatus:
        """See the proto."""
        where = self._addresses.get(request.name)
        if where is None:
            names = list(self._addresses)
            shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
            await context.abort(
                grpc.StatusCode.NOT_FOUND,
                f"{request.name}: no such switch; there are {len(names)}: {shown}",
            )
        engine = self._engine
        network, jobs = engine.network, engine.jobs()
        in_use = ledger.switches_in_use(network, jobs)
        troubles, dead = engine.board.troubles, await engine.watchdog.dead()
        return messages.switch_message(network, jobs, where, troubles, in_use, dead)

    async def _whole(self, change: Coroutine[Any, Any, _Value]) -> _Value:
        """Carry a change out to its end, even if whoever asked for it is gone before."""
        task = asyncio.create_task(change)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        task.add_done_callback(_log_failure)
        return await asyncio.shield(task)

    async def _status(self) -> api.Status:
        engine = self._engine
        network = engine.network
        progress, lines = await self._measure()
        cuts, dead = await engine.watchdog.links.cut_now(), await engine.watchdog.dead()
        jobs = engine.jobs()
        in_use = ledger.switches_in_use(network, jobs)
        return api.Status(
            topology=network.topology.name,
            target=self._target,
            controller=_process(self._me),
            standbys=[_process(one) for one in self._folder.standbys()],
            switches=[
                messages.switch_message(network, jobs, where, engine.board.troubles, in_use, dead)
                for where in self._addresses.values()
            ],
            jobs=[
                messages.job_message(
                    network, job, progress.get(job.id), engine.watchdog.stuck.get(job.id)
                )
                for job in jobs
            ],
            links=[messages.link_message(line) for line in lines],
            predicted_congestion=str(messages.predicted_congestion(lines)),
            measured_congestion=messages.measured_congestion(lines),
            lanes=network.build.lanes,
            roots=[host.switch for host in (network.destination, *network.spares)],
            cut_links=[messages.cut_message(cut) for cut in cuts],
        )

    async def _measure(self) -> tuple[dict[int, JobProgress], tuple[LinkLine, ...]]:
        """How far every running job is, and every link.

        Jobs run on while they are asked: counters are read between two looks at their progress,
        and taken to be of the middle.
        """
        engine = self._engine
        jobs = [job for job in engine.jobs() if not job.phase.is_over]
        before = await self._progress(jobs)
        counts = await engine.board.link_counts()
        after = await self._progress(jobs)
        done = {
            job.id: job.begins + (completed(before[job.id]) + completed(after[job.id])) / 2
            for job in jobs
            if job.id in before and job.id in after
        }
        return after, ledger.links(engine.network, jobs, counts, done)

    async def _progress(self, jobs: list[Job]) -> dict[int, JobProgress]:
        found = {}
        for job in jobs:
            try:
                found[job.id] = await self._engine.progress(job.id)
            except BluetreeError:
                # It has just been stopped, or waits for its hosts.
                continue
        return found


def _log_failure(task: asyncio.Task[Any]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _LOG.info("a change failed: %s", error)


def _process(process: Process) -> api.ControllerStatus:
    return api.ControllerStatus(
        pid=process.pid,
        election_id=process.election_id,
        uptime=max(0.0, time.time() - process.since),
    )


async def _answered(work: Awaitable[_Reply], context: Context) -> _Reply:
    """Await the work; what it raises on purpose ends the call with the status for it."""
    try:
        return await work
    except tuple(kind for kind, _ in _STATUS) as error:
        code = next(code for kind, code in _STATUS if isinstance(error, kind))
        await context.abort(code, " ".join(str(error).split()))
