"""What a destination is told, and what it tells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from p4src.constants import LANES
from traffic.endpoint import Op
from traffic.errors import ConfigError
from traffic.message import DESTINATION_SOURCE, MAX_WORKERS


@dataclass(frozen=True, slots=True)
class Recipient:
    """A worker that is sent the sums of a Reduce by itself: its socket, and the MAC address of the
    switch on the way."""

    gateway_mac: str
    ip: str
    udp_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationConfig:
    """What a destination is told.

    `sources` gives for every worker and every switch that may be blue the ranks that it speaks for;
    `workers` names the workers by rank. A complete chunk is answered again at most once in
    `answer_interval` nanoseconds: the answer goes to all workers, so one serves many that ask.
    A job that goes on with further tensors numbers their chunks on: `first_chunk` is the first of
    this one. Methods that take a chunk count from 0 within this tensor. A Reduce ends here; with a
    `recipient`, each acknowledgement to all comes with the sum to that worker.
    """

    job: int
    epoch: int
    mac: str
    ip: str
    group_mac: str
    group_ip: str
    op: Op
    chunks: int
    sources: Mapping[int, frozenset[int]]
    workers: Sequence[str]
    lanes: int = LANES
    source: int = DESTINATION_SOURCE
    answer_interval: int = 0
    first_chunk: int = 0
    recipient: Recipient | None = None

    def __post_init__(self) -> None:
        for name, bits in (("job", 16), ("source", 16), ("epoch", 32)):
            value = getattr(self, name)
            if not 0 < value < 1 << bits:
                raise ConfigError(f"destination of job {self.job}: {name} is {value}")
        if not self.workers:
            raise ConfigError(f"destination of job {self.job}: no worker to wait for")
        if len(self.workers) > MAX_WORKERS:
            raise ConfigError(
                f"destination of job {self.job}: {len(self.workers)} workers: "
                f"a weight counts at most {MAX_WORKERS}"
            )
        _check_laminar(self.job, self.sources, len(self.workers))


@dataclass(frozen=True, slots=True)
class DestinationStats:
    """Frames of a destination. Every frame received is in exactly one cell of `frames`.

    The other numbers count again, among the contributions of this job: those marked so, answers
    sent (first ones and repeated ones) and chunks whose sum did not fit.
    """

    frames: Mapping[str, int]
    direct: int
    late: int
    resent: int
    answers: int
    answers_again: int
    overflowed: int


def _check_laminar(job: int, sources: Mapping[int, frozenset[int]], workers: int) -> None:
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
