"""`bluetree launch`: a network, a process for each of its workers, and what they summed."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rich.console import Console

from controller import targets
from controller.errors import BadInputError
from controller.fabric_testbed import FabricTestbed
from controller.measurement import LinkCount
from controller.mininet_testbed import MininetTestbed
from controller.planning import Plan
from controller.ranks.processes import RankCommand, RankProcesses
from controller.ranks.serving import serve
from controller.running import RunOptions
from topologies import mnexec
from topologies.mininet_net import HOST_INTERFACE
from topologies.network import Network, ip_text, wire
from traffic.collectives.link import ADDRESS, ON_LOSS, RANK, SIZE, OnLoss

SCRATCH = "BLUETREE_SCRATCH"
"""Environment variable of a rank: a folder that all ranks of a launch share while it runs."""


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """What a launch came to.

    Attributes:
        lost: how ranks ended, by rank, that did not end well, or that some calls went on without.
        calls: collective calls, over all jobs.
        chunks: messages that each rank sent first.
        lanes: int32 values in a message.
        resent: repetitions, by all ranks.
        links: messages that every overlay switch sent to its parent.
        network_seconds: while calls were carried out, on the network's clock: virtual on the
            fabric, real over Mininet, where calls of several jobs that overlap count each.
        seconds: wall clock, from start to end.
    """

    target: str
    plan: Plan
    switches: int
    ranks: int
    lost: Mapping[int, str]
    jobs: int
    calls: int
    chunks: int
    lanes: int
    resent: int
    links: Mapping[str, LinkCount]
    outcomes: Mapping[str, int]
    network_seconds: float
    seconds: float


def launch(
    planned: Plan,
    options: RunOptions,
    target: str,
    command: Sequence[str],
    patience: float,
    console: Console,
    stdout: IO[str] | None = None,
    on_loss: OnLoss = OnLoss.FAIL,
) -> LaunchResult:
    """Run `command` once a worker, with what `Communicator.from_env` needs, until all have ended.

    Of the options: jobs, window, loss, duplicate, reorder, seed, link rate, build. Raises
    RunFailedError naming the first rank that fails.
    """
    start = time.perf_counter()
    if shutil.which(command[0]) is None:
        raise BadInputError(
            f"{command[0]}: there is no such program; name one after --, such as: "
            "-- python train.py"
        )
    network = wire(planned.topology, build=options.build)
    if not network.workers:
        raise BadInputError(f"{planned.topology.name}: has no workers; give it some with --workers")
    with ExitStack() as stack:
        with console.status(f"bringing up {len(network.topology.switches)} switches ({target})"):
            testbed = stack.enter_context(targets.bring_up(network, target, options))
        window = targets.window(target, options, planned.topology.overlay.tree)
        plans = testbed.switches.install([planned.blue] * options.jobs, window)
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bluetree-ranks-")))
        address = scratch / "network"
        commands = rank_commands(network, testbed, command, address, on_loss)
        with serve(testbed, plans, address, patience) as (server, served):
            with RankProcesses(commands, stdout) as ranks:
                goes_on = on_loss is OnLoss.CONTINUE
                lost = ranks.wait(lambda: server.blamed, lambda: server.left_out, goes_on=goes_on)
            calls = server.calls
            lost = _with_left_out(lost, server.went_without)
        outcomes = testbed.switches.outcome_counts()
        return LaunchResult(
            target=target,
            plan=planned,
            switches=len(network.topology.switches),
            ranks=len(network.workers),
            lost=lost,
            jobs=options.jobs,
            calls=calls,
            chunks=served.chunks,
            lanes=options.build.lanes,
            resent=served.resent,
            links=testbed.switches.link_counts(),
            outcomes={name: count for name, count in outcomes.items() if count},
            network_seconds=served.network_ns / 1e9,
            seconds=time.perf_counter() - start,
        )


def _with_left_out(lost: Mapping[int, str], without: Collection[int]) -> Mapping[int, str]:
    """Ranks that did not end well, and those that calls went on without and that ended well."""
    well = dict.fromkeys(without, "was left out, and ended with exit code 0")
    both = well | dict(lost)
    return {rank: both[rank] for rank in sorted(both)}


def rank_commands(
    network: Network,
    testbed: FabricTestbed | MininetTestbed,
    command: Sequence[str],
    address: Path,
    on_loss: OnLoss = OnLoss.FAIL,
) -> list[RankCommand]:
    """What is started as each rank; over Mininet in the network namespace of its host.

    Beside what a Communicator needs, ranks get what torch.distributed's own process groups read.
    """
    size = len(network.workers)
    shared = {SIZE: str(size), ADDRESS: str(address), SCRATCH: str(address.parent)}
    shared[ON_LOSS] = on_loss.value
    if isinstance(testbed, FabricTestbed):
        shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
        enter: dict[str, tuple[str, ...]] = {host.name: () for host in network.workers}
    else:
        shared |= {"MASTER_ADDR": ip_text(network.workers[0].ip), "MASTER_PORT": "29500"}
        shared |= {"GLOO_SOCKET_IFNAME": HOST_INTERFACE}
        # Ranks take the place of the processes that were started on the workers' hosts.
        testbed.running.hosts.dismiss([host.name for host in network.workers])
        pids = testbed.running.namespaces()
        enter = {
            host.name: (*mnexec.command(), "-a", str(pids[host.name])) for host in network.workers
        }
    return [
        RankCommand((*enter[host.name], *command), shared | {RANK: str(host.rank)})
        for host in network.workers
    ]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
