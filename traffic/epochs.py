"""Which epoch a chunk belongs to: a job's allocations, each from one chunk number on.

Reallocation under load moves a job from a chunk on: chunks below it go on under the old epoch in
all things (first sends, repetitions, answers), the others under the new one. No chunk has two.
Chunk numbers here are those on the wire.
"""

from __future__ import annotations

from bisect import bisect_right

from traffic.errors import ConfigError


class Epochs:
    """The epochs of one job at one host, in order; the first holds from chunk 0 on."""

    __slots__ = ("_epochs", "_starts", "_who")

    def __init__(self, who: str, epoch: int) -> None:
        self._who = who
        self._starts = [0]
        self._epochs = [epoch]

    @property
    def newest(self) -> int:
        """The latest epoch moved to."""
        return self._epochs[-1]

    @property
    def moved_at(self) -> int:
        """The chunk from which the latest epoch holds."""
        return self._starts[-1]

    def of(self, chunk: int) -> int:
        """The epoch of a chunk."""
        if len(self._epochs) == 1 or chunk >= self._starts[-1]:
            return self._epochs[-1]
        return self._epochs[bisect_right(self._starts, chunk) - 1]

    def move(self, epoch: int, from_chunk: int, lowest: int) -> bool:
        """Let chunks from `from_chunk` on belong to a newer epoch; False if they do already.

        Raises ConfigError where the epoch is not newer, or the chunk lies below `lowest`, the
        first that may still change its epoch.
        """
        if epoch == self.newest and from_chunk == self.moved_at:
            return False
        self.check_newer(epoch)
        lowest = max(lowest, self.moved_at)
        if from_chunk < lowest:
            raise ConfigError(
                f"{self._who}: cannot move to epoch {epoch} from chunk {from_chunk} on: the first "
                f"that is free is {lowest}; hold all workers and take the largest"
            )
        self._starts.append(from_chunk)
        self._epochs.append(epoch)
        return True

    def replace(self, epoch: int) -> None:
        """Put all chunks under a newer epoch."""
        self.check_newer(epoch)
        self._starts, self._epochs = [0], [epoch]

    def drop_below(self, chunk: int) -> list[int]:
        """Forget epochs that hold only for chunks below one; returns those."""
        count = max(0, bisect_right(self._starts, chunk) - 1)
        dropped = self._epochs[:count]
        del self._starts[:count], self._epochs[:count]
        self._starts[0] = 0
        return dropped

    def check_newer(self, epoch: int) -> None:
        """Raise ConfigError unless an epoch is a number newer than all so far."""
        if epoch <= self.newest:
            raise ConfigError(f"{self._who}: epoch {epoch} is not newer than {self.newest}")
        if epoch >= 1 << 32:
            raise ConfigError(f"{self._who}: epoch {epoch} has more than 32 bits")
