"""Communicators over the fabric: threads as ranks, the real switch program in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p4src.constants import LANES
from tests.unit.collectives.ranks import LOSSY, RANKS, Array, network, of_rank, together
from traffic import (
    CollectiveError,
    Communicator,
    MismatchError,
    MissingRankError,
    SumOverflowError,
    UnsuitableArrayError,
)
from traffic.collectives.blocks import FLOATS, error_bound


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a network without faults, one job."""
    folder = tmp_path_factory.mktemp("clean")
    with network(folder):
        yield folder


def check_sums(got: list[Array], shape: tuple[int, ...], dtype: Any, divisor: int = 1) -> None:
    """All ranks have the same, within the documented bound of the sum."""
    values = [of_rank(rank, shape, dtype).ravel() for rank in range(RANKS)]
    exact = np.sum(np.array(values, dtype=np.longdouble), axis=0) / divisor
    for array in got:
        assert array.shape == shape
        assert array.tobytes() == got[0].tobytes()
    if dtype is np.int32:
        assert np.array_equal(got[0].ravel(), exact.astype(got[0].dtype))
        return
    assert got[0].dtype == dtype
    in_block = LANES // FLOATS[np.dtype(dtype)]
    for start in range(0, exact.size, in_block):
        block = slice(start, start + in_block)
        largest = max(float(np.abs(array[block]).max()) for array in values)
        bound = error_bound(dtype, RANKS, largest) / divisor
        rounding = np.abs(exact[block]) * np.finfo(dtype).eps
        assert np.all(np.abs(got[0].ravel()[block] - exact[block]) <= bound + rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("shape", [(), (7,), (40, 33), (0,), (3, 0, 5), (33, 1, 3)], ids=str)
def test_allreduce_and_reduce_of_any_shape(clean: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    def do(comm: Communicator) -> tuple[Array, Array, Array | None]:
        array = of_rank(comm.rank, shape, dtype)
        return comm.allreduce(array), comm.allreduce(array, "mean"), comm.reduce(array, root=2)

    answers = together(clean, do)
    check_sums([total for total, _, _ in answers], shape, dtype)
    check_sums([mean for _, mean, _ in answers], shape, dtype, RANKS)
    at_root = [reduced for _, _, reduced in answers]
    assert [reduced is None for reduced in at_root] == [True, True, False, True]
    assert at_root[2].tobytes() == answers[0][0].tobytes()


def test_loss_duplication_and_reordering_change_nothing(tmp_path: Path) -> None:
    def do(comm: Communicator) -> list[Any]:
        array = of_rank(comm.rank, (60, 32), np.float32)
        later: list[Future[Any]] = [comm.allreduce_async(array), comm.reduce_async(array, root=1)]
        comm.barrier()
        return [future.result() for future in later] + [comm.broadcast(array, root=3)]

    with network(tmp_path, LOSSY) as served:
        answers = together(tmp_path, do)
        assert served.resent > 0
    check_sums([answer[0] for answer in answers], (60, 32), np.float32)
    assert answers[1][1].tobytes() == answers[0][0].tobytes()
    sent = of_rank(3, (60, 32), np.float32)
    assert all(answer[2].tobytes() == sent.tobytes() for answer in answers)


@pytest.mark.parametrize(
    "array",
    [
        np.array([np.nan, np.inf, -0.0, 1e-320]),
        np.arange(1000, dtype=np.uint8).reshape(8, 125),
        np.array([[True], [False]]),
        np.array(2**62, dtype=np.int64),
        np.zeros((0, 4), dtype=np.complex64),
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_broadcast_brings_any_number_bit_for_bit(clean: Path, array: Array) -> None:
    def do(comm: Communicator) -> Array:
        return comm.broadcast(array if comm.rank == 1 else np.zeros_like(array), root=1)

    for got in together(clean, do):
        assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_many_calls_may_be_open_and_end_in_order(clean: Path) -> None:
    ended: list[list[int]] = [[] for _ in range(RANKS)]

    def note(order: list[int], number: int, _: Future[Array]) -> None:
        order.append(number)

    def do(comm: Communicator) -> list[Array]:
        futures = []
        array = np.zeros(100, dtype=np.int32)
        for number in range(20):
            array[:] = comm.rank * number
            future = comm.allreduce_async(array)
            future.add_done_callback(partial(note, ended[comm.rank], number))
            futures.append(future)
        return [future.result() for future in reversed(futures)][::-1]

    for answers in together(clean, do):
        for number, got in enumerate(answers):
            assert got.tolist() == [number * sum(range(RANKS))] * 100
    assert ended == [list(range(20))] * RANKS


def test_large_arrays_both_ways_at_once_do_not_block(clean: Path) -> None:
    """More under way in each direction than a socket holds."""

    def do(comm: Communicator) -> list[Array]:
        array = np.full(2000, comm.rank, dtype=np.int32)
        futures = [comm.broadcast_async(array, root=1) for _ in range(40)]
        futures.append(comm.broadcast_async(array, root=3))
        return [future.result() for future in (futures[0], futures[-1])]

    for first, last in together(clean, do):
        assert (first == 1).all()
        assert (last == 3).all()


def test_lists_are_converted_as_told(clean: Path) -> None:
    def do(comm: Communicator) -> Array:
        return comm.allreduce([1, 2, comm.rank], dtype="int32")

    assert [got.tolist() for got in together(clean, do)] == [[4, 8, 6]] * RANKS


def test_a_barrier_waits_for_all(clean: Path) -> None:
    waiting = threading.Semaphore(0)

    def do(comm: Communicator) -> bool:
        if comm.rank == 2:
            for _ in range(RANKS - 1):
                assert waiting.acquire(timeout=10)
            return all_waited.is_set()
        future = comm.barrier_async()
        waiting.release()
        future.result()
        all_waited.set()
        return True

    def last(comm: Communicator) -> bool:
        early = do(comm)
        if comm.rank == 2:
            comm.barrier()
        return early

    all_waited = threading.Event()
    assert together(clean, last) == [True, True, False, True]


def test_jobs_share_a_network_and_nothing_else(tmp_path: Path) -> None:
    """Four jobs of all ranks at once, each with sums of its own; one of them fails alone."""

    def of_job(job: int) -> Callable[[Communicator], Any]:
        def do(comm: Communicator) -> Any:
            if job == 4 and comm.rank == 0:
                return comm.barrier()
            for factor in range(5):
                got = comm.allreduce(np.full(500, comm.rank * job * factor, dtype=np.float32))
                assert got.tolist() == [job * factor * sum(range(RANKS))] * 500
            return "done"

        return do

    with network(tmp_path, LOSSY, jobs=4), ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda job: together(tmp_path, of_job(job), job), range(1, 5)))
    assert answers[:3] == [["done"] * RANKS] * 3
    assert all(isinstance(answer, MismatchError) for answer in answers[3])


def test_overflow_is_raised_at_every_rank_and_the_job_goes_on(clean: Path) -> None:
    def do(comm: Communicator) -> list[Any]:
        wide = np.zeros(100, dtype=np.int32)
        wide[40] = 2**30
        floats = np.full(3, 3e38, dtype=np.float32)
        futures = [comm.allreduce_async(wide), comm.allreduce_async(floats)]
        mean = comm.allreduce(floats, "mean")
        return [future.exception() for future in futures] + [mean]

    for integers, floats, mean in together(clean, do):
        assert isinstance(integers, SumOverflowError)
        assert "left int32 among elements 32 to 63" in str(integers)
        assert isinstance(floats, SumOverflowError)
        assert "the sum at [0] does not fit float32" in str(floats)
        assert np.abs(mean / 3e38 - 1).max() < 1e-6


def test_a_partial_sum_beyond_int32_is_raised_at_all_ranks_or_at_none(clean: Path) -> None:
    """MAX, 1, -1 and 0 by turns: the sum fits, the way to it need not, and that is never silent."""
    most = np.iinfo(np.int32).max
    turns = [np.roll([most, 1, -1, 0], turn) for turn in range(RANKS)]
    turns += [np.roll([most, -1, 1, 0], turn) for turn in range(RANKS)]
    arrays = np.array([np.repeat(values, LANES) for values in turns], dtype=np.int32)

    def do(comm: Communicator) -> list[Any]:
        of_rank = arrays[:, comm.rank * LANES : (comm.rank + 1) * LANES]
        futures = [comm.allreduce_async(of_turn) for of_turn in of_rank]
        return [future.exception() or future.result().tolist() for future in futures]

    for by_rank in zip(*together(clean, do), strict=True):
        if isinstance(by_rank[0], SumOverflowError):
            assert all(isinstance(one, SumOverflowError) for one in by_rank)
        else:
            assert by_rank == ([int(most)] * LANES,) * RANKS


def test_what_has_no_sum_is_refused_where_it_is_given(clean: Path) -> None:
    def do(comm: Communicator) -> None:
        array = np.zeros((3, 4))
        for value, text in ((np.nan, "NaN"), (-np.inf, "infinite")):
            array[1, 2] = value
            with pytest.raises(UnsuitableArrayError, match=rf"value\[1, 2\] is {text}") as caught:
                comm.allreduce_async(array)
            assert caught.value.index == (1, 2)
        with pytest.raises(UnsuitableArrayError, match="int64: sums are of float32"):
            comm.allreduce(np.zeros(3, dtype=np.int64))
        with pytest.raises(CollectiveError, match="op 'max': choose sum or mean"):
            comm.allreduce(np.zeros(3), "max")
        with pytest.raises(CollectiveError, match="root 4: the ranks are 0 to 3"):
            comm.reduce(np.zeros(3), root=4)
        comm.barrier()

    assert together(clean, do) == [None] * RANKS


def test_a_missing_rank_is_named_within_the_bound(tmp_path: Path) -> None:
    given_up = threading.Semaphore(0)

    def do(comm: Communicator) -> None:
        if comm.rank == 1:
            # Stays, and does not call until the others have given up.
            for _ in range(RANKS - 1):
                assert given_up.acquire(timeout=10)
        try:
            comm.allreduce(np.zeros(3))
        finally:
            given_up.release()

    with network(tmp_path, patience=1.0):
        answers = together(tmp_path, do)
    for rank in (0, 2, 3):
        assert isinstance(answers[rank], MissingRankError)
        assert answers[rank].ranks == (1,)
        assert "rank 1 has not made it within 1 s" in str(answers[rank])
    assert isinstance(answers[1], MissingRankError), "late for a job that has failed"


def test_a_rank_that_leaves_is_named_at_once(tmp_path: Path) -> None:
    def do(comm: Communicator) -> None:
        if comm.rank != 3:
            comm.barrier()

    with network(tmp_path):
        began = time.monotonic()
        answers = together(tmp_path, do)
        assert time.monotonic() - began < 10
        assert answers[3] is None
        for answer in answers[:3]:
            assert isinstance(answer, MissingRankError)
            assert answer.ranks == (3,)
        # All have left: the job begins anew.
        assert together(tmp_path, lambda comm: comm.barrier()) == [None] * RANKS


def test_a_network_that_goes_ends_all_calls(tmp_path: Path) -> None:
    with network(tmp_path):
        comm = Communicator(tmp_path / "ranks", 0)
        future = comm.allreduce_async(np.zeros(3))
    with pytest.raises(CollectiveError, match="the network is gone"):
        future.result(10)
    with pytest.raises(CollectiveError, match="the network is gone"):
        comm.barrier()
    comm.close()
    with pytest.raises(CollectiveError, match="no network answers"):
        Communicator(tmp_path / "ranks", 0)


def test_joining_in_vain_says_why(clean: Path) -> None:
    with pytest.raises(CollectiveError, match="there is no job 9: this network has 1"):
        Communicator(clean / "ranks", 0, job=9)
    with pytest.raises(CollectiveError, match="has ranks 0 to 3, not 4"):
        Communicator(clean / "ranks", 4)
    with pytest.raises(CollectiveError, match="on_rank_loss 'ignore': choose fail or continue"):
        Communicator(clean / "ranks", 0, on_rank_loss="ignore")
    with pytest.raises(CollectiveError, match="lacks RANK: start this with `bluetree launch`"):
        Communicator.from_env(environment={})
    with pytest.raises(CollectiveError, match="is no number"):
        Communicator.from_env(environment={"RANK": "x", "BLUETREE_ADDRESS": str(clean / "ranks")})
