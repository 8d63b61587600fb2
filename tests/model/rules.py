"""The protocol of docs/protocol.md as rules on integers: messages in flight, and switches.

All of it is in the part of Python that numba compiles, and changes the row of words that it is
given: `tests.model.compiled` makes machine code of this very text. `tests.model.layout` says what
the words mean. Decisions that a test may want to get wrong are functions of their own.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from tests.model.layout import (
    BLUE_OLD,
    CONTRIBUTE,
    DEST,
    DIRECT,
    DONE,
    EVERYONE,
    FAULT,
    FLIGHT,
    FROM_S0,
    FROM_S1,
    LATE,
    MASKS,
    MEMBERS,
    MIXED,
    MOST_IN_FLIGHT,
    REQUEST,
    RESULT,
    S0,
    S1,
    TAKEN_OVER,
    TOO_MANY,
    W0,
    WRONG_ANSWER,
    WRONG_PART,
)

State = MutableSequence[int]
Parameters = Sequence[int]


# --- values ---------------------------------------------------------------------------------------


def once_each(mask: int, chunk: int) -> int:
    """The value that holds each worker of a set once."""
    value = chunk << 6
    for worker in range(3):
        value |= (mask >> worker & 1) << 2 * worker
    return value


def added(value: int, other: int) -> int:
    """The value of a sum; 0 is the empty one. Sums of two chunks are `MIXED`."""
    if value & MIXED == 0:
        return other
    if value >> 6 != other >> 6:
        return MIXED | value
    total = value & ~MIXED
    for worker in range(3):
        count = (value >> 2 * worker & 3) + (other >> 2 * worker & 3)
        total |= min(count, 3) << 2 * worker
    return total


# --- who takes part -------------------------------------------------------------------------------


def present(t: State, epoch: int) -> int:
    """The workers whose values are in the sums of an epoch."""
    return EVERYONE & ~(t[MEMBERS] >> 3 * epoch)


def is_dead(t: State, worker: int) -> bool:
    """Whether a worker hears and says nothing any more."""
    return t[MEMBERS] >> 6 + worker & 1 != 0


def speaks_for(t: State, source: int, epoch: int) -> int:
    """The workers that a source stands for in an epoch."""
    return MASKS[source] & present(t, epoch)


def sum_of(t: State, chunk: int, epoch: int) -> int:
    """The one value that the sum of a chunk may have in an epoch."""
    return once_each(present(t, epoch), chunk)


# --- what is in flight ----------------------------------------------------------------------------


def blame(t: State, fault: int) -> None:
    """Note the first thing that is wrong."""
    if t[FAULT] == 0:
        t[FAULT] = fault


def put(t: State, message: int) -> None:
    """Put a message among those in flight, which are sorted."""
    i = FLIGHT + MOST_IN_FLIGHT - 1
    if t[i] != 0:
        blame(t, TOO_MANY)
        return
    while i > FLIGHT and (t[i - 1] == 0 or t[i - 1] > message):
        t[i] = t[i - 1]
        i -= 1
    t[i] = message


def take(t: State, at: int) -> None:
    """Take away the message at a place."""
    for i in range(at, FLIGHT + MOST_IN_FLIGHT - 1):
        t[i] = t[i + 1]
    t[FLIGHT + MOST_IN_FLIGHT - 1] = 0


def send(
    t: State, to: int, kind: int, source: int, chunk: int, epoch: int, flags: int, value: int
) -> None:
    """Send a message, and see to it that what it carries is right."""
    if kind == CONTRIBUTE and value != once_each(speaks_for(t, source, epoch), chunk):
        blame(t, WRONG_PART)
    if kind == RESULT and value != sum_of(t, chunk, epoch):
        blame(t, WRONG_ANSWER)
    put(t, to | kind << 3 | source << 5 | chunk << 8 | epoch << 10 | flags << 11 | value << 13)


def is_complete(t: State, chunk: int) -> bool:
    """Whether the destination has the sum of a chunk."""
    return t[DONE] >> chunk & 1 != 0


# --- switches -------------------------------------------------------------------------------------


def is_blue(t: State, p: Parameters, switch: int, epoch: int) -> bool:
    """Whether a switch has entries that make it blue in an epoch."""
    if epoch == 0 and t[DONE] >> 11 + switch & 1:
        return False
    return p[BLUE_OLD + epoch] >> switch & 1 != 0


def sums(t: State, p: Parameters, switch: int, epoch: int, source: int) -> bool:
    """Whether a switch sums what comes from a source in an epoch."""
    if not is_blue(t, p, switch, epoch) or speaks_for(t, source, epoch) == 0:
        return False
    if switch == S1:
        return source == 1 or source == 2
    child_is_blue = p[BLUE_OLD + epoch] >> S1 & 1 != 0
    return source == 0 or (source == FROM_S1) == child_is_blue


def up(switch: int) -> int:
    """The parent of a switch."""
    return DEST if switch == S0 else S0


def tag_of(epoch: int, chunk: int) -> int:
    """What a slot compares: grows with the epoch, and in an epoch with the chunk."""
    return 1 + (epoch << 2) + chunk


def joins(sources: int, mask: int) -> bool:
    """Whether a contribution is new in its slot."""
    return sources & mask == 0


def is_full(sources: int, everyone: int) -> bool:
    """Whether all sources of a switch are in a slot."""
    return sources == everyone


def may_take_over(t: State, stored: int, chunk: int) -> bool:
    """Whether a slot may leave what it holds: that is complete, or summed anew without a worker."""
    before = stored - 1 & 3
    return is_complete(t, before) or (before == chunk and t[MEMBERS] >> 3 & EVERYONE != 0)


def is_answer_of(answer_tag: int, tag: int) -> bool:
    """Whether the stored answer is the one to a contribution."""
    return answer_tag == tag


def after_restart(word: int) -> int:
    """What a restart leaves of a slot: nothing."""
    return 0


def restart(t: State, switch: int) -> None:
    """A switch starts anew."""
    for slot in range(2 * switch, 2 * switch + 2):
        t[slot] = after_restart(t[slot])


def meet_slot(
    t: State,
    p: Parameters,
    switch: int,
    source: int,
    chunk: int,
    epoch: int,
    flags: int,
    value: int,
) -> None:
    """A contribution at a switch: forwarded, or summed in its slot."""
    if flags != 0 or not sums(t, p, switch, epoch, source):
        send(t, up(switch), CONTRIBUTE, source, chunk, epoch, flags, value)
        return
    at = 2 * switch + (chunk & 1)
    word = t[at]
    stored, sources, total = word & 15, word >> 4 & 7, word >> 7 & 255
    answer_tag, answer = word >> 15 & 15, word >> 19 & 255
    tag = tag_of(epoch, chunk)
    if is_answer_of(answer_tag, tag):
        back = S1 if switch == S0 and source != 0 else W0 + source
        send(t, back, RESULT, 0, chunk, epoch, 0, answer)
        return
    if tag < stored:
        send(t, up(switch), CONTRIBUTE, source, chunk, epoch, flags | LATE, value)
        return
    if tag > stored:
        if stored != 0 and not may_take_over(t, stored, chunk):
            blame(t, TAKEN_OVER)
        stored, sources, total = tag, 0, 0
    is_new = joins(sources, MASKS[source])
    if is_new:
        sources |= speaks_for(t, source, epoch)
        total = added(total, value)
    t[at] = stored | sources << 4 | total << 7 | word >> 15 << 15
    own = FROM_S0 if switch == S0 else FROM_S1
    if is_full(sources, speaks_for(t, own, epoch)):
        send(t, up(switch), CONTRIBUTE, own, chunk, epoch, 0, total)


def fan_out(
    t: State, switch: int, kind: int, chunk: int, epoch: int, flags: int, value: int, wanted: int
) -> None:
    """Copy a message from above to every branch that has one of the wanted workers."""
    if switch == S0:
        if wanted & 0b001:
            send(t, W0, kind, 0, chunk, epoch, flags, value)
        if wanted & 0b110:
            send(t, S1, kind, 0, chunk, epoch, flags, value)
    else:
        for worker in range(1, 3):
            if wanted >> worker & 1:
                send(t, W0 + worker, kind, 0, chunk, epoch, flags, value)


def pass_answer(t: State, p: Parameters, switch: int, chunk: int, epoch: int, value: int) -> None:
    """An answer on its way down: a blue switch stores the newest."""
    if is_blue(t, p, switch, epoch):
        at = 2 * switch + (chunk & 1)
        tag = tag_of(epoch, chunk)
        if tag > t[at] >> 15 & 15:
            t[at] = t[at] & 0x7FFF | tag << 15 | value << 19
    fan_out(t, switch, RESULT, chunk, epoch, 0, value, EVERYONE)


def pass_request(
    t: State, p: Parameters, switch: int, chunk: int, epoch: int, flags: int, wanted: int
) -> None:
    """A request on its way down: turned round, narrowed, dropped, or passed on."""
    if flags & DIRECT:
        fan_out(t, switch, REQUEST, chunk, epoch, flags, wanted, EVERYONE)
        return
    own = FROM_S0 if switch == S0 else FROM_S1
    if is_blue(t, p, switch, epoch):
        word = t[2 * switch + (chunk & 1)]
        tag, stored = tag_of(epoch, chunk), word & 15
        if tag < stored:
            return
        sources = word >> 4 & 7 if tag == stored else 0
        if sources == speaks_for(t, own, epoch):
            send(t, up(switch), CONTRIBUTE, own, chunk, epoch, 0, word >> 7 & 255)
            return
        wanted = speaks_for(t, own, epoch) & ~sources
    # Without entries of the epoch there are none that prune either.
    has_branches = epoch == 1 or t[DONE] >> 11 + switch & 1 == 0
    # Nor is there one for a worker that the epoch is without.
    own = 0b001 if switch == S0 else 0b110
    branches = wanted | own & ~present(t, epoch) if has_branches else EVERYONE
    fan_out(t, switch, REQUEST, chunk, epoch, flags, wanted, branches)
