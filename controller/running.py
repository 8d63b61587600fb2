"""What a run is asked for and what it found out: values shared by all targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controller.measurement import Measurement
from controller.planning import Plan

DEFAULT_ROUNDS = 30
"""Training epochs of the digits workload."""


@dataclass(frozen=True, slots=True)
class Failure:
    """`--fail SWITCH@FRACTION`: the switch dies when that share of all chunks is complete."""

    switch: str
    fraction: float


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What `bluetree run` was asked for, beside the plan.

    Attributes:
        op: "reduce" (the sum ends at the destination) or "allreduce" (and returns to all workers).
        chunks: messages that each worker sends for each job, each of LANES int32.
        window: chunks of a job in flight, a power of two; None: what suits the target.
        loss, duplicate, reorder: probabilities, for every frame on every link, each way.
        link_rate: bits a second of a link of rate 1; None: the fabric's own, and over Mininet as
            fast as the machine.
        seed: of the values, and of what the links do to frames.
        pcap: a file that receives every frame that a link delivers, as pcapng.
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
        correct: every sum, everywhere it arrived, equals an independent sum.
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

    @property
    def passed(self) -> bool:
        """The run's own check: sums right, and, where nothing was lost, measured as predicted."""
        rows = self.training.strategies if self.training is not None else ()
        differing = bool(self.measurement.differing) or any(row.differing for row in rows)
        return self.correct and not (self.lossless and differing)
