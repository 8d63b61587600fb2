"""Every switch of the overlay dies below a running job, one after the other: `make campaign-heal`;
with `--links` every link is cut, too.

A testbed is brought up as `bluetree up` does, with a second destination, and an endless AllReduce
runs that goes on without the workers it loses. A switch is killed (its process by SIGKILL where it
has one), or a link loses every frame, and the time is taken until chunks become complete again, as
another job or without the workers that are cut off. These must be exactly those that no other way
leads to. Then the part is brought back, the job is ended, every sum must have been right, and the
next part has its turn.

    python -m evaluation.campaign_heal --target bmv2
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from controller.errors import RunFailedError
from controller.live.client import NetworkClient, launch
from controller.service import bluetree_pb2 as api
from controller.service.client import ControllerClient
from controller.service.folder import Folder
from controller.service.launch import end_controllers, start_controller
from evaluation.parts import TARGETS, campaign, parts_of, unreachable

DEADLINE_S = 60.0
CHUNKS = 20
"""So many more complete chunks show that a job goes on."""
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Case:
    """A part that failed: how the job went on, and after how many seconds."""

    target: str
    part: str
    outcome: str
    left_out: tuple[str, ...]
    seconds: float
    fault: str

    @property
    def row(self) -> tuple[str, ...]:
        """It as a line of the table."""
        seconds = f"{self.seconds:.1f}"
        names = " ".join(self.left_out)
        return self.target, self.part, self.outcome, names, seconds, self.fault or "as it must"


def run(hosts: NetworkClient, client: ControllerClient, target: str, part: str) -> Case:
    """Let one part fail; RunFailedError where the job does not go on."""
    choice = api.Choice(k=4)
    order = api.StartJobRequest(op="allreduce", choice=choice, on_worker_loss="continue")
    client.start(order)
    _until(lambda: _last(client).completed > CHUNKS, f"{part}: the job does not begin")
    began = time.monotonic()
    pid = hosts.describe().pids.get(part)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    # Also so that the network knows of it, and brings it back later on.
    hosts.kill(part)
    _until(lambda: _is_changed(client), f"{part}: the job does not go round it")
    seen = _last(client).completed
    _until(lambda: _last(client).completed > seen, f"{part}: the job does not go on")
    seconds = time.monotonic() - began
    _until(lambda: _last(client).completed > seen + CHUNKS, f"{part}: the job does not go on")
    job = _last(client)
    expected = unreachable(hosts.network, part)
    outcome = f"round it, root {job.root}" if job.avoids else "without those cut off"
    hosts.restart(part)
    if part in hosts.network.topology.switches:
        _until(lambda: _is_up(client, part), f"{part}: does not come back")
    ended = client.stop(None).jobs
    fault = ""
    if tuple(job.left_out) != expected:
        fault = f"must leave out {' '.join(expected) or 'nobody'}"
    if not all(one.correct for one in ended):
        fault = "WRONG SUM"
    return Case(target, part, outcome, tuple(job.left_out), seconds, fault)


def _last(client: ControllerClient) -> api.JobStatus:
    """The job as it is now: under its last number."""
    return max(client.status().jobs, key=lambda job: job.job)


def _is_changed(client: ControllerClient) -> bool:
    job = _last(client)
    return job.phase == "running" and bool(job.avoids or job.left_out)


def _is_up(client: ControllerClient, switch: str) -> bool:
    return any(one.name == switch and one.state == "up" for one in client.status().switches)


def _until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RunFailedError(f"{otherwise} within {DEADLINE_S:g} s")
        time.sleep(_POLL_S)


@contextmanager
def _testbed(
    state: Path, target: str, options: argparse.Namespace
) -> Iterator[tuple[NetworkClient, ControllerClient]]:
    words = [word for root in options.root for word in ("--root", root)]
    hosts = launch(state, options.topology, words, target=target)
    folder = Folder(state)
    try:
        start_controller(folder, None)
        with ControllerClient(folder) as client:
            yield hosts, client
    finally:
        end_controllers(folder)
        hosts.down()


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a campaign."""
    parser = argparse.ArgumentParser(prog="campaign_heal", description=__doc__)
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--part", action="append", help="a switch or link, in place of all")
    parser.add_argument("--links", action="store_true", help="also every link of the overlay")
    parser.add_argument("--topology", default="fat-tree:k=4")
    parser.add_argument("--root", action="append", default=[], help="[default: core3]")
    options = parser.parse_args(arguments)
    options.root = options.root or ["core3"]
    return options


def main(arguments: Sequence[str]) -> int:
    """Run on every target that is there, or on those named; 1 where a job does not as it must."""
    options = parse(arguments)

    def cases(target: str) -> Iterator[Case]:
        with (
            tempfile.TemporaryDirectory() as folder,
            _testbed(Path(folder), target, options) as (hosts, client),
        ):
            for part in options.part or parts_of(hosts.network, links=options.links):
                yield run(hosts, client, target, part)

    columns = ("target", "part", "goes on", "left out", "s", "verdict")
    return campaign(options.target, cases, columns, "a part fails below a job")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
