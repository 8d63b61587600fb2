"""Admission: numbers, slots and capacity, and refusals that say where and how much."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.placement import STRATEGIES, Tree, smc
from controller.service.admission import Wish, choose, free_job, free_slots, job_tree
from controller.service.errors import AdmissionError
from p4src.constants import JOBS, SLOTS
from tests.unit.controller.trees import topology_of, trees
from topologies.network import wire
from topologies.topology import Topology

TREE = Tree(parent=[-1, 0, 0], rate=[1, 1, 1], load=[0, 2, 6], available=[True, True, True])


def _topology(*capacity: int | None) -> Topology:
    topology = topology_of(TREE)
    return replace(topology, overlay=replace(topology.overlay, capacity=capacity))


def test_the_lowest_free_number_is_taken() -> None:
    assert free_job([1, 2, 4]) == 3
    with pytest.raises(AdmissionError, match=f"{JOBS} jobs run"):
        free_job(range(1, JOBS + 1))


@given(
    windows=st.lists(st.sampled_from([1, 2, 64, 512, 2048]), max_size=12), gone=st.integers(1, 12)
)
def test_slots_never_overlap_and_gaps_are_used(windows: list[int], gone: int) -> None:
    taken: dict[int, range] = {}
    for job, window in enumerate(windows, start=1):
        try:
            base = free_slots(taken, window)
        except AdmissionError:
            continue
        taken[job] = range(base, base + window)
    held = sorted(slot for slots in taken.values() for slot in slots)
    assert len(held) == len(set(held))
    assert not held or held[-1] < SLOTS
    for job in {gone} & taken.keys():
        left = {other: slots for other, slots in taken.items() if other != job}
        assert free_slots(left, len(taken[job])) <= taken[job].start


def test_too_few_slots_says_how_many() -> None:
    taken = {1: range(2048), 2: range(2048, 4000)}
    assert free_slots(taken, 64) == 4000
    with pytest.raises(AdmissionError, match=r"128 slots .* 96 are free .*32 too few; 4000 of"):
        free_slots(taken, 128)


@pytest.mark.parametrize("window", [0, 3])
def test_a_window_is_a_power_of_two(window: int) -> None:
    with pytest.raises(AdmissionError, match="power of two"):
        free_slots({}, window)


@given(tree=trees(), k=st.integers(0, 6))
def test_without_capacities_smc_is_the_optimum(tree: Tree, k: int) -> None:
    choice = choose(topology_of(tree), tree, {}, Wish(budget=k))
    assert choice.congestion == smc(tree, k).congestion
    assert len(choice.blue) <= k


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_keeps_to_the_capacity_that_is_left(strategy: str) -> None:
    topology = _topology(1, 1, 1)
    choice = choose(topology, TREE, {1: frozenset({2})}, Wish(strategy=strategy, budget=2))
    assert 2 not in choice.blue
    assert choice.full == (2,)


def test_the_last_workload_gets_what_is_left() -> None:
    topology = _topology(None, 1, 2)
    others: dict[int, frozenset[int]] = {}
    for job in (1, 2, 3):
        choice = choose(topology, TREE, others, Wish(budget=1))
        others[job] = choice.blue
    assert [sorted(blue) for blue in others.values()] == [[2], [2], [0]]


def test_a_full_switch_that_is_named_is_refused_with_its_users() -> None:
    others = {3: frozenset({1}), 5: frozenset({1, 2})}
    with pytest.raises(AdmissionError, match=r"s1: its capacity of 2 is used by jobs 3, 5 \(1 too"):
        choose(_topology(None, 2, None), TREE, others, Wish(blue=("s1",)))


@pytest.mark.parametrize(
    ("wish", "text"),
    [
        (Wish(blue=("s9",)), "--blue s9: no such switch"),
        (Wish(blue=("s1", "s2"), budget=1), "-k allows 1"),
        (Wish(), "-k: say how many"),
        (Wish(strategy="best", budget=1), "--strategy best: choose one of"),
    ],
)
def test_a_wish_that_cannot_be_is_refused(wish: Wish, text: str) -> None:
    with pytest.raises(AdmissionError, match=text):
        choose(_topology(None, None, None), TREE, {}, wish)


def test_a_job_of_some_workers_brings_its_own_loads() -> None:
    topology = _topology(None, None, None)
    network = wire(topology)
    tree = job_tree(topology, (0, 2, 3), network)
    assert tree.load == (0, 1, 2)
    assert job_tree(topology, None, network) is TREE
    choice = choose(topology, tree, {}, Wish(budget=0))
    assert choice.congestion == Fraction(3)
