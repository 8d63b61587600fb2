"""A running job gets other blue switches, or workers back, and stays the job that it is; see
`change.Change`.

All workers hold; C is the largest chunk number that none has used; destination and workers move to
the new epoch from C on. The old entries go when every chunk before C is answered. What there is to
do for workers that come back is in `rejoining`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from controller.cuts import Cut
from controller.errors import BadInputError, RunFailedError, SilentHostsError
from controller.live.client import NetworkClient
from controller.live.progress import JobProgress
from controller.live.state import NetworkDownError
from controller.service import ledger
from controller.service.admission import Choice, Wish
from controller.service.change import Change, Proposal
from controller.service.closing import Closer
from controller.service.errors import NotNowError
from controller.service.moments import Stopwatch
from controller.service.planner import Planner
from controller.service.progress import is_drained
from controller.service.rejoining import Rejoining
from controller.service.store import Allocation, Job, Role, Store
from controller.service.switchboard import Switchboard, Written
from topologies.network import Network


class Reallocation(Change):
    """Lets jobs go on with other blue switches, or with workers that come back."""

    def __init__(
        self,
        network: Network,
        store: Store,
        board: Switchboard,
        hosts: NetworkClient,
        planner: Planner,
        closer: Closer,
    ) -> None:
        super().__init__(network, store, board, hosts, planner, closer)
        self._rejoining = Rejoining(network, board, hosts)

    def propose(self, job: Job, wish: Wish | None, root: str | None) -> Proposal:
        """See `Change`."""
        if wish is None:
            raise BadInputError(f"--root {root}: the destination of job {job.id} is there now")
        choice = self._planner.choose(job, wish)
        view = ledger.rooted(self._network, job)
        return self._note(job, self._planner.allocation(choice, view, job.current), choice)

    async def readmit(self, job: Job, names: Sequence[str], cuts: Collection[Cut] = ()) -> Proposal:
        """Plan for workers that come back, by default all that a job goes on without, and note it.

        `cuts`: links that carry nothing. Raises what `Rejoining.ranks` raises, and RunFailedError
        where a host cannot be started anew, with nothing noted.
        """
        ranks = self._rejoining.ranks(job, names, cuts)
        await self._rejoining.revive(ranks)
        new = self._planner.with_again(job, ranks)
        choice = Choice(
            strategy=new.strategy,
            budget=new.budget,
            blue=ledger.plan_of(self._network, job, new).blue,
            congestion=ledger.congestion_of(self._network, job, new),
            full=(),
        )
        return self._note(job, new, choice)

    def _note(self, job: Job, new: Allocation, choice: Choice) -> Proposal:
        quiet = json.loads(self._store.fact(quiet_fact(job.id)) or "{}")
        self._store.propose(job.id, replace(new, baseline=tuple(quiet.items())))
        return Proposal(job.id, new.epoch, choice)

    async def move(self, job: Job, watch: Stopwatch, *, again: bool) -> None:
        """See `Change`."""
        new = job.allocation(Role.NEW)
        if new is None:
            raise NotNowError(f"job {job.id}: is moving, but has no new allocation")
        first = await self._moved_at(job.id, new.epoch) if again else None
        if first is None:
            first = await self._hold(job, again=again)
            if job.returning:
                await self._attach(job, first)
        watch.lap("hold")
        plan = ledger.plan_of(self._network, job, new)
        await asyncio.to_thread(self._hosts.move, plan, first, job.root, job.avoids)
        self._store.turn(job.id, first)
        watch.lap("move")

    def is_through(self, job: Job, progress: JobProgress) -> bool:
        """See `Change`."""
        return is_drained(progress, job.current.epoch)

    async def settle(self, job: Job) -> Written:
        """See `Change`: workers that come back start."""
        if job.returning:
            await self._rejoining.start(job)
        self._store.settle(job.id)
        removed = await self._board.remove(ledger.programs(self._network, self._store.jobs()))
        quiet = ledger.quiet_counts(await self._board.link_counts(), job)
        self._store.set_fact(quiet_fact(job.id), json.dumps(quiet))
        return removed

    async def _hold(self, job: Job, *, again: bool) -> int:
        try:
            return await asyncio.to_thread(self._hosts.hold, job.id)
        except NetworkDownError:
            raise
        except RunFailedError as error:
            destination = ledger.rooted(self._network, job).destination.name
            if again and not (
                isinstance(error, SilentHostsError) and destination not in error.hosts
            ):
                # It may have moved already: then there is no way back.
                raise NotNowError(f"job {job.id}: cannot go on yet: {error}") from error
            await self._closer.take_back(job)
            raise NotNowError(f"job {job.id}: goes on as before: {error}") from error

    async def _attach(self, job: Job, first: int) -> None:
        """Give the job to workers that come back; NotNowError with all taken back."""
        why = ""
        try:
            if job.chunks is None or first < job.chunks:
                return await self._rejoining.attach(job, first)
            why = "it has sent all its chunks"
        except NetworkDownError:
            raise
        except RunFailedError as error:
            why = str(error)
        await asyncio.to_thread(self._hosts.dismiss, job.id, self._rejoining.names(job))
        await self._closer.take_back(job)
        raise NotNowError(f"job {job.id}: goes on as before: {why}")

    async def _moved_at(self, number: int, epoch: int) -> int | None:
        """The chunk from which on some host is in an epoch already."""
        progress = await asyncio.to_thread(self._hosts.progress, number)
        hosts = (progress.destination, *progress.workers)
        return next((one.moved_at for one in hosts if one and one.epoch == epoch), None)


def quiet_fact(job: int) -> str:
    """The name of the fact from where a job's next allocation will be counted."""
    return f"quiet counts of job {job}"
