"""What a worker is told, and what it tells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from traffic.endpoint import Op
from traffic.errors import ConfigError

_MILLISECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """What a worker is told. `workers` is the number in the job; times are in nanoseconds.

    A chunk is given up after `max_tries` timeouts; the repetition after the `direct_after`-th is
    the last that blue switches may absorb. A timeout is doubled at most `max_doublings` times; a
    chunk that has seen `slow_after` of them waits `max_timeout` each time, so that all workers,
    whatever they have measured, give up at much the same time. A job that goes on with further
    tensors numbers their chunks on: `first_chunk` is the first of this one.

    While others are answered, a chunk is repeated only after `patience`, by default
    `initial_timeout`; `ask_timeout`, by default `min_timeout`, is the least time between two
    attempts to get an answer that is known to exist.

    `absent`: ranks of the workers that its first allocation leaves out.
    """

    name: str
    job: int
    epoch: int
    source: int
    rank: int
    workers: int
    mac: str
    ip: str
    udp_port: int
    gateway_mac: str
    destination_ip: str
    group_ip: str
    window: int
    op: Op
    first_chunk: int = 0
    initial_timeout: int = 100 * _MILLISECOND
    min_timeout: int = 1 * _MILLISECOND
    max_timeout: int = 400 * _MILLISECOND
    max_doublings: int = 2
    slow_after: int = 64
    direct_after: int = 8
    patience: int = 0
    ask_timeout: int = 0
    max_tries: int = 200
    absent: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "patience", self.patience or self.initial_timeout)
        object.__setattr__(self, "ask_timeout", self.ask_timeout or self.min_timeout)
        for name, bits in (("job", 16), ("source", 16), ("epoch", 32)):
            value = getattr(self, name)
            if not 0 < value < 1 << bits:
                raise ConfigError(f"worker {self.name}: {name} is {value}: 1 to {2**bits - 1}")
        for name in ("workers", "window", "initial_timeout", "min_timeout", "max_tries"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"worker {self.name}: {name} is {getattr(self, name)}: at least 1"
                )
        if not 0 <= self.rank < self.workers:
            raise ConfigError(
                f"worker {self.name}: rank is {self.rank}: 0 to {self.workers - 1}, "
                f"as the job has {self.workers} workers"
            )


@dataclass(frozen=True, slots=True)
class ChunkFailure:
    """A chunk that a worker gave up."""

    worker: str
    job: int
    chunk: int
    tries: int

    def __str__(self) -> str:
        return (
            f"worker {self.worker}: chunk {self.chunk} of job {self.job} was sent {self.tries} "
            "times and never answered: look for a dead link, switch or worker"
        )


@dataclass(frozen=True, slots=True)
class WorkerCounters:
    """Frames of a worker. Every frame it received is either in `answered` or in `ignored`."""

    sent: int = 0
    resent: int = 0
    direct: int = 0
    answered: int = 0
    ignored: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
