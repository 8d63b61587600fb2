"""The change of a root: a job goes on as another one, whose numbers, slots and entries are its own;
see `change.Change`.

Sources have other numbers in the turned tree, so entries of both trees cannot be of one job. The
phases are those of the job that ends; its successor is starting until the last of the steps.

    installing  the successor is admitted; its entries are installed beside those of the job
    moving      all workers hold; C is the largest chunk number that none has used; the successor is
                attached to its hosts from C on; the job ends before C; the successor starts
    draining    until the job has every answer; then its entries are removed, and it is over

Up to the attaching everything can be taken back, from then on it has to be finished. The network
knows whether it has come to that.
"""

from __future__ import annotations

import asyncio

from controller.errors import BadInputError, BluetreeError
from controller.live.client import NetworkClient
from controller.live.progress import JobProgress
from controller.live.state import NetworkDownError
from controller.service import ledger
from controller.service.admission import Wish
from controller.service.change import Proposal
from controller.service.closing import Closer
from controller.service.errors import NotNowError
from controller.service.moments import Stopwatch
from controller.service.planner import Planner
from controller.service.reallocation import quiet_fact
from controller.service.store import Job, Phase, Store
from controller.service.switchboard import Switchboard, Written
from topologies.network import Network
from traffic.endpoint import Op
from traffic.stream import Stream


def why_over(job: Job) -> str:
    """Why a job ends that is right."""
    return "stopped" if job.successor is None else f"goes on as job {job.successor}"


class Succession:
    """Lets jobs go on as their successors."""

    def __init__(
        self,
        network: Network,
        store: Store,
        board: Switchboard,
        hosts: NetworkClient,
        planner: Planner,
        closer: Closer,
    ) -> None:
        self._network = network
        self._store = store
        self._board = board
        self._hosts = hosts
        self._planner = planner
        self._closer = closer

    def propose(self, job: Job, wish: Wish | None, root: str | None) -> Proposal:
        """See `Change`."""
        if root is None:
            raise BadInputError("--root: name the switch of the job's next destination")
        successor, choice = self._planner.succeed(job, root, wish)
        self._store.set_fact(quiet_fact(successor.id), "{}")
        self._store.follow(job.id, successor)
        return Proposal(successor.id, successor.current.epoch, choice)

    async def move(self, job: Job, watch: Stopwatch, *, again: bool) -> None:
        """See `Change`; also refuses, with all taken back, where there is nothing to go on with."""
        new = self._successor(job)
        if not (again and await self._is_attached(new)):
            try:
                await self._attach(job, new, watch)
            except NetworkDownError:
                raise
            except BluetreeError as error:
                await self._take_back(job, new)
                raise NotNowError(f"job {job.id}: goes on as before: {error}") from error
        # Noted before it was attached, whoever did that.
        first = self._successor(job).begins
        await asyncio.to_thread(self._hosts.finish, job.id, first)
        if new.chunks is not None:
            await asyncio.to_thread(self._hosts.finish, new.id, new.chunks)
        if not (again and await self._has_started(new, first)):
            await asyncio.to_thread(self._hosts.start, new.id)
        self._store.hand_over(job.id, new.id)
        watch.lap("move")

    def is_through(self, job: Job, progress: JobProgress) -> bool:
        """See `Change`: it has every answer."""
        return progress.done

    async def settle(self, job: Job) -> Written:
        """See `Change`: it is over."""
        return await self._closer.end(job, Phase.FINISHED, why_over(job))

    async def _is_attached(self, new: Job) -> bool:
        return new.id in {one.job for one in await asyncio.to_thread(self._hosts.jobs)}

    async def _has_started(self, new: Job, first: int) -> bool:
        workers = (await asyncio.to_thread(self._hosts.progress, new.id)).workers
        return any(worker.next_chunk > first for worker in workers)

    async def _attach(self, job: Job, new: Job, watch: Stopwatch) -> None:
        first = await asyncio.to_thread(self._hosts.hold, job.id)
        watch.lap("hold")
        if job.chunks is not None and first >= job.chunks:
            raise NotNowError("it has sent all its chunks")
        self._store.begin_at(new.id, first)
        members = self._network.workers if new.members is None else new.members
        await asyncio.to_thread(
            self._hosts.attach,
            ledger.plan_of(self._network, new, new.current),
            Op(new.op),
            Stream(new.seed, len(members)),
            first_chunk=first,
            root=new.root,
        )

    async def _take_back(self, job: Job, new: Job) -> None:
        await asyncio.to_thread(self._hosts.detach, new.id)
        await asyncio.to_thread(self._hosts.release, job.id)
        self._store.withdraw(job.id)
        await self._board.remove(ledger.programs(self._network, self._store.jobs()))

    def _successor(self, job: Job) -> Job:
        new = None if job.successor is None else self._store.job(job.successor)
        if new is None:
            raise NotNowError(f"job {job.id}: is moving, but has nothing to go on as")
        return new
