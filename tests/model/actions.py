"""What can happen next in a state of the model: deliveries, faults, timeouts, the controller.

In the part of Python that numba compiles, as `tests.model.rules`.
"""

from __future__ import annotations

from collections.abc import MutableSequence

from tests.model.controller import (
    control,
    controls,
    has_decided,
    has_drained,
    left,
    of_all,
    spend,
    step_of,
    takes_part,
    unstarted,
)
from tests.model.destination import begin_anew, gather, is_expected, request
from tests.model.hosts import contribute, has_left, is_answered, is_held, leave, worker_epoch
from tests.model.layout import (
    ALWAYS_DIRECT,
    ARGUMENT_BITS,
    AWAY,
    BUDGET,
    CHUNKS,
    CONTROL,
    DEATH,
    DELIVER,
    DEST,
    DIE,
    DIRECT,
    DONE,
    DOUBLE,
    DRAINING,
    DUPLICATE,
    EARLY,
    EVERY_ORDER,
    EXCLUDE,
    FAULT,
    FLIGHT,
    FOLLOWING,
    GATHERED,
    HOLD,
    HOLDING,
    IDLE,
    IGNORE,
    KILL_BUSY,
    LOSE,
    LOSS,
    MEMBERS,
    MOST_IN_FLIGHT,
    MOVING,
    REALLOCATION,
    REBIRTH,
    REMOVING,
    REQUEST,
    REQUEST_TIMEOUT,
    RESTART,
    RESTART_DESTINATION,
    RESTART_SWITCH,
    RESULT,
    ROLL_BACKS,
    W0,
    WIDTH,
    WORKER_TIMEOUT,
    WORKERS,
)
from tests.model.network import deliver, may_be_ignored, tidy
from tests.model.rules import Parameters, State, is_complete, is_dead, present, put, restart, take

MOST_SUCCESSORS = 5 * MOST_IN_FLIGHT + 56
"""More than a state can have."""


def is_over(t: State, p: Parameters) -> bool:
    """Whether everyone has every sum."""
    for chunk in range(p[CHUNKS]):
        if not is_complete(t, chunk):
            return False
        for worker in range(3):
            if takes_part(t, worker) and not is_answered(t, worker, chunk):
                return False
    return True


def kill_busy(t: State, message: int) -> None:
    """The destination is killed with a message that it has just heard, and begins anew."""
    i = FLIGHT
    while t[i] != message:
        i += 1
    take(t, i)
    source, chunk, epoch = message >> 5 & 7, message >> 8 & 3, message >> 10 & 1
    gather(t, source, chunk, epoch, message >> 13, True)
    begin_anew(t)


def act(t: State, p: Parameters, label: int) -> None:
    """Let an action happen, which must be possible."""
    kind, argument = label >> ARGUMENT_BITS, label & (1 << ARGUMENT_BITS) - 1
    if kind <= LOSE:
        i = FLIGHT
        while t[i] != argument:
            i += 1
        take(t, i)
        if kind == DELIVER:
            deliver(t, p, argument)
        elif kind == LOSE:
            spend(t, LOSS)
    elif kind == DUPLICATE:
        spend(t, DOUBLE)
        put(t, argument)
    elif kind == RESTART_SWITCH:
        spend(t, RESTART)
        restart(t, argument)
    elif kind == DIE:
        t[MEMBERS] |= 1 << 6 + argument
        control(t, p, EXCLUDE, argument)
    elif kind == RESTART_DESTINATION:
        spend(t, REBIRTH)
        begin_anew(t)
    elif kind == KILL_BUSY:
        spend(t, REBIRTH)
        kill_busy(t, argument)
    elif kind == CONTROL:
        control(t, p, argument & 15, argument >> 4)
    else:
        if t[FLIGHT] != 0 and left(t, EARLY):
            spend(t, EARLY)
        chunk, flags = argument & 15, argument >> 8
        if kind == WORKER_TIMEOUT:
            contribute(t, argument >> 4 & 15, chunk, flags)
        else:
            request(t, p, chunk, flags)
    tidy(t, p)


def plain_helps(t: State, p: Parameters, u: State) -> bool:
    """Whether some timeout that is not DIRECT leads on where nothing is in flight; `u` is scratch.

    The machines mark a repetition only after several in vain. By then all of them had timeouts. So
    every chunk is repeated and asked for, and what follows arrives, until that changes nothing.
    """
    for i in range(WIDTH):
        u[i] = t[i]
    changed = True
    while changed:
        changed = False
        for who in range(4):
            for chunk in range(p[CHUNKS]):
                before = u[0] ^ u[1] << 32, u[2] ^ u[3] << 32, u[GATHERED], u[GATHERED + 1]
                if who < 3 and repeats(u, who, chunk):
                    contribute(u, who, chunk, 0)
                elif who == 3 and is_expected(u, chunk):
                    request(u, p, chunk, 0)
                while u[FLIGHT] != 0:
                    message = u[FLIGHT]
                    take(u, FLIGHT)
                    deliver(u, p, message)
                    tidy(u, p)
                if u[WORKERS] != t[WORKERS] or u[DONE] != t[DONE] or u[FAULT] != 0:
                    return True
                after = u[0] ^ u[1] << 32, u[2] ^ u[3] << 32, u[GATHERED], u[GATHERED + 1]
                changed |= before != after
    return False


def repeats(t: State, worker: int, chunk: int) -> bool:
    """Whether a chunk is in flight, for a worker that lives."""
    is_in_flight = has_left(t, worker, chunk) and not is_answered(t, worker, chunk)
    return is_in_flight and not is_dead(t, worker)


def _timeouts(t: State, p: Parameters, labels: MutableSequence[int], n: int, u: State) -> int:
    """Timeouts. While something is in flight they come too early, and have a budget; also while
    the controller is about to take a step."""
    is_quiet = t[FLIGHT] == 0
    if not is_quiet and left(t, EARLY) == 0:
        return n
    begin = n
    for chunk in range(p[CHUNKS]):
        if is_expected(t, chunk):
            labels[n] = REQUEST_TIMEOUT << ARGUMENT_BITS | chunk
            n += 1
    for worker in range(3):
        for chunk in range(p[CHUNKS]):
            if repeats(t, worker, chunk):
                labels[n] = WORKER_TIMEOUT << ARGUMENT_BITS | worker << 4 | chunk
                n += 1
    if n > begin and (p[ALWAYS_DIRECT] or (is_quiet and not plain_helps(t, p, u))):
        for i in range(n - begin):
            labels[n + i] = labels[begin + i] | DIRECT << 8
        n += n - begin
    return n


def goes_first(t: State, p: Parameters, message: int) -> bool:
    """Whether it is enough to look at what may happen to one message, before all else.

    That is so for an answer that a worker waits for, if whatever else can happen gives the same
    with it before as with it after. It only adds to what the worker has, and lets one chunk leave:
    not if the worker may be told to hold, or that chunk may be asked for before it leaves. And a
    timeout too early could find the worker still waiting.
    """
    to, chunk = message & 7, message >> 8 & 3
    if p[EVERY_ORDER] or to < W0 or message >> 3 & 3 != RESULT or left(t, EARLY):
        return False
    if to == DEST or not has_left(t, to - W0, chunk):
        return False
    if message >> 10 & 1 != worker_epoch(t, to - W0, chunk):
        return False
    if chunk + 2 >= p[CHUNKS]:
        return True
    if left(t, REALLOCATION) or step_of(t) == HOLDING or is_held(t, to - W0):
        return False
    if left(t, DEATH) or step_of(t) == FOLLOWING:
        return False
    for i in range(FLIGHT, FLIGHT + MOST_IN_FLIGHT):
        if t[i] >> 3 & 3 == REQUEST and t[i] >> 8 & 3 == chunk + 2:
            return False
    return True


def control_goes_first(t: State, p: Parameters) -> bool:
    """Whether it is enough to look at one step of the controller, before all else.

    To choose the chunk, once all workers are held, changes nothing that any message is about. To
    move a worker gives the same before an answer as after it, but not before a request for a chunk
    that it keeps back. To remove the old entries is the same before all that is not of the old
    epoch.
    """
    step = step_of(t)
    if p[EVERY_ORDER] or left(t, EARLY):
        return False
    if step == HOLDING:
        for worker in range(3):
            if present(t, 0) >> worker & 1 and not is_held(t, worker):
                return False
        return left(t, ROLL_BACKS) == 0
    if unstarted(t) < 3:
        return False
    if step == DRAINING and not has_drained(t, p):
        return False
    if step not in (MOVING, DRAINING, REMOVING):
        return False
    for i in range(FLIGHT, FLIGHT + MOST_IN_FLIGHT):
        if step == MOVING and t[i] >> 3 & 3 == REQUEST:
            return False
        if step != MOVING and t[i] != 0 and t[i] >> 10 & 1 == 0:
            return False
    return True


def _of_message(t: State, message: int, labels: MutableSequence[int], n: int) -> int:
    """What may happen to a message in flight."""
    labels[n] = DELIVER << ARGUMENT_BITS | message
    n += 1
    if may_be_ignored(t, message):
        labels[n] = IGNORE << ARGUMENT_BITS | message
        n += 1
    if left(t, LOSS):
        labels[n] = LOSE << ARGUMENT_BITS | message
        n += 1
    if left(t, DOUBLE):
        labels[n] = DUPLICATE << ARGUMENT_BITS | message
        n += 1
    return n


def _of_hosts(t: State, labels: MutableSequence[int], n: int) -> int:
    """Workers that go, and restarts of the destination.

    That the others go on without a worker is decided when it dies: until then it is as good as one
    that messages are slow to reach.
    """
    if left(t, DEATH) and step_of(t) == IDLE and not has_decided(t):
        for worker in range(3):
            labels[n] = DIE << ARGUMENT_BITS | worker
            labels[n + 1] = CONTROL << ARGUMENT_BITS | worker << 4 | EXCLUDE
            n += 2
    if left(t, REBIRTH):
        if t[GATHERED] != 0 or t[GATHERED + 1] != 0:
            labels[n] = RESTART_DESTINATION << ARGUMENT_BITS
            n += 1
        for i in range(FLIGHT, FLIGHT + MOST_IN_FLIGHT):
            if t[i] != 0 and t[i] & 7 == DEST and (i == FLIGHT or t[i] != t[i - 1]):
                labels[n] = KILL_BUSY << ARGUMENT_BITS | t[i]
                n += 1
    return n


def actions(t: State, p: Parameters, labels: MutableSequence[int], u: State) -> int:
    """Write all actions that are possible into `labels`; returns their number. `u` is scratch.

    The first one is what happens without further faults, timeouts only when nothing else does.
    """
    n = 0
    if control_goes_first(t, p):
        return min(1, controls(t, p, labels, n))
    last = 0
    for i in range(FLIGHT, FLIGHT + MOST_IN_FLIGHT):
        message = t[i]
        if message == 0:
            break
        if message != last:
            last = message
            if goes_first(t, p, message):
                return _of_message(t, message, labels, 0)
            n = _of_message(t, message, labels, n)
    before = n
    n = controls(t, p, labels, n)
    if n == before or left(t, EARLY):
        n = _timeouts(t, p, labels, n, u)
    if left(t, RESTART):
        for switch in range(2):
            if t[2 * switch] != 0 or t[2 * switch + 1] != 0:
                labels[n] = RESTART_SWITCH << ARGUMENT_BITS | switch
                n += 1
    if left(t, REALLOCATION) and step_of(t) == IDLE and not has_decided(t):
        n = of_all(t, HOLD, labels, n)
    return _of_hosts(t, labels, n)


def begin(t: State, p: Parameters, budget: int) -> None:
    """The first state: all workers have sent their first window."""
    for i in range(WIDTH):
        t[i] = 0
    t[BUDGET] = budget
    t[MEMBERS] = p[AWAY]
    for worker in range(3):
        if takes_part(t, worker):
            leave(t, p, worker)
