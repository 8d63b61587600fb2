"""The model in small bounds, and that it finds what is wrong in protocols that are nearly right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.model import actions, controller, destination, hosts, layout, network, rules
from tests.model.explore import explore
from tests.model.layout import budget, parameters

BOTH, ROOT, CHILD, NONE = 0b11, 0b01, 0b10, 0b00
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
        pytest.param(
            parameters(1, BOTH, BOTH),
            budget(deaths=1, rebirths=1, losses=1),
            9_996,
            id="death, rebirth and loss",
        ),
        pytest.param(
            parameters(3, BOTH, BOTH, away=0b100),
            budget(reallocations=1, rebirths=1),
            9_478,
            id="return and rebirth",
        ),
    ],
)
def test_protocol(p: list[int], faults: int, states: int) -> None:
    """Nothing is wrong in any state and each can be completed; none was forgotten."""
    graph = explore(p, faults)
    assert graph.story == ()
    assert len(graph.states) == states


@pytest.mark.parametrize(("chunks", "faults"), [(3, budget(losses=1)), (1, budget(deaths=1))])
def test_orders_that_make_no_difference(chunks: int, faults: int) -> None:
    """What is left out lies on the way: all ends in the same states."""
    ends = []
    for every_order in (False, True):
        p = parameters(chunks, BOTH, ROOT, every_order=every_order)
        graph = explore(p, faults)
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
        "keeps_back",
        lambda t, worker: False,
        budget(reallocations=1),
        layout.TAKEN_OVER,
        EVERY_ORDER,
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


EXCLUSION = budget(deaths=1)
REBIRTH = budget(deaths=1, rebirths=1)
ONE, TWO = (tuple(parameters(chunks, BOTH, BOTH)) for chunks in (1, 2))
MUTANTS |= {
    "a switch that does not compare epochs": Mutant(
        "tag_of", lambda epoch, chunk: 1 + chunk, EXCLUSION, layout.WRONG_ANSWER, ONE
    ),
    "hosts that do not compare epochs": Mutant(
        "is_own_epoch", lambda epoch, own: True, EXCLUSION, layout.SPLIT, ONE
    ),
    "a destination that keeps what it gathered with who is left out": Mutant(
        "drop_incomplete",
        lambda t: None,
        EXCLUSION,
        layout.WRONG_SUM,
        tuple(parameters(1, NONE, NONE)),
    ),
    "a destination that sums complete chunks anew": Mutant(
        "kept_beyond", lambda t, p, first: 0, EXCLUSION, layout.SPLIT, TWO
    ),
    "a follower that goes on under the old epoch with what has left": Mutant(
        "worker_epoch",
        lambda t, worker, chunk: int(
            hosts.has_moved(t, worker)
            and hosts.is_new(t, chunk)
            and not hosts.has_left(t, worker, chunk)
        ),
        EXCLUSION,
        None,
        ONE,
    ),
    "a destination that answers before it records": Mutant(
        "records_first", lambda: False, REBIRTH, layout.SPLIT, ONE
    ),
    "a destination that starts anew with nothing on record": Mutant(
        "begin_anew",
        lambda t: t.__setitem__(layout.DONE, t[layout.DONE] & ~15),
        REBIRTH,
        layout.SPLIT,
        TWO,
    ),
    "a destination that starts anew under its first epoch": Mutant(
        "begin_anew",
        lambda t: t.__setitem__(layout.DONE, t[layout.DONE] & ~16),
        REBIRTH,
        None,
        ONE,
    ),
    "a worker that comes back and does not wait": Mutant(
        "starts_when_drained",
        lambda: False,
        budget(reallocations=1),
        layout.TAKEN_OVER,
        tuple(parameters(3, BOTH, BOTH, away=0b100)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its story ends in the fault that it has."""
    mutant = MUTANTS[name]
    # Every module that has it by name.
    for module in (rules, hosts, destination, network, controller, actions):
        if mutant.function in vars(module):
            monkeypatch.setattr(module, mutant.function, mutant.instead)
    graph = explore(mutant.p, mutant.faults)
    assert graph.story
    assert graph.states[-1][layout.FAULT] == (mutant.fault or 0)
    if mutant.fault:
        assert graph.story[-1] == f"WRONG: {layout.FAULTS[mutant.fault]}"
