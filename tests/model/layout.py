"""How a state of the model is laid out: integers in a row, for interpreter and compiler alike.

The network is the smallest with two levels and both kinds of source: worker 0 at the root switch
S0, workers 1 and 2 at its child S1, the destination above S0. A set of workers is three bits, bit
i for worker i. A *value* says which contributions a sum is made of: how often each worker's is in
it (two bits each, 3 stands for three and more), and of which chunk (two bits). So a value tells a
right sum from every wrong one; contributions of two chunks in one sum give `MIXED`.

A worker may die, or be taken for dead, and the others go on under the new epoch; or one that the
old epoch is without comes back with the new one. So the new epoch is one thing in each path: a
reallocation, with a worker back or not, or the going on without one.

A *tag* is the epoch (0 old, 1 new) and chunk of a slot as one number that grows with both, 0 for
none. Whatever is always the same on every path of the protocol is left out: job, weights (a source
has one), exponents, and the mark RESENT, which only counters read.
"""

from __future__ import annotations

S0, S1, W0, W1, W2, DEST = range(6)
"""Nodes. Only one neighbour sends what a node receives from a given source, so a message in flight
is described by whom it goes to."""

CONTRIBUTE, RESULT, REQUEST = 1, 2, 3

MASKS = (0b001, 0b010, 0b100, 0b110, 0b111)
"""The workers that a source speaks for. Sources are W0, W1, W2, S1 and S0, in this order."""
FROM_S1, FROM_S0 = 3, 4
EVERYONE = 0b111

# A value: two bits a worker, then the chunk.
ONE_EACH = 0b010101
MIXED = 0b111111

# Words of a state.
SLOTS = 0
"""Four words: slot 0 and 1 of S0, then of S1."""
WORKERS = 4
"""Ten bits a worker: four of chunks that have left, four of answered ones, held, moved."""
GATHERED = 5
"""Two words, ten bits a chunk: the sources kept, and those heard."""
DONE = 7
"""Bits 0..3 complete chunks, 4 whether the destination has moved, 5..7 the step of the
reallocation, 8..10 the chunk it begins at, 11..12 the switches that have lost the old entries."""
BUDGET = 8
"""Four bits each: messages that may yet be lost, doubled; restarts; early timeouts; reallocations;
those that may be rolled back; workers that may go; restarts of the destination."""
FAULT = 9
"""0, or what is wrong: see `FAULTS`."""
MEMBERS = 10
"""Sets of workers: three bits each that the old and the new epoch are without, and that are dead.
Then, in bits 9..12, chunks beyond the first of the new epoch that are of the old one all the
same; in 13..16, chunks for which something is gathered with who is left out in it."""
FLIGHT = 11
"""First of the messages in flight, sorted; 0 is none."""
MOST_IN_FLIGHT = 20
WIDTH = FLIGHT + MOST_IN_FLIGHT

LOSS, DOUBLE, RESTART, EARLY, REALLOCATION, ROLL_BACKS, DEATH, REBIRTH = range(0, 32, 4)

# Steps of a reallocation; those who are left follow, and then drain, as after one.
IDLE, HOLDING, MOVING, DRAINING, REMOVING, RELEASING, FOLLOWING = range(7)

# What a model is told beside its state: `parameters`.
CHUNKS, BLUE_OLD, BLUE_NEW, EVERY_ORDER, ALWAYS_DIRECT, AWAY = range(6)

TOO_MANY, WRONG_PART, WRONG_SUM, WRONG_ANSWER, TAKEN_OVER, BAD_CUT, SPLIT = range(1, 8)
FAULTS = {
    TOO_MANY: "more messages are in flight than the model has room for",
    WRONG_PART: "a source does not speak for exactly its workers, once each",
    WRONG_SUM: "the destination's sum is not of each worker once",
    WRONG_ANSWER: "an answer is not the sum of its chunk",
    TAKEN_OVER: "a slot was taken over before its chunk was complete",
    BAD_CUT: "a chunk has two epochs",
    SPLIT: "a worker has an answer to a chunk that is summed over others",
}

# Kinds of action; the label of a transition is one of them and its argument.
DELIVER, IGNORE, LOSE, DUPLICATE, RESTART_SWITCH = 0, 1, 2, 3, 4
WORKER_TIMEOUT, REQUEST_TIMEOUT, CONTROL = 5, 6, 7
DIE, RESTART_DESTINATION, KILL_BUSY = 8, 9, 10
ARGUMENT_BITS = 24

# Arguments of CONTROL: the step, and for some whom it concerns, four bits above.
HOLD, CUT, MOVE, REMOVE, ROLL_BACK, RELEASE, EXCLUDE, FOLLOW, START = range(9)


DIRECT, LATE = 1, 2
"""Flags of a message. In flight it is one number: to (3 bits), kind (2), source (3), chunk (2),
epoch (1), flags (2), and its value, or for a request the set of workers that it asks for (8)."""


def parameters(
    chunks: int,
    blue_old: int,
    blue_new: int,
    *,
    every_order: bool = False,
    always_direct: bool = False,
    away: int = 0,
) -> list[int]:
    """Chunks (at most 4), and which switches are blue (bit 0 S0, bit 1 S1) in either epoch.

    With `every_order`, those orders are explored too that make no difference, see
    `actions.goes_first` and `actions.control_goes_first`.
    With `always_direct`, any timeout may be marked so, and not only where nothing else helps.
    `away`: the set of workers that the old epoch is without, who come back with the new one.
    """
    return [chunks, blue_old, blue_new, int(every_order), int(always_direct), away]


def budget(
    *,
    losses: int = 0,
    doubles: int = 0,
    restarts: int = 0,
    early: int = 0,
    reallocations: int = 0,
    roll_backs: int = 0,
    deaths: int = 0,
    rebirths: int = 0,
) -> int:
    """What may go wrong, and how often, at most 15 times each.

    `deaths`: workers that die, or are taken for dead; `rebirths`: restarts of the destination from
    its journal. One worker goes at most, and none after a reallocation has begun.
    """
    return (
        losses << LOSS
        | doubles << DOUBLE
        | restarts << RESTART
        | early << EARLY
        | reallocations << REALLOCATION
        | roll_backs << ROLL_BACKS
        | deaths << DEATH
        | rebirths << REBIRTH
    )
