"""Breadth-first exploration in plain Python: whole states, the whole graph. For small bounds.

Every state is expanded until none is new. That completion is possible from each is shown backwards,
over all transitions, from the states in which everyone has every sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.model import actions, layout
from tests.model.trace import action_text, state_lines

State = tuple[int, ...]


class TooManyStatesError(Exception):
    """An exploration found more states than it was allowed."""


@dataclass(frozen=True, slots=True)
class Graph:
    """What was explored.

    Attributes:
        states: every state, in the order found.
        transitions: between them.
        depth: actions to the farthest one.
        story: how the first fault comes about, or the first state that cannot be completed, action
            by action and with the state itself; empty where all is well.
    """

    states: tuple[State, ...]
    transitions: int
    depth: int
    story: tuple[str, ...]


def first_state(p: Sequence[int], budget: int) -> list[int]:
    """The state in which all workers have sent their first window."""
    t = [0] * layout.WIDTH
    actions.begin(t, p, budget)
    return t


def explore(p: Sequence[int], budget: int, most: int = 1_000_000) -> Graph:
    """Explore everything; raises TooManyStatesError beyond `most` states."""
    first = tuple(first_state(p, budget))
    numbers, states, parents, depths = {first: 0}, [first], [(0, 0)], [0]
    before: list[list[int]] = [[]]
    labels, scratch = [0] * actions.MOST_SUCCESSORS, [0] * layout.WIDTH
    transitions = 0
    for at, t in enumerate(states):
        count = actions.actions(list(t), p, labels, scratch)
        transitions += count
        for label in labels[:count]:
            successor = list(t)
            actions.act(successor, p, label)
            key = tuple(successor)
            number = numbers.setdefault(key, len(states))
            if number == len(states):
                states.append(key)
                parents.append((at, label))
                depths.append(depths[at] + 1)
                before.append([])
                if key[layout.FAULT]:
                    story = _story(states, parents, number)
                    return Graph(tuple(states), transitions, depths[-1], story)
            before[number].append(at)
        if len(states) > most:
            raise TooManyStatesError(f"more than {most} states")
    stuck = _incomplete(p, states, before)
    story = () if stuck is None else _story(states, parents, stuck)
    return Graph(tuple(states), transitions, depths[-1], story)


def _incomplete(p: Sequence[int], states: list[State], before: list[list[int]]) -> int | None:
    """The first state from which no complete one can be reached."""
    pending = [number for number, t in enumerate(states) if actions.is_over(list(t), p)]
    reached = bytearray(len(states))
    for number in pending:
        reached[number] = 1
    while pending:
        for earlier in before[pending.pop()]:
            if not reached[earlier]:
                reached[earlier] = 1
                pending.append(earlier)
    stuck = reached.find(0)
    return None if stuck < 0 else stuck


def _story(states: list[State], parents: list[tuple[int, int]], at: int) -> tuple[str, ...]:
    """The way to a state, in words, and the state."""
    lines = state_lines(states[at])[::-1]
    while at:
        at, label = parents[at]
        lines.append(action_text(label))
    return tuple(reversed(lines))
