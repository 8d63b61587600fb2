"""Breadth-first exploration by machine code: the rules compiled by numba, states as fingerprints.

A state that was seen is kept as a fingerprint of 64 bits, its parent, and its first successor, 16
bytes and an entry of a hash table; in full only while it is on the frontier, as TLC does. A path
to a state is found again by going forward along the fingerprints of its parents. Workers 1 and 2
are alike: a state and its mirror image have one fingerprint.

*Completion is possible from every state.* Of each state the first action is known, which is never a
fault; where nothing is in flight all are. A state is good if everyone has every sum in it, if its
first successor is good, or if nothing is in flight and some successor is good. That every state is
good is shown on the graph itself, backwards from the complete ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tests.model import actions, controller, destination, hosts, layout, mirror, network, rules
from tests.model.layout import FAULT, FLIGHT, MOST_IN_FLIGHT, WIDTH

_ROWS = 1 << 18
_EDGES = 1 << 18
"""New states, and edges of states with nothing in flight, that one call of the kernel may find."""
_MOST = actions.MOST_SUCCESSORS

# In place of the number of a first successor, which counts from 1: see `_expand`.
_COMPLETE, _QUIET, _STUCK = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_LAST = 0xFFFFFFF0


def _machine_code() -> dict[str, Any]:
    """The functions of the model, compiled, by name; the modules keep the interpreted ones."""
    space: dict[str, Any] = {}
    for module in (layout, rules, hosts, destination, network, controller, mirror, actions):
        for name, value in vars(module).items():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                space[name] = njit(FunctionType(value.__code__, space, name, value.__defaults__))
            elif name.isupper() or name == "MASKS":
                space[name] = value
    return space


_CODE = _machine_code()
_actions = _CODE["actions"]
_act = _CODE["act"]
_is_over = _CODE["is_over"]
_mirrored_word = _CODE["mirrored_word"]
_mirrored_message = _CODE["mirrored_message"]


@njit
def _mix(x: Any) -> Any:
    """The finaliser of splitmix64: a permutation of 64-bit numbers that mixes well."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit
def fingerprint(t: Any) -> Any:
    """64 bits that a state and its mirror image have in common; 0 is kept for "none"."""
    one = two = np.uint64(1)
    for i in range(FLIGHT):
        one = _mix(one ^ np.uint64(t[i]))
        two = _mix(two ^ np.uint64(_mirrored_word(i, t[i])))
    for i in range(FLIGHT, FLIGHT + MOST_IN_FLIGHT):
        if t[i] == 0:
            break
        # A sum, as the order of those in flight means nothing and differs in the mirror.
        one += _mix(_mix(np.uint64(t[i])))
        two += _mix(_mix(np.uint64(_mirrored_message(t[i]))))
    return max(min(_mix(one), _mix(two)), np.uint64(1))


@njit
def _find(table: Any, prints: Any, wanted: Any) -> Any:
    """Where in the table a fingerprint is, or may go."""
    mask = len(table) - 1
    at = np.int64(wanted & np.uint64(mask))
    while table[at] != 0 and prints[table[at] - 1] != wanted:
        at = at + 1 & mask
    return at


@njit
def _expand(
    frontier: Any,
    start: Any,
    base: Any,
    count: Any,
    p: Any,
    table: Any,
    prints: Any,
    parents: Any,
    firsts: Any,
    out: Any,
    edges: Any,
) -> Any:
    """Expand the states of the frontier from `start` on until it ends or a buffer is full.

    Returns the next to expand, all states so far, rows and edges written, transitions, the faulty
    state or -1, and the most messages in flight.
    """
    t, u = np.zeros(WIDTH, np.int64), np.zeros(WIDTH, np.int64)
    labels = np.zeros(_MOST, np.int64)
    rows = used = transitions = most = 0
    first: Any
    i = start
    while i < len(frontier):
        if max(rows - len(out), used - len(edges), count - len(prints)) + _MOST > 0:
            break
        for k in range(WIDTH):
            t[k] = frontier[i, k]
        n = _actions(t, p, labels, u)
        is_over, is_quiet = _is_over(t, p), t[FLIGHT] == 0
        first = _COMPLETE if is_over else _STUCK if n == 0 else _QUIET if is_quiet else 0
        for j in range(n):
            for k in range(WIDTH):
                u[k] = t[k]
            _act(u, p, labels[j])
            transitions += 1
            wanted = fingerprint(u)
            at = _find(table, prints, wanted)
            if table[at] == 0:
                prints[count] = wanted
                parents[count] = base + i
                count += 1
                table[at] = count
                for k in range(WIDTH):
                    out[rows, k] = u[k]
                rows += 1
                most = max(most, _flying(u))
                if u[FAULT] != 0:
                    return i, count, rows, used, transitions, count - 1, most
            if first == 0:
                first = np.int64(table[at])
            if first == _QUIET:
                edges[used, 0], edges[used, 1] = base + i, table[at] - 1
                used += 1
        firsts[base + i] = first
        i += 1
    return i, count, rows, used, transitions, -1, most


@njit
def _flying(t: Any) -> Any:
    """How many messages are in flight."""
    n = 0
    while n < MOST_IN_FLIGHT and t[FLIGHT + n] != 0:
        n += 1
    return n


@njit
def _settle(firsts: Any, count: Any) -> None:
    """Let every state point to where its first successors lead to: over, quiet, or stuck."""
    for i in range(count):
        at = np.int64(i)
        while firsts[at] < _LAST:
            at = np.int64(firsts[at]) - 1
        here = np.int64(i)
        while firsts[here] < _LAST and here != at:
            following = np.int64(firsts[here]) - 1
            firsts[here] = at + 1
            here = following


@njit
def _end(firsts: Any, at: Any) -> Any:
    return at if firsts[at] >= _LAST else np.int64(firsts[at]) - 1


@njit
def _spread(firsts: Any, edges: Any, good: Any) -> Any:
    """Quiet states with a successor that leads to a good one are good; how many became so."""
    found = 0
    for i in range(len(edges)):
        at = np.int64(edges[i, 0])
        if not good[at]:
            end = _end(firsts, np.int64(edges[i, 1]))
            if good[end] or firsts[end] == _COMPLETE:
                good[at] = True
                found += 1
    return found


@njit
def _first_bad(firsts: Any, good: Any, count: Any) -> Any:
    """A state from which no complete one is reached, -1 if there is none."""
    for i in range(count):
        end = _end(firsts, i)
        if firsts[end] != _COMPLETE and not good[end]:
            return i
    return -1


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration found.

    `trace` leads to the first fault, or to a state from which completion cannot be reached: its
    actions, empty where all is well. `is_whole` says that no state was left out.
    """

    states: int
    transitions: int
    depth: int
    seconds: float
    most_in_flight: int
    is_whole: bool
    trace: tuple[int, ...]
    last: tuple[int, ...]


class Exploration:
    """One exploration of at most `most` states."""

    def __init__(self, p: Sequence[int], budget: int, most: int) -> None:
        self._p = np.array(p, np.int64)
        self._budget = budget
        self._most = most
        self._table = np.zeros(1 << (most + most // 2).bit_length(), np.uint32)
        self._prints = np.zeros(most + _MOST, np.uint64)
        self._parents = np.zeros(most + _MOST, np.uint32)
        self._firsts = np.zeros(most + _MOST, np.uint32)
        self._out = np.zeros((_ROWS, WIDTH), np.uint32)
        self._edge_buffer = np.zeros((_EDGES, 2), np.uint32)
        self._edges: list[NDArray[np.uint32]] = []
        self._count = self._transitions = self._in_flight = 0

    def run(self, tell: Callable[[int, int, int], None]) -> Explored:
        """Explore; `tell` hears depth, states and the frontier's size after each level."""
        began = time.monotonic()
        t = self._first()
        wanted = np.uint64(fingerprint(t))
        at = _find(self._table, self._prints, wanted)
        self._prints[0], self._table[at], self._count = wanted, 1, 1
        level, base, depth, bad = [t.astype(np.uint32).reshape(1, -1)], 0, 0, -1
        while level and bad < 0 and self._count < self._most:
            following: list[NDArray[np.uint32]] = []
            for part in level:
                bad = self._expand_part(part, base, following)
                base += len(part)
                if bad >= 0 or self._count >= self._most:
                    break
            level, depth = following, depth + 1
            tell(depth, self._count, sum(len(part) for part in level))
        is_whole = bad < 0 and self._count < self._most
        if is_whole:
            bad = self._incomplete()
        trace, last = self._path(bad) if bad >= 0 else ((), ())
        return Explored(
            self._count,
            self._transitions,
            depth - 1,
            time.monotonic() - began,
            self._in_flight,
            is_whole,
            trace,
            last,
        )

    def _first(self) -> NDArray[np.int64]:
        t = np.zeros(WIDTH, np.int64)
        _CODE["begin"](t, self._p, self._budget)
        return t

    def _expand_part(
        self, part: NDArray[np.uint32], base: int, following: list[NDArray[np.uint32]]
    ) -> int:
        """Expand a part of the frontier; the faulty state that it found, or -1."""
        start, bad = 0, -1
        while start < len(part) and bad < 0 and self._count < self._most:
            start, self._count, rows, used, transitions, bad, most = _expand(
                part, start, base, self._count, self._p, self._table, self._prints,
                self._parents, self._firsts, self._out, self._edge_buffer,
            )  # fmt: skip
            self._transitions += transitions
            self._in_flight = max(self._in_flight, most)
            if rows:
                following.append(self._out[:rows].copy())
            if used:
                self._edges.append(self._edge_buffer[:used].copy())
        return int(bad)

    def _incomplete(self) -> int:
        """A state from which completion cannot be reached, or -1."""
        good = np.zeros(self._count, np.bool_)
        _settle(self._firsts, self._count)
        while sum(_spread(self._firsts, edges, good) for edges in self._edges):
            pass
        return int(_first_bad(self._firsts, good, self._count))

    def _path(self, at: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The actions that lead to a state, and the state."""
        ids = [at]
        while ids[-1]:
            ids.append(int(self._parents[ids[-1]]))
        t, labels, path = self._first(), np.zeros(_MOST, np.int64), []
        u = t.copy()
        for wanted in (self._prints[i] for i in reversed(ids[:-1])):
            for label in labels[: _actions(t, self._p, labels, u)].tolist():
                u = t.copy()
                _act(u, self._p, label)
                if fingerprint(u) == wanted:
                    path.append(label)
                    t = u
                    break
        return tuple(path), tuple(t.tolist())


def fingerprints(states: Sequence[Sequence[int]]) -> list[int]:
    """Of each state the number that it shares with its mirror image."""
    return [int(fingerprint(np.array(t, np.int64))) for t in states]
