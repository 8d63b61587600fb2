"""Networks over Mininet, measured in one run: `make bench-testbed`, as root.

  allreduce     an AllReduce of 1,344 int32 (42 chunks): 2 workers on one switch, and the 16 workers
                of a fat-tree of 4 ports; repeated, milliseconds from the first frame until the last
                worker has its last result
  start-up      seconds for namespaces and links, from the first switch process until all switches
                have answered an RPC, and altogether; memory of switches and hosts, shared pages
                counted once
  reallocation  milliseconds from a reallocation's command until the first chunk under the new
                placement is answered, while a job runs

on softswitch and on bmv2, logging off, whatever of them is there. The machine may be busy with
other things: best, median and worst are printed, and the load. A median that misses its aim makes
it exit with 1.

    python -m evaluation.bench_testbed [--repeats 20] [--large] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from controller import targets
from controller.errors import BluetreeError
from controller.live.network import resident_bytes
from controller.mininet_running import RunningMininet
from controller.mininet_testbed import MininetTestbed
from controller.p4rt import connect_blocking
from controller.planning import Plan, plan
from controller.running import RunOptions
from evaluation import campaign_reallocate
from p4src import artefacts
from topologies import WorkloadOptions, parse
from topologies.mininet_plan import LinkPlan
from topologies.network import wire
from traffic.endpoint import Op
from traffic.workloads import exact_sums, synthetic

CHUNKS = 42
ONE_SWITCH, FAT_TREE, LARGE = "binary-tree:levels=1", "fat-tree:k=4", "fat-tree:k=8"
WORKERS = {ONE_SWITCH: "2", FAT_TREE: None, LARGE: None}
AIM_MS = {ONE_SWITCH: 80.0, FAT_TREE: 1_500.0}
AIM_START_S = {FAT_TREE: 2.0, LARGE: 12.0}
"""For 20 and 80 bmv2 switches to answer an RPC."""
TARGETS = (targets.SOFTSWITCH, targets.BMV2)


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: values in `unit`, what is aimed at, and the load of the machine while measuring."""

    what: str
    target: str
    network: str
    unit: str
    values: tuple[float, ...]
    aim: float | None
    load: float

    @property
    def best(self) -> float:
        """The smallest."""
        return min(self.values)

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    @property
    def missed(self) -> bool:
        """Whether the median is above the aim."""
        return self.aim is not None and self.median > self.aim


def _planned(spec: str) -> Plan:
    return plan(parse(spec, WorkloadOptions(workers=WORKERS[spec])), 4, "smc")


def allreduce(target: str, spec: str, repeats: int) -> Figure:
    """Time AllReduces on one network that stays up; RuntimeError where a sum is wrong."""
    planned = _planned(spec)
    network = wire(planned.topology)
    times = []
    with MininetTestbed(network, target) as testbed:
        window = targets.window(target, RunOptions(), planned.topology.overlay.tree)
        (job,) = testbed.switches.install([planned.blue], window)
        for seed in range(repeats):
            values = synthetic(len(network.workers), CHUNKS, seed)
            before = testbed.busy
            (outcome,) = testbed.reduce([job], [values], Op.ALLREDUCE)
            times.append((testbed.busy - before) / 1e6)
            if not outcome.is_right(exact_sums(values)):
                raise RuntimeError(f"{spec} on {target}: a sum is wrong")
    what = f"allreduce, {len(network.workers)} workers, window {window}"
    return Figure(what, target, spec, "ms", tuple(times), AIM_MS[spec], os.getloadavg()[0])


def start_up(target: str, spec: str, repeats: int) -> Iterator[Figure]:
    """Bring a network up and take it down again, several times."""
    network = wire(_planned(spec).topology)
    rows: dict[str, list[float]] = {}
    for _ in range(repeats):
        began = time.monotonic()
        with RunningMininet(network, target, LinkPlan(), None) as up:
            with connect_blocking(up.addresses, artefacts.load(), deadline=60.0) as fleet:
                answered = time.monotonic()
                fleet.push()
                pids = up.pids()
                seconds = {
                    "namespaces and links": up.times.built - up.times.began,
                    "switches answer an RPC": answered - up.times.built,
                    "up, with the program": time.monotonic() - began,
                }
                for part, names in (
                    ("switches", network.topology.switches),
                    ("hosts", [host.name for host in network.workers]),
                ):
                    seconds[f"MiB of {len(names)} {part}"] = (
                        resident_bytes([pids[name] for name in names]) / 2**20
                    )
            leaving = time.monotonic()
        seconds["taken down"] = time.monotonic() - leaving
        for what, value in seconds.items():
            rows.setdefault(what, []).append(value)
    for what, values in rows.items():
        aim = None
        if target == targets.BMV2 and what == "switches answer an RPC":
            aim = AIM_START_S[spec]
        unit = "MiB" if what.startswith("MiB") else "s"
        yield Figure(what, target, spec, unit, tuple(values), aim, os.getloadavg()[0])


def reallocation(target: str, count: int) -> Figure:
    """Reallocate a running job again and again; see `evaluation.campaign_reallocate`."""
    options = campaign_reallocate.parse(["--topology", FAT_TREE, "--count", str(count)])
    outcome = campaign_reallocate.run(target, options)
    if not outcome.passed:
        raise RuntimeError(f"reallocation on {target}: a sum or a link is wrong")
    aim = float(campaign_reallocate.AIM_MS[target])
    return Figure(
        "reallocation", target, FAT_TREE, "ms", outcome.first_chunk, aim, os.getloadavg()[0]
    )


def _measure(options: argparse.Namespace, present: Sequence[str]) -> Iterator[Figure]:
    for spec in (ONE_SWITCH, FAT_TREE):
        for target in present:
            yield allreduce(target, spec, options.repeats)
    for target in present:
        yield from start_up(target, FAT_TREE, options.starts)
    if options.large:
        for target in present:
            yield from start_up(target, LARGE, 1)
    for target in present:
        yield reallocation(target, options.repeats)


def shown(figures: Sequence[Figure]) -> Table:
    """A row a figure."""
    table = Table()
    for heading in ("what", "on", "network", "best", "median", "worst", "of", "aim", "load"):
        table.add_column(heading, justify="left" if heading in ("what", "on") else "right")
    for one in figures:
        digits = 2 if one.unit == "s" else 1
        aim = "" if one.aim is None else f"< {one.aim:g} {one.unit}" + (" MISSED" * one.missed)
        table.add_row(
            one.what,
            one.target,
            one.network,
            *(f"{v:.{digits}f} {one.unit}" for v in (one.best, one.median, max(one.values))),
            str(len(one.values)),
            aim,
            f"{one.load:.1f}",
        )
    return table


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 if an aim is missed, 3 if nothing can be measured here."""
    parser = argparse.ArgumentParser(prog="bench_testbed", description=__doc__)
    parser.add_argument("--repeats", type=int, default=20, help="AllReduces, and reallocations")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--large", action="store_true", help=f"start {LARGE} as well")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    console = Console(stderr=options.json, width=None if sys.stdout.isatty() else 150)
    reasons = {target: targets.why_not(target) for target in TARGETS}
    for reason in reasons.values():
        if reason is not None:
            console.print(f"*** ABSENT: {reason} ***")
    present = [target for target in TARGETS if reasons[target] is None]
    if not present:
        return 3
    try:
        figures = list(_measure(options, present))
    except BluetreeError as error:
        console.print(f"bench_testbed: {error}")
        return error.exit_code
    if options.json:
        print(json.dumps([asdict(figure) for figure in figures], indent=2))
    else:
        console.print(shown(figures))
    return 1 if any(figure.missed for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
