"""The whole product on the fabric: what is predicted is what the switches count."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from controller import run
from controller.errors import BadInputError
from controller.fabric_testbed import FabricTestbed
from controller.placement import STRATEGIES, Tree
from controller.planning import Plan, plan, plan_given
from controller.running import Failure, Fate, RunOptions, RunResult
from p4src.builds import BUILDS, Build
from tests.unit.controller.trees import topology_of, trees
from topologies import WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.network import wire
from traffic.endpoint import Op

FIG1 = topology_of(
    Tree(parent=[-1, 0, 0, 1, 1, 2, 2], rate=[1] * 7, load=[0, 0, 0, 2, 6, 5, 5]), "fig1"
)
_SLOW = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def _run(planned: Plan, **options: object) -> RunResult:
    # Ignored: each option has a type of its own, which RunOptions knows and `object` does not say.
    return run.run_synthetic(planned, RunOptions(**options), Console(quiet=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("strategy", list(STRATEGIES))
@pytest.mark.parametrize("op", ["reduce", "allreduce"])
def test_fig1_measures_what_every_strategy_predicts(strategy: str, op: str) -> None:
    planned = plan(FIG1, 2, strategy)
    result = _run(planned, chunks=8, op=op)
    assert result.correct
    assert [link.measured for link in result.measurement.links] == [
        link.messages for link in planned.links
    ]
    assert result.measurement.measured == planned.congestion
    assert result.retransmissions == 0


def test_fig1_congestions_are_the_papers() -> None:
    measured = {
        strategy: _run(plan(FIG1, 2, strategy), chunks=2).measurement.measured
        for strategy in ("smc", "top", "max", "level")
    }
    assert measured == {"smc": 5, "top": 8, "max": 9, "level": 6}
    by_budget = [_run(plan(FIG1, k, "smc"), chunks=2).measurement.measured for k in range(5)]
    assert by_budget == [18, 9, 5, 5, 3]


@_SLOW
@given(
    tree=trees(max_switches=30, max_load=5).filter(lambda tree: sum(tree.load) > 0),
    k=st.integers(0, 30),
    strategy=st.sampled_from(["smc", "top", "max", "level"]),
    op=st.sampled_from(["reduce", "allreduce"]),
    jobs=st.integers(1, 2),
)
def test_random_trees_measure_what_is_predicted(
    tree: Tree, k: int, strategy: str, op: str, jobs: int
) -> None:
    planned = plan(topology_of(tree), k, strategy)
    result = _run(planned, chunks=3, op=op, jobs=jobs, window=2)
    assert result.correct
    assert [link.measured for link in result.measurement.links] == [
        jobs * link.messages for link in planned.links
    ]
    assert result.retransmissions == 0


@_SLOW
@given(
    tree=trees(max_switches=12, max_load=3).filter(lambda tree: sum(tree.load) > 0),
    k=st.integers(0, 6),
    op=st.sampled_from(["reduce", "allreduce"]),
    loss=st.sampled_from([0.0, 0.05, 0.2]),
    duplicate=st.sampled_from([0.0, 0.2]),
    reorder=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 1000),
)
def test_sums_are_right_whatever_links_do(
    tree: Tree, k: int, op: str, loss: float, duplicate: float, reorder: float, seed: int
) -> None:
    result = _run(
        plan(topology_of(tree), k, "smc"),
        chunks=12,
        window=4,
        op=op,
        loss=loss,
        duplicate=duplicate,
        reorder=reorder,
        seed=seed,
    )
    assert result.correct


@pytest.mark.parametrize("build", BUILDS.values(), ids=lambda build: f"lanes-{build.lanes}")
@pytest.mark.parametrize("loss", [0.0, 0.1])
def test_messages_of_every_build_are_summed(build: Build, loss: float) -> None:
    planned = plan(FIG1, 2, "smc")
    result = _run(planned, op="allreduce", chunks=24, window=8, loss=loss, build=build)
    assert (result.lanes, result.correct) == (build.lanes, True)
    if loss:
        assert result.retransmissions > 0
    else:
        assert not result.measurement.differing
        # On links that take as long for each bit, so many messages take at least so long.
        lane_bits = 32 * build.lanes * 24 * float(planned.congestion)
        assert result.network_seconds > lane_bits / 100e6


@pytest.mark.parametrize("jobs", [2, 4])
def test_jobs_that_share_links_repeat_nothing(jobs: int) -> None:
    """Each waits for the windows of the others, longer than for its own at first."""
    planned = plan(parse("fat-tree:k=4", WorkloadOptions()), 4, "smc")
    result = _run(planned, jobs=jobs, chunks=100)
    assert result.correct
    assert result.retransmissions == 0
    assert not result.measurement.differing


@pytest.mark.parametrize("failure", ["w2", "destination"])
def test_what_is_made_good_is_not_given_up_where_much_is_lost(failure: str) -> None:
    """Seeds at which some chunk is sent more than 12 times."""
    planned = plan(parse("binary-tree:levels=3", WorkloadOptions(workers="1")), 0, "smc")
    is_worker = failure == "w2"
    dies = Failure(failure, 0.5, is_worker=is_worker, goes_on=is_worker)
    for seed in (1, 4):
        result = _run(planned, chunks=60, loss=0.3, seed=seed, failure=dies)
        assert result.correct
        assert result.aftermath is not None
        assert all(job.complete for job in result.aftermath.jobs)


def test_counters_agree_with_the_wires_themselves() -> None:
    """The switches' own counters against frames seen on the links, by an independent tap."""
    planned = plan(parse("fat-tree:k=4", WorkloadOptions()), 4, "smc")
    network = wire(planned.topology)
    with FabricTestbed(network, Conditions()) as testbed:
        taps = testbed.fabric.watch(lambda frame: len(frame) > 42 and frame[43] == 1)
        plans = testbed.switches.install([planned.blue], 8)
        values = np.ones((len(network.workers), 10, 32), dtype=np.int32)
        testbed.reduce(plans, [values], Op.REDUCE)
        counts = testbed.switches.link_counts()
    for link in planned.links:
        above = link.parent or network.destination.name
        assert taps[link.switch, above].count == counts[link.switch].first == 10 * link.messages


def test_a_run_is_reproduced_by_its_seed() -> None:
    planned = plan(parse("random-tree:n=20,seed=3", WorkloadOptions()), 4, "smc")
    first, second = (_run(planned, chunks=20, loss=0.1, reorder=0.2, seed=5) for _ in range(2))
    assert first.network_seconds == second.network_seconds
    assert first.outcomes == second.outcomes
    assert first.retransmissions == second.retransmissions > 0


def test_given_blue_switches_are_used() -> None:
    planned = plan_given(FIG1, ["s1", "s6"])
    result = _run(planned, chunks=4)
    assert result.correct
    assert result.measurement.measured == max(Fraction(link.messages) for link in planned.links)


def test_training_on_digits_is_bit_for_bit_the_one_without_a_network() -> None:
    planned = plan(parse("fat-tree:k=4", WorkloadOptions()), 4, "smc")
    result = run.run_digits(planned, RunOptions(op="allreduce"), 20, Console(quiet=True))
    assert result.passed
    assert result.training is not None
    assert result.training.identical
    assert result.training.accuracy[-1] > 0.9
    for row in result.training.strategies:
        assert row.predicted == row.measured
    congestion = {row.strategy: Fraction(row.measured) for row in result.training.strategies}
    assert congestion["smc"] == min(v for s, v in congestion.items() if s != "all-blue")
    assert congestion["all-red"] == max(congestion.values())


def _fat_tree() -> Plan:
    return plan(parse("fat-tree:k=4", WorkloadOptions()), 4, "smc")


def test_a_dead_switch_names_the_workers_that_it_cut_off() -> None:
    after = _run(_fat_tree(), chunks=64, window=8, failure=Failure("edge0-0", 0.5)).aftermath
    assert after is not None
    assert (after.fate, after.workers) == (Fate.CUT_OFF, ("w0", "w1"))
    assert after.text.startswith("switch edge0-0 failed and cuts off w0, w1; chunk")
    (job,) = after.jobs
    assert 32 <= job.completed < 64
    assert (job.complete, job.right) == (False, True)


def test_workers_that_lack_only_the_answer_are_named_too() -> None:
    after = _run(_fat_tree(), chunks=20, window=32, failure=Failure("edge0-0", 0.5)).aftermath
    assert after is not None
    assert "cuts off w0, w1; worker w0: chunk" in after.text


@pytest.mark.parametrize(
    ("part", "op", "roots", "new"),
    [
        ("agg0-0", "allreduce", (), {"agg0-1", "core2", "agg1-1"}),
        ("agg0-0-core0", "reduce", (), {"core1"}),
        ("core0", "allreduce", ("core3",), {"core3"} | {f"agg{pod}-1" for pod in range(4)}),
    ],
)
def test_a_run_goes_round_what_fails(
    part: str, op: str, roots: tuple[str, ...], new: set[str]
) -> None:
    options = {"op": op, "roots": roots, "jobs": 2, "chunks": 24, "window": 4}
    result = _run(_fat_tree(), failure=Failure(part, 0.5), **options)
    after = result.aftermath
    assert after is not None
    assert (after.fate, after.workers, set(after.switches)) == (Fate.WENT_ROUND, (), new)
    assert all(job.complete and job.right for job in after.jobs)
    assert result.passed
    # On the other tree, which carried all chunks from there on.
    assert after.resumed_at is not None
    assert 8 <= after.resumed_at <= 12
    assert result.measurement.differing == ()


def test_a_dead_switch_outside_the_overlay_disturbs_nobody() -> None:
    planned = plan(parse("fat-tree:k=4", WorkloadOptions()), 4, "smc")
    assert _run(planned, chunks=20, failure=Failure("core3", 0.5)).correct


def test_a_tree_without_workers_is_refused() -> None:
    tree = Tree(parent=[-1, 0], rate=[1, 1], load=[0, 0])
    with pytest.raises(BadInputError, match="has no workers"):
        _run(plan(topology_of(tree), 1, "smc"))


@pytest.mark.parametrize(
    "spec", ["fat-tree:k=4", "binary-tree:levels=4", "random-tree:n=15,seed=2"]
)
def test_every_host_pings_every_other(spec: str) -> None:
    network = wire(parse(spec, WorkloadOptions()))
    hosts = (*network.workers, network.destination)
    with FabricTestbed(network, Conditions()) as testbed:
        testbed.switches.install([], window=1)
        for sender in hosts:
            for i, receiver in enumerate(hosts):
                if receiver != sender:
                    testbed.ping(sender, receiver, sequence=i)
        testbed.fabric.run()
        for sender in hosts:
            assert len(testbed.echo_replies(sender)) == len(hosts) - 1
        outcomes = testbed.switches.outcome_counts()
    assert {name for name, count in outcomes.items() if count} == {"ROUTED"}


def test_repetitions_never_outrun_the_links() -> None:
    """Many workers behind one slow link, a small window, loss: once a congestion collapse."""
    tree = Tree(parent=[-1, 0], rate=[1, 1], load=[0, 55])
    result = _run(plan(topology_of(tree), 2, "smc"), chunks=40, window=4, loss=0.1)
    assert result.correct
    assert result.retransmissions < 40 * 55 * 10
