"""What a message in flight does where it arrives, and which can do nothing any more.

In the part of Python that numba compiles, as `tests.model.rules`.
"""

from __future__ import annotations

from tests.model.destination import destination_epoch, gather
from tests.model.hosts import answer_worker, ask_worker, has_left, is_answered, is_in, is_own_epoch
from tests.model.layout import (
    BUDGET,
    CONTRIBUTE,
    DEST,
    EVERY_ORDER,
    FLIGHT,
    LATE,
    MOST_IN_FLIGHT,
    REQUEST,
    RESTART,
    RESULT,
    S0,
    S1,
    W0,
)
from tests.model.rules import (
    Parameters,
    State,
    is_blue,
    is_complete,
    is_dead,
    meet_slot,
    pass_answer,
    pass_request,
    sums,
    tag_of,
    take,
    up,
)


def deliver(t: State, p: Parameters, message: int) -> None:
    """A message arrives; it is no longer in flight."""
    to, kind, source = message & 7, message >> 3 & 3, message >> 5 & 7
    chunk, epoch, flags = message >> 8 & 3, message >> 10 & 1, message >> 11 & 3
    value = message >> 13
    if to == DEST:
        gather(t, source, chunk, epoch, value, False)
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


def is_stale(t: State, p: Parameters, message: int) -> bool:
    """Whether a contribution is refused in the end: no slot on the way takes it, nor any later."""
    at, source = message & 7, message >> 5 & 7
    chunk, epoch, flags = message >> 8 & 3, message >> 10 & 1, message >> 11 & 3
    if p[EVERY_ORDER] or t[BUDGET] >> RESTART & 15:
        return False
    if is_own_epoch(epoch, destination_epoch(t, chunk)):
        return False
    while at != DEST:
        if flags == 0 and sums(t, p, at, epoch, source):
            if tag_of(epoch, chunk) >= t[2 * at + (chunk & 1)] & 15:
                return False
            flags = LATE
        at = up(at)
    return True


def has_no_use(t: State, worker: int, chunk: int) -> bool:
    """Whether no answer to a chunk changes anything at a worker."""
    return is_answered(t, worker, chunk) or is_dead(t, worker)


def is_spent(t: State, p: Parameters, message: int) -> bool:
    """Whether a message in flight can change nothing any more, whenever it arrives."""
    to, chunk, epoch = message & 7, message >> 8 & 3, message >> 10 & 1
    if W0 <= to < DEST and (is_dead(t, to - W0) or not is_in(t, to - W0, epoch)):
        return True
    kind = message >> 3 & 3
    if kind == CONTRIBUTE and is_stale(t, p, message):
        return True
    if kind != RESULT:
        return False
    if to >= W0:
        return is_answered(t, to - W0, chunk)
    if t[BUDGET] >> RESTART & 15 or not has_no_use(t, 1, chunk) or not has_no_use(t, 2, chunk):
        return False
    if to == S0 and not (has_no_use(t, 0, chunk) and has_stored(t, p, S0, chunk, epoch)):
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
