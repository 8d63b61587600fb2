"""What a stuck job waits for, given what is known of it.

s0 - destination          w0 at s0
|- s1                     w1, w2 at s1
|  `- s3                  w3, w4 at s3
`- s2                     w5 at s2
"""

from __future__ import annotations

import pytest

from controller.compile import JobPlan
from controller.placement import Tree
from controller.watchdog import STUCK_NS, Cause, Facts, Standstills, Stuck, Telling, find_stuck
from tests.unit.controller.trees import topology_of
from topologies.network import wire

NETWORK = wire(topology_of(Tree(parent=[-1, 0, 0, 1], rate=[1] * 4, load=[1, 2, 1, 2])))
PLACES = {"s0": 1, "s1": 2, "s2": 1, "s3": 2}
AT = {name: [host.name for host in NETWORK.workers if host.switch == name] for name in PLACES}
ALL = tuple(host.name for host in NETWORK.workers)
CHUNK = 7


def _plan(*blue: int, members: frozenset[int] | None = None) -> JobPlan:
    return JobPlan(1, 1, frozenset(blue), slot_base=0, window=4, members=members)


def _facts(
    lacking: tuple[str, ...] | None,
    *,
    unsent: tuple[str, ...] = (),
    silent: tuple[str, ...] = (),
    undrained: tuple[str, ...] = (),
    lost: frozenset[str] = frozenset(),
) -> Facts:
    """All workers have sent the chunk, and have the answers before it, but those named."""
    heard = [name for name in ALL if name not in silent]
    return Facts(
        CHUNK,
        lacking,
        {name: CHUNK if name in unsent else CHUNK + 3 for name in heard},
        {name: CHUNK if name in undrained else CHUNK + 1 for name in heard},
        lost,
    )


def _find(facts: Facts, *blue: int) -> tuple[str | None, tuple[str, ...], Cause]:
    found = find_stuck(NETWORK, _plan(*blue), facts)
    assert (found.job, found.chunk) == (1, CHUNK)
    return found.switch, found.workers, found.cause


def test_the_tree_is_as_drawn() -> None:
    assert {name: len(workers) for name, workers in AT.items()} == PLACES


@pytest.mark.parametrize(
    ("blue", "switch"),
    [((), None), ((0,), "s0"), ((0, 1), "s1"), ((1,), "s1"), ((0, 1, 3), "s3"), ((0, 2), "s0")],
)
@pytest.mark.parametrize("is_silent", [False, True])
def test_a_worker_that_has_not_sent_is_missing_at_the_blue_switch_above_it(
    blue: tuple[int, ...], switch: str | None, is_silent: bool
) -> None:
    who = (AT["s3"][0],)
    facts = _facts(ALL, silent=who) if is_silent else _facts(ALL, unsent=who)
    assert _find(facts, *blue) == (switch, who, Cause.WORKERS)


def test_several_are_missing_at_the_switch_where_their_ways_meet() -> None:
    near, far = AT["s1"][0], AT["s3"][1]
    both = _facts(ALL, unsent=(near, far))
    assert _find(both, 0, 1, 3) == ("s1", (near, far), Cause.WORKERS)
    across = _facts(ALL, unsent=(near, AT["s2"][0]))
    assert _find(across, 0, 1, 3)[0] == "s0"
    assert _find(across, 1, 2)[0] is None


def test_a_lost_switch_is_the_place_for_those_below_it() -> None:
    below = (*AT["s1"], *AT["s3"])
    # Those below may wait for answers that cannot come: that they have not sent says nothing.
    facts = _facts(ALL, unsent=tuple(AT["s3"]), lost=frozenset({"s1", "s3"}))
    switch, workers, cause = _find(facts, 0)
    assert (switch, set(workers), cause) == ("s1", set(below), Cause.SWITCH)
    assert _find(_facts(below, lost=frozenset({"s1"})))[0] == "s1"


def test_a_lost_switch_elsewhere_is_not_blamed() -> None:
    who = tuple(AT["s2"])
    lost = frozenset({"s3"})
    assert _find(_facts(ALL, unsent=who, lost=lost), 0) == ("s0", who, Cause.WORKERS)
    assert _find(_facts(who, lost=lost)) == (None, who, Cause.LOSS)


def test_if_all_have_sent_the_message_was_lost_below_the_lowest_blue_switch_above() -> None:
    assert _find(_facts(ALL), 0, 1) == ("s0", ALL, Cause.LOSS)
    below = tuple(name for name in ALL if name in (*AT["s1"], *AT["s3"]))
    assert _find(_facts(below), 0, 1, 3) == ("s1", below, Cause.LOSS)
    assert _find(_facts(tuple(AT["s3"])), 0, 1, 3) == ("s3", tuple(AT["s3"]), Cause.LOSS)


def test_only_members_count() -> None:
    members = frozenset(host.rank for host in NETWORK.workers if host.switch == "s1")
    plan = _plan(1, members=members)
    facts = Facts(CHUNK, tuple(AT["s1"]), {AT["s1"][0]: CHUNK + 1}, {})
    found = find_stuck(NETWORK, plan, facts)
    assert (found.switch, found.workers) == ("s1", (AT["s1"][1],))


def test_a_destination_that_does_not_answer_is_named() -> None:
    found = find_stuck(NETWORK, _plan(0), _facts(None))
    assert found.cause is Cause.DESTINATION
    assert found.text == (
        "job 1 is stuck: chunk 7 waits for the destination, which does not answer"
    )


def test_of_a_complete_chunk_those_without_an_answer_are_named() -> None:
    who = (AT["s1"][0], AT["s3"][0])
    assert _find(_facts((), undrained=who), 0) == (None, who, Cause.ANSWER)
    assert _find(_facts((), silent=who), 0) == (None, who, Cause.ANSWER)
    lost = _facts((), undrained=(*who, AT["s2"][0]), lost=frozenset({"s1"}))
    assert _find(lost, 0) == ("s1", who, Cause.ANSWER)


@pytest.mark.parametrize(
    ("switch", "cause", "text"),
    [
        ("a", Cause.WORKERS, "job 3 is stuck: chunk 9 waits at switch a for w0, w1"),
        (None, Cause.WORKERS, "job 3 is stuck: chunk 9 waits at the destination for w0, w1"),
        (
            "a",
            Cause.SWITCH,
            "job 3 is stuck: chunk 9 waits at switch a, which does not answer, for w0, w1",
        ),
        (
            "a",
            Cause.LOSS,
            "job 3 is stuck: chunk 9 waits at switch a for w0, w1, though all workers have sent it",
        ),
        (None, Cause.ANSWER, "job 3 is stuck: chunk 9 is complete, but w0, w1 have no answer"),
        (
            "a",
            Cause.ANSWER,
            "job 3 is stuck: chunk 9 is complete, but w0, w1 have no answer: switch a does not "
            "answer",
        ),
    ],
)
def test_it_is_said_in_one_line(switch: str | None, cause: Cause, text: str) -> None:
    assert Stuck(3, 9, switch, ("w0", "w1"), cause).text == text


def test_a_single_worker_has_no_answer() -> None:
    text = Stuck(3, 9, None, ("w0",), Cause.ANSWER).text
    assert text == "job 3 is stuck: chunk 9 is complete, but w0 has no answer"


def test_many_workers_are_counted() -> None:
    names = tuple(f"w{i}" for i in range(11))
    assert Stuck(1, 0, "a", names, Cause.WORKERS).text.endswith("w6, w7 and 3 more")


def test_a_job_is_stuck_when_it_has_stood_still_for_long_enough() -> None:
    still = Standstills()
    assert not still.is_stuck(1, 5, 0)
    assert not still.is_stuck(1, 5, STUCK_NS - 1)
    assert still.is_stuck(1, 5, STUCK_NS)
    assert not still.is_stuck(1, 6, STUCK_NS + 1)
    assert still.since(1, 6, STUCK_NS + 11) == 10
    still.forget([])
    assert still.since(1, 6, 2 * STUCK_NS) == 0


def test_each_thing_that_a_job_waits_for_is_told_once() -> None:
    told: list[Stuck] = []
    telling = Telling(told.append)
    first, second = (Stuck(1, chunk, "a", ("w0",), Cause.WORKERS) for chunk in (1, 2))
    for stuck in (first, first, second, second, first):
        telling.tell(stuck)
    assert told == [first, second, first]
