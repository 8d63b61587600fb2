"""The loops over every switch of a large tree, compiled by Numba.

Only arrays.py imports this module, and only for large trees: a small one needs no compiler. What
is compiled is kept on disk, so that a machine compiles once.

Switches are numbered so that children come before their parent and the root last; `label` holds
the numbers of the caller. All arrays are int64 with one entry a switch, unless said otherwise;
the caller has made sure that no sum of them overflows.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["contract", "fewest_blue", "message_counts", "most_of_each", "orderly"]

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_NONE = -1


def _compiled(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Numba's decorator with the types that it does not declare."""
    try:
        compiled: object = numba.njit(cache=True)(function)
    except RuntimeError:  # no folder for the cache can be written: compile in every process
        compiled = numba.njit(function)
    return cast(Callable[_Parameters, _Result], compiled)


@_compiled
def orderly(parent: Integers) -> tuple[Integers, int]:
    """The switches, children before parents, the root 0 last; and how many the root reaches.

    parent[0] is -1 and every other entry a switch. Where fewer than all are reached, the others
    hang on a cycle and the order is of no use.
    """
    n = parent.size
    child = np.full(n, _NONE, np.int64)
    sibling = np.full(n, _NONE, np.int64)
    for v in range(n - 1, 0, -1):
        sibling[v] = child[parent[v]]
        child[parent[v]] = v
    # Pre-order from the back: a subtree stays together, so its numbers share the cache.
    order = np.empty(n, np.int64)
    reached = 0
    v = 0
    while v != _NONE:
        reached += 1
        order[n - reached] = v
        if child[v] != _NONE:
            v = child[v]
            continue
        while v != _NONE and sibling[v] == _NONE:
            v = parent[v]
        if v != _NONE:
            v = sibling[v]
    return order, reached


@_compiled
def message_counts(parent: Integers, load: Integers, blue: Flags) -> Integers:
    """Messages on every link: a red switch sends M(v), a blue one min(1, M(v))."""
    sent = load.copy()
    for v in range(load.size):
        if blue[v] and sent[v] > 1:
            sent[v] = 1
        if parent[v] != _NONE:
            sent[parent[v]] += sent[v]
    return sent


@_compiled
def most_of_each(kind: Integers, kinds: int, values: Integers) -> Integers:
    """For each of the kinds 0 .. kinds - 1 the largest of its values, which are >= 0."""
    most = np.zeros(kinds, np.int64)
    for v in range(kind.size):
        if values[v] > most[kind[v]]:
            most[kind[v]] = values[v]
    return most


@_compiled
def _meld(
    a: int, b: int, worth: Integers, label: Integers, child: Integers, sibling: Integers
) -> int:
    """Pairing heaps a and b as one: the larger worth on top, then the lower label."""
    if a == _NONE:
        return b
    if b == _NONE:
        return a
    if worth[b] > worth[a] or (worth[b] == worth[a] and label[b] < label[a]):
        a, b = b, a
    sibling[b] = child[a]
    child[a] = b
    return a


@_compiled
def _without_top(
    a: int, worth: Integers, label: Integers, child: Integers, sibling: Integers
) -> int:
    """Pairing heap a without its top: the children in pairs, then from the last pair back."""
    head = child[a]
    pairs = _NONE
    while head != _NONE:
        first, second = head, sibling[head]
        if second == _NONE:
            head, pair = _NONE, first
        else:
            head = sibling[second]
            pair = _meld(first, second, worth, label, child, sibling)
        sibling[pair] = pairs
        pairs = pair
    top = _NONE
    while pairs != _NONE:
        following = sibling[pairs]
        top = _meld(top, pairs, worth, label, child, sibling)
        pairs = following
    return top


@_compiled
def fewest_blue(
    parent: Integers,
    load: Integers,
    available: Flags,
    label: Integers,
    kind: Integers,
    caps: Integers,
    budget: int,
    blue: Integers,
) -> int:
    """How many blue switches keep every link v within caps[kind[v]]; -1 if more than `budget`.

    The pass of flips.py; the first entries of `blue`, of length min(budget, n), receive the
    switches. Flips wait in pairing heaps, whose union costs O(1), and each one taken is a blue
    switch: O(n + budget log n) together.
    """
    n = load.size
    sent = load.copy()
    heap = np.full(n, _NONE, np.int64)  # the flips inherited by an unavailable switch
    worth = np.empty(n, np.int64)
    child = np.empty(n, np.int64)
    sibling = np.empty(n, np.int64)
    count = 0
    for v in range(n):
        messages, cap = sent[v], caps[kind[v]]
        flips = _NONE
        if available[v]:
            if messages > cap:
                if cap < 1 or count == budget:
                    return -1
                blue[count] = v
                count += 1
                messages = 1
            if messages > 1:
                worth[v] = messages - 1
                child[v] = _NONE
                flips = v
        else:
            flips = heap[v]
            while messages > cap:
                if flips == _NONE or count == budget:
                    return -1
                blue[count] = flips
                count += 1
                messages -= worth[flips]
                flips = _without_top(flips, worth, label, child, sibling)
        above = parent[v]
        if above != _NONE:
            sent[above] += messages
            if flips != _NONE and not available[above]:
                heap[above] = _meld(heap[above], flips, worth, label, child, sibling)
    return count


@_compiled
def contract(
    parent: Integers,
    load: Integers,
    available: Flags,
    kind: Integers,
    below: Integers,
    caps: Integers,
    unlimited: int,
) -> Flags:
    """Take out of the tree what no bound above an infeasible one can ever touch.

    A link is slack if everything below it, all red, is within `caps`, the infeasible bound's, and
    so is all that lies below. A slack switch becomes workers of the lowest ancestor that stays;
    but where it is the highest available one, and that ancestor may not be blue, it stays as a
    leaf, since its flip may be taken. `below` are the workers at or below each switch.

    Rewrites parent, load and kind of the switches that stay, whose flags it returns; a leaf that
    is slack gets the kind `unlimited`. Some link exceeds its cap when all is red.
    """
    n = load.size
    tight = np.zeros(n, np.bool_)
    for v in range(n):
        tight[v] = tight[v] or below[v] > caps[kind[v]]
        if tight[v] and parent[v] != _NONE:
            tight[parent[v]] = True
    stays = tight.copy()
    anchor = np.empty(n, np.int64)  # the lowest ancestor that stays, itself included; or none
    for v in range(n - 1, -1, -1):
        if tight[v]:
            anchor[v] = v
            continue
        above = anchor[parent[v]]
        anchor[v] = _NONE
        if above == _NONE:
            continue
        if available[above] or below[v] <= 1:
            load[above] += below[v]
        elif available[v]:
            stays[v] = True
            parent[v] = above
            load[v] = below[v]
            kind[v] = unlimited
        else:
            load[above] += load[v]
            anchor[v] = above
    return stays
