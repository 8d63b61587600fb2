"""The protocol of docs/protocol.md as rules on integers: workers and the destination.

As `tests.model.rules`, in the part of Python that numba compiles.
"""

from __future__ import annotations

from tests.model.layout import (
    BAD_CUT,
    BLUE_OLD,
    BUDGET,
    CHUNKS,
    CONTRIBUTE,
    DEST,
    DIRECT,
    DONE,
    EVERYONE,
    FLIGHT,
    GATHERED,
    MASKS,
    MOST_IN_FLIGHT,
    ONE_EACH,
    REQUEST,
    RESTART,
    RESULT,
    S0,
    S1,
    W0,
    WORKERS,
    WRONG_ANSWER,
    WRONG_PART,
    WRONG_SUM,
)
from tests.model.rules import (
    Parameters,
    State,
    added,
    blame,
    is_blue,
    is_complete,
    meet_slot,
    once_each,
    pass_answer,
    pass_request,
    send,
    tag_of,
    take,
)

# --- workers --------------------------------------------------------------------------------------


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


def worker_epoch(t: State, worker: int, chunk: int) -> int:
    """The epoch that a worker gives a chunk."""
    return 1 if has_moved(t, worker) and chunk >= cut(t) else 0


def is_own_epoch(epoch: int, own: int) -> bool:
    """Whether a message is of the epoch that its receiver gives the chunk."""
    return epoch == own


def may_leave(t: State, worker: int, chunk: int) -> bool:
    """Whether the window lets a chunk leave: two are in flight at most, one a slot."""
    return chunk < 2 or is_answered(t, worker, chunk - 2)


def contribute(t: State, worker: int, chunk: int, flags: int) -> None:
    """A worker sends a chunk, for the first time or again."""
    epoch = worker_epoch(t, worker, chunk)
    to = S0 if worker == 0 else S1
    send(t, to, CONTRIBUTE, worker, chunk, epoch, flags, once_each(1 << worker, chunk))


def leave(t: State, p: Parameters, worker: int) -> None:
    """A worker sends what may leave."""
    if is_held(t, worker):
        return
    for chunk in range(p[CHUNKS]):
        if not has_left(t, worker, chunk) and may_leave(t, worker, chunk):
            t[WORKERS] |= 1 << 10 * worker + chunk
            contribute(t, worker, chunk, 0)


def answer_worker(t: State, p: Parameters, worker: int, chunk: int, epoch: int, value: int) -> None:
    """A worker hears an answer."""
    if not is_own_epoch(epoch, worker_epoch(t, worker, chunk)):
        return
    if not has_left(t, worker, chunk) or is_answered(t, worker, chunk):
        return
    if value != ONE_EACH | chunk << 6:
        blame(t, WRONG_ANSWER)
    t[WORKERS] |= 1 << 10 * worker + 4 + chunk
    leave(t, p, worker)


def ask_worker(t: State, worker: int, chunk: int, epoch: int, flags: int) -> None:
    """A worker hears a request.

    One for a chunk that has not left says that the one before it in its slot is complete.
    """
    if not is_own_epoch(epoch, worker_epoch(t, worker, chunk)):
        return
    if has_left(t, worker, chunk):
        contribute(t, worker, chunk, flags & DIRECT)
    elif chunk >= 2 and has_left(t, worker, chunk - 2) and not is_answered(t, worker, chunk - 2):
        contribute(t, worker, chunk - 2, 0)


# --- the destination ------------------------------------------------------------------------------


def destination_epoch(t: State, chunk: int) -> int:
    """The epoch that the destination gives a chunk."""
    return 1 if t[DONE] >> 4 & 1 and chunk >= cut(t) else 0


def covered(kept: int) -> int:
    """The workers that a set of sources speaks for."""
    workers = 0
    for source in range(5):
        if kept >> source & 1:
            workers |= MASKS[source]
    return workers


def displaced(kept: int, source: int) -> int:
    """Of the sources kept, those that lie within a larger one."""
    inside = 0
    for other in range(5):
        if kept >> other & 1 and MASKS[other] & MASKS[source]:
            inside |= 1 << other
    return inside


def total_of(kept: int, chunk: int) -> int:
    """What the destination adds up."""
    total = 0
    for source in range(5):
        if kept >> source & 1:
            total = added(total, once_each(MASKS[source], chunk))
    return total


def gathered(t: State, chunk: int) -> int:
    """Ten bits: what is kept of a chunk, and what was heard."""
    return t[GATHERED + chunk // 2] >> 10 * (chunk & 1) & 1023


def set_gathered(t: State, chunk: int, bits: int) -> None:
    """Note what is kept of a chunk, and what was heard."""
    shift = 10 * (chunk & 1)
    at = GATHERED + chunk // 2
    t[at] = t[at] & ~(1023 << shift) | bits << shift


def answers_again() -> bool:
    """Whether a complete chunk is answered again to whoever asks."""
    return True


def gather(t: State, source: int, chunk: int, epoch: int, value: int) -> None:
    """The destination hears a contribution."""
    if not is_own_epoch(epoch, destination_epoch(t, chunk)):
        return
    if is_complete(t, chunk):
        if answers_again():
            send(t, S0, RESULT, 0, chunk, epoch, 0, ONE_EACH | chunk << 6)
        return
    bits = gathered(t, chunk)
    kept, heard = bits & 31, bits >> 5
    if heard >> source & 1:
        return
    if value != once_each(MASKS[source], chunk):
        blame(t, WRONG_PART)
    heard |= 1 << source
    if MASKS[source] & ~covered(kept):
        kept = kept & ~displaced(kept, source) | 1 << source
    if covered(kept) != EVERYONE:
        set_gathered(t, chunk, kept | heard << 5)
        return
    if total_of(kept, chunk) != ONE_EACH | chunk << 6:
        blame(t, WRONG_SUM)
    set_gathered(t, chunk, 0)
    t[DONE] |= 1 << chunk
    send(t, S0, RESULT, 0, chunk, epoch, 0, total_of(kept, chunk))


def is_expected(t: State, chunk: int) -> bool:
    """Whether the destination may ask for a chunk."""
    return not is_complete(t, chunk) and (chunk < 2 or is_complete(t, chunk - 2))


def request(t: State, p: Parameters, chunk: int, flags: int) -> None:
    """The destination asks for what it lacks of a chunk, in terms of what S0 sends."""
    epoch = destination_epoch(t, chunk)
    have = covered(gathered(t, chunk) & 31)
    blue = p[BLUE_OLD + epoch]
    lacking = EVERYONE & ~have
    if blue & 1:
        lacking = EVERYONE
    elif blue & 2 and lacking & 0b110:
        lacking |= 0b110
    send(t, S0, REQUEST, 0, chunk, epoch, flags, lacking)


def lowest_new(t: State, p: Parameters) -> int:
    """The number above all chunks that have left any worker."""
    first = 0
    for worker in range(3):
        for chunk in range(p[CHUNKS]):
            if has_left(t, worker, chunk):
                first = max(first, chunk + 1)
    return first


def choose_cut(t: State, p: Parameters) -> None:
    """The controller chooses the chunk to move at, and the destination moves."""
    first = lowest_new(t, p)
    for chunk in range(first, p[CHUNKS]):
        if is_complete(t, chunk) or gathered(t, chunk):
            blame(t, BAD_CUT)
    t[DONE] = t[DONE] & ~(7 << 8) | 1 << 4 | first << 8


def deliver(t: State, p: Parameters, message: int) -> None:
    """A message arrives; it is no longer in flight."""
    to, kind, source = message & 7, message >> 3 & 3, message >> 5 & 7
    chunk, epoch, flags = message >> 8 & 3, message >> 10 & 1, message >> 11 & 3
    value = message >> 13
    if to == DEST:
        gather(t, source, chunk, epoch, value)
    elif to >= W0:
        if kind == RESULT:
            answer_worker(t, p, to - W0, chunk, epoch, value)
        else:
            ask_worker(t, to - W0, chunk, epoch, flags)
    elif kind == CONTRIBUTE:
        meet_slot(t, p, to, source, chunk, epoch, flags, value)
    elif kind == RESULT:
        pass_answer(t, p, to, chunk, epoch, value)
    else:
        pass_request(t, p, to, chunk, epoch, flags, value)


def has_stored(t: State, p: Parameters, switch: int, chunk: int, epoch: int) -> bool:
    """Whether an answer that passes a switch changes nothing there, now or later."""
    stored = t[2 * switch + (chunk & 1)] >> 15 & 15
    return not is_blue(t, p, switch, epoch) or stored >= tag_of(epoch, chunk)


def is_spent(t: State, p: Parameters, message: int) -> bool:
    """Whether an answer in flight can change nothing any more, whenever it arrives."""
    to, chunk, epoch = message & 7, message >> 8 & 3, message >> 10 & 1
    if message >> 3 & 3 != RESULT:
        return False
    if to >= W0:
        return is_answered(t, to - W0, chunk)
    if t[BUDGET] >> RESTART & 15 or not is_answered(t, 1, chunk) or not is_answered(t, 2, chunk):
        return False
    if to == S0 and not (is_answered(t, 0, chunk) and has_stored(t, p, S0, chunk, epoch)):
        return False
    return has_stored(t, p, S1, chunk, epoch)


def tidy(t: State, p: Parameters) -> None:
    """Take out of the network what can change nothing any more; all such states are one."""
    i = FLIGHT
    while i < FLIGHT + MOST_IN_FLIGHT and t[i] != 0:
        if is_spent(t, p, t[i]):
            take(t, i)
        else:
            i += 1


def may_be_ignored(t: State, message: int) -> bool:
    """Whether the receiver may leave a message alone, by its clock or what it has done before.

    The destination answers a chunk again only so often; a worker repeats a chunk once because of a
    request for a later one.
    """
    to, chunk = message & 7, message >> 8 & 3
    if to == DEST:
        return is_complete(t, chunk)
    return to >= W0 and message >> 3 & 3 == REQUEST and not has_left(t, to - W0, chunk)
