"""Communicators that go on without ranks that they lose, over the fabric."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.collectives.ranks import RANKS, Array, network, of_rank, together
from traffic import Communicator, MissingRankError
from traffic.collectives.blocks import error_bound


def test_calls_go_on_over_the_ranks_that_are_left(tmp_path: Path) -> None:
    """One leaves, another one stays and is late; whoever is root meanwhile is named."""
    over = threading.Event()

    def do(comm: Communicator) -> list[Any]:
        values = of_rank(comm.rank, (50, 33), np.float32)
        assert list(comm.ranks) == [0, 1, 2, 3]
        comm.barrier()
        if comm.rank == 3:
            return []
        later = comm.allreduce_async(values, "mean")
        lost: list[Future[Any]] = [comm.reduce_async(values, root=3)]
        lost.append(comm.broadcast_async(values, root=3))
        shared = comm.broadcast(values, root=2)
        comm.barrier()
        for future in lost:
            with pytest.raises(MissingRankError, match=r"root 3\): rank 3 is lost, and with it"):
                future.result()
        assert later.ranks == comm.ranks
        assert list(later.ranks) == [0, 1, 2]
        if comm.rank == 1:
            assert over.wait(10)
            return [later.result(), shared]
        try:
            total = comm.allreduce_async(values)
            reduced = comm.reduce(values, "mean", root=2)
            assert total.result() is not None
            assert total.ranks == (0, 2)
        finally:
            over.set()
        if comm.rank == 2:
            assert reduced is not None
            assert np.allclose(reduced, total.result() / 2)
        return [later.result(), shared, total.result()]

    with network(tmp_path, patience=1.0):
        answers = together(tmp_path, do, on_rank_loss="continue")
        check_over((0, 1, 2), [answer[0] for answer in answers[:3]], divisor=3)
        sent = of_rank(2, (50, 33), np.float32)
        assert all(np.array_equal(answer[1], sent) for answer in answers[:3])
        check_over((0, 2), [answers[0][2], answers[2][2]])
        # All have left: the job begins anew, with all of them, and as they say then.
        anew = together(tmp_path, lambda comm: comm.allreduce(np.full(40, 2, dtype=np.int32)))
        assert all((total == 2 * RANKS).all() for total in anew)


def check_over(ranks: tuple[int, ...], got: list[Array], divisor: int = 1) -> None:
    """All have the same bits, which are the sum over these ranks within the bound."""
    exact = sum(of_rank(rank, (50, 33), np.float32).astype(np.float64) for rank in ranks) / divisor
    largest = max(float(np.abs(of_rank(rank, (50, 33), np.float32)).max()) for rank in ranks)
    bound = error_bound("float32", len(ranks), largest)
    for array in got:
        assert array.tobytes() == got[0].tobytes()
        assert np.allclose(array, exact, rtol=1e-6, atol=bound)
