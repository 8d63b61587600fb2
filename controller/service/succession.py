"""The change of a root: a job goes on as another one, whose numbers, slots and entries are its own.

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
import time

from controller.errors import BluetreeError
from controller.live.client import NetworkClient
from controller.live.state import NetworkDownError
from controller.service import ledger
from controller.service.closing import Closer
from controller.service.errors import NotNowError
from controller.service.progress import DRAIN_S, waits_for
from controller.service.store import Job, Phase, Store
from controller.service.switchboard import Switchboard, Written
from topologies.network import Network
from traffic.endpoint import Op
from traffic.stream import Stream

_POLL_S = 0.02


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
        closer: Closer,
    ) -> None:
        self._network = network
        self._store = store
        self._board = board
        self._hosts = hosts
        self._closer = closer

    async def move(self, job: Job) -> None:
        """From moving to draining; it may have been begun before.

        Raises NotNowError, with all taken back, where a host refuses or there is nothing to go on
        with.
        """
        new = self._successor(job)
        attached = {one.job for one in await asyncio.to_thread(self._hosts.jobs)}
        if new.id not in attached:
            try:
                await self._attach(job, new)
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
        workers = (await asyncio.to_thread(self._hosts.progress, new.id)).workers
        if all(worker.next_chunk <= first for worker in workers):
            await asyncio.to_thread(self._hosts.start, new.id)
        self._store.hand_over(job.id, new.id)

    async def drain(self, number: int) -> Written:
        """Wait until a job that goes on as another has its answers, and end it.

        Raises NotNowError where that takes too long; it ends then when it has them.
        """
        deadline = time.monotonic() + DRAIN_S
        while time.monotonic() < deadline:
            progress = await asyncio.to_thread(self._hosts.progress, number)
            job = self._store.job(number)
            if job is not None and progress.done:
                return await self._closer.end(job, Phase.FINISHED, why_over(job))
            await asyncio.sleep(_POLL_S)
        stuck = waits_for(await asyncio.to_thread(self._hosts.progress, number))
        raise NotNowError(
            f"job {number}: goes on with another root, but after {DRAIN_S:g} s chunks of the old "
            f"one are under way: {stuck}"
        )

    async def _attach(self, job: Job, new: Job) -> None:
        first = await asyncio.to_thread(self._hosts.hold, job.id)
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
