"""How long an AllReduce takes, by the switches and without them.

    python -m evaluation.bench_allreduce

First on the fabric's virtual clock, where links are all that limits: float32 over 4, 8 and 16
workers under 7 switches, every link 100 Mbit/s, messages of 240 lanes (p4c builds the program). 1
and 4 MiB are measured, and 16 MiB as well for all-blue; the other 16 MiB are extended from these
two (marked ~), or measured too with `--full`. Then in real time over Mininet, as root: an AllReduce
by a Communicator, and by PyTorch's gloo over the same links.

Exit code 1 if all-blue of 16 MiB over 16 workers misses its marks, 3 if it cannot be measured here.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from evaluation.allreduce_fabric import METHODS, Bench, WrongSumError, bench
from evaluation.allreduce_mininet import RealTime, measure_mininet, why_not
from p4src import artefacts
from p4src.constants import LANES
from topologies import WorkloadOptions, parse
from topologies.network import wire
from traffic.message import ETHERNET_BYTES, HEADER_BYTES, IPV4_BYTES, LANE_BYTES, UDP_BYTES

TOPOLOGY = "binary-tree:levels=3"
RATE = 100_000_000
WORKERS = (4, 8, 16)
MIB = (1, 4, 16)
WIDE = (240, 4)
"""Lanes of the wide build, and the words that they take."""
MOST_OVER_BYTES, LEAST_RING, LEAST_SERVER = 1.15, 1.6, 20.0
_HEADERS = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + HEADER_BYTES
_MIB_BYTES = 1 << 20
IDEAL_RING = "ideal ring: 2(n-1)/n x bytes / rate"


@dataclass(frozen=True, slots=True)
class Row:
    """One method for one size and number of workers.

    Attributes:
        seconds: virtual; extended from smaller sizes if not `measured`.
        over_bytes: in units of the array's bytes over the rate of a link.
        over_wire: the same with the bytes of all frames of the array, headers too.
        share: of all-blue's speed.
        busiest: bytes on the busiest link over those of the array, where measured.
    """

    workers: int
    mib: int
    lanes: int | None
    method: str
    blue: int | None
    seconds: float
    measured: bool
    over_bytes: float
    over_wire: float | None
    share: float
    busiest: float | None

    @property
    def of_ring(self) -> float:
        """Of an ideal ring's speed."""
        return 2 * (self.workers - 1) / self.workers / self.over_bytes


def rows(lanes: int, program: artefacts.Artefacts, *, full: bool) -> Iterator[Row]:
    """All rows of one build, for every number of workers."""
    for workers in WORKERS:
        options = WorkloadOptions(workers=str(workers // 4), rates=None, seed=0)
        network = wire(parse(TOPOLOGY, options))
        with bench(network, RATE, lanes, program) as up:
            yield from _of_network(up, workers, lanes, full)


def _of_network(up: Bench, workers: int, lanes: int, full: bool) -> Iterator[Row]:
    found: dict[tuple[str, int], tuple[float, bool, int | None, float | None]] = {}
    for method in METHODS:
        for mib in MIB:
            if mib == MIB[-1] and method != "all-blue" and not full:
                small, large = found[method, MIB[0]], found[method, MIB[1]]
                per_mib = (large[0] - small[0]) / (MIB[1] - MIB[0])
                seconds = large[0] + per_mib * (mib - MIB[1])
                found[method, mib] = (seconds, False, large[2], None)
                continue
            _say(f"{workers} workers, {mib} MiB, {method}")
            time = up.measure(method, values(workers, mib))
            most = time.busiest_bytes / (mib * _MIB_BYTES)
            found[method, mib] = (time.seconds, True, time.blue, most)
    for mib in MIB:
        ideal = mib * _MIB_BYTES * 8 / RATE
        best = found["all-blue", mib][0]
        for method in METHODS:
            seconds, measured, blue, busiest = found[method, mib]
            wire_bytes = None
            if blue is not None:
                wire_bytes = seconds / ideal / (1 + _HEADERS / (lanes * LANE_BYTES))
            yield Row(
                workers,
                mib,
                None if blue is None else lanes,
                method,
                blue,
                seconds,
                measured,
                seconds / ideal,
                wire_bytes,
                best / seconds,
                busiest,
            )
        ring = 2 * (workers - 1) / workers
        yield Row(
            workers, mib, None, IDEAL_RING, None, ring * ideal, False, ring, None,
            best / (ring * ideal), None,
        )  # fmt: skip


def values(workers: int, mib: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """float32 [workers, elements] of several magnitudes."""
    rng = np.random.default_rng(workers)
    return rng.standard_normal((workers, mib * _MIB_BYTES // 4), dtype=np.float32)


@contextmanager
def program(lanes: int, words: int) -> Iterator[artefacts.Artefacts]:
    """The switch program for so many lanes; raises ArtefactError without p4c."""
    with tempfile.TemporaryDirectory() as folder:
        defines = (f"LANES={lanes}", f"WORDS={words}")
        artefacts.compile_program(Path(folder), defines=defines)
        yield artefacts.load(Path(folder))


def narrow_rows() -> Iterator[Row]:
    """All-blue with the messages of the committed build and of 64 lanes: 1 MiB, 16 workers."""
    for lanes in (LANES, 64):
        with program(lanes, 1) as built:
            network = wire(parse(TOPOLOGY, WorkloadOptions(workers="4", rates=None, seed=0)))
            with bench(network, RATE, lanes, built) as up:
                _say(f"16 workers, 1 MiB, all-blue, {lanes} lanes")
                time = up.measure("all-blue", values(16, 1))
        ideal = _MIB_BYTES * 8 / RATE
        over = time.seconds / ideal
        yield Row(
            16, 1, lanes, "all-blue", time.blue, time.seconds, True, over,
            over / (1 + _HEADERS / (lanes * LANE_BYTES)), 1.0, time.busiest_bytes / _MIB_BYTES,
        )  # fmt: skip


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
            f"{_or_blank(row.blue):>4} {'' if row.measured else '~'}{row.seconds:.4f}".ljust(68)
            + f"{row.over_bytes:12.3f} "
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
    parser.add_argument("--full", action="store_true", help="measure every size, extend none")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-mininet", action="store_true")
    options = parser.parse_args(arguments)
    try:
        with program(*WIDE) as built:
            table = [*rows(WIDE[0], built, full=options.full), *narrow_rows()]
    except (artefacts.ArtefactError, WrongSumError) as error:
        print(f"bench_allreduce: {error}", file=sys.stderr)
        return 3
    if not options.json:
        print(
            f"fabric, every link {RATE // 10**6} Mbit/s, virtual time; ~ extended from 1 and 4 MiB"
        )
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
