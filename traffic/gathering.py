"""A chunk in progress at a destination: the largest disjoint sources heard, whom they cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from p4src.constants import Flag
from traffic.destination_config import Verdict
from traffic.message import LANE_MAX, LANE_MIN, Message
from traffic.sources import Sources


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a chunk [lanes], modulo 2**32.

    Attributes:
        exponent: the largest of the parts.
        overflowed: some lane left int32, here or at a switch.
        direct: some part passed all blue switches.
    """

    lanes: NDArray[np.int32]
    exponent: int
    overflowed: bool
    direct: bool


class Gathering:
    """What has come for one chunk under one epoch."""

    __slots__ = ("_heard", "_kept", "covered")

    def __init__(self) -> None:
        self.covered = 0
        self._heard: set[int] = set()
        self._kept: dict[int, Message] = {}

    def take(self, message: Message, sources: Sources) -> Verdict:
        """Take a message in that is of these sources and has the right weight."""
        source = message.source
        if source in self._heard:
            return Verdict.DUPLICATE
        self._heard.add(source)
        masks = sources.masks
        mask = masks[source]
        if mask & ~self.covered == 0:
            return Verdict.COVERED
        if mask & self.covered:
            # Laminar: whatever it meets lies within it.
            for smaller in [other for other in self._kept if masks[other] & mask]:
                del self._kept[smaller]
        self.covered |= mask
        self._kept[source] = message
        return Verdict.COMPLETING if self.covered == sources.all else Verdict.COUNTED

    def total(self) -> Total:
        """The sum of what is kept."""
        messages = self._kept.values()
        parts = np.frombuffer(b"".join(message.lanes for message in messages), dtype=">i4")
        total = parts.reshape(len(messages), -1).sum(axis=0, dtype=np.int64)
        fits = total.min(initial=0) >= LANE_MIN and total.max(initial=0) <= LANE_MAX
        flags = 0
        for message in messages:
            flags |= message.flags
        return Total(
            # astype of a number out of range keeps the low 32 bits, as a switch does.
            total.astype(np.int32),
            max(message.exponent for message in messages),
            not fits or bool(flags & Flag.OVERFLOW.value),
            bool(flags & Flag.DIRECT.value),
        )
