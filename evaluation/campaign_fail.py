"""Every switch of the overlay fails once, in the middle of a run, on every target: `make
campaign-fail`.

Each run must end within its time, and either complete with every sum right, over another tree where
the first one needed the switch, or end with exit code 4 and name exactly the workers that the
network without the switch cannot reach, with every complete chunk right. What must happen is found
here from the topology alone: a flood from the destinations over the links that are left.

    python -m evaluation.campaign_fail --target bmv2 --op allreduce --links
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from controller.errors import RunFailedError
from evaluation.parts import TARGETS, campaign, parts_of, unreachable
from topologies import WorkloadOptions, parse
from topologies.network import Network, wire

OPS = ("reduce", "allreduce")
DEADLINE_S = 300.0


@dataclass(frozen=True, slots=True)
class Case:
    """A part that failed in one run: what came of it, and whether that is what must."""

    target: str
    op: str
    part: str
    fate: str
    cut_off: tuple[str, ...]
    completed: int
    chunks: int
    seconds: float
    fault: str

    @property
    def row(self) -> tuple[str, ...]:
        """It as a line of the table."""
        return (
            self.target,
            self.op,
            self.part,
            self.fate,
            " ".join(self.cut_off),
            f"{self.completed}/{self.chunks}",
            f"{self.seconds:.1f}",
            self.fault or "as it must",
        )


def run(network: Network, options: argparse.Namespace, target: str, op: str, part: str) -> Case:
    """One run; RunFailedError where it is not over in time."""
    words = [sys.executable, "-m", "controller.cli", "run", options.topology, "-k", str(options.k)]
    words += ["--fail", f"{part}@{options.at}", "--target", target, "--op", op, "--json"]
    words += ["--chunks", str(options.chunks)]
    words += [word for root in options.root for word in ("--root", root)]
    began = time.monotonic()
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RunFailedError(f"{target}, {part}: not over after {DEADLINE_S:g} s") from error
    seconds = time.monotonic() - began
    said = done.stderr.strip().splitlines()[-1:] or [""]
    if not done.stdout:
        return Case(target, op, part, f"exit {done.returncode}", (), 0, 0, seconds, said[0])
    document = json.loads(done.stdout)
    failure = document["failure"]
    cut_off = tuple(failure["cut_off"])
    expected = unreachable(network, part)
    fault = ""
    if not document["correct"]:
        fault = "WRONG SUM"
    elif set(cut_off) != set(expected):
        fault = f"cut off is {' '.join(expected) or 'nobody'}: {said[0]}"
    elif done.returncode != (4 if expected else 0):
        fault = f"exit {done.returncode}: {said[0]}"
    elif expected and not all(name in said[0] for name in expected):
        fault = f"names not all that are cut off: {said[0]}"
    completed = sum(job["completed"] for job in failure["jobs"])
    if completed == document["chunks"] and not done.returncode:
        # Nothing was left to do when it failed, or all went round.
        fault = "" if document["correct"] else fault
    return Case(
        target, op, part, failure["fate"], cut_off, completed, document["chunks"], seconds, fault
    )


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a campaign."""
    parser = argparse.ArgumentParser(prog="campaign_fail", description=__doc__)
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--op", action="append", choices=OPS)
    parser.add_argument("--part", action="append", help="a switch or link, in place of all")
    parser.add_argument("--links", action="store_true", help="also every link of the overlay")
    parser.add_argument("--topology", default="fat-tree:k=4")
    parser.add_argument("--root", action="append", default=[], help="a further destination")
    parser.add_argument("-k", type=int, default=4)
    parser.add_argument("--at", type=float, default=0.5, help="share of chunks before it fails")
    parser.add_argument("--chunks", type=int, default=400)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run on every target that is there, or on those named; 1 where a run does not as it must."""
    options = parse_arguments(arguments)
    network = wire(parse(options.topology, WorkloadOptions()), options.root)

    def cases(target: str) -> Iterator[Case]:
        for op in options.op or OPS:
            for part in options.part or parts_of(network, links=options.links):
                yield run(network, options, target, op, part)

    columns = ("target", "op", "part", "fate", "cut off", "chunks", "s", "verdict")
    return campaign(options.target, cases, columns, "one part fails")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
