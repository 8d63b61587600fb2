"""The model in small bounds, and that it finds what is wrong in protocols that are nearly right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.model import actions, hosts, layout, rules
from tests.model.explore import explore
from tests.model.layout import budget, parameters

BOTH, ROOT, CHILD = 0b11, 0b01, 0b10
"""Which switches are blue."""


@pytest.mark.parametrize(
    ("p", "faults", "states"),
    [
        pytest.param(parameters(3, BOTH, ROOT), budget(losses=1), 5_835, id="loss"),
        pytest.param(parameters(3, BOTH, ROOT), budget(doubles=1), 7_472, id="double"),
        pytest.param(
            parameters(2, BOTH, ROOT), budget(losses=1, restarts=1), 11_856, id="loss and restart"
        ),
        pytest.param(
            parameters(2, CHILD, ROOT, always_direct=True),
            budget(losses=1),
            6_501,
            id="loss, direct at any time",
        ),
        pytest.param(
            parameters(3, BOTH, ROOT),
            budget(reallocations=1, roll_backs=1),
            20_675,
            id="reallocation, perhaps rolled back",
        ),
    ],
)
def test_protocol(p: list[int], faults: int, states: int) -> None:
    """Nothing is wrong in any state and each can be completed; none was forgotten."""
    graph = explore(p, faults)
    assert graph.story == ()
    assert len(graph.states) == states


def test_orders_that_make_no_difference() -> None:
    """What is left out lies on the way: all ends in the same states."""
    ends = []
    for every_order in (False, True):
        p = parameters(3, BOTH, ROOT, every_order=every_order)
        graph = explore(p, budget(losses=1))
        assert graph.story == ()
        labels, scratch = [0] * actions.MOST_SUCCESSORS, [0] * layout.WIDTH
        ends.append({t for t in graph.states if actions.actions(list(t), p, labels, scratch) == 0})
    assert ends[0] == ends[1]
    assert ends[0]


EVERY_ORDER = tuple(parameters(3, BOTH, ROOT, every_order=True))
"""For mutants that make a difference where there is none otherwise."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A protocol that is nearly right: what is another function, what it takes to see it, and what
    is seen, None for a state that cannot be completed."""

    function: str
    instead: Callable[..., object]
    faults: int
    fault: int | None
    p: tuple[int, ...] = tuple(parameters(3, BOTH, ROOT))


MUTANTS = {
    "a switch that does not test the bit": Mutant(
        "joins", lambda sources, mask: True, budget(doubles=1), layout.WRONG_PART
    ),
    "a switch that emits before its slot is full": Mutant(
        "is_full", lambda sources, own: sources != 0, 0, layout.WRONG_PART
    ),
    "a switch that answers whatever it has stored": Mutant(
        "is_answer_of", lambda answer, tag: answer != 0, 0, layout.WRONG_ANSWER
    ),
    "a switch that loses its sums but not its sets": Mutant(
        "after_restart", lambda word: word & ~(255 << 7), budget(restarts=1), layout.WRONG_PART
    ),
    "a destination that counts nested sets twice": Mutant(
        "displaced",
        lambda kept, source: 0,
        budget(losses=1),
        layout.WRONG_SUM,
        tuple(parameters(2, BOTH, ROOT, always_direct=True)),
    ),
    "a destination that answers only once": Mutant(
        "answers_again", lambda: False, budget(losses=1), None
    ),
    "a worker that sends before the answer": Mutant(
        "may_leave", lambda t, worker, chunk: True, 0, layout.TAKEN_OVER
    ),
    "a worker that goes on while it is held": Mutant(
        "is_held", lambda t, worker: False, budget(reallocations=1), layout.TAKEN_OVER, EVERY_ORDER
    ),
    "a worker that gives old chunks the new epoch": Mutant(
        "worker_epoch",
        lambda t, worker, chunk: int(hosts.has_moved(t, worker)),
        budget(reallocations=1),
        layout.TAKEN_OVER,
    ),
    "a controller that moves at the smallest number": Mutant(
        "lowest_new",
        lambda t, p: min(
            sum(hosts.has_left(t, worker, chunk) for chunk in range(3)) for worker in range(3)
        ),
        budget(reallocations=1),
        layout.TAKEN_OVER,
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its story ends in the fault that it has."""
    mutant = MUTANTS[name]
    module = hosts if mutant.function in vars(hosts) else rules
    monkeypatch.setattr(module, mutant.function, mutant.instead)
    graph = explore(mutant.p, mutant.faults)
    assert graph.story
    assert graph.states[-1][layout.FAULT] == (mutant.fault or 0)
    if mutant.fault:
        assert graph.story[-1] == f"WRONG: {layout.FAULTS[mutant.fault]}"
