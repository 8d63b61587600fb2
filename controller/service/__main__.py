"""A controller's process: `python -m controller.service --state DIR [--listen HOST:PORT]`.

All controllers of a testbed run this. The one that holds the lock in the folder serves; the others
wait, their sessions with the switches open under lower election ids. When the one that serves is
gone, the kernel gives its lock to the next, which bids above all election ids so far, brings every
switch to what the database says, and serves.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import grpc

from controller import targets
from controller.errors import BluetreeError
from controller.live import state as live_state
from controller.live.client import NetworkClient
from controller.live.requests import NetworkDescription
from controller.p4rt import Fleet, SwitchError, fleet_of
from controller.running import RunOptions
from controller.service.engine import Engine
from controller.service.folder import Folder, Lease, Process, waiting
from controller.service.rpc import handler
from controller.service.server import Servicer
from controller.service.store import Store
from controller.service.switchboard import Switchboard
from p4src import artefacts

_LOG = logging.getLogger("controller.service")
TERM = 1000
"""Election ids of one term: a controller that serves has a multiple, standbys those below."""
STANDBYS = 900
"""So many have ids of their own; what is left of a term below them is for people with a shell."""
WAIT_S = 0.05
LOOK_S = 0.25
"""Between two looks at whether the network is still there."""
GRACE_S = 1.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the process was told."""

    folder: Folder
    listen: str | None


async def run(options: Options) -> None:
    """Wait for the lock if need be, then serve until told to end."""
    folder = options.folder
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    with ExitStack() as resources:
        hosts = resources.enter_context(NetworkClient(folder.path))
        testbed = await asyncio.to_thread(hosts.describe)
        store = Store(folder.database)
        resources.callback(store.close)
        lease = Lease(folder.lock)
        resources.callback(lease.close)
        low = max(1, store.last_number("term")) * TERM
        me = Process(os.getpid(), low - 1 - store.next_number("standby") % STANDBYS, time.time())
        async with fleet_of(
            testbed.addresses,
            artefacts.load(artefacts.folder_of(testbed.network.build)),
            election_id=me.election_id,
        ) as fleet:
            if not lease.take(me) and not await _wait(folder, me, lease, fleet, ending):
                return
            me = replace(me, election_id=store.next_number("term") * TERM + TERM)
            lease.take(me)
            await _serve(options, testbed, store, fleet, hosts, me, ending)


async def _wait(
    folder: Folder, me: Process, lease: Lease, fleet: Fleet, ending: asyncio.Event
) -> bool:
    """Stand by until the lock is free; False when told to end before."""
    with waiting(folder, me):
        await _stand_by(fleet)
        _LOG.info("stands by with election id %d", me.election_id)
        while not lease.take(me):
            if ending.is_set() or not live_state.is_locked(folder.path):
                return False
            await asyncio.sleep(WAIT_S)
    _LOG.warning("takes over")
    return True


async def _stand_by(fleet: Fleet) -> None:
    """Open a session with every switch behind the primary's; one that is lost is opened later."""

    async def one(name: str) -> None:
        try:
            await fleet.open([name], standby=True)
        except SwitchError as error:
            _LOG.info("%s", error)

    await fleet.each(one)


async def _serve(
    options: Options,
    testbed: NetworkDescription,
    store: Store,
    fleet: Fleet,
    hosts: NetworkClient,
    me: Process,
    ending: asyncio.Event,
) -> None:
    def deposed(error: SwitchError) -> None:
        _LOG.error("%s: this controller ends", error)
        ending.set()

    began = time.monotonic()
    board = Switchboard(fleet, me.election_id + TERM, deposed)
    engine = Engine(testbed.network, store, board, hosts)
    await engine.recover()
    written = await board.adopt(engine.programs(), lambda name: fleet.promote(name, me.election_id))
    for name, updates in written.items():
        _LOG.info("%s: %d updates to what the database says", name, len(updates))
    servicer = Servicer(
        engine,
        {where.name: where for where in testbed.addresses},
        testbed.target,
        targets.window(testbed.target, RunOptions(), testbed.network.topology.overlay.tree),
        me,
        options.folder,
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handler(servicer),))
    server.add_insecure_port(f"unix:{options.folder.controller_socket.absolute()}")
    if options.listen is not None:
        server.add_insecure_port(options.listen)
    await server.start()
    _LOG.info(
        "serves with election id %d, %.2f s after it had the lock, having used %.2f s of CPU",
        me.election_id,
        time.monotonic() - began,
        time.process_time(),
    )
    # What there is now stays: the collector need not look at it again, for tenths of a second.
    gc.collect()
    gc.freeze()
    tasks = [
        asyncio.create_task(_background(engine)),
        asyncio.create_task(engine.watchdog.watch()),
        asyncio.create_task(_network_lives(options.folder)),
        asyncio.create_task(ending.wait()),
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await server.stop(GRACE_S)
        await board.close()


async def _network_lives(folder: Folder) -> None:
    """Return when the network has ended, however it did.

    Without jobs nobody asks it anything. A controller that outlived it would write to whatever
    switch of another network has one of the addresses next.
    """
    while live_state.is_locked(folder.path):
        await asyncio.sleep(LOOK_S)
    _LOG.error("the network of %s has ended: this controller ends", folder.path)


async def _background(engine: Engine) -> None:
    await engine.resume()
    await engine.watch()


def main(arguments: Sequence[str]) -> int:
    """Run a controller; see the module's text."""
    parser = argparse.ArgumentParser(prog="controller.service", description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--listen", metavar="HOST:PORT")
    options = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(process)d %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    try:
        asyncio.run(run(Options(Folder(options.state), options.listen)))
    except (BluetreeError, SwitchError) as error:
        _LOG.error("%s", error)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
