"""The protocol of docs/protocol.md as rules on integers: workers.

As `tests.model.rules`, in the part of Python that numba compiles.
"""

from __future__ import annotations

from tests.model.layout import (
    CHUNKS,
    CONTRIBUTE,
    DIRECT,
    DONE,
    MEMBERS,
    S0,
    S1,
    SPLIT,
    WORKERS,
    WRONG_ANSWER,
)
from tests.model.rules import Parameters, State, blame, once_each, present, send, sum_of


def cut(t: State) -> int:
    """The chunk from which the new epoch holds."""
    return t[DONE] >> 8 & 7


def is_answered(t: State, worker: int, chunk: int) -> bool:
    """Whether a worker has the answer to a chunk."""
    return t[WORKERS] >> 10 * worker + 4 + chunk & 1 != 0


def has_left(t: State, worker: int, chunk: int) -> bool:
    """Whether a worker has sent a chunk."""
    return t[WORKERS] >> 10 * worker + chunk & 1 != 0


def is_held(t: State, worker: int) -> bool:
    """Whether a worker keeps new chunks back."""
    return t[WORKERS] >> 10 * worker + 8 & 1 != 0


def has_moved(t: State, worker: int) -> bool:
    """Whether a worker knows the new epoch."""
    return t[WORKERS] >> 10 * worker + 9 & 1 != 0


def is_kept(t: State, chunk: int) -> bool:
    """Whether a chunk is of the old epoch though it lies beyond the first of the new one."""
    return t[MEMBERS] >> 9 + chunk & 1 != 0


def is_new(t: State, chunk: int) -> bool:
    """Whether a chunk is of the new epoch, for whoever knows that."""
    return chunk >= cut(t) and not is_kept(t, chunk)


def worker_epoch(t: State, worker: int, chunk: int) -> int:
    """The epoch that a worker gives a chunk."""
    return 1 if has_moved(t, worker) and is_new(t, chunk) else 0


def is_own_epoch(epoch: int, own: int) -> bool:
    """Whether a message is of the epoch that its receiver gives the chunk."""
    return epoch == own


def is_in(t: State, worker: int, epoch: int) -> bool:
    """Whether a worker has a part in an epoch; who came back has no chunks of those before."""
    return present(t, epoch) >> worker & 1 != 0


def may_leave(t: State, worker: int, chunk: int) -> bool:
    """Whether the window lets a chunk leave: two are in flight at most, one a slot."""
    return chunk < 2 or is_answered(t, worker, chunk - 2)


def contribute(t: State, worker: int, chunk: int, flags: int) -> None:
    """A worker sends a chunk, for the first time or again."""
    epoch = worker_epoch(t, worker, chunk)
    to = S0 if worker == 0 else S1
    send(t, to, CONTRIBUTE, worker, chunk, epoch, flags, once_each(1 << worker, chunk))


def keeps_back(t: State, worker: int) -> bool:
    """Whether a worker lets no chunk leave for now."""
    return is_held(t, worker)


def leave(t: State, p: Parameters, worker: int) -> None:
    """A worker sends what may leave."""
    if keeps_back(t, worker):
        return
    for chunk in range(p[CHUNKS]):
        if not has_left(t, worker, chunk) and may_leave(t, worker, chunk):
            t[WORKERS] |= 1 << 10 * worker + chunk
            contribute(t, worker, chunk, 0)


def answer_worker(t: State, p: Parameters, worker: int, chunk: int, epoch: int, value: int) -> None:
    """A worker hears an answer."""
    if not is_own_epoch(epoch, worker_epoch(t, worker, chunk)) or not is_in(t, worker, epoch):
        return
    if not has_left(t, worker, chunk) or is_answered(t, worker, chunk):
        return
    if value != sum_of(t, chunk, epoch):
        blame(t, WRONG_ANSWER)
    if epoch != (1 if t[DONE] >> 4 & 1 and is_new(t, chunk) else 0):
        blame(t, SPLIT)
    t[WORKERS] |= 1 << 10 * worker + 4 + chunk
    leave(t, p, worker)


def follow(t: State, p: Parameters, worker: int) -> None:
    """A worker goes on without another; what is in flight of the new epoch is sent again."""
    t[WORKERS] |= 1 << 10 * worker + 9
    for chunk in range(p[CHUNKS]):
        if has_left(t, worker, chunk) and not is_answered(t, worker, chunk) and is_new(t, chunk):
            contribute(t, worker, chunk, 0)
    leave(t, p, worker)


def ask_worker(t: State, worker: int, chunk: int, epoch: int, flags: int) -> None:
    """A worker hears a request.

    One for a chunk that has not left says that the one before it in its slot is complete.
    """
    if not is_own_epoch(epoch, worker_epoch(t, worker, chunk)) or not is_in(t, worker, epoch):
        return
    if has_left(t, worker, chunk):
        contribute(t, worker, chunk, flags & DIRECT)
    elif chunk >= 2 and has_left(t, worker, chunk - 2) and not is_answered(t, worker, chunk - 2):
        contribute(t, worker, chunk - 2, 0)
