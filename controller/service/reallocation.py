"""A running job gets other blue switches, and stays the job that it is; see `change.Change`.

All workers hold; C is the largest chunk number that none has used; destination and workers move to
the new epoch from C on. The old entries go when every chunk before C is answered.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from controller.errors import BadInputError, SilentHostsError
from controller.live.progress import JobProgress
from controller.service import ledger
from controller.service.admission import Wish
from controller.service.change import Change, Proposal
from controller.service.errors import NotNowError
from controller.service.moments import Stopwatch
from controller.service.progress import is_drained
from controller.service.store import Job, Role
from controller.service.switchboard import Written


class Reallocation(Change):
    """Lets jobs go on with other blue switches."""

    def propose(self, job: Job, wish: Wish | None, root: str | None) -> Proposal:
        """See `Change`."""
        if wish is None:
            raise BadInputError(f"--root {root}: the destination of job {job.id} is there now")
        choice = self._planner.choose(job, wish)
        allocation = replace(
            self._planner.allocation(choice, ledger.rooted(self._network, job), job.current),
            baseline=tuple(json.loads(self._store.fact(quiet_fact(job.id)) or "{}").items()),
        )
        self._store.propose(job.id, allocation)
        return Proposal(job.id, allocation.epoch, choice)

    async def move(self, job: Job, watch: Stopwatch, *, again: bool) -> None:
        """See `Change`."""
        new = job.allocation(Role.NEW)
        if new is None:
            raise NotNowError(f"job {job.id}: is moving, but has no new allocation")
        first = await self._moved_at(job.id, new.epoch) if again else None
        if first is None:
            first = await self._hold(job, again=again)
        watch.lap("hold")
        plan = ledger.plan_of(self._network, job, new)
        await asyncio.to_thread(self._hosts.move, plan, first, job.root, job.avoids)
        self._store.turn(job.id, first)
        watch.lap("move")

    def is_through(self, job: Job, progress: JobProgress) -> bool:
        """See `Change`."""
        return is_drained(progress, job.current.epoch)

    async def settle(self, job: Job) -> Written:
        """See `Change`."""
        self._store.settle(job.id)
        removed = await self._board.remove(ledger.programs(self._network, self._store.jobs()))
        quiet = ledger.quiet_counts(await self._board.link_counts(), job)
        self._store.set_fact(quiet_fact(job.id), json.dumps(quiet))
        return removed

    async def _hold(self, job: Job, *, again: bool) -> int:
        try:
            return await asyncio.to_thread(self._hosts.hold, job.id)
        except SilentHostsError as error:
            destination = ledger.rooted(self._network, job).destination.name
            if again and destination in error.hosts:
                # It may have moved already: then there is no way back.
                raise NotNowError(f"job {job.id}: cannot go on yet: {error}") from error
            await self._closer.take_back(job)
            raise NotNowError(f"job {job.id}: goes on as before: {error}") from error

    async def _moved_at(self, number: int, epoch: int) -> int | None:
        """The chunk from which on some host is in an epoch already."""
        progress = await asyncio.to_thread(self._hosts.progress, number)
        hosts = (progress.destination, *progress.workers)
        return next((one.moved_at for one in hosts if one and one.epoch == epoch), None)


def quiet_fact(job: int) -> str:
    """The name of the fact from where a job's next allocation will be counted."""
    return f"quiet counts of job {job}"
