"""The sources of one allocation: for whom each speaks.

Sets of workers are laminar, nested or disjoint, since each is what lies below one switch of a tree.
"""

from __future__ import annotations

from collections.abc import Mapping

from traffic.errors import ConfigError


class Sources:
    """Masks of the workers (bit `rank`) and weights, by source id; `all` is that of all workers."""

    __slots__ = ("all", "masks", "weights")

    def __init__(
        self,
        job: int,
        sources: Mapping[int, frozenset[int]],
        workers: int,
        absent: frozenset[int] = frozenset(),
    ) -> None:
        """Raises ConfigError unless the sets are laminar and each worker that is not absent, and
        no other, is in one."""
        check_laminar(job, sources, workers, absent)
        self.all = (1 << workers) - 1 & ~sum(1 << rank for rank in absent)
        self.masks = {source: sum(1 << rank for rank in ranks) for source, ranks in sources.items()}
        self.weights = {source: len(ranks) for source, ranks in sources.items()}


def check_laminar(
    job: int,
    sources: Mapping[int, frozenset[int]],
    workers: int,
    absent: frozenset[int] = frozenset(),
) -> None:
    """Raise ConfigError unless the sets are nested or disjoint, and hold all workers but those
    that are absent."""
    if not set(range(workers)) - absent:
        raise ConfigError(f"job {job}: all {workers} workers are left out; stop the job")
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
        if ranks & absent:
            raise ConfigError(
                f"job {job}: source {source} speaks for rank {min(ranks & absent)}, which is "
                "left out"
            )
        if len({label[rank] for rank in ranks}) > 1:
            raise ConfigError(
                f"job {job}: the workers of source {source} overlap those of another source: "
                "sets must be nested or disjoint"
            )
        for rank in ranks:
            label[rank] = source
    unheard = [rank for rank in range(workers) if not label[rank] and rank not in absent]
    if unheard:
        raise ConfigError(f"job {job}: no source speaks for worker {unheard[0]}")
