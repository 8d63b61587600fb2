"""What a controller that begins makes of what the one before was doing."""

from __future__ import annotations

import asyncio
import logging
import time

from controller.live.client import NetworkClient
from controller.service.closing import Closer
from controller.service.store import Phase, Store

_LOG = logging.getLogger(__name__)


async def recover(store: Store, hosts: NetworkClient, closer: Closer) -> None:
    """Take back what was not installed, and end jobs that the network does not have.

    What has to be finished stays in its phase, and whoever looks after jobs goes on with it.
    """
    # With a new database too, epochs are above those that switches saw, or recordings hold.
    known = (await asyncio.to_thread(hosts.describe)).newest_epoch
    store.reach_number("epoch", max(known, int(time.time())))
    attached = {one.job for one in await asyncio.to_thread(hosts.jobs)}
    awaited = {
        job.successor for job in store.jobs() if job.phase is Phase.MOVING and job.id in attached
    }
    for job in store.jobs():
        if job.phase.is_over or job.id in awaited:
            continue
        if job.phase is Phase.INSTALLING:
            _LOG.warning("job %d: takes back a reallocation that was not installed", job.id)
            store.withdraw(job.id)
        elif job.phase is Phase.STARTING:
            _LOG.warning("job %d: takes back a start", job.id)
            await asyncio.to_thread(hosts.detach, job.id)
            store.remove(job.id)
            continue
        if job.id not in attached:
            closer.over(job.id, Phase.FAILED, "the network was started anew without it")
    lives = {job.id for job in store.jobs() if not job.phase.is_over}
    for stranger in attached - lives:
        await asyncio.to_thread(hosts.detach, stranger)
