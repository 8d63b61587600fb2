"""How long an AllReduce takes, by the switches and without them.

    python -m evaluation.bench_allreduce

First on the fabric's virtual clock, where links are all that limits: float32 over 4, 8 and 16
workers under 7 switches, every link 100 Mbit/s, messages of 240 lanes. Then in real time over
Mininet, as root: an AllReduce by a Communicator, with messages of 32 lanes and of 240, and by
PyTorch's gloo over the same links.

Exit code 1 if all-blue of 16 MiB over 16 workers misses its marks, 3 if it cannot be measured here.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from evaluation.allreduce_fabric import METHODS, Bench, Time, WrongSumError, bench
from evaluation.allreduce_mininet import RealTime, measure_mininet, why_not
from p4src import artefacts
from p4src.builds import NARROW, WIDE, Build
from topologies import WorkloadOptions, parse
from topologies.network import wire
from traffic.message import ETHERNET_BYTES, HEADER_BYTES, IPV4_BYTES, LANE_BYTES, UDP_BYTES

TOPOLOGY = "binary-tree:levels=3"
RATE = 100_000_000
WORKERS = (4, 8, 16)
MIB = (1, 4, 16)
BETWEEN = Build(lanes=64, words=1)
"""Made by p4c, for comparison only."""
MOST_OVER_BYTES, LEAST_RING, LEAST_SERVER = 1.15, 1.6, 20.0
_HEADERS = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + HEADER_BYTES
_MIB_BYTES = 1 << 20
IDEAL_RING = "ideal ring: 2(n-1)/n x bytes / rate"


@dataclass(frozen=True, slots=True)
class Row:
    """One method for one size and number of workers.

    Attributes:
        seconds: virtual.
        over_bytes: in units of the array's bytes over the rate of a link.
        over_wire: the same with the bytes of all frames of the array, headers too.
        share: of all-blue's speed.
        busiest: bytes on the busiest link over those of the array; None of a formula.
    """

    workers: int
    mib: int
    lanes: int | None
    method: str
    blue: int | None
    seconds: float
    over_bytes: float
    over_wire: float | None
    share: float
    busiest: float | None

    @property
    def of_ring(self) -> float:
        """Of an ideal ring's speed."""
        return 2 * (self.workers - 1) / self.workers / self.over_bytes


def rows(build: Build) -> Iterator[Row]:
    """All rows of a committed build, for every number of workers."""
    for workers in WORKERS:
        with _up(workers, build, artefacts.load(artefacts.folder_of(build))) as up:
            yield from _of_network(up, workers, build)


def _up(workers: int, build: Build, program: artefacts.Artefacts) -> AbstractContextManager[Bench]:
    options = WorkloadOptions(workers=str(workers // 4), rates=None, seed=0)
    return bench(wire(parse(TOPOLOGY, options), build=build), RATE, program)


def _of_network(up: Bench, workers: int, build: Build) -> Iterator[Row]:
    for mib in MIB:
        times = {}
        for method in METHODS:
            _say(f"{workers} workers, {mib} MiB, {method}")
            times[method] = up.measure(method, values(workers, mib))
        best = times["all-blue"].seconds
        for method, time in times.items():
            yield _row(workers, mib, build, method, time, best)
        ring = 2 * (workers - 1) / workers
        ideal = ring * mib * _MIB_BYTES * 8 / RATE
        yield Row(workers, mib, None, IDEAL_RING, None, ideal, ring, None, best / ideal, None)


def _row(workers: int, mib: int, build: Build, method: str, time: Time, best: float) -> Row:
    over = time.seconds * RATE / (mib * _MIB_BYTES * 8)
    is_ours = time.blue is not None
    return Row(
        workers,
        mib,
        build.lanes if is_ours else None,
        method,
        time.blue,
        time.seconds,
        over,
        over / (1 + _HEADERS / (build.lanes * LANE_BYTES)) if is_ours else None,
        best / time.seconds,
        time.busiest_bytes / (mib * _MIB_BYTES),
    )


def values(workers: int, mib: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """float32 [workers, elements] of several magnitudes."""
    rng = np.random.default_rng(workers)
    return rng.standard_normal((workers, mib * _MIB_BYTES // 4), dtype=np.float32)


def narrow_rows() -> Iterator[Row]:
    """All-blue with messages of 32 lanes, and of 64 where p4c is: 1 MiB, 16 workers."""
    yield _narrow(NARROW, artefacts.load())
    with tempfile.TemporaryDirectory() as folder:
        try:
            artefacts.compile_program(Path(folder), defines=BETWEEN.defines)
        except artefacts.ArtefactError as error:
            _say(f"{BETWEEN.lanes} lanes: not measured: {error}")
            return
        yield _narrow(BETWEEN, artefacts.load(Path(folder)))


def _narrow(build: Build, program: artefacts.Artefacts) -> Row:
    with _up(16, build, program) as up:
        _say(f"16 workers, 1 MiB, all-blue, {build.lanes} lanes")
        time = up.measure("all-blue", values(16, 1))
    return _row(16, 1, build, "all-blue", time, time.seconds)


def misses(table: Sequence[Row]) -> list[str]:
    """Which marks all-blue of the largest size over the most workers does not reach."""
    last = {row.method: row for row in table if (row.workers, row.mib) == (WORKERS[-1], MIB[-1])}
    blue = last["all-blue"]
    ring, server = last[IDEAL_RING], last["parameter server"]
    marks = (
        (blue.over_bytes <= MOST_OVER_BYTES, f"takes {blue.over_bytes:.2f} x bytes / rate"),
        (
            ring.seconds >= LEAST_RING * blue.seconds,
            f"is only {1 / ring.share:.2f} x an ideal ring",
        ),
        (server.seconds >= LEAST_SERVER * blue.seconds, "is not 20 x the parameter server's speed"),
    )
    return [text for is_met, text in marks if not is_met]


def show(table: Sequence[Row]) -> None:
    """Print the fabric's table."""
    print(
        f"{'workers':>7} {'MiB':>4} {'lanes':>5}  {'method':37} {'blue':>4} {'seconds':>9} "
        f"{'x bytes/rate':>12} {'x wire/rate':>11} {'of all-blue':>11} {'of ideal ring':>13} "
        f"{'busiest link':>12}"
    )
    for row in table:
        print(
            f"{row.workers:7} {row.mib:4} {_or_blank(row.lanes):>5}  {row.method:37} "
            f"{_or_blank(row.blue):>4} {row.seconds:9.4f} {row.over_bytes:12.3f} "
            f"{'' if row.over_wire is None else format(row.over_wire, '.3f'):>11} "
            f"{row.share:11.1%} {row.of_ring:13.1%} "
            f"{'' if row.busiest is None else format(row.busiest, '.2f'):>12}"
        )


def show_real(found: Sequence[RealTime]) -> None:
    """Print Mininet's table: seconds, and bytes on every link, up and down."""
    for real in found:
        print(f"\n{real.method}, {real.mib:g} MiB, {real.workers} workers: {real.seconds:.2f} s")
        for link in real.links:
            print(
                f"  {link.lower:>8} - {link.upper:12} up {link.up:11,}  down {link.down:11,} bytes"
            )


def _or_blank(number: int | None) -> str:
    return "" if number is None else str(number)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def main(arguments: Sequence[str]) -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="evaluation.bench_allreduce")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-mininet", action="store_true")
    options = parser.parse_args(arguments)
    try:
        table = [*rows(WIDE), *narrow_rows()]
    except (artefacts.ArtefactError, WrongSumError) as error:
        print(f"bench_allreduce: {error}", file=sys.stderr)
        return 3
    if not options.json:
        print(f"fabric, every link {RATE // 10**6} Mbit/s, virtual time")
        show(table)
    real: list[RealTime] = []
    lacking = "left out" if options.no_mininet else why_not()
    if lacking is None:
        real = measure_mininet()
    else:
        _say(f"Mininet: {lacking}")
    if options.json:
        document = {"fabric": [asdict(row) for row in table], "mininet": [asdict(r) for r in real]}
        print(json.dumps(document, indent=2))
    else:
        show_real(real)
    missed = misses(table)
    for text in missed:
        _say(f"missed: all-blue {text}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
