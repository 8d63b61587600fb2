"""What a worker sends in its chunks, and where the answers go."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from traffic.endpoint import Op
from traffic.errors import ConfigError
from traffic.message import LANE_BYTES
from traffic.stream import Stream, StreamPayload
from traffic.worker_config import WorkerConfig


class Payload(Protocol):
    """The content of a worker's chunks.

    Chunks count from 0. What chunk c carries may depend on the answer to chunk c - `reach`: it is
    asked for only after that answer was told; with a reach of 0 it depends on none.
    """

    @property
    def chunks(self) -> int:
        """How many chunks there are."""

    @property
    def lanes(self) -> int:
        """int32 values in each."""

    @property
    def reach(self) -> int:
        """How far back lies the answer that a chunk's content depends on, 0 for none."""

    def message(self, chunk: int) -> tuple[bytes, int]:
        """Lanes (big-endian int32) and exponent of a chunk; each time the same."""

    def answered(self, chunk: int, lanes: bytes, exponent: int, absent: frozenset[int]) -> None:
        """The answer to a chunk, told once: the sum (empty of an acknowledgement), the exponent,
        and the ranks whose values are not in it."""


class Tensor:
    """Values [chunks, lanes], int32, and their sums as they come in. Raises ConfigError."""

    __slots__ = ("_row_bytes", "_rows", "chunks", "lanes", "reach", "sums")

    def __init__(self, values: NDArray[np.int32], *, with_sums: bool) -> None:
        if values.ndim != 2 or values.dtype != np.int32:
            raise ConfigError(
                f"values are {values.dtype}{list(values.shape)}: they must be int32[chunks, lanes]"
            )
        self.chunks, self.lanes = int(values.shape[0]), int(values.shape[1])
        self.reach = 0
        self.sums = np.zeros(values.shape if with_sums else (0, self.lanes), dtype=np.int32)
        self._rows = values.astype(">i4").tobytes()
        self._row_bytes = self.lanes * LANE_BYTES

    def message(self, chunk: int) -> tuple[bytes, int]:
        """A row, and no exponent."""
        start = chunk * self._row_bytes
        return self._rows[start : start + self._row_bytes], 0

    def answered(self, chunk: int, lanes: bytes, exponent: int, absent: frozenset[int]) -> None:
        """Keep a sum."""
        if lanes:
            self.sums[chunk] = np.frombuffer(lanes, dtype=">i4")


def payload_of(config: WorkerConfig, values: NDArray[np.int32] | Stream | Payload) -> Payload:
    """What a worker sends; raises ConfigError where it does not fit."""
    if isinstance(values, np.ndarray):
        return Tensor(values, with_sums=config.op == Op.ALLREDUCE)
    if isinstance(values, Stream):
        values.check_workers(f"worker {config.name}", config.workers)
        return StreamPayload(values, config.rank, config.first_chunk)
    return values
