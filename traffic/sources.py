"""The sources of one allocation: for whom each speaks.

Sets of workers are laminar, nested or disjoint, since each is what lies below one switch of a tree.
"""

from __future__ import annotations

from collections.abc import Mapping

from traffic.errors import ConfigError


class Sources:
    """Masks of the workers (bit `rank`) and weights, by source id."""

    __slots__ = ("masks", "weights")

    def __init__(self, job: int, sources: Mapping[int, frozenset[int]], workers: int) -> None:
        """Raises ConfigError unless the sets are laminar and each of the workers is in one."""
        check_laminar(job, sources, workers)
        self.masks = {source: sum(1 << rank for rank in ranks) for source, ranks in sources.items()}
        self.weights = {source: len(ranks) for source, ranks in sources.items()}


def check_laminar(job: int, sources: Mapping[int, frozenset[int]], workers: int) -> None:
    """Raise ConfigError unless the sets are nested or disjoint, and the workers all reachable."""
    # Largest first, each worker is labelled with the smallest set that holds it so far: a set is
    # nested in one of them if and only if all of its workers wear one label.
    label: list[int] = [0] * workers
    for source in sorted(sources, key=lambda source: (-len(sources[source]), source)):
        ranks = sources[source]
        if not 0 < source < 1 << 16:
            raise ConfigError(f"job {job}: source {source} is not an id from 1 to 65535")
        if not ranks:
            raise ConfigError(f"job {job}: source {source} speaks for no worker")
        if min(ranks) < 0 or max(ranks) >= workers:
            raise ConfigError(
                f"job {job}: source {source} speaks for ranks {min(ranks)} to {max(ranks)}, "
                f"but the {workers} workers are 0 to {workers - 1}"
            )
        if len({label[rank] for rank in ranks}) > 1:
            raise ConfigError(
                f"job {job}: the workers of source {source} overlap those of another source: "
                "sets must be nested or disjoint"
            )
        for rank in ranks:
            label[rank] = source
    unheard = [rank for rank in range(workers) if not label[rank]]
    if unheard:
        raise ConfigError(f"job {job}: no source speaks for worker {unheard[0]}")
