"""Ranks served in the background: `with serve(network, plans, address): ...`."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from controller.compile import JobPlan
from controller.endpoints import members
from controller.fabric_testbed import FabricTestbed
from controller.mininet_testbed import MininetTestbed
from controller.ranks.fabric_ranks import FabricRanks
from controller.ranks.mininet_ranks import MininetRanks
from controller.ranks.rendezvous import Rendezvous
from controller.ranks.server import RankServer

PATIENCE_S = 60.0
"""How long a call waits for the ranks that have not made it."""
_SECOND_NS = 1_000_000_000


@contextmanager
def serve(
    testbed: FabricTestbed | MininetTestbed,
    plans: Sequence[JobPlan],
    address: Path,
    patience: float = PATIENCE_S,
) -> Iterator[tuple[RankServer, FabricRanks | MininetRanks]]:
    """Serve the jobs of `plans` on a network that is up, for `Communicator(address, rank, job)`.

    Over Mininet a rank must be in the network namespace of its worker's host. What ends the server
    early is raised at the end of the block.
    """
    network: FabricRanks | MininetRanks
    if isinstance(testbed, FabricTestbed):
        network = FabricRanks(testbed, plans)
    else:
        network = MininetRanks(testbed, plans)
    meetings = {}
    for plan in plans:
        ranks = len(members(testbed.network, plan))
        meetings[plan.job] = Rendezvous(plan.job, ranks, int(patience * _SECOND_NS))
    with _in_background(RankServer(address, meetings, network)) as server:
        yield server, network


@contextmanager
def _in_background(server: RankServer) -> Iterator[RankServer]:
    errors: list[BaseException] = []
    listening = threading.Event()

    def run() -> None:
        try:
            with server:
                listening.set()
                server.serve()
        except BaseException as error:
            errors.append(error)
        finally:
            listening.set()

    thread = threading.Thread(target=run, name="ranks")
    thread.start()
    listening.wait()
    try:
        if errors:
            return
        yield server
    finally:
        server.stop()
        thread.join()
        if errors:
            raise errors[0]
