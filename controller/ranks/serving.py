"""Ranks served in the background: `with serving(server) as address: ...`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.compile import JobPlan
from controller.endpoints import members
from controller.fabric_testbed import FabricTestbed
from controller.ranks.fabric_ranks import FabricRanks
from controller.ranks.rendezvous import Rendezvous
from controller.ranks.server import RankServer

PATIENCE_S = 60.0
"""How long a call waits for the ranks that have not made it."""
_SECOND_NS = 1_000_000_000


@contextmanager
def serving(server: RankServer) -> Iterator[None]:
    """Serve in a thread of its own; what ends it early is raised at the end of the block."""
    errors: list[BaseException] = []

    def serve() -> None:
        try:
            with server:
                listening.set()
                server.serve()
        except BaseException as error:
            errors.append(error)
        finally:
            listening.set()

    listening = threading.Event()
    thread = threading.Thread(target=serve, name="ranks")
    thread.start()
    listening.wait()
    try:
        if not errors:
            yield
    finally:
        server.stop()
        thread.join()
        if errors:
            raise errors[0]


@contextmanager
def fabric_ranks(
    testbed: FabricTestbed, plans: list[JobPlan], address: Path, patience: float = PATIENCE_S
) -> Iterator[FabricRanks]:
    """Serve the jobs of `plans` on a fabric, for every `Communicator(address, rank, job)`."""
    network = FabricRanks(testbed, plans)
    met = {
        plan.job: Rendezvous(
            plan.job, len(members(testbed.network, plan)), int(patience * _SECOND_NS)
        )
        for plan in plans
    }
    with serving(RankServer(address, met, network)):
        yield network
