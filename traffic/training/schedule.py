"""What every worker of a training job does, in what order, and in how many messages.

Sizes are compressed: a message of LANES values stands for `factor` times as many, and links are
slower by the same factor, so that times are those of the real sizes and a run is short. A layer is
never less than one message.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from p4src.constants import LANES
from traffic.errors import ConfigError
from traffic.message import pack_lanes
from traffic.training.models import Model

_SECOND_NS = 1_000_000_000
_BACKWARD = 2
"""A backward pass multiplies twice as much as a forward pass: for inputs and for weights."""


class Ordering(StrEnum):
    """In which order a worker sends what is ready."""

    READY = "ready"
    """Each tensor is a stream of its own with its own window; all go on at the same time."""
    LAYER = "layer"
    """The lowest layer that is ready first, message by message (P3, ByteScheduler): a message is
    sent while fewer than a window of its layer and lower ones are unanswered."""


@dataclass(frozen=True, slots=True)
class LayerWork:
    """A layer: its messages, and the nanoseconds of its forward and backward computation."""

    chunks: int
    forward: int
    backward: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A training job.

    Attributes:
        layers: in the order of the forward pass.
        iterations: how often all of them are computed and sent.
        window: messages that may be unanswered: of each tensor, or with `Ordering.LAYER` of a
            tensor and all of lower layers.
        ordering: in which order a worker sends.
    """

    layers: tuple[LayerWork, ...]
    iterations: int
    window: int
    ordering: Ordering

    def __post_init__(self) -> None:
        for name in ("iterations", "window"):
            if getattr(self, name) < 1:
                raise ConfigError(f"schedule: {name} is {getattr(self, name)}: at least 1")
        if not self.layers or min(layer.chunks for layer in self.layers) < 1:
            raise ConfigError("schedule: it needs layers, each of at least one message")

    @property
    def chunks(self) -> int:
        """Messages that each worker sends in an iteration."""
        return sum(layer.chunks for layer in self.layers)

    @property
    def pool(self) -> int:
        """Chunk numbers from one iteration to the next: the power of two that holds `chunks`.

        With as many slots, a chunk has a slot of its own in its iteration.
        """
        return 1 << (self.chunks - 1).bit_length()

    @property
    def compute(self) -> int:
        """Nanoseconds of computation in an iteration."""
        return sum(layer.forward + layer.backward for layer in self.layers)

    def first_chunks(self) -> tuple[int, ...]:
        """The number of each layer's first chunk in an iteration."""
        starts = [0]
        for layer in self.layers:
            starts.append(starts[-1] + layer.chunks)
        return tuple(starts[:-1])

    def layer_of(self) -> tuple[int, ...]:
        """The layer of each chunk of an iteration."""
        return tuple(i for i, layer in enumerate(self.layers) for _ in range(layer.chunks))


def compress(
    model: Model, *, factor: int, batch: int, multiplications_per_second: float
) -> tuple[LayerWork, ...]:
    """The layers of a model as work.

    `factor`: real values for each value sent. `batch`: samples of a worker in an iteration.
    Computation is in proportion to multiplications, twice as long backward as forward.
    """
    if factor < 1 or batch < 1 or multiplications_per_second <= 0:
        raise ConfigError("compression, batch and speed of computation must be positive")

    def forward(multiplications: int) -> int:
        return int(multiplications * batch / multiplications_per_second * _SECOND_NS)

    return tuple(
        LayerWork(
            chunks=-(-layer.parameters // (LANES * factor)),
            forward=forward(layer.multiplications),
            backward=_BACKWARD * forward(layer.multiplications),
        )
        for layer in model.layers
    )


def values(rank: int, chunk: int) -> int:
    """Which of the `PATTERNS` rows of values a worker has for a chunk number on the wire."""
    return (chunk * 31 + rank * 17) % PATTERNS


PATTERNS = 61
"""Rows of values; a prime, so that chunks that share a slot differ in their rows."""


def patterns() -> Sequence[Sequence[int]]:
    """The rows: LANES integers each, of both signs, whose sums over 1,000 workers are int32."""
    return [
        [((row * 7_919 + lane * 104_729) * 2_654_435_761 >> 7) % 2_000_001 - 1_000_000
         for lane in range(LANES)]
        for row in range(PATTERNS)
    ]  # fmt: skip


def packed_rows() -> list[bytes]:
    """The rows as the lanes of a message."""
    return [pack_lanes(row) for row in patterns()]


def packed_sums(workers: int) -> list[bytes]:
    """The lanes that the sum over `workers` has, by chunk number modulo `PATTERNS`."""
    rows = patterns()
    return [
        pack_lanes(
            [
                sum(lane)
                for lane in zip(
                    *(rows[values(rank, chunk)] for rank in range(workers)), strict=True
                )
            ]
        )
        for chunk in range(PATTERNS)
    ]
