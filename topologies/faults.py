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

    __slots__ = ("fate",)

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
        self.fate: Callable[[], tuple[int, ...]] = _fates(
            _stream(seed, name, "loss", loss),
            _stream(seed, name, "duplicate", duplicate),
            _stream(seed, name, "reorder", reorder),
            (loss, duplicate, reorder),
            reorder_delay,
        )
        """Nanoseconds by which each copy of the next frame is late: LOST if there is none."""


def _fates(
    lost: Callable[[], float],
    doubled: Callable[[], float],
    delayed: Callable[[], float],
    chances: tuple[float, float, float],
    most: int,
) -> Callable[[], tuple[int, ...]]:
    """A function rather than a method, since every frame of every link asks: its streams are at
    hand."""
    loss, duplicate, reorder = chances

    def fate() -> tuple[int, ...]:
        if lost() < loss:
            return LOST
        late = 1 + int(delayed() * most) if delayed() < reorder else 0
        if doubled() < duplicate:
            return (late, int(doubled() * most))
        return (late,) if late else ON_TIME

    return fate


def _stream(seed: int, name: str, purpose: str, chance: float) -> Callable[[], float]:
    """Numbers from 0 up to 1; nothing is below a chance of 0, so any number does for it."""
    if not chance:
        return float
    return random.Random(f"{seed}|{name}|{purpose}").random
