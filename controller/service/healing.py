"""Jobs whose tree has a switch or link that has failed: they go round it, go on without those it
cuts off, or fail and name them.

A switch has failed for a job when it does not answer P4Runtime and the job stands still; a link
when nothing that is sent over it arrives, in one direction or both (`controller.cuts`). If the
links that are left lead every worker to a destination, the job goes on over another tree, as
another job (`succession`). Where they do not, it depends on what the job does when it loses workers
(`OnLoss`): it goes on without those that are cut off, or it waits for GIVE_UP_S, in case what has
failed comes back, and then fails.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection

from controller.errors import BluetreeError
from controller.live.client import NetworkClient
from controller.live.state import NetworkDownError
from controller.p4rt import NotPrimaryError
from controller.service import ledger
from controller.service.closing import Closer
from controller.service.leaving import Leaving
from controller.service.links import LinkWatch
from controller.service.store import Job, OnLoss, Phase
from controller.service.succession import Succession
from controller.service.switchboard import Switchboard
from controller.watchdog import Stuck
from topologies.network import Host, Network
from topologies.rerooting import find_detour

_LOG = logging.getLogger(__name__)
GIVE_UP_S = 60.0
"""How long a job waits for a switch or link that no way leads round."""


class Healer:
    """Deals with failed switches and links, job by job."""

    def __init__(
        self,
        network: Network,
        board: Switchboard,
        links: LinkWatch,
        hosts: NetworkClient,
        succession: Succession,
        leaving: Leaving,
        closer: Closer,
    ) -> None:
        self._network = network
        self._board = board
        self._links = links
        self._hosts = hosts
        self._succession = succession
        self._leaving = leaving
        self._closer = closer
        self._since: dict[int, float] = {}

    def failed(self) -> frozenset[str]:
        """The switches that do not answer, and the links that carry nothing."""
        switches = (
            name
            for name, trouble in self._board.troubles.items()
            if not isinstance(trouble, NotPrimaryError)
        )
        return frozenset((*switches, *(cut.link for cut in self._links.cut)))

    async def look_after(self, job: Job, stuck: Stuck | None) -> bool:
        """Deal with what has failed of a job's tree; whether anything was done about it."""
        view = ledger.rooted(self._network, job)
        failed = self.failed()
        if (
            stuck is None
            or failed.isdisjoint(_used(view, job))
            or job.phase not in (Phase.RUNNING, Phase.DRAINING)
        ):
            self._since.pop(job.id, None)
            return False
        self._since.setdefault(job.id, time.monotonic())
        workers = [self._network.workers[rank] for rank in _present(view, job)]
        detour = find_detour(self._network, failed, workers, view.destination.switch)
        if detour is None or (detour.cut_off and job.on_loss != OnLoss.CONTINUE):
            return await self._wait(job, failed, workers if detour is None else detour.cut_off)
        if detour.cut_off and failed.isdisjoint(
            _used(view, job, without={host.rank for host in detour.cut_off})
        ):
            # The others' tree is whole: it stays, and so does the job's number.
            await self._leaving.exclude(job, {host.rank for host in detour.cut_off})
            await self._release(job, detour.cut_off)
            return True
        names = ", ".join(sorted(failed))
        try:
            new = await self._succession.rescue(job, detour, failed)
        except NetworkDownError:
            raise
        except BluetreeError as error:
            _LOG.warning("job %d: cannot go round %s yet: %s", job.id, names, error)
            return False
        await self._release(job, detour.cut_off)
        _LOG.warning(
            "job %d: goes round %s as job %d, with root %s, from chunk %d on",
            job.id, names, new.id, detour.root, new.begins,
        )  # fmt: skip
        return True

    async def _wait(self, job: Job, failed: frozenset[str], cut_off: Collection[Host]) -> bool:
        """Give what no way leads round some time to come back; then the job fails."""
        if time.monotonic() - self._since[job.id] < GIVE_UP_S:
            return False
        del self._since[job.id]
        names = ", ".join(host.name for host in cut_off)
        await self._closer.abandon(
            job,
            f"{self._what_is(failed)} for {GIVE_UP_S:g} s and cuts off "
            f"{names}: no other way leads to them, so `bluetree restart` it and start the job "
            "again, or start jobs with "
            "--on-worker-loss continue",
        )
        return True

    def _what_is(self, failed: frozenset[str]) -> str:
        """What is the matter with that which has failed, in words."""
        links = {cut.link for cut in self._links.cut}
        switches, cut = sorted(failed - links), sorted(failed & links)
        parts = [f"switch {', '.join(switches)} has not answered"] if switches else []
        parts += [f"link {', '.join(cut)} has carried nothing"] if cut else []
        return " and ".join(parts)

    async def _release(self, job: Job, cut_off: Collection[Host]) -> None:
        """Let the workers that a job goes on without send for it no more."""
        await asyncio.to_thread(self._hosts.dismiss, job.id, [host.name for host in cut_off])


def _present(view: Network, job: Job) -> tuple[int, ...]:
    return job.present(range(len(view.workers)))


def _used(view: Network, job: Job, without: Collection[int] = ()) -> frozenset[str]:
    """The switches and links on the ways of a job's workers, but for some, to its destination."""
    ranks = (rank for rank in _present(view, job) if rank not in without)
    return frozenset().union(*(ledger.way_of(view, view.workers[rank]) for rank in ranks))
