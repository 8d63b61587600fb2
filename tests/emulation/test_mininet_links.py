"""Links and queues over Mininet: rates that hold, and queues that let go so much a second."""

from __future__ import annotations

import subprocess

import pytest

from controller.mininet_testbed import MininetTestbed
from controller.planning import plan
from controller.queues import QueueSettings
from tests.emulation.runs import command, run
from topologies import WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.network import wire
from traffic.endpoint import Op
from traffic.workloads import exact_sums, synthetic

FRAME_BITS = 1520
"""A contribution of 32 lanes, Ethernet header included."""
BURST_BITS = 8 * 1600
"""What a shaped link lets go at once."""


@pytest.mark.parametrize("strategy", ["all-red", "all-blue"])
def test_congestion_is_time_on_shaped_links(target: str, tree: str, strategy: str) -> None:
    """6 workers: all-red sends 6 messages a chunk to the destination, all-blue 1."""
    chunks, base = 60, 400_000
    document = run(
        tree, "-k", "3", "--strategy", strategy, "--target", target,
        "--chunks", str(chunks), "--link-rate", str(base),
    )  # fmt: skip
    assert document["congestion"]["predicted"] == document["congestion"]["measured"]
    assert document["retransmissions"] == 0
    messages = {"all-red": 6, "all-blue": 1}[strategy]
    least = (messages * chunks * FRAME_BITS - BURST_BITS) / base
    assert 0.9 * least < document["network_seconds"] < 2.5 * least


def test_sums_are_right_over_faulty_links(target: str, tree: str) -> None:
    document = run(
        tree, "-k", "1", "--target", target, "--op", "allreduce", "--chunks", "40",
        "--loss", "0.05", "--duplicate", "0.1", "--reorder", "0.1", "--seed", "3",
    )  # fmt: skip
    assert document["correct"] is True
    assert document["retransmissions"] > 0


def test_every_link_doubles_every_frame(target: str) -> None:
    """A worker's message passes two links to the count of its switch's, four at the root's."""
    document = run(
        "binary-tree:levels=2", "--workers", "1", "-k", "0", "--strategy", "all-red",
        "--target", target, "--chunks", "30", "--duplicate", "1",
    )  # fmt: skip
    measured = {link["switch"]: link["measured"] for link in document["links"]}
    assert measured == {"s0": 8, "s1": 2, "s2": 2}


def test_a_rate_that_the_kernel_cannot_hold_is_refused(target: str, tree: str) -> None:
    arguments = command(tree, "-k", "1", "--target", target, "--link-rate", "1k")
    done = subprocess.run(arguments, capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--link-rate: link r -> destination" in done.stderr


def test_queues_have_their_rate(target: str) -> None:
    """The root hands 4 unsummed messages a chunk to a port that lets 200 a second go."""
    chunks, packets_per_second = 50, 200
    planned = plan(parse("binary-tree:levels=1", WorkloadOptions(workers="4")), 0, "all-red")
    values = synthetic(4, chunks, seed=1)
    settings = QueueSettings(queues=2, rate=packets_per_second, depth=200)
    network = wire(planned.topology)
    with MininetTestbed(network, target, Conditions(), settings) as testbed:
        (job,) = testbed.switches.install([planned.blue], window=16)
        (outcome,) = testbed.reduce([job], [values], Op.REDUCE)
    assert outcome.is_right(exact_sums(values))
    assert outcome.resent == 0
    least = (4 * chunks - 1) / packets_per_second
    assert 0.9 * least < testbed.busy / 1e9 < 2 * least
