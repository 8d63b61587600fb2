"""Reallocation under traffic: no chunk lost, summed twice or mixed, whatever links do."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.placement import Tree
from tests.e2e.moving import MovingNetwork
from tests.unit.controller.trees import topology_of, trees
from topologies import WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.network import wire
from traffic.endpoint import Op

_SLOW = settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
_TREES = trees(max_switches=8, max_load=3).filter(lambda tree: sum(tree.load) > 0)


def any_blue(rng: random.Random, tree: Tree) -> frozenset[int]:
    return frozenset(v for v in range(tree.n) if rng.random() < 0.4)


def live(network: MovingNetwork, tree: Tree, actions: int) -> None:
    """Jobs come, move, are held in vain and go, at random moments."""
    rng = network.rng
    network.add(1, any_blue(rng, tree), rng.choice(list(Op)))
    for _ in range(actions):
        network.run(rng.randrange(1, 250))
        what = rng.choice(["move", "move", "move", "other", "hold"])
        job = rng.choice(sorted(network.jobs))
        if what == "move":
            network.move(job, any_blue(rng, tree))
        elif what == "hold":
            network.hold_in_vain(job)
        elif 2 in network.jobs:
            network.remove(2)
        else:
            network.add(2, any_blue(rng, tree), rng.choice(list(Op)))


@_SLOW
@given(
    tree=_TREES,
    loss=st.sampled_from([0.0, 0.05, 0.15]),
    duplicate=st.sampled_from([0.0, 0.2]),
    reorder=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 10**6),
)
def test_any_moves_at_any_moment_leave_every_sum_right(
    tree: Tree, loss: float, duplicate: float, reorder: float, seed: int
) -> None:
    conditions = Conditions(loss, duplicate, reorder, seed)
    with MovingNetwork(wire(topology_of(tree)), conditions, random.Random(seed)) as network:
        live(network, tree, actions=5)
        for job in sorted(network.jobs):
            network.remove(job)
        assert network.outcomes()["BAD_WEIGHT"] == 0


@_SLOW
@given(tree=_TREES, seed=st.integers(0, 10**6))
def test_outages_in_between_leave_every_sum_right(tree: Tree, seed: int) -> None:
    """Links go down and come back, and so do switches with all that they held: by then their slots
    and stored answers are old, and so may be the epoch that they know."""
    rng = random.Random(seed)
    topology = topology_of(tree)
    with MovingNetwork(wire(topology), Conditions(seed=seed), rng) as network:
        network.add(1, any_blue(rng, tree), rng.choice(list(Op)))
        for _ in range(6):
            network.run(rng.randrange(1, 250))
            lasts = rng.choice([10_000, 1_000_000, 30_000_000])
            if topology.links and rng.random() < 0.5:
                network.cut_link(*rng.choice(topology.links), lasts)
            else:
                network.cut_switch(rng.choice(topology.switches), lasts)
            network.run(rng.randrange(200))
            if rng.random() < 0.7:
                network.move(1, any_blue(rng, tree))
        network.remove(1)
        assert network.outcomes()["BAD_WEIGHT"] == 0


@_SLOW
@given(tree=_TREES, seed=st.integers(0, 10**6))
def test_links_follow_the_prediction_of_each_epoch_exactly(tree: Tree, seed: int) -> None:
    with MovingNetwork(wire(topology_of(tree)), Conditions(), random.Random(seed)) as network:
        live(network, tree, actions=5)
        for job in sorted(network.jobs):
            end = network.end(job)
            for counted, predicted in network.measured(job, end):
                assert counted == predicted


@_SLOW
@given(tree=_TREES, is_lossy=st.booleans(), seed=st.integers(0, 10**6))
def test_the_root_of_a_job_changes_under_traffic(tree: Tree, is_lossy: bool, seed: int) -> None:
    """To any other switch of any tree, and back, with reallocations in between."""
    rng = random.Random(seed)
    topology = topology_of(tree)
    network = wire(topology, spares=topology.switches)
    conditions = Conditions(0.05, 0.1, 0.2, seed) if is_lossy else Conditions()
    with MovingNetwork(network, conditions, rng) as moving:
        moving.add(1, any_blue(rng, tree), rng.choice(list(Op)))
        for job in (1, 2, 3):
            moving.run(rng.randrange(1, 250))
            moving.move(job, any_blue(rng, tree))
            moving.run(rng.randrange(1, 250))
            moving.change_root(job, job + 1, rng.choice(topology.switches), any_blue(rng, tree))
        end = moving.end(4)
        for counted, predicted in moving.measured(4, end) if moving.is_exact else ():
            assert counted == predicted


def test_a_fat_tree_takes_another_core_as_its_root() -> None:
    network = wire(parse("fat-tree:k=4", WorkloadOptions()), spares=["core3"])
    with MovingNetwork(network, Conditions(), random.Random(1)) as moving:
        moving.add(1, frozenset({1, 2}), Op.ALLREDUCE)
        moving.run(3000)
        moving.change_root(1, 2, "core3", frozenset({0, 4}))
        moving.run(3000)
        end = moving.end(2)
        for counted, predicted in moving.measured(2, end):
            assert counted == predicted
