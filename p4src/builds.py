"""The builds of the P4 program that are committed, by how many lanes a message has.

The program is one; how many values a message carries is chosen when it is compiled. Each build has
its own compiled output, and all else in `p4src.constants` holds for every one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from p4src.constants import LANES, WORDS

_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Build:
    """Sizes that a build is compiled for.

    Attributes:
        lanes: int32 values in a message, 1 to 255.
        words: fields that these are divided into; p4c takes integers of at most 2048 bits.
    """

    lanes: int
    words: int

    @property
    def set_bits(self) -> int:
        """Sources that a request can name: the bits of the first word."""
        return self.lanes // self.words * _WORD_BITS

    @property
    def defines(self) -> tuple[str, ...]:
        """What p4c is told, as in `-DLANES=240`."""
        return (f"LANES={self.lanes}", f"WORDS={self.words}")


NARROW = Build(LANES, WORDS)
"""The default: a frame has 190 bytes, a third of them headers."""
WIDE = Build(240, 4)
"""The largest: a frame has 1,022 bytes, 6 % of them headers."""
BUILDS = {build.lanes: build for build in (NARROW, WIDE)}
