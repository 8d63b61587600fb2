"""Jobs into the switches, between allocations, and out again: each change whole or not at all.

A reallocation goes through the phases that the database knows, each written there first:

    installing  plan and admission; entries of the new epoch beside those of the old, on every
                switch; if one refuses, the new ones are removed everywhere; the error names it
    moving      all workers hold; C is the largest chunk number that none has used; destination and
                workers move to the new epoch from C on
    draining    until every chunk before C is answered; then the old entries are removed
    running

A change of the root goes through the same phases. What the two differ in is in
`controller.service.reallocation` and `succession`. Only one change at a time is planned, installed
and moved; those that drain do so side by side.

Whoever finds a job in a phase, this controller or the next one, goes on from there: before
`moving` back, from then on forward.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from controller.errors import BadInputError, BluetreeError, RunFailedError
from controller.live.client import NetworkClient
from controller.live.progress import JobProgress
from controller.live.state import NetworkDownError
from controller.p4rt import SwitchError
from controller.program import SwitchProgram
from controller.service import ledger
from controller.service.admission import Choice, Wish
from controller.service.change import Change, Changed, install
from controller.service.closing import Closer, why_gone
from controller.service.errors import NotNowError, UnknownJobError
from controller.service.healing import Healer
from controller.service.leaving import Leaving, leaves
from controller.service.moments import Stopwatch
from controller.service.planner import Order, Planner
from controller.service.progress import DRAIN_S, STALL_S, Silence, Stalls, waits_for, why_late
from controller.service.reallocation import Reallocation, quiet_fact
from controller.service.recovery import recover
from controller.service.store import Job, Phase, Role, Store
from controller.service.succession import Succession, why_over
from controller.service.switchboard import Switchboard, Written
from controller.service.watchdog import Watchdog
from topologies.network import Network
from traffic.endpoint import Op

_LOG = logging.getLogger(__name__)
FIRST_CHUNK_S = 10.0
POLL_S = 0.02
"""Between two questions to the hosts: each costs them time for messages."""
WATCH_S = 0.25


class Engine:
    """Carries out changes. All methods belong to one event loop."""

    def __init__(
        self, network: Network, store: Store, board: Switchboard, hosts: NetworkClient
    ) -> None:
        self.network, self.board = network, board
        self._store, self._hosts = store, hosts
        self._planner = Planner(network, store)
        self._closer = Closer(network, store, board, hosts)
        common = (network, store, board, hosts, self._planner)
        self._reallocation = Reallocation(*common, self._closer)
        self._succession = Succession(*common, self._closer)
        self._leaving = Leaving(*common)
        self._stalls = Stalls()
        self.watchdog = Watchdog(network, store, board, hosts)
        ways_out = (self._succession, self._leaving, self._closer)
        self._healer = Healer(network, board, self.watchdog.links, hosts, *ways_out)
        self._lock = asyncio.Lock()
        # Jobs whose draining the command that changes them waits for.
        self._attended: set[int] = set()

    def jobs(self) -> tuple[Job, ...]:
        """All jobs, those that are over included."""
        return self._store.jobs()

    def programs(self) -> tuple[SwitchProgram, ...]:
        """What every switch must hold, by the database."""
        return ledger.programs(self.network, self._store.jobs())

    async def progress(self, job: int) -> JobProgress:
        """How far a job is."""
        return await asyncio.to_thread(self._hosts.progress, job)

    def set_defaults(self, strategy: str, budget: int | None) -> None:
        """What jobs get that name no strategy, or no budget."""
        self._store.set_fact("defaults", json.dumps([strategy, budget]))

    def defaults(self) -> Wish:
        """See `set_defaults`."""
        strategy, budget = json.loads(self._store.fact("defaults") or '["smc", null]')
        return Wish(strategy, budget)

    # Changes

    async def start(self, order: Order) -> Changed:
        """Admit a job, make the switches ready, start its workers."""
        watch = Stopwatch()
        async with self._lock:
            watch.lap("turn")
            job, choice = self._planner.admit(order)
            self._store.add(job)
            watch.lap("plan")
            try:
                written = await self.board.change(self.programs())
            except BaseException:
                self._store.remove(job.id)
                raise
            watch.lap("write")
            try:
                await self._attach(job)
            except BluetreeError as error:
                await self._closer.abandon(job, str(error))
                self._store.remove(job.id)
                raise
            self._store.begin(job.id)
            self._store.set_fact(quiet_fact(job.id), "{}")
            watch.lap("attach")
        answered = await self._first_answer(job.id, job.current.epoch)
        watch.lap("first chunk", answered)
        return self._changed(job.id, choice, watch, answered, written)

    async def reallocate(
        self, number: int | None, wish: Wish | None, root: str | None = None
    ) -> Changed:
        """Give a running job other blue switches, or another root and, with a wish, both."""
        watch = Stopwatch()
        async with self._lock:
            watch.lap("turn")
            job = self._running(number)
            own = job.root or self.network.destination.switch
            # Back to the root's own tree, too, from one that goes round a switch.
            is_elsewhere = root is not None and (root != own or bool(job.avoids))
            change = self._succession if is_elsewhere else self._reallocation
            proposal = change.propose(job, wish, root)
            written = await self._move(job, change, watch)
        try:
            answered = await self._first_answer(proposal.job, proposal.epoch)
            watch.lap("first chunk", answered)
            removed = await self._drain(job.id, change, DRAIN_S if answered else 0.0)
            watch.lap("drain")
        finally:
            self._attended.discard(job.id)
        total = written.then(removed)
        changed = self._changed(proposal.job, proposal.choice, watch, answered, total)
        return replace(changed, was=job.id) if is_elsewhere else changed

    async def rejoin(self, number: int | None, names: Sequence[str]) -> Changed:
        """Give a running job workers back, by default all that it goes on without."""
        watch = Stopwatch()
        change = self._reallocation
        async with self._lock:
            watch.lap("turn")
            job = self._running(number)
            proposal = await change.readmit(job, names, await self.watchdog.links.cut_now())
            written = await self._move(job, change, watch)
        try:
            # They begin when all before has drained.
            removed = await self._drain(job.id, change, DRAIN_S)
            watch.lap("drain")
            answered = await self._first_answer(job.id, proposal.epoch)
            watch.lap("first chunk", answered)
        finally:
            self._attended.discard(job.id)
        total = written.then(removed)
        changed = self._changed(job.id, proposal.choice, watch, answered, total)
        back = set(job.current.absent).difference(changed.job.current.absent)
        workers = self.network.workers
        return replace(changed, came_back=tuple(workers[rank].name for rank in sorted(back)))

    async def stop(self, number: int | None) -> tuple[Job, ...]:
        """End a job, or all, and take it out of the switches; a job that is over is forgotten."""
        async with self._lock:
            chosen = self._store.jobs() if number is None else (self._job(number),)
            ended = []
            # One that was about to go on as another takes that along, and so comes first.
            for one in sorted(chosen, key=lambda job: job.phase is Phase.STARTING):
                job = self._store.job(one.id)
                if job is None:
                    continue
                if number is not None and job.phase is Phase.STARTING:
                    raise NotNowError(f"job {number}: is starting; try again, or look at status")
                if not job.phase.is_over:
                    await self._closer.end(job, Phase.FINISHED, why_over(job))
                ended.append(self._job(job.id))
                self._store.remove(job.id)
        return tuple(ended)

    async def recover(self) -> None:
        """Finish, or take back, what the controller before was doing. The switches are connected.

        Called before the switches are adopted, so that `programs` says what they should hold.
        """
        await recover(self._store, self._hosts, self._closer)

    async def resume(self) -> None:
        """Go on with reallocations and stops that were under way; the switches are adopted."""
        await self._look_after_all()

    async def watch(self) -> None:
        """For ever: notice jobs that have finished, failed or drained.

        Raises NetworkDownError when the network has ended: there is nothing left to control.
        """
        while True:
            await self._look_after_all()
            await asyncio.sleep(WATCH_S)

    # How it is done

    async def _move(self, job: Job, change: Change, watch: Stopwatch) -> Written:
        """From a change that is noted to draining, attended by whoever has asked for it."""
        watch.lap("plan")
        written = await install(self.network, self._store, self.board, job.id)
        watch.lap("write")
        await change.move(self._job(job.id), watch, again=False)
        self._attended.add(job.id)
        return written

    async def _attach(self, job: Job) -> None:
        plan = ledger.plan_of(self.network, job, job.current)
        stream = ledger.stream_of(self.network, job)
        await asyncio.to_thread(self._hosts.attach, plan, Op(job.op), stream)
        if job.chunks is not None:
            await asyncio.to_thread(self._hosts.finish, job.id, job.chunks)
        await asyncio.to_thread(self._hosts.start, job.id)

    async def _drain(self, number: int, change: Change, seconds: float) -> Written:
        """Wait until a job needs its old entries no more, and remove them.

        Raises NotNowError where that takes too long, or a host is silent for long; they are
        removed then when it is so.
        """
        silence = Silence(self._hosts.host_seconds)
        deadline = time.monotonic() + seconds
        while True:
            progress = await self._progress_if_there(number)
            async with self._lock:
                job = self._store.job(number)
                if job is not None and change.is_over(job):
                    return Written()
                if job is None or job.phase is not Phase.DRAINING:
                    raise NotNowError(why_gone(number, job))
                if progress is not None and change.is_through(job, progress):
                    return await change.settle(job)
            if time.monotonic() > deadline or silence.is_long(progress):
                why = await asyncio.to_thread(why_late, self._hosts, progress)
                raise NotNowError(
                    f"job {number}: goes on as was asked, but chunks from before are under way, "
                    f"and its old entries go when they are through: {why}"
                )
            await asyncio.sleep(POLL_S)

    async def _progress_if_there(self, number: int) -> JobProgress | None:
        """How far a job is; None where it has just been stopped, or its hosts are gone."""
        try:
            return await self.progress(number)
        except NetworkDownError:
            raise
        except RunFailedError as error:
            _LOG.info("job %d: %s", number, error)
            return None

    async def _first_answer(self, number: int, epoch: int) -> int | None:
        deadline = time.monotonic() + FIRST_CHUNK_S
        while time.monotonic() < deadline:
            progress = await self._progress_if_there(number)
            if progress is None:
                # Stopped, or gone on under another number: whoever waits finds that out.
                return None
            answered = progress.first_answer(epoch)
            if answered is not None or progress.done or progress.failure:
                return answered
            await asyncio.sleep(POLL_S)
        return None

    async def _look_after_all(self) -> None:
        for job in self._store.jobs():
            if job.phase.is_over or job.phase in (Phase.STARTING, Phase.INSTALLING):
                continue
            try:
                await self._look_after(job)
            except NetworkDownError:
                raise
            except (BluetreeError, SwitchError) as error:
                _LOG.warning("job %d: %s", job.id, error)

    async def _look_after(self, job: Job) -> None:
        """Ask how far a job is, and do what is to be done then.

        Changes need not wait while it is asked: one that comes meanwhile makes the answer void.
        """
        lost = ""
        progress: JobProgress | None = None
        try:
            progress = await self.progress(job.id)
        except NetworkDownError:
            raise
        except RunFailedError as error:
            lost = str(error)
        async with self._lock:
            now = self._store.job(job.id)
            if now is None or (now.phase, now.current) != (job.phase, job.current):
                return
            if progress is None:
                await self._closer.abandon(job, lost)
            else:
                await self._deal_with(job, progress)

    async def _deal_with(self, job: Job, progress: JobProgress) -> None:
        change: Change = self._succession
        if job.successor is None or job.allocation(Role.NEW) is not None:
            change = self._reallocation
        if progress.failure:
            await self._closer.end(job, Phase.FAILED, f"{progress.failure}; {waits_for(progress)}")
        elif job.phase is Phase.STOPPING:
            await self._closer.end(job, Phase.FINISHED, why_over(job))
        elif job.phase is Phase.MOVING:
            _LOG.warning("job %d: finishes a reallocation", job.id)
            if leaves(job):
                await self._leaving.finish(job)
            else:
                await change.move(job, Stopwatch(), again=True)
        elif await self._leaving.look_after(job, progress, self._stalls.stood(job.id, progress)):
            return
        elif job.phase is Phase.DRAINING and change.is_through(job, progress):
            if job.id not in self._attended:
                await change.settle(job)
        elif progress.done and job.phase is Phase.RUNNING:
            why = "" if job.successor is None else why_over(job)
            await self._closer.end(job, Phase.FINISHED, why)
        elif await self._healer.look_after(job, self.watchdog.stuck.get(job.id)):
            return
        elif self._stalls.stood(job.id, progress) > STALL_S:
            await self._closer.give_up_if_killed(job, progress)

    def _changed(
        self,
        number: int,
        choice: Choice,
        watch: Stopwatch,
        answered: int | None,
        written: Written,
    ) -> Changed:
        job = self._job(number)
        view = ledger.rooted(self.network, job)
        names = view.topology.overlay.names
        return Changed(
            job=job,
            congestion=choice.congestion,
            total=ledger.total_congestion(self.network, self._store.jobs()),
            first_chunk=job.current.first_chunk,
            written=written,
            first_chunk_after=None if answered is None else watch.elapsed(answered),
            seconds=watch.elapsed(),
            steps=watch.steps,
            full=tuple(names[v] for v in choice.full),
            root=view.destination.switch,
            was=None,
        )

    def _job(self, number: int) -> Job:
        job = self._store.job(number)
        if job is None:
            there = ", ".join(str(job.id) for job in self._store.jobs()) or "none"
            raise UnknownJobError(f"--job {number}: no such job; there are: {there}")
        return job

    def _running(self, number: int | None) -> Job:
        """The job that is meant, running."""
        if number is None:
            running = [job for job in self._store.jobs() if not job.phase.is_over]
            if len(running) != 1:
                numbers = ", ".join(str(job.id) for job in running)
                raise BadInputError(
                    f"--job: say which of jobs {numbers}"
                    if running
                    else "no job runs: `bluetree start` starts one"
                )
            number = running[0].id
        job = self._job(number)
        if job.phase is not Phase.RUNNING:
            raise NotNowError(
                f"job {number}: is {job.phase}; wait until it runs, or look at status"
            )
        return job
