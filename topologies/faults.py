"""What can go wrong with a frame on one direction of a link, by chance from a seed. Pure.

The same for the fabric, on its virtual clock, and for the relay of a network in Mininet, in real
time: the n-th frame of a direction meets the same fate wherever the direction has the same name.
"""

from __future__ import annotations

import random
from collections.abc import Callable

ON_TIME = (0,)
LOST: tuple[int, ...] = ()


def direction_name(source: str, source_port: int, target: str, target_port: int) -> str:
    """The name of one direction of a link, from a node's port to another's."""
    return f"{source}:{source_port}>{target}:{target_port}"


class Faults:
    """The chances of one direction.

    `loss`, `duplicate`, `reorder`: probabilities of each frame. A reordered frame comes up to
    `reorder_delay` nanoseconds late, so that others overtake it; a second copy as well. Each kind
    has a random stream of its own, which no other link or setting shifts.
    """

    __slots__ = ("_delay", "_duplicate", "_loss", "_reorder")

    def __init__(
        self,
        seed: int,
        name: str,
        *,
        loss: float,
        duplicate: float,
        reorder: float,
        reorder_delay: int,
    ) -> None:
        self._loss = (_stream(seed, name, "loss"), loss) if loss else None
        self._duplicate = (_stream(seed, name, "duplicate"), duplicate) if duplicate else None
        self._reorder = (_stream(seed, name, "reorder"), reorder) if reorder else None
        self._delay = reorder_delay

    def fate(self) -> tuple[int, ...]:
        """Nanoseconds by which each copy of the next frame is late: LOST if there is none."""
        if self._loss is not None and self._loss[0]() < self._loss[1]:
            return LOST
        late = 0
        if self._reorder is not None and self._reorder[0]() < self._reorder[1]:
            late = 1 + int(self._reorder[0]() * self._delay)
        if self._duplicate is not None and self._duplicate[0]() < self._duplicate[1]:
            return (late, int(self._duplicate[0]() * self._delay))
        return (late,) if late else ON_TIME


def _stream(seed: int, name: str, purpose: str) -> Callable[[], float]:
    return random.Random(f"{seed}|{name}|{purpose}").random
