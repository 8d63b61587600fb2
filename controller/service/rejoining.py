"""Workers that come back into a job that went on without them, under the ranks that they had.

It is a reallocation to an epoch whose sources include them, with the same blue switches; what it
has beside one that changes the blue switches is here:

    propose     hosts whose processes have ended are started anew; they have no part in anything
    move        once C is agreed on, they are attached, under the epoch before and with C as their
                first chunk, so that they move with the others
    settle      nothing before C is under way: they start, and the old entries go

They send nothing before that, so that no switch gives a slot up for them that holds a sum of a
chunk before C. If the job loses a worker meanwhile, chunks before C are summed anew, and they have
no values for these: they are left out again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextlib import suppress

from controller.cuts import Cut
from controller.errors import BadInputError, SilentHostsError
from controller.live.client import NetworkClient
from controller.service import ledger
from controller.service.errors import NotNowError
from controller.service.jobs import Job, OnLoss
from controller.service.switchboard import Switchboard
from topologies.network import Host, Network
from traffic.commands import Finish, Start
from traffic.endpoint import Op

_LOG = logging.getLogger(__name__)


class Rejoining:
    """What is done for workers that come back."""

    def __init__(self, network: Network, board: Switchboard, hosts: NetworkClient) -> None:
        self._network = network
        self._board = board
        self._hosts = hosts

    def ranks(self, job: Job, names: Sequence[str], cuts: Collection[Cut]) -> tuple[int, ...]:
        """The ranks of workers by name, by default of all that a job goes on without.

        `cuts`: the links that carry nothing.

        Raises BadInputError for one that is not out, and NotNowError for one that cannot be reached
        now.
        """
        workers = {host.name: host for host in self._network.workers}
        absent = job.current.absent
        for name in names:
            if name not in workers:
                raise BadInputError(
                    f"{name}: no such worker; there are {self._network.worker_names}"
                )
            if workers[name].rank not in absent:
                raise BadInputError(_why_in(job, workers[name]))
        if not absent:
            why = "" if job.on_loss == OnLoss.CONTINUE else "; it fails where it loses one"
            raise BadInputError(f"job {job.id} has all its workers{why}")
        ranks = tuple(sorted({workers[name].rank for name in names})) or absent
        view = ledger.rooted(self._network, job)
        for rank in ranks:
            self._check_way(job, view, view.workers[rank], cuts)
        return ranks

    async def revive(self, ranks: Collection[int]) -> None:
        """Start the hosts anew that were killed, or have ended."""
        down = (await asyncio.to_thread(self._hosts.describe)).down
        for name in (self._network.workers[rank].name for rank in ranks):
            if name in down:
                _LOG.info("host %s is started anew", name)
                await asyncio.to_thread(self._hosts.restart, name)

    async def attach(self, job: Job, first: int) -> None:
        """Give a job to the workers that come back, from a chunk on."""
        plan = ledger.plan_of(self._network, job, job.current)
        await asyncio.to_thread(
            self._hosts.join,
            plan,
            job.returning,
            Op(job.op),
            ledger.stream_of(self._network, job),
            first_chunk=first,
            root=job.root,
            avoids=job.avoids,
        )
        if job.chunks is not None:
            end = Finish(job.id, job.chunks)
            commands = [(name, end) for name in self.names(job)]
            await asyncio.to_thread(self._hosts.tell, commands)

    async def start(self, job: Job) -> None:
        """Let them send; once more is no error. One that is silent does when it goes on."""
        commands = [(name, Start(job.id)) for name in self.names(job)]
        with suppress(SilentHostsError):
            await asyncio.to_thread(self._hosts.tell, commands)

    def names(self, job: Job) -> tuple[str, ...]:
        """The workers that come back."""
        return tuple(self._network.workers[rank].name for rank in job.returning)

    def _check_way(self, job: Job, view: Network, host: Host, cuts: Collection[Cut]) -> None:
        """Raise NotNowError where no way leads from a worker to the destination of its job."""
        if not host.source:
            raise NotNowError(
                f"{host.name}: no way leads to it in the tree of job {job.id}, which goes round "
                f"{', '.join(job.avoids)}: `bluetree restart` what is down, then `bluetree "
                f"reallocate --root {view.destination.switch}`"
            )
        way = ledger.way_of(view, host)
        for cut in cuts:
            if cut.link in way:
                raise NotNowError(
                    f"{host.name}: {cut.text}, which is on its way: `bluetree restart {cut.link}`"
                )
        down = way.intersection(self._board.troubles)
        if down:
            name = min(down)
            raise NotNowError(
                f"{host.name}: switch {name} on its way does not answer: `bluetree restart {name}`"
            )


def _why_in(job: Job, host: Host) -> str:
    if job.members is not None and host.rank not in job.members:
        return f"{host.name} has no part in job {job.id}"
    return (
        f"{host.name} is not left out of job {job.id}; only what `bluetree status` lists as left "
        "out can come back"
    )
