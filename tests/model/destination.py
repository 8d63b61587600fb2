"""The protocol of docs/protocol.md as rules on integers: the destination.

As `tests.model.rules`, in the part of Python that numba compiles.
"""

from __future__ import annotations

from tests.model.hosts import has_left, is_answered, is_new, is_own_epoch
from tests.model.layout import (
    BAD_CUT,
    BLUE_OLD,
    CHUNKS,
    DONE,
    EVERYONE,
    GATHERED,
    MASKS,
    MEMBERS,
    REQUEST,
    RESULT,
    S0,
    SPLIT,
    WORKERS,
    WRONG_PART,
    WRONG_SUM,
)
from tests.model.rules import (
    Parameters,
    State,
    added,
    blame,
    is_complete,
    once_each,
    present,
    send,
    speaks_for,
    sum_of,
)


def destination_epoch(t: State, chunk: int) -> int:
    """The epoch that the destination gives a chunk."""
    return 1 if t[DONE] >> 4 & 1 and is_new(t, chunk) else 0


def covered(t: State, kept: int, epoch: int) -> int:
    """The workers that a set of sources speaks for."""
    workers = 0
    for source in range(5):
        if kept >> source & 1:
            workers |= speaks_for(t, source, epoch)
    return workers


def displaced(kept: int, source: int) -> int:
    """Of the sources kept, those that lie within a larger one."""
    inside = 0
    for other in range(5):
        if kept >> other & 1 and MASKS[other] & MASKS[source]:
            inside |= 1 << other
    return inside


def total_of(t: State, kept: int, chunk: int, epoch: int) -> int:
    """What the destination adds up."""
    total = once_each(EVERYONE & ~present(t, 1), chunk) if t[MEMBERS] >> 13 + chunk & 1 else 0
    for source in range(5):
        if kept >> source & 1:
            total = added(total, once_each(speaks_for(t, source, epoch), chunk))
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


def records_first() -> bool:
    """Whether a sum is on record before its answer leaves."""
    return True


def gather(t: State, source: int, chunk: int, epoch: int, value: int, is_killed: bool) -> None:
    """The destination hears a contribution; perhaps it is killed where it would answer."""
    if not is_own_epoch(epoch, destination_epoch(t, chunk)):
        return
    if is_complete(t, chunk):
        if answers_again() and not is_killed:
            send(t, S0, RESULT, 0, chunk, epoch, 0, sum_of(t, chunk, epoch))
        return
    bits = gathered(t, chunk)
    kept, heard = bits & 31, bits >> 5
    if heard >> source & 1 or speaks_for(t, source, epoch) == 0:
        return
    if value != once_each(speaks_for(t, source, epoch), chunk):
        blame(t, WRONG_PART)
    heard |= 1 << source
    if speaks_for(t, source, epoch) & ~covered(t, kept, epoch):
        kept = kept & ~displaced(kept, source) | 1 << source
    if covered(t, kept, epoch) != present(t, epoch):
        set_gathered(t, chunk, kept | heard << 5)
        return
    total = total_of(t, kept, chunk, epoch)
    if total != sum_of(t, chunk, epoch):
        blame(t, WRONG_SUM)
    set_gathered(t, chunk, 0)
    if records_first() or not is_killed:
        t[DONE] |= 1 << chunk
    if not (records_first() and is_killed):
        send(t, S0, RESULT, 0, chunk, epoch, 0, total)


def begin_anew(t: State) -> None:
    """The destination is killed, and another begins with what is on record, and the epochs."""
    t[GATHERED] = t[GATHERED + 1] = 0


def drop_incomplete(t: State) -> None:
    """What was gathered for chunks that are not complete counts no more."""
    t[GATHERED] = t[GATHERED + 1] = 0


def kept_beyond(t: State, p: Parameters, first: int) -> int:
    """The chunks from one on that stay what they are: the complete ones."""
    kept = 0
    for chunk in range(first, p[CHUNKS]):
        kept |= int(is_complete(t, chunk)) << chunk
    return kept


def exclude(t: State, p: Parameters, worker: int) -> None:
    """The destination decides which chunks are summed without a worker."""
    first = 0
    while first < p[CHUNKS] and is_complete(t, first):
        first += 1
    t[MEMBERS] |= 1 << 3 + worker | kept_beyond(t, p, first) << 9
    t[DONE] = t[DONE] & ~(7 << 8) | 1 << 4 | first << 8
    drop_incomplete(t)
    for chunk in range(p[CHUNKS]):
        if covered(t, gathered(t, chunk) & 31, 0) >> worker & 1:
            t[MEMBERS] |= 1 << 13 + chunk
    for other in range(3):
        for chunk in range(first, p[CHUNKS]):
            if is_answered(t, other, chunk) and is_new(t, chunk):
                blame(t, SPLIT)


def is_expected(t: State, chunk: int) -> bool:
    """Whether the destination may ask for a chunk."""
    return not is_complete(t, chunk) and (chunk < 2 or is_complete(t, chunk - 2))


def request(t: State, p: Parameters, chunk: int, flags: int) -> None:
    """The destination asks for what it lacks of a chunk, in terms of what S0 sends."""
    epoch = destination_epoch(t, chunk)
    have = covered(t, gathered(t, chunk) & 31, epoch)
    blue = p[BLUE_OLD + epoch]
    lacking = present(t, epoch) & ~have
    if blue & 1:
        lacking = present(t, epoch)
    elif blue & 2 and lacking & 0b110:
        lacking |= 0b110 & present(t, epoch)
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
    for worker in range(3):
        if present(t, 0) >> worker & 1 == 0:
            # It comes back: has no part in what is below, and does not begin yet.
            below = (1 << first) - 1
            t[WORKERS] |= (below | below << 4 | 1 << 8 | 1 << 9) << 10 * worker
