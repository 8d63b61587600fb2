"""What a run is asked for and what it found out: values shared by all targets."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controller.measurement import Measurement
from controller.planning import Plan
from p4src.builds import NARROW, Build

DEFAULT_ROUNDS = 30
"""Training epochs of the digits workload."""


@dataclass(frozen=True, slots=True)
class Failure:
    """`--fail PART@FRACTION` or `--fail-worker W@FRACTION`: what fails when that share of all
    chunks is complete.

    Attributes:
        part: a switch, which dies, or a link, which goes down, by name; or a worker, which dies; or
            the destination, which dies and is started anew.
        is_worker: whether it is a worker.
        goes_on: the jobs go on without the worker.
        returns: the share of all chunks at which it comes back; None: it does not.
    """

    part: str
    fraction: float
    is_worker: bool = False
    goes_on: bool = False
    returns: float | None = None


class Fate(enum.StrEnum):
    """What came of a failure."""

    HARMLESS = "harmless"
    """The jobs were complete without the part."""
    WENT_ROUND = "went round"
    """They went on over another tree, and are complete."""
    WENT_ON = "went on"
    """They went on without the worker, and are complete."""
    RESUMED = "resumed"
    """The destination started anew with all that it had completed, and they are complete."""
    CUT_OFF = "cut off"
    """No way leads to some worker any more."""
    INCOMPLETE = "incomplete"
    """There was a way, and yet some chunk was given up."""


@dataclass(frozen=True, slots=True)
class Summed:
    """Over whom chunks are summed: all workers but those in `left_out`.

    `chunks`: from the first to the last number of each run of those that are complete.
    """

    left_out: tuple[str, ...]
    chunks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job came: `completed` chunks at its destination, and whether all sums anywhere are
    right, those of chunks that are not complete left out.

    Attributes:
        without: chunks whose sum is without the worker that has died.
        sums: over which workers which chunks are summed.
        back_at: the first chunk that has the worker again; None if there is none.
    """

    job: int
    completed: int
    complete: bool
    right: bool
    without: int = 0
    sums: tuple[Summed, ...] = ()
    back_at: int | None = None


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What came of `--fail`.

    Attributes:
        workers: names of those that are cut off, or that the jobs went on without.
        root: where the destination is that is left, None if none is.
        resumed_at: the first chunk that was summed over the other tree, or without the worker; None
            if there was none.
        switches: those of the other tree that the first had not.
        plan: the placement on the other tree.
        text: why the run failed, in one line; "" if it did not.
        notes: what came of it where the run did not fail, a line or more.
    """

    part: str
    fate: Fate
    workers: tuple[str, ...]
    root: str | None
    resumed_at: int | None
    switches: tuple[str, ...]
    plan: Plan | None
    jobs: tuple[JobState, ...]
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What `bluetree run` was asked for, beside the plan.

    Attributes:
        op: "reduce" (the sum ends at the destination) or "allreduce" (and returns to all workers).
        chunks: messages that each worker sends for each job, each of the build's lanes.
        window: chunks of a job in flight, a power of two; None: what suits the target.
        loss, duplicate, reorder: probabilities, for every frame on every link, each way.
        link_rate: bits a second of a link of rate 1; None: the fabric's own, and over Mininet as
            fast as the machine.
        seed: of the values, and of what the links do to frames.
        pcap: a file that receives every frame that a link delivers, as pcapng.
        build: what the switches run.
        roots: further switches with a destination, which is used where a failure needs it.
    """

    op: str = "reduce"
    chunks: int = 32
    jobs: int = 1
    window: int | None = None
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    link_rate: int | None = None
    seed: int = 0
    failure: Failure | None = None
    pcap: Path | None = None
    roots: tuple[str, ...] = ()
    build: Build = NARROW


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """A strategy on the same workload: its congestion, predicted and measured (exact, as text).

    `differing` counts the links that did not carry what was predicted.
    """

    strategy: str
    blue: tuple[str, ...]
    predicted: str
    measured: str
    differing: int


@dataclass(frozen=True, slots=True)
class Training:
    """What `--workload digits` learned.

    Attributes:
        accuracy: on held-out images, after each round.
        identical: the weights equal, bit for bit, those of the same training without a network.
        strategies: the same gradients under every strategy.
    """

    accuracy: tuple[float, ...]
    identical: bool
    strategies: tuple[StrategyRow, ...] = ()


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run found out.

    Attributes:
        switches: physical switches that ran the program.
        lanes: int32 values in a message.
        correct: every sum, everywhere it arrived, equals an independent sum. Where a failure left
            chunks incomplete: of those that are complete.
        measurement: of the tree that was in use at the end, and the chunks that it carried; where
            jobs went on without a worker, of the chunks that are summed without it.
        retransmissions: by workers.
        outcomes: packets by what became of them, over all switches (`outcome_t` of the program).
        seconds: wall clock, from start to end.
        network_seconds: on the network's clock, virtual on the fabric, real over Mininet.
        goodput: bits of tensor that each worker had summed, over network_seconds, in bit/s.
    """

    target: str
    op: str
    plans: tuple[Plan, ...]
    switches: int
    workers: int
    chunks: int
    lanes: int
    jobs: int
    correct: bool
    measurement: Measurement
    retransmissions: int
    outcomes: Mapping[str, int]
    seconds: float
    network_seconds: float
    goodput: float
    lossless: bool
    training: Training | None = field(default=None)
    aftermath: Aftermath | None = field(default=None)

    @property
    def last_plan(self) -> Plan:
        """The placement of the first job that was in use at the end."""
        after = self.aftermath
        return self.plans[0] if after is None or after.plan is None else after.plan

    @property
    def passed(self) -> bool:
        """The run's own check: sums right, and, where nothing was lost, measured as predicted."""
        rows = self.training.strategies if self.training is not None else ()
        differing = bool(self.measurement.differing) or any(row.differing for row in rows)
        failed = self.aftermath is not None and bool(self.aftermath.text)
        return self.correct and not failed and not (self.lossless and differing)
