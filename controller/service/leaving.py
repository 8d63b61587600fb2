"""Workers that a job loses: it fails and names them, or goes on without them.

Which, the job says (`OnLoss`). A job that goes on does so under a new epoch, without those workers,
from the first chunk on that is not complete; its blue switches stay. The phases are those of a
reallocation:

    installing  entries of the new epoch beside those of the old, on every switch
    moving      the destination says which chunks are of the new epoch; the workers that are left
                follow
    draining    until all others are answered; then the old entries are removed

A worker is lost when its process has ended, or when it has said nothing for LOST_S while the job
stands still. It is ended then, so that it cannot come back unasked.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection
from dataclasses import replace

from controller.live.client import NetworkClient
from controller.live.progress import JobProgress
from controller.service import ledger
from controller.service.change import install
from controller.service.planner import Planner
from controller.service.reallocation import quiet_fact
from controller.service.store import Job, OnLoss, Phase, Role, Store
from controller.service.switchboard import Switchboard
from topologies.network import Network

_LOG = logging.getLogger(__name__)
LOST_S = 30.0
"""How long a host may be silent, of a job that stands still, before it is taken for dead."""


def leaves(job: Job) -> bool:
    """Whether the new allocation of a job is one that goes on without some workers."""
    new, now = job.allocation(Role.NEW), job.allocation(Role.CURRENT)
    return new is not None and now is not None and set(new.absent) > set(now.absent)


class Leaving:
    """Lets jobs go on without workers."""

    def __init__(
        self,
        network: Network,
        store: Store,
        board: Switchboard,
        hosts: NetworkClient,
        planner: Planner,
    ) -> None:
        self._network = network
        self._store = store
        self._board = board
        self._hosts = hosts
        self._planner = planner

    async def look_after(self, job: Job, progress: JobProgress, stood: float) -> bool:
        """Deal with the hosts that a job has lost; whether it goes on without some from now on.

        `stood`: for how many seconds no chunk has become complete.
        """
        if stood > LOST_S:
            for name in progress.silent:
                _LOG.warning("job %d: host %s has said nothing for %g s", job.id, name, LOST_S)
                await asyncio.to_thread(self._hosts.kill, name)
        ranks = self.lost(job, progress)
        if not ranks or job.on_loss != OnLoss.CONTINUE:
            return False
        if job.phase not in (Phase.RUNNING, Phase.DRAINING):
            return False
        if len(ranks) == len(job.present(range(len(self._network.workers)))):
            return False
        await self.exclude(job, ranks)
        return True

    def lost(self, job: Job, progress: JobProgress) -> tuple[int, ...]:
        """Ranks of the workers of a job that are gone; none if its destination is."""
        if ledger.rooted(self._network, job).destination.name in progress.gone:
            return ()
        workers = self._network.workers
        present = job.present(range(len(workers)))
        return tuple(rank for rank in present if workers[rank].name in progress.gone)

    async def exclude(self, job: Job, ranks: Collection[int]) -> None:
        """Go on without workers, from running or draining to draining; blue switches stay.

        Where a switch refuses, all is as it was: raises ChangeRefusedError.
        """
        # Who was about to come back has no values for the chunks that are summed anew.
        out = sorted({*ranks, *job.returning})
        names = ", ".join(self._network.workers[rank].name for rank in out)
        _LOG.warning("job %d: goes on without %s", job.id, names)
        new = self._planner.without(job, out)
        quiet = json.loads(self._store.fact(quiet_fact(job.id)) or "{}")
        self._store.propose(job.id, replace(new, baseline=tuple(quiet.items())))
        await install(self._network, self._store, self._board, job.id)
        changed = self._store.job(job.id)
        if changed is not None:
            await self.finish(changed)
            # They may not know that they have no part in it.
            back = [self._network.workers[rank].name for rank in job.returning]
            await asyncio.to_thread(self._hosts.dismiss, job.id, back)

    async def finish(self, job: Job) -> None:
        """From moving to draining; it may have been begun before."""
        new = job.allocation(Role.NEW)
        if new is not None:
            plan = ledger.plan_of(self._network, job, new)
            term = await asyncio.to_thread(self._hosts.exclude, plan, job.root, job.avoids)
            self._store.turn(job.id, term.from_chunk, len(term.kept))
