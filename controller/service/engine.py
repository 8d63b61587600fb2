"""Jobs into the switches, between allocations, and out again: each change whole or not at all.

A reallocation goes through the phases that the database knows, each written there first:

    installing  plan and admission; entries of the new epoch beside those of the old, on every
                switch; if one refuses, the new ones are removed everywhere; the error names it
    moving      all workers hold; C is the largest chunk number that none has used; destination and
                workers move to the new epoch from C on
    draining    until every chunk before C is answered; then the old entries are removed
    running

A change of the root goes through the same phases, see `controller.service.succession`.

Whoever finds a job in a phase, this controller or the next one, goes on from there: before
`moving` back, from then on forward.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass, replace
from fractions import Fraction

from controller.errors import BadInputError, BluetreeError, RunFailedError
from controller.live.client import NetworkClient
from controller.live.progress import JobProgress
from controller.live.state import NetworkDownError
from controller.p4rt import SwitchError
from controller.program import SwitchProgram
from controller.service import ledger
from controller.service.admission import Choice, Wish
from controller.service.closing import Closer
from controller.service.errors import NotNowError, UnknownJobError
from controller.service.planner import Order, Planner
from controller.service.progress import DRAIN_S, Stalls, is_drained, waits_for
from controller.service.store import Job, Phase, Role, Store
from controller.service.succession import Succession, why_over
from controller.service.switchboard import Switchboard, Written
from controller.service.watchdog import Watchdog
from topologies.network import Network
from traffic.endpoint import Op
from traffic.stream import Stream

_LOG = logging.getLogger(__name__)
FIRST_CHUNK_S = 10.0
POLL_S = 0.02
"""Between two questions to the hosts: each costs them time for messages."""
WATCH_S = 0.25


@dataclass(frozen=True, slots=True)
class Changed:
    """A change that was carried out. Times are seconds since it was asked for.

    `root` is the switch of the job's destination; `was` the number of the job before, where the
    root has changed.
    """

    job: Job
    congestion: Fraction
    total: Fraction
    first_chunk: int
    written: Written
    installed_after: float
    first_chunk_after: float | None
    seconds: float
    full: tuple[str, ...]
    root: str
    was: int | None


class Engine:
    """Carries out changes, one at a time. All methods belong to one event loop."""

    def __init__(
        self, network: Network, store: Store, board: Switchboard, hosts: NetworkClient
    ) -> None:
        self.network = network
        self.board = board
        self._store = store
        self._hosts = hosts
        self._planner = Planner(network, store)
        self._closer = Closer(network, store, board, hosts)
        self._succession = Succession(network, store, board, hosts, self._closer)
        self._stalls = Stalls()
        self.watchdog = Watchdog(network, store, board, hosts)
        self._lock = asyncio.Lock()

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
        began = time.monotonic_ns()
        async with self._lock:
            job, choice = self._planner.admit(order)
            self._store.add(job)
            try:
                written = await self.board.change(self.programs())
            except BaseException:
                self._store.remove(job.id)
                raise
            installed = time.monotonic_ns()
            try:
                await self._attach(job)
            except BluetreeError as error:
                await self._closer.abandon(job, str(error))
                self._store.remove(job.id)
                raise
            self._store.begin(job.id)
            self._store.set_fact(_quiet(job.id), "{}")
        answered = await self._first_answer(job.id, job.current.epoch)
        return self._changed(job.id, choice, began, installed, answered, written)

    async def reallocate(
        self, number: int | None, wish: Wish | None, root: str | None = None
    ) -> Changed:
        """Give a running job other blue switches, or another root and, with a wish, both."""
        began = time.monotonic_ns()
        async with self._lock:
            job = self._running(number)
            if root is not None and root != (job.root or self.network.destination.switch):
                return await self._change_root(job, root, wish, began)
            if wish is None:
                raise BadInputError(f"--root {root}: the destination of job {job.id} is there now")
            choice = self._planner.choose(job, wish)
            allocation = replace(
                self._planner.allocation(choice, ledger.rooted(self.network, job), job.current),
                baseline=tuple(json.loads(self._store.fact(_quiet(job.id)) or "{}").items()),
            )
            self._store.propose(job.id, allocation)
            try:
                written = await self.board.change(self.programs())
            except BaseException:
                self._store.withdraw(job.id)
                raise
            installed = time.monotonic_ns()
            self._store.set_phase(job.id, Phase.MOVING)
            await self._move(self._job(job.id), again=False)
            answered = await self._first_answer(job.id, allocation.epoch)
            removed = await self._drain(job.id)
        total = Written(written.inserted + removed.inserted, removed.deleted, removed.missed)
        return self._changed(job.id, choice, began, installed, answered, total)

    async def _change_root(self, job: Job, root: str, wish: Wish | None, began: int) -> Changed:
        """Let a running job go on as another one; the lock is held."""
        successor, choice = self._planner.succeed(job, root, wish)
        self._store.set_fact(_quiet(successor.id), "{}")
        self._store.follow(job.id, successor)
        try:
            written = await self.board.change(self.programs())
        except BaseException:
            self._store.withdraw(job.id)
            raise
        installed = time.monotonic_ns()
        self._store.set_phase(job.id, Phase.MOVING)
        await self._succession.move(self._job(job.id))
        answered = await self._first_answer(successor.id, successor.current.epoch)
        removed = await self._succession.drain(job.id)
        total = Written(written.inserted + removed.inserted, removed.deleted, removed.missed)
        changed = self._changed(successor.id, choice, began, installed, answered, total)
        return replace(changed, was=job.id)

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
        attached = {one.job for one in await asyncio.to_thread(self._hosts.jobs)}
        awaited = {
            job.successor
            for job in self._store.jobs()
            if job.phase is Phase.MOVING and job.id in attached
        }
        for job in self._store.jobs():
            if job.phase.is_over or job.id in awaited:
                continue
            if job.phase is Phase.INSTALLING:
                _LOG.warning("job %d: takes back a reallocation that was not installed", job.id)
                self._store.withdraw(job.id)
            elif job.phase is Phase.STARTING:
                _LOG.warning("job %d: takes back a start", job.id)
                await asyncio.to_thread(self._hosts.detach, job.id)
                self._store.remove(job.id)
                continue
            if job.id not in attached:
                self._closer.over(job.id, Phase.FAILED, "the network was started anew without it")
        for stranger in attached - {job.id for job in self._store.jobs()}:
            await asyncio.to_thread(self._hosts.detach, stranger)

    async def resume(self) -> None:
        """Go on with reallocations and stops that were under way; the switches are adopted."""
        async with self._lock:
            await self._look_after_all()

    async def watch(self) -> None:
        """For ever: notice jobs that have finished, failed or drained.

        Raises NetworkDownError when the network has ended: there is nothing left to control.
        """
        while True:
            async with self._lock:
                await self._look_after_all()
            await asyncio.sleep(WATCH_S)

    # How it is done

    async def _attach(self, job: Job) -> None:
        plan = ledger.plan_of(self.network, job, job.current)
        workers = len(self.network.workers if job.members is None else job.members)
        stream = Stream(job.seed, workers)
        await asyncio.to_thread(self._hosts.attach, plan, Op(job.op), stream)
        if job.chunks is not None:
            await asyncio.to_thread(self._hosts.finish, job.id, job.chunks)
        await asyncio.to_thread(self._hosts.start, job.id)

    async def _move(self, job: Job, *, again: bool = True) -> None:
        """From moving to draining. With `again`, it may have been begun before."""
        new = job.allocation(Role.NEW)
        if new is None:
            raise NotNowError(f"job {job.id}: is moving, but has no new allocation")
        first = await self._moved_at(job.id, new.epoch) if again else None
        if first is None:
            first = await asyncio.to_thread(self._hosts.hold, job.id)
        plan = ledger.plan_of(self.network, job, new)
        await asyncio.to_thread(self._hosts.move, plan, first, job.root)
        self._store.turn(job.id, first)

    async def _moved_at(self, number: int, epoch: int) -> int | None:
        """The chunk from which on some host is in an epoch already."""
        progress = await self.progress(number)
        hosts = (progress.destination, *progress.workers)
        return next((one.moved_at for one in hosts if one and one.epoch == epoch), None)

    async def _drain(self, number: int) -> Written:
        """Wait until the old epoch is through, and remove its entries."""
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline:
            job = self._job(number)
            if is_drained(await self.progress(number), job.current.epoch):
                return await self._settle(job)
            await asyncio.sleep(POLL_S)
        stuck = waits_for(await self.progress(number))
        raise NotNowError(
            f"job {number}: has moved to epoch {self._job(number).current.epoch}, but after "
            f"{DRAIN_S:g} s chunks of the old one are under way: {stuck}"
        )

    async def _settle(self, job: Job) -> Written:
        self._store.settle(job.id)
        removed = await self.board.remove(self.programs())
        quiet = ledger.quiet_counts(await self.board.link_counts(), job)
        self._store.set_fact(_quiet(job.id), json.dumps(quiet))
        return removed

    async def _first_answer(self, number: int, epoch: int) -> int | None:
        deadline = time.monotonic() + FIRST_CHUNK_S
        while time.monotonic() < deadline:
            progress = await self.progress(number)
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
        try:
            progress = await self.progress(job.id)
        except NetworkDownError:
            raise
        except RunFailedError as error:
            await self._closer.abandon(job, str(error))
            return
        if progress.failure:
            await self._closer.end(job, Phase.FAILED, f"{progress.failure}; {waits_for(progress)}")
        elif job.phase is Phase.STOPPING:
            await self._closer.end(job, Phase.FINISHED, why_over(job))
        elif job.phase is Phase.MOVING:
            _LOG.warning("job %d: finishes a reallocation", job.id)
            await (self._move(job) if job.successor is None else self._succession.move(job))
        elif job.phase is Phase.DRAINING and job.successor is None:
            if is_drained(progress, job.current.epoch):
                await self._settle(job)
        elif progress.done:
            await self._closer.end(
                job, Phase.FINISHED, "" if job.successor is None else why_over(job)
            )
        elif self._stalls.has_stalled(job.id, progress):
            await self._closer.give_up_if_killed(job)

    def _changed(
        self,
        number: int,
        choice: Choice,
        began: int,
        installed: int,
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
            installed_after=(installed - began) / 1e9,
            first_chunk_after=None if answered is None else (answered - began) / 1e9,
            seconds=(time.monotonic_ns() - began) / 1e9,
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


def _quiet(job: int) -> str:
    """The name of the fact from where a job's next allocation will be counted."""
    return f"quiet counts of job {job}"
