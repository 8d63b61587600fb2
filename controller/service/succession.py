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

A job whose tree has a failed switch goes on as another one too, over a tree without it. What the
switch held up is never answered, so there is no draining: the successor begins at the first chunk
that some worker has no answer to, and sums all from there on anew; the job leaves its hosts.

So does a job that drains, having a successor already: what it lacks before C goes on as a third
one, which ends at C, where that successor begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from controller.errors import BadInputError, BluetreeError
from controller.live.progress import JobProgress
from controller.live.state import NetworkDownError
from controller.service import ledger
from controller.service.admission import Wish
from controller.service.change import Change, Proposal, install
from controller.service.errors import NotNowError
from controller.service.moments import Stopwatch
from controller.service.reallocation import quiet_fact
from controller.service.store import Job, Phase
from controller.service.switchboard import Written
from topologies.rerooting import Detour
from traffic.endpoint import Op


def is_rescue(job: Job, new: Job) -> bool:
    """Whether a job goes on as another one because a switch of its tree has failed."""
    return not set(new.avoids) <= set(job.avoids)


def why_over(job: Job) -> str:
    """Why a job ends that is right."""
    return "stopped" if job.successor is None else f"goes on as job {job.successor}"


class Succession(Change):
    """Lets jobs go on as their successors."""

    def propose(self, job: Job, wish: Wish | None, root: str | None) -> Proposal:
        """See `Change`."""
        if root is None:
            raise BadInputError("--root: name the switch of the job's next destination")
        return self._propose(job, wish, root, ())

    async def move(self, job: Job, watch: Stopwatch, *, again: bool) -> None:
        """See `Change`; also refuses, with all taken back, where there is nothing to go on with."""
        new = self._successor(job)
        if not (again and await self._is_attached(new)):
            try:
                await self._attach(job, new, watch)
            except NetworkDownError:
                raise
            except BluetreeError as error:
                await asyncio.to_thread(self._hosts.detach, new.id)
                await self._closer.take_back(job)
                raise NotNowError(f"job {job.id}: goes on as before: {error}") from error
        # Noted before it was attached, whoever did that.
        first = self._successor(job).begins
        if not is_rescue(job, new):
            await asyncio.to_thread(self._hosts.finish, job.id, first)
        if new.chunks is not None:
            await asyncio.to_thread(self._hosts.finish, new.id, new.chunks)
        if not (again and await self._has_started(new, first)):
            await asyncio.to_thread(self._hosts.start, new.id)
        self._store.hand_over(job.id, new.id)
        watch.lap("move")

    def is_through(self, job: Job, progress: JobProgress) -> bool:
        """See `Change`: it has every answer, or will not get those that are left."""
        return progress.done or self._is_rescued(job)

    def is_over(self, job: Job) -> bool:
        """See `Change`: what it lacked goes on under a third number."""
        new = None if job.successor is None else self._store.job(job.successor)
        return job.phase is Phase.FINISHED and new is not None and not new.phase.is_over

    async def settle(self, job: Job) -> Written:
        """See `Change`: it is over."""
        if self._is_rescued(job):
            new = self._successor(job)
            return await self._closer.leave(
                job, new.begins, why_over(job), sorted(set(new.avoids).difference(job.avoids))
            )
        return await self._closer.end(job, Phase.FINISHED, why_over(job))

    async def rescue(self, job: Job, detour: Detour, failed: Collection[str]) -> Job:
        """Let a job go on over another tree, all steps in one; as which one it goes on.

        Raises what `Planner` raises, ChangeRefusedError and NotNowError, with all taken back.
        """
        self._propose(job, None, detour.root, failed)
        await install(self._network, self._store, self._board, job.id)
        moving = self._store.job(job.id) or job
        await self.move(moving, Stopwatch(), again=False)
        await self.settle(moving)
        return self._successor(moving)

    def _propose(self, job: Job, wish: Wish | None, root: str, avoids: Collection[str]) -> Proposal:
        new, choice = self._planner.succeed(job, root, wish, avoids)
        self._store.set_fact(quiet_fact(new.id), "{}")
        self._store.follow(job.id, new)
        return Proposal(new.id, new.current.epoch, choice)

    async def _is_attached(self, new: Job) -> bool:
        return new.id in {one.job for one in await asyncio.to_thread(self._hosts.jobs)}

    async def _has_started(self, new: Job, first: int) -> bool:
        workers = (await asyncio.to_thread(self._hosts.progress, new.id)).workers
        return any(worker.next_chunk > first for worker in workers)

    async def _attach(self, job: Job, new: Job, watch: Stopwatch) -> None:
        if is_rescue(job, new):
            first = await self._answered_below(job)
        else:
            first = await asyncio.to_thread(self._hosts.hold, job.id)
        watch.lap("hold")
        if job.chunks is not None and first >= job.chunks:
            raise NotNowError("it has sent all its chunks")
        self._store.begin_at(new.id, first)
        await asyncio.to_thread(
            self._hosts.attach,
            ledger.plan_of(self._network, new, new.current),
            Op(new.op),
            ledger.stream_of(self._network, new),
            first_chunk=first,
            root=new.root,
            avoids=new.avoids,
        )

    async def _answered_below(self, job: Job) -> int:
        """The number below which all workers of a job have every answer."""
        progress = await asyncio.to_thread(self._hosts.progress, job.id)
        if progress.silent:
            raise NotNowError(f"{', '.join(progress.silent)} do not answer")
        return progress.drained_below

    def _is_rescued(self, job: Job) -> bool:
        """Whether it has left its answers to a successor, which may have been stopped since."""
        new = None if job.successor is None else self._store.job(job.successor)
        return new is not None and is_rescue(job, new)

    def _successor(self, job: Job) -> Job:
        new = None if job.successor is None else self._store.job(job.successor)
        if new is None:
            raise NotNowError(f"job {job.id}: is moving, but has nothing to go on as")
        return new
