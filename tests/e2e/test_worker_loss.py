"""Workers that die, on the fabric: their jobs fail and name them, or go on without them."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.cli import invoke
from controller.live.client import NetworkClient
from controller.placement import Tree, loads
from controller.service.admission import job_tree
from tests.e2e.moving import MovingNetwork
from tests.testbeds import Bluetree
from tests.unit.controller.trees import topology_of, trees
from topologies import WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.network import wire
from traffic.endpoint import Op

GOES = ["--fail-worker", "w1@0.5", "--on-worker-loss", "continue"]


def goes_on(bluetree: Bluetree) -> None:
    """Some more chunks become complete, with no epoch but the latest under way."""
    before = bluetree.until(lambda job: job["phase"] == "running")["completed"]
    bluetree.until(lambda job: job["completed"] > before + 20)


@pytest.mark.parametrize("op", ["reduce", "allreduce"])
def test_a_job_goes_on_without_the_workers_that_die(bluetree: Bluetree, tree: str, op: str) -> None:
    bluetree("up", tree, "--target", "fabric")
    bluetree("start", "--blue", "r,b", "--op", op, "--on-worker-loss", "continue")
    bluetree.until(lambda job: job["completed"] > 20)
    with NetworkClient(bluetree.folder) as network:
        network.kill("w4")
        job = bluetree.until(lambda job: job["left_out"] == ["w4"])
        goes_on(bluetree)
        # All that is below a switch, and all but one of those below another.
        for name in ("w1", "w2", "w3"):
            network.kill(name)
        bluetree.until(lambda job: job["left_out"] == ["w1", "w2", "w3", "w4"])
        goes_on(bluetree)
        job = bluetree.until(lambda job: job["workers"] == 2)
    assert job["stuck"] is None
    bluetree("reallocate", "--blue", "a")
    goes_on(bluetree)
    (stopped,) = bluetree("stop")["jobs"]
    assert (stopped["correct"], stopped["phase"]) == (True, "finished")
    # What was in flight left twice, so there is nothing to compare totals with.
    assert stopped["links"] == []
    assert stopped["not_compared"].startswith("w4 left out at chunk ")


def test_a_job_that_cannot_go_on_without_a_worker_fails_and_names_it(
    bluetree: Bluetree, tree: str
) -> None:
    """One that needs them all, and one that has lost its last."""
    bluetree("up", tree, "--target", "fabric")
    bluetree("start", "--blue", "r", "--workers", "w1,w4,w5")
    bluetree("start", "--workers", "w0", "--blue", "", "--on-worker-loss", "continue")
    for number in (1, 2):
        bluetree.until(lambda job: job["completed"] > 20, number)
    with NetworkClient(bluetree.folder) as network:
        network.kill("w5")
        network.kill("w0")
    began = time.monotonic()
    for number, worker in ((1, "w5"), (2, "w0")):
        job = bluetree.until(lambda job: job["phase"] == "failed", number)
        assert f"host {worker} was killed" in job["detail"]
        # What it came to stays.
        assert (job["completed"] > 20, job["correct"]) == (True, True)
    said = bluetree("stop", exit_code=1)["stderr"]
    assert said.startswith("bluetree: job 1: host w5 was killed")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("op", "jobs", "fraction"), [("reduce", 2, 0.5), ("allreduce", 1, 0.5), ("allreduce", 1, 1)]
)
def test_a_run_goes_on_with_a_destination_that_starts_anew(
    capsys: pytest.CaptureFixture[str], tree: str, op: str, jobs: int, fraction: float
) -> None:
    """Chunks that were complete stay so, and every link carries what was predicted."""
    words = ["run", tree, "--blue", "r,b", "--op", op, "--chunks", "60", "--target", "fabric"]
    words += ["--jobs", str(jobs), "--fail", f"destination@{fraction}"]
    assert invoke([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["correct"], document["failure"]["fate"]) == (True, "resumed")
    assert [job["completed"] for job in document["failure"]["jobs"]] == [60] * jobs
    assert all(link["measured"] == link["predicted"] for link in document["links"])
    # What was under way is gone, and comes again.
    assert (document["retransmissions"] > 0) == (fraction < 1 or op == "allreduce")
    assert invoke(words) == 0
    assert "the destination died: it started anew" in capsys.readouterr().out


@pytest.mark.parametrize("op", ["reduce", "allreduce"])
def test_a_destination_that_starts_anew_has_what_it_had(
    bluetree: Bluetree, tree: str, op: str
) -> None:
    bluetree("up", tree, "--target", "fabric")
    bluetree("start", "--blue", "r,b", "--op", op, "--on-worker-loss", "continue")
    with NetworkClient(bluetree.folder) as network:
        for blue in ("a", "r"):
            goes_on(bluetree)
            before = bluetree("status")["jobs"][0]["completed"]
            network.kill("destination")
            network.restart("destination")
            assert bluetree.until(lambda job: job["correct"])["completed"] >= before
            goes_on(bluetree)
            bluetree("reallocate", "--blue", blue)
        network.kill("w2")
        bluetree.until(lambda job: job["left_out"] == ["w2"])
        network.kill("destination")
        network.restart("destination")
        goes_on(bluetree)
    (stopped,) = bluetree("stop")["jobs"]
    assert (stopped["correct"], stopped["phase"]) == (True, "finished")
    assert not list((bluetree.folder / "journals").iterdir())


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(
    tree=trees(max_switches=6, max_load=3).filter(lambda tree: sum(tree.load) > 2),
    faults=st.sampled_from([(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.1, 0.1, 0.2)]),
    seed=st.integers(0, 10**6),
)
def test_workers_that_go_at_any_moment_and_not_all_silently_and_come_back(
    tree: Tree, faults: tuple[float, float, float], seed: int
) -> None:
    """Over links that lose; allocations change in between. All sums are right, everywhere."""
    rng = random.Random(seed)
    network = wire(topology_of(tree))
    with MovingNetwork(network, Conditions(*faults, seed), rng) as moving:
        moving.add(1, _any_blue(rng, tree), rng.choice(list(Op)))
        for _ in range(3):
            moving.run(rng.randrange(1, 400))
            away = moving.jobs[1].gone
            left = [host.rank for host in network.workers if host.rank not in away]
            if len(left) > 1:
                gone = rng.sample(left, rng.randrange(1, len(left)))
                moving.exclude(1, frozenset(gone), kill=rng.random() < 0.5)
            moving.run(rng.randrange(1, 400))
            away = moving.jobs[1].gone
            if away and rng.random() < 0.7:
                back = rng.sample(sorted(away), rng.randint(1, len(away)))
                moving.readmit(1, frozenset(back))
                moving.run(rng.randrange(1, 400))
            moving.move(1, _any_blue(rng, tree))
        moving.remove(1)


def test_links_follow_the_prediction_without_the_workers_that_go_and_with_them() -> None:
    network = wire(parse("fat-tree:k=4", WorkloadOptions()))
    with MovingNetwork(network, Conditions(), random.Random(4)) as moving:
        moving.add(1, frozenset({1, 2}), Op.ALLREDUCE)
        moving.run(5_000)
        term = moving.exclude(1, frozenset({3, 9}), kill=True)
        moving.run(5_000)
        first = moving.readmit(1, frozenset({3, 9}))
        moving.run(3_000)
        end = moving.end(1)
        (counted, _), with_them = moving.measured(1, end)[-2:]
        own = first - term.from_chunk - len(term.kept)
        assert own > 10
        assert end > first + 10
        assert with_them[0] == with_them[1]
        left = [host.rank for host in network.workers if host.rank not in term.absent]
        tree = job_tree(network.topology, left, network)
        messages = loads(tree, frozenset({1, 2})).messages
        names = network.topology.overlay.names
        assert counted == {name: own * messages[v] for v, name in enumerate(names)}


def _any_blue(rng: random.Random, tree: Tree) -> frozenset[int]:
    return frozenset(v for v in range(tree.n) if rng.random() < 0.4)


@pytest.mark.parametrize("fraction", ["0", "0.5", "0.97"])
def test_a_run_goes_on_without_a_worker(
    tree: str, fraction: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", tree, "--blue", "r,b", "--target", "fabric", "--op", "allreduce"]
    words += ["--chunks", "64", "--jobs", "2", "--fail-worker", f"w4@{fraction}"]
    assert invoke([*words, "--on-worker-loss", "continue", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    failure = document["failure"]
    assert (document["correct"], failure["fate"], failure["cut_off"]) == (True, "went on", ["w4"])
    # Half of both jobs' chunks are complete when it dies, so as many are without it.
    without = sum(job["without"] for job in failure["jobs"])
    assert abs(without - 128 * (1 - float(fraction))) <= 1
    # What is in flight when it dies is not counted twice.
    assert all(link["measured"] == link["predicted"] for link in document["links"])
    assert invoke(words) == 4
    assert "worker w4 failed; " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("op", "at", "faults"),
    [
        ("allreduce", "0.6", []),
        ("reduce", "0.3", []),
        ("allreduce", "0.5", ["--loss", "0.05", "--duplicate", "0.05", "--reorder", "0.1"]),
    ],
)
def test_a_worker_comes_back_into_a_run(
    tree: str, op: str, at: str, faults: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", tree, "--blue", "r,b", "--target", "fabric", "--op", op, "--chunks", "200"]
    words += ["--jobs", "2", "--fail-worker", "w4@0.3", "--on-worker-loss", "continue", *faults]
    assert invoke([*words, "--rejoin-worker", f"w4@{at}", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["correct"], document["failure"]["fate"]) == (True, "went on")
    for job in document["failure"]["jobs"]:
        everyone, others = job["sums"]
        assert (everyone["left_out"], others["left_out"]) == ([], ["w4"])
        # Every chunk is of one of the two, those from its return on are of everyone.
        runs = sorted(everyone["chunks"] + others["chunks"])
        assert [first for first, _ in runs] == [0, *(last + 1 for _, last in runs[:-1])]
        assert runs[-1] == [job["back_at"], 199]
        assert job["without"] == sum(last - first + 1 for first, last in others["chunks"]) > 0
    if not faults:
        assert all(link["measured"] == link["predicted"] for link in document["links"])


def test_a_worker_that_comes_back_too_late_for_any_chunk_has_no_part_in_one(
    tree: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", tree, "-k", "1", "--target", "fabric", "--fail-worker", "w4@0.5"]
    assert invoke([*words, "--on-worker-loss", "continue", "--rejoin-worker", "w4@1"]) == 0
    assert "16 of 32 chunks are summed without it" in capsys.readouterr().out


def test_a_run_whose_every_chunk_is_complete_says_why_it_failed(
    tree: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker that dies with its last chunk in flight."""
    words = ["run", tree, "-k", "1", "--target", "fabric", "--chunks", "8", "--window", "8"]
    assert invoke([*words, "--fail-worker", "w4@0.5"]) == 4
    said = capsys.readouterr().err
    assert "w4 has no answer (8 of 8 chunks complete, each right, at the destination; " in said
    assert "w4 had sent all that it had, and lacks answers)" in said


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--fail-worker", "w9@0.5"], "has no such worker; there are w0 to w5"),
        (["--fail-worker", "w1"], "write WORKER@FRACTION"),
        (["--fail-worker", "w1@0.5", "--fail", "a@0.5"], "one thing fails at a time"),
        (["--on-worker-loss", "continue"], "say which one dies with --fail-worker"),
        (["--rejoin-worker", "w1@0.5"], "who comes back has died before"),
        (["--fail-worker", "w1@0.5", "--rejoin-worker", "w1@0.8"], "--on-worker-loss continue"),
        ([*GOES, "--rejoin-worker", "w2@0.8"], "it is w1 that dies"),
        ([*GOES, "--rejoin-worker", "w1"], "write WORKER@FRACTION"),
        ([*GOES, "--rejoin-worker", "w1@0.4"], "it dies later, at 0.5"),
    ],
)
def test_what_cannot_die_is_refused(
    tree: str, words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["run", tree, "-k", "1", "--target", "fabric", *words]) == 2
    assert text in capsys.readouterr().err
