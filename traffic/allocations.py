"""The allocations of a job at its destination: whose messages make up which chunk."""

from __future__ import annotations

from collections.abc import Mapping

from traffic.destination_config import DestinationConfig
from traffic.epochs import Epochs, Term
from traffic.sources import Sources


class Allocations:
    """The terms of a job, with the sources of each and their bits in requests."""

    def __init__(self, who: str, config: DestinationConfig) -> None:
        self.epochs = Epochs(who, config.epoch, config.absent)
        self._config = config
        self._sources = {config.epoch: self._sources_of(config.sources, config.absent)}
        self._asked = {config.epoch: config.asked}

    def sources(self, epoch: int) -> Sources:
        """The sources of an epoch that is known."""
        return self._sources[epoch]

    def asked(self, epoch: int) -> Mapping[int, int]:
        """The bit in a request of each source that the root of the tree sends."""
        return self._asked[epoch]

    def move(
        self,
        epoch: int,
        from_chunk: int,
        lowest: int,
        sources: Mapping[int, frozenset[int]],
        asked: Mapping[int, int] | None,
        absent: frozenset[int] | None,
    ) -> None:
        """See `Destination.move`; `lowest` is the first chunk that nothing has come for."""
        without = self.epochs.last.absent if absent is None else absent
        new = self._sources_of(sources, without)
        if self.epochs.move(epoch, from_chunk, lowest, without):
            self._sources[epoch] = new
            self._asked[epoch] = asked or {}

    def follow(
        self, term: Term, sources: Mapping[int, frozenset[int]], asked: Mapping[int, int] | None
    ) -> bool:
        """Enter a term; False if its epoch is the latest already. Raises ConfigError."""
        new = self._sources_of(sources, term.absent)
        if not self.epochs.follow(term):
            return False
        self._sources[term.epoch] = new
        self._asked[term.epoch] = asked or {}
        return True

    def forget_below(self, chunk: int) -> None:
        """Forget what holds only for chunks below one that nobody can ask for any more."""
        # A tensor with an end is known, and may be asked for, as a whole.
        if self._config.stream is not None:
            for old in self.epochs.drop_below(chunk):
                del self._sources[old], self._asked[old]

    def _sources_of(self, sources: Mapping[int, frozenset[int]], absent: frozenset[int]) -> Sources:
        return Sources(self._config.job, sources, len(self._config.workers), absent)
