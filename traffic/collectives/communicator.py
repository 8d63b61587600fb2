"""Sums, broadcasts and barriers over all ranks of a job, through the switches.

    from traffic import Communicator

    with Communicator.from_env() as comm:              # a process of `bluetree launch`
        total = comm.allreduce(gradients, op="mean")   # a NumPy array of any shape
        later = comm.allreduce_async(more)             # a concurrent.futures.Future
        comm.barrier()

Every rank makes the same calls in the same order. Calls are carried out one after the other, in
that order, whether their results are waited for or not. Arrays are copied when a call is made: they
may be changed at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from traffic.collectives.calls import Array, Call, Kind, check
from traffic.collectives.errors import CollectiveError, UnsuitableArrayError
from traffic.collectives.link import ADDRESS, JOB, ON_LOSS, RANK, OnLoss
from traffic.collectives.session import CallFuture, Session

OPS = ("sum", "mean")


class Communicator:
    """One rank of a job. Threads may share it: their calls are numbered as they come."""

    def __init__(
        self, address: Path, rank: int, job: int = 1, *, on_rank_loss: str = OnLoss.FAIL
    ) -> None:
        """Join job `job` as `rank`; raises CollectiveError if no network takes it.

        `on_rank_loss`, which all ranks must say alike: "fail", and the job ends with a rank that is
        lost, naming it, or "continue" over the ranks that are left; see `docs/collectives.md`.
        """
        if on_rank_loss not in tuple(OnLoss):
            raise CollectiveError(f"on_rank_loss {on_rank_loss!r}: choose {' or '.join(OnLoss)}")
        self.rank = rank
        self.job = job
        self._session = Session(address, rank, job, OnLoss(on_rank_loss))

    @classmethod
    def from_env(
        cls,
        job: int | None = None,
        environment: Mapping[str, str] = os.environ,
        *,
        on_rank_loss: str | None = None,
    ) -> Self:
        """Join as the rank that `bluetree launch` made of this process.

        `job` is one of the launch's `--jobs`, 1 if neither it nor BLUETREE_JOB says otherwise;
        `on_rank_loss` is what the launch's option of that name says, unless it is given here.
        """
        try:
            rank, address = environment[RANK], environment[ADDRESS]
            number = int(environment.get(JOB, "1")) if job is None else job
            loss = environment.get(ON_LOSS, OnLoss.FAIL) if on_rank_loss is None else on_rank_loss
            return cls(Path(address), int(rank), number, on_rank_loss=loss)
        except KeyError as missing:
            raise CollectiveError(
                f"the environment lacks {missing.args[0]}: start this with `bluetree launch`"
            ) from None
        except ValueError:
            raise CollectiveError(
                f"{RANK} or {JOB} is no number: start this with `bluetree launch`"
            ) from None

    @property
    def size(self) -> int:
        """How many ranks the job began with."""
        return self._session.membership.ranks

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks whose values are in the latest result; before the first, all.

        The future of a call has those of its own result (`ranks`).
        """
        return self._session.ranks

    def allreduce(self, array: ArrayLike, op: str = "sum", dtype: DTypeLike | None = None) -> Array:
        """The element-wise sum or mean over all ranks, of the array's shape and type, everywhere.

        `dtype` converts the array first. float32 and float64 are off by at most
        `traffic.collectives.blocks.error_bound`; int32 is exact, its mean float64.

        Raises UnsuitableArrayError for another type, NaN or infinity, SumOverflowError where a sum
        does not fit, MissingRankError and MismatchError where other ranks do not make this call.
        """
        return self.allreduce_async(array, op, dtype).result()

    def allreduce_async(
        self, array: ArrayLike, op: str = "sum", dtype: DTypeLike | None = None
    ) -> CallFuture[Array]:
        """The same at once: a future of the result; it is raised there what went wrong."""
        values = _summable(array, op, dtype)
        return self._session.submit(
            Call(Kind.ALLREDUCE, str(values.dtype), values.shape, op), values
        )

    def reduce(
        self,
        array: ArrayLike,
        op: str = "sum",
        root: int = 0,
        dtype: DTypeLike | None = None,
    ) -> Array | None:
        """The sum or mean at rank `root`; the others get None. Errors as of `allreduce`."""
        return self.reduce_async(array, op, root, dtype).result()

    def reduce_async(
        self,
        array: ArrayLike,
        op: str = "sum",
        root: int = 0,
        dtype: DTypeLike | None = None,
    ) -> CallFuture[Array | None]:
        """The same at once, as a future."""
        values = _summable(array, op, dtype)
        self._check_root(root)
        call = Call(Kind.REDUCE, str(values.dtype), values.shape, op, root)
        return self._session.submit(call, values)

    def broadcast(self, array: ArrayLike, root: int = 0) -> Array:
        """Rank `root`'s array, bit for bit, everywhere; all give one of its shape and type."""
        return self.broadcast_async(array, root).result()

    def broadcast_async(self, array: ArrayLike, root: int = 0) -> CallFuture[Array]:
        """The same at once, as a future."""
        values = np.array(array)
        if values.dtype.hasobject:
            raise UnsuitableArrayError("the array holds Python objects: broadcast takes numbers")
        self._check_root(root)
        call = Call(Kind.BROADCAST, values.dtype.str, values.shape, root=root)
        return self._session.submit(call, values)

    def barrier(self) -> None:
        """Return when every rank has called it."""
        self.barrier_async().result()

    def barrier_async(self) -> CallFuture[None]:
        """The same at once, as a future."""
        return self._session.submit(Call(Kind.BARRIER, "", ()), np.empty(0, dtype=np.int32))

    def close(self) -> None:
        """Leave. Calls that are still open fail, here and at the other ranks."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.size:
            raise CollectiveError(f"root {root}: the ranks are 0 to {self.size - 1}")


def _summable(array: ArrayLike, op: str, dtype: DTypeLike | None) -> Array:
    """A copy of an array that has a sum, as `dtype` if that is given."""
    if op not in OPS:
        raise CollectiveError(f"op {op!r}: choose {' or '.join(OPS)}")
    values = np.array(array, dtype=dtype)
    check(values)
    return values
