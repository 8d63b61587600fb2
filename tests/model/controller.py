"""The controller of the model: a reallocation, or the going on without a worker, step by step.

In the part of Python that numba compiles, as `tests.model.rules`.
"""

from __future__ import annotations

from collections.abc import MutableSequence

from tests.model.destination import choose_cut, exclude
from tests.model.hosts import follow, has_moved, is_answered, is_held, is_new, leave
from tests.model.layout import (
    ARGUMENT_BITS,
    BUDGET,
    CHUNKS,
    CONTROL,
    CUT,
    DEATH,
    DONE,
    DRAINING,
    EXCLUDE,
    FOLLOW,
    FOLLOWING,
    HOLD,
    HOLDING,
    IDLE,
    MOVE,
    MOVING,
    REALLOCATION,
    RELEASE,
    RELEASING,
    REMOVE,
    REMOVING,
    ROLL_BACK,
    ROLL_BACKS,
    START,
    WORKERS,
)
from tests.model.rules import Parameters, State, present


def left(t: State, what: int) -> int:
    """How much of a budget is left."""
    return t[BUDGET] >> what & 15


def spend(t: State, what: int) -> None:
    """Take one from a budget."""
    t[BUDGET] -= 1 << what


def step_of(t: State) -> int:
    """Where the reallocation stands."""
    return t[DONE] >> 5 & 7


def set_step(t: State, step: int) -> None:
    """Let the reallocation go on."""
    t[DONE] = t[DONE] & ~(7 << 5) | step << 5


def has_decided(t: State) -> bool:
    """Whether the destination knows the new epoch."""
    return t[DONE] >> 4 & 1 != 0


def takes_part(t: State, worker: int) -> bool:
    """Whether a worker is in the latest epoch that is decided."""
    return present(t, int(has_decided(t))) >> worker & 1 != 0


def set_held(t: State, worker: int, held: int) -> None:
    """Let a worker hold new chunks back, or not."""
    shift = 10 * worker + 8
    t[WORKERS] = t[WORKERS] & ~(1 << shift) | held << shift


def has_drained(t: State, p: Parameters) -> bool:
    """Whether every worker has the answers to all chunks of the old epoch."""
    for chunk in range(p[CHUNKS]):
        for worker in range(3):
            if not is_new(t, chunk) and takes_part(t, worker) and not is_answered(t, worker, chunk):
                return False
    return True


def have_all_moved(t: State) -> bool:
    """Whether all who take part know the new epoch."""
    count = 0
    for worker in range(3):
        count += int(takes_part(t, worker) and not has_moved(t, worker))
    return count == 0


def starts_when_drained() -> bool:
    """Whether who comes back waits for the chunks of the old epoch."""
    return True


def control(t: State, p: Parameters, step: int, who: int) -> None:
    """The controller takes a step of the reallocation."""
    if step == HOLD:
        if step_of(t) == IDLE:
            spend(t, REALLOCATION)
            set_step(t, HOLDING)
        set_held(t, who, 1)
    elif step == CUT:
        choose_cut(t, p)
        set_step(t, MOVING)
    elif step == MOVE:
        set_held(t, who, 0)
        t[WORKERS] |= 1 << 10 * who + 9
        leave(t, p, who)
        if have_all_moved(t):
            set_step(t, DRAINING)
    elif step == REMOVE:
        t[DONE] |= 1 << 11 + who
        set_step(t, IDLE if t[DONE] >> 11 & 3 == 3 else REMOVING)
    elif step == ROLL_BACK:
        set_step(t, RELEASING)
    elif step == EXCLUDE:
        spend(t, DEATH)
        exclude(t, p, who)
        set_step(t, FOLLOWING)
    elif step == FOLLOW:
        follow(t, p, who)
        if have_all_moved(t):
            set_step(t, DRAINING)
    elif step == START:
        set_held(t, who, 0)
        leave(t, p, who)
    else:
        set_held(t, who, 0)
        leave(t, p, who)
        if not (is_held(t, 0) or is_held(t, 1) or is_held(t, 2)):
            set_step(t, IDLE)


def of_all(t: State, step: int, labels: MutableSequence[int], n: int) -> int:
    """A step at every worker to which it is still to come."""
    for worker in range(3):
        is_due = present(t, 0) >> worker & 1 != 0 and not is_held(t, worker)
        if step == RELEASE:
            is_due = is_held(t, worker)
        elif step != HOLD:
            is_due = takes_part(t, worker) and not has_moved(t, worker)
        if is_due:
            labels[n] = CONTROL << ARGUMENT_BITS | worker << 4 | step
            n += 1
    return n


def unstarted(t: State) -> int:
    """A worker that came back and has not begun, or 3."""
    for worker in range(3):
        is_back = present(t, 0) >> worker & 1 == 0 and has_moved(t, worker)
        if is_back and is_held(t, worker):
            return worker
    return 3


def controls(t: State, p: Parameters, labels: MutableSequence[int], n: int) -> int:
    """Steps of a reallocation that has begun, or of going on without a worker."""
    step = step_of(t)
    head = CONTROL << ARGUMENT_BITS
    who = unstarted(t)
    if who < 3 and ((step == DRAINING and has_drained(t, p)) or not starts_when_drained()):
        labels[n] = head | who << 4 | START
        n += 1
    if step == HOLDING:
        before = n
        n = of_all(t, HOLD, labels, n)
        if n == before:
            labels[n] = head | CUT
            n += 1
        if left(t, ROLL_BACKS):
            labels[n] = head | ROLL_BACK
            n += 1
    elif step == MOVING:
        n = of_all(t, MOVE, labels, n)
    elif step == FOLLOWING:
        n = of_all(t, FOLLOW, labels, n)
    elif step == RELEASING:
        n = of_all(t, RELEASE, labels, n)
    elif who == 3 and ((step == DRAINING and has_drained(t, p)) or step == REMOVING):
        for switch in range(2):
            if t[DONE] >> 11 + switch & 1 == 0:
                labels[n] = head | switch << 4 | REMOVE
                n += 1
    return n
