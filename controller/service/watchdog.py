"""Looks at every job four times a second, and says which are stuck, where and for whom; and at the
links of those that are."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping

from controller.compile import JobPlan
from controller.errors import BluetreeError
from controller.live.client import NetworkClient
from controller.live.state import NetworkDownError
from controller.p4rt import NotPrimaryError
from controller.service import ledger
from controller.service.links import LinkWatch
from controller.service.progress import completed
from controller.service.store import Job, Phase, Role, Store
from controller.service.switchboard import Switchboard
from controller.watchdog import Cause, Standstills, Stuck, facts_of, find_stuck
from topologies.network import Network

_LOG = logging.getLogger(__name__)
LOOK_S = 0.25


class Watchdog:
    """The jobs that are stuck. It changes nothing, and so does not wait for changes to end."""

    def __init__(
        self, network: Network, store: Store, board: Switchboard, hosts: NetworkClient
    ) -> None:
        self._network = network
        self._store = store
        self._board = board
        self._hosts = hosts
        self._standstills = Standstills()
        self._stuck: dict[int, Stuck] = {}
        self._probing: asyncio.Task[None] | None = None
        self.links = LinkWatch(network, board, hosts)
        self._reading: asyncio.Task[None] | None = None

    @property
    def stuck(self) -> Mapping[int, Stuck]:
        """The stuck chunk of each job that has one."""
        return self._stuck

    async def dead(self) -> frozenset[str]:
        """The switches without a process, for all that the network knows."""
        if not self._board.troubles:
            return frozenset()
        return (await asyncio.to_thread(self._hosts.faults)).dead

    async def watch(self) -> None:
        """For ever; raises NetworkDownError when the network has ended."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look at all jobs once."""
        jobs = {
            job.id: job
            for job in self._store.jobs()
            if not job.phase.is_over and job.phase is not Phase.STARTING
        }
        self._standstills.forget(jobs)
        for number in self._stuck.keys() - jobs.keys():
            del self._stuck[number]
        for job in jobs.values():
            try:
                self._note(job.id, await self._look_at(job))
            except NetworkDownError:
                raise
            except BluetreeError as error:
                # It has just been stopped; whoever looks after it deals with anything else.
                _LOG.info("job %d: %s", job.id, error)
        self._probe(jobs)
        self._read_links(jobs)

    def _read_links(self, jobs: Mapping[int, Job]) -> None:
        """See whether links of the trees of stuck jobs carry nothing."""
        reading = self._reading
        if reading is not None:
            if not reading.done():
                return
            error = reading.exception()
            if isinstance(error, BluetreeError) and not isinstance(error, NetworkDownError):
                _LOG.info("%s", error)
            elif error is not None:
                raise error
        names = {
            name
            for number in self._stuck.keys() & jobs.keys()
            for name in ledger.rooted(self._network, jobs[number]).topology.overlay.names
        }
        self._reading = asyncio.create_task(self.links.look(names))

    def _probe(self, jobs: Mapping[int, Job]) -> None:
        """See whether switches answer that a stuck job may be waiting for, and those that did not.

        A stopped process keeps its sessions open, and would be found out by no one else.
        """
        if self._probing is not None and not self._probing.done():
            return
        names = set(self._board.silent)
        for number, stuck in self._stuck.items():
            if stuck.cause in (Cause.LOSS, Cause.ANSWER) and number in jobs:
                view = ledger.rooted(self._network, jobs[number])
                names.update(view.topology.overlay.names)
        if names:
            self._probing = asyncio.create_task(self._board.probe(sorted(names)))

    async def _look_at(self, job: Job) -> Stuck | None:
        # The time of asking: to wait for a silent worker is no progress.
        now = time.monotonic_ns()
        progress = await asyncio.to_thread(self._hosts.progress, job.id)
        if not self._standstills.is_stuck(job.id, completed(progress), now) or progress.done:
            return None
        lost = {
            name
            for name, trouble in self._board.troubles.items()
            if not isinstance(trouble, NotPrimaryError)
        }
        facts = facts_of(progress.destination, progress.workers, lost, self.links.cut)
        return find_stuck(ledger.rooted(self._network, job), self._plan(job, facts.chunk), facts)

    def _plan(self, job: Job, chunk: int) -> JobPlan:
        """The allocation that a chunk is under."""
        known = [one for one in job.allocations if one.role is not Role.NEW]
        of_chunk = [one for one in known if one.first_chunk <= chunk]
        return ledger.plan_of(self._network, job, of_chunk[-1] if of_chunk else job.current)

    def _note(self, job: int, stuck: Stuck | None) -> None:
        before = self._stuck.get(job)
        if stuck is None:
            if self._stuck.pop(job, None) is not None:
                _LOG.warning("job %d: goes on", job)
            return
        self._stuck[job] = stuck
        if stuck != before:
            _LOG.warning("%s", stuck.text)
