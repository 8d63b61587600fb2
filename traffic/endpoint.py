"""What a worker and a destination have in common: machines without I/O.

Frames and the time go in, frames come out; all times are integer nanoseconds of one clock.
"""

from enum import StrEnum
from typing import Protocol


class Op(StrEnum):
    """What a job does: `REDUCE` leaves the sum at the destination, `ALLREDUCE` returns it too."""

    REDUCE = "reduce"
    ALLREDUCE = "allreduce"


class Endpoint(Protocol):
    """One job's machine at one host."""

    @property
    def job(self) -> int:
        """The job it takes part in."""

    @property
    def completed(self) -> int:
        """How many of its chunks are complete."""

    @property
    def done(self) -> bool:
        """Whether it has all that it waited for."""

    @property
    def failed(self) -> bool:
        """Whether it has given up."""

    @property
    def next_deadline(self) -> int | None:
        """When `tick` is due, if ever."""

    def start(self, now: int) -> list[bytes]:
        """The first frames to send."""

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a frame in, whatever its bytes; the frames to send."""

    def tick(self, now: int) -> list[bytes]:
        """Act on the deadlines that have passed; the frames to send."""
