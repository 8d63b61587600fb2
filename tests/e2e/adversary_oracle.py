"""What sums must be: plain integers, added over the workers that a chunk has by what was decided.

It reads answers byte by byte, as docs/protocol.md has them, and uses nothing of the implementation.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

# Behind Ethernet, IPv4 without options, and UDP.
_AGGREGATION_AT, _RESULT = 42, 2
_HEADER = struct.Struct(">BBBBHHIIHH")


class Oracle:
    """Whose values each chunk's one sum is made of, as decided so far."""

    def __init__(self, values: Sequence[Sequence[Sequence[int]]]) -> None:
        """`values`: integers [workers, chunks, lanes]."""
        self._values = values
        self.members = [frozenset(range(len(values)))] * len(values[0])
        self._before = self.members

    def total(self, chunk: int) -> list[int]:
        """The sum of a chunk [lanes]."""
        rows = [self._values[rank][chunk] for rank in sorted(self.members[chunk])]
        return [sum(column) for column in zip(*rows, strict=True)]

    def decide(self, complete: Sequence[bool], present: frozenset[int]) -> None:
        """Chunks that are not complete are summed over these workers from now on."""
        self._before = self.members
        self.members = [
            members if is_complete else present
            for members, is_complete in zip(self.members, complete, strict=True)
        ]

    def undo(self) -> None:
        """The last decision was lost, before anyone else knew it."""
        self.members = self._before

    def check_answer(self, frame: bytes) -> None:
        """An answer of the destination has the one sum of its chunk, and the weight of it."""
        _, kind, _, lane_count, *_, chunk, weight, _ = _HEADER.unpack_from(frame, _AGGREGATION_AT)
        if kind == _RESULT:
            lanes = struct.unpack_from(f">{lane_count}i", frame, _AGGREGATION_AT + _HEADER.size)
            assert weight == len(self.members[chunk]), (chunk, weight)
            assert list(lanes) == self.total(chunk), chunk
