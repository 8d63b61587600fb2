"""Reallocations between random placements under continuous traffic: `make campaign-reallocate`.

A testbed is brought up as `bluetree up` does, an endless AllReduce starts, and its blue switches
are changed again and again to random ones, at random moments. At the end the job is stopped. Every
sum is compared at every worker and at the destination; what each link has carried is compared with
what the model says of each allocation's own chunks. The time is from when the controller was asked
until the first chunk of the new epoch was answered at some worker.

    python -m evaluation.campaign_reallocate --target fabric --count 200
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from controller import targets
from controller.errors import BluetreeError
from controller.live.client import NetworkClient, launch
from controller.service import bluetree_pb2 as api
from controller.service.client import ControllerClient
from controller.service.folder import Folder
from controller.service.launch import end_controllers, start_controller
from topologies.network import Network

TARGETS = (targets.FABRIC, targets.SOFTSWITCH, targets.BMV2)
AIM_MS = {targets.FABRIC: 100, targets.SOFTSWITCH: 300, targets.BMV2: 300}
FABRIC_WINDOW = 8
"""Chunks in flight on the fabric: what is in flight goes first, and takes its time there."""
FAULTS = ("loss", "duplicate", "reorder")
LONGEST_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a campaign on one target found; times in milliseconds, one a reallocation."""

    target: str
    switches: int
    workers: int
    window: int
    chunks: int
    correct: bool
    differing: tuple[str, ...]
    resent: int
    first_chunk: tuple[float, ...]
    whole: tuple[float, ...]
    steps: tuple[Mapping[str, float], ...]

    @property
    def passed(self) -> bool:
        """Whether every sum was right and every link carried what was predicted.

        Repetitions are counted apart, but a first message that is lost is missing on the links
        above: with them links are not compared.
        """
        return self.correct and (not self.differing or self.resent > 0)


def run(target: str, options: argparse.Namespace) -> Outcome:
    """One target; raises BluetreeError where it does not come up or fails."""
    rng = random.Random(options.seed)
    window = options.window or (FABRIC_WINDOW if target == targets.FABRIC else None)
    with tempfile.TemporaryDirectory() as state, _testbed(Path(state), target, options) as up:
        network, client = up
        started = client.start(
            api.StartJobRequest(
                op="allreduce", seed=options.seed, window=window, choice=_any(network, rng)
            )
        )
        changes = []
        for _ in range(options.count):
            time.sleep(rng.uniform(0, LONGEST_PAUSE_S))
            request = api.ReallocateRequest(job=started.job, choice=_any(network, rng))
            changes.append(client.reallocate(request))
        (job,) = client.stop(started.job).jobs
        return Outcome(
            target=target,
            switches=len(network.topology.switches),
            workers=job.workers,
            window=job.window,
            chunks=job.completed,
            correct=job.correct and not job.detail.startswith("worker"),
            differing=tuple(
                f"{link.switch} {link.messages} != {link.expected}"
                for link in job.links
                if link.messages != link.expected
            ),
            resent=job.retransmissions,
            first_chunk=tuple(1e3 * change.first_chunk_after for change in changes),
            whole=tuple(1e3 * change.seconds for change in changes),
            steps=tuple(
                {step.name: 1e3 * step.seconds for step in change.steps} for change in changes
            ),
        )


def _any(network: Network, rng: random.Random) -> api.Choice:
    """Any set of switches of the tree."""
    names = network.topology.overlay.names
    share = rng.random()
    return api.Choice(blue=[name for name in names if rng.random() < share], given=True)


@contextmanager
def _testbed(
    state: Path, target: str, options: argparse.Namespace
) -> Iterator[tuple[Network, ControllerClient]]:
    words = [word for fault in FAULTS for word in (f"--{fault}", str(getattr(options, fault)))]
    if options.workers:
        words += ["--workers", options.workers]
    hosts: NetworkClient = launch(state, options.topology, words, target=target)
    folder = Folder(state)
    try:
        start_controller(folder, None)
        with ControllerClient(folder) as client:
            yield hosts.network, client
    finally:
        end_controllers(folder)
        hosts.down()


def shown(outcomes: Sequence[Outcome]) -> Table:
    """The distributions, a row a target."""
    table = Table(title="command to first chunk under the new epoch, ms")
    for heading in (
        "target", "switches", "workers", "window", "changes", "chunks", "sums", "links", "resent",
        "min", "p50", "p90", "p99", "max", "aim", "whole p50",
    ):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "target" else "right")
    for one in outcomes:
        first = sorted(one.first_chunk)
        cells = [one.switches, one.workers, one.window, len(first), one.chunks]
        table.add_row(
            one.target,
            *map(str, cells),
            "right" if one.correct else "WRONG",
            f"{len(one.differing)} differ" if one.differing else "predicted",
            str(one.resent),
            *(f"{quantile(first, q):.0f}" for q in (0, 0.5, 0.9, 0.99, 1)),
            f"< {AIM_MS[one.target]}",
            f"{quantile(one.whole, 0.5):.0f}",
        )
    return table


def shown_steps(outcomes: Sequence[Outcome]) -> Table:
    """How long each step takes; and those of the change whose first chunk was the last to come."""
    table = Table(title="steps of a change, ms")
    for heading in ("target", "step", "p50", "p90", "p99", "max", "of the slowest"):
        table.add_column(heading, justify="left" if heading in ("target", "step") else "right")
    for one in outcomes:
        slowest = one.steps[max(range(len(one.steps)), key=one.first_chunk.__getitem__)]
        for name in slowest:
            times = [steps[name] for steps in one.steps]
            cells = [*(quantile(times, q) for q in (0.5, 0.9, 0.99, 1)), slowest[name]]
            table.add_row(one.target, name, *(f"{cell:.1f}" for cell in cells))
    return table


def quantile(values: Sequence[float], share: float) -> float:
    """The value that a share of them does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a campaign."""
    parser = argparse.ArgumentParser(prog="campaign_reallocate", description=__doc__)
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--topology", default="fat-tree:k=4")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--window", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers")
    for fault in FAULTS:
        parser.add_argument(f"--{fault}", type=float, default=0.0)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run on every target that is there, or on those named; 1 where a check fails."""
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else 170)
    outcomes = []
    for target in options.target or TARGETS:
        reason = targets.why_not(target)
        if reason is not None:
            console.print(f"*** ABSENT: {reason} ***")
            continue
        try:
            outcomes.append(run(target, options))
        except BluetreeError as error:
            console.print(f"{target}: {error}")
            return error.exit_code
        for link in outcomes[-1].differing if not outcomes[-1].resent else ():
            console.print(f"{target}: {link}")
    console.print(shown(outcomes))
    console.print(shown_steps([outcome for outcome in outcomes if outcome.steps]))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
