"""The end of jobs: right, stopped, or given up with the reason."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Sequence

from controller.errors import RunFailedError, SilentHostsError
from controller.live.client import NetworkClient
from controller.live.progress import JobProgress
from controller.live.state import NetworkDownError
from controller.service import ledger
from controller.service.progress import completed, is_drained, why_late
from controller.service.rejoining import Rejoining
from controller.service.store import Job, Phase, Store
from controller.service.switchboard import Switchboard, Written
from topologies.network import Network

_LOG = logging.getLogger(__name__)
FINISH_S = 10.0
"""How long a job that is stopped waits for a further answer to what it has sent."""
MOST_S = 40.0
"""How long it waits in all, while answers come."""
_POLL_S = 0.02


class Closer:
    """Takes jobs off their hosts and out of the switches, and notes what they came to."""

    def __init__(
        self, network: Network, store: Store, board: Switchboard, hosts: NetworkClient
    ) -> None:
        self._network = network
        self._store = store
        self._board = board
        self._hosts = hosts
        self._rejoining = Rejoining(network, board, hosts)

    async def end(self, job: Job, phase: Phase, why: str) -> Written:
        """Let what a job has sent be answered, then end it; what it came to becomes its result."""
        await self._drop_successor(job)
        self._store.set_phase(job.id, Phase.STOPPING)
        try:
            progress = await self._finish(job)
        except NetworkDownError:
            raise
        except SilentHostsError as error:
            # They are told to forget the job, and do when they go on; nobody waits for that.
            return await self.abandon(job, f"ended with chunks under way: {error}")
        except RunFailedError as error:
            return await self.abandon(job, str(error))
        if not progress.done and phase is Phase.FINISHED:
            late = await asyncio.to_thread(why_late, self._hosts, progress)
            phase, why = Phase.FAILED, f"{why}; not answered: {late}"
        counts = await self._board.link_counts()
        done = job.begins + completed(progress)
        names = ledger.rooted(self._network, job).topology.overlay.names
        sent_again = ledger.why_sent_again(self._network, job)
        expected = ledger.expected_messages(self._network, job, done)
        await asyncio.to_thread(self._hosts.detach, job.id)
        self.over(
            job.id,
            phase,
            why,
            **_came_to(job, progress),
            links={
                name: [ledger.total_count(counts, name, job.id).first, expected[v]]
                for v, name in enumerate(names)
                if name in counts and not sent_again
            },
            not_compared=sent_again,
        )
        return await self._board.remove(ledger.programs(self._network, self._store.jobs()))

    async def leave(self, job: Job, end: int, why: str, failed: Sequence[str]) -> Written:
        """End a job at a chunk where another one goes on; what is under way is not waited for.

        `failed`: the parts of its tree that have. Its links are not compared: what a failed switch
        has counted, or a cut link lost, is not known.
        """
        progress = await asyncio.to_thread(self._hosts.progress, job.id)
        self.over(
            job.id,
            Phase.FINISHED,
            why,
            **{**_came_to(job, progress), "completed": end},
            not_compared=f"{', '.join(failed)} failed",
        )
        await asyncio.to_thread(self._hosts.detach, job.id)
        return await self._board.remove(ledger.programs(self._network, self._store.jobs()))

    async def abandon(self, job: Job, why: str) -> Written:
        """End a job whose hosts, or some of them, are gone; the others say what it came to."""
        await self._drop_successor(job)
        result = await self._came_to_at_least(job)
        try:
            await asyncio.to_thread(self._hosts.detach, job.id)
        except NetworkDownError:
            raise
        except RunFailedError as error:
            # What is left of it on other hosts goes on asking, and nobody answers.
            _LOG.warning("job %d: %s", job.id, error)
        self.over(job.id, Phase.FAILED, why, **result)
        return await self._board.remove(ledger.programs(self._network, self._store.jobs()))

    async def _came_to_at_least(self, job: Job) -> dict[str, object]:
        """What those hosts say that are left; nothing where there are none."""
        try:
            return _came_to(job, await asyncio.to_thread(self._hosts.progress, job.id))
        except NetworkDownError:
            raise
        except RunFailedError:
            return {}

    async def take_back(self, job: Job) -> None:
        """Let a job whose workers are held, or some of them, go on without the change."""
        await asyncio.to_thread(self._hosts.release, job.id)
        self._store.withdraw(job.id)
        await self._board.remove(ledger.programs(self._network, self._store.jobs()))

    async def give_up_if_killed(self, job: Job, progress: JobProgress) -> None:
        """End a job that waits for a host that was killed; it would wait for ever."""
        view = ledger.rooted(self._network, job)
        present = job.present(range(len(view.workers)))
        needed = {view.destination.name, *(view.workers[rank].name for rank in present)}
        if gone := needed.intersection(progress.gone):
            killed = ", ".join(sorted(gone))
            await self.abandon(job, f"host {killed} was killed, and the job needs it")

    def over(self, number: int, phase: Phase, why: str, **result: object) -> None:
        """Note that a job is over, and what is to be told about it."""
        self._store.set_phase(number, phase, json.dumps({"detail": why, **result}))
        _LOG.info("job %d: %s %s", number, phase, why)

    async def _drop_successor(self, job: Job) -> None:
        """Forget as which job one goes on that ends before it has come to that."""
        new = None if job.successor is None else self._store.job(job.successor)
        if new is not None and new.phase is Phase.STARTING:
            await asyncio.to_thread(self._hosts.detach, new.id)
            self._store.withdraw(job.id)

    async def _finish(self, job: Job) -> JobProgress:
        """Let the chunks that are under way be answered, and no others."""
        await asyncio.to_thread(self._hosts.stop, job.id)
        patience = Patience(time.monotonic())
        is_awaited = bool(job.returning)
        while True:
            progress = await asyncio.to_thread(self._hosts.progress, job.id)
            if is_awaited and is_drained(progress, job.current.epoch):
                await self._rejoining.start(job)
                is_awaited = False
            is_over = patience.is_over(progress.answers, time.monotonic())
            if progress.done or progress.failure or is_over:
                return progress
            await asyncio.sleep(_POLL_S)


class Patience:
    """How long the answers to what a job has sent are waited for: as long as some come."""

    def __init__(self, now: float) -> None:
        self._began = self._since = now
        self._answers = -1

    def is_over(self, answers: int, now: float) -> bool:
        """Whether none has come for FINISH_S seconds, or it has all taken MOST_S.

        `answers`: how many have come by `now`.
        """
        if answers > self._answers:
            self._answers, self._since = answers, now
        return now > min(self._since + FINISH_S, self._began + MOST_S)


def _came_to(job: Job, progress: JobProgress) -> dict[str, object]:
    """How far a job came, and whether every sum until then was right."""
    return {
        "completed": job.begins + completed(progress),
        "correct": not progress.mismatches,
        "retransmissions": progress.resent,
    }


def why_gone(number: int, job: Job | None) -> str:
    """Why a change of a job did not come to its end."""
    if job is None:
        return f"job {number}: was stopped while it changed"
    if job.phase.is_over:
        return f"job {number}: {job.phase} while it changed: {json.loads(job.result)['detail']}"
    return f"job {number}: is {job.phase}, and so its change does not end; look at status"
