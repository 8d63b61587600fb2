"""What a destination is told, and what it tells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from p4src.constants import LANES
from traffic.endpoint import Op
from traffic.errors import ConfigError
from traffic.message import MAX_WORKERS
from traffic.requests import RequestConfig
from traffic.sources import check_laminar
from traffic.stream import Stream


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

    An endless job has a `stream` in place of `chunks`, which is 0, and needs the workers' `window`,
    which says how long an answer may be asked for again.

    With `requests`, which need the window too, it asks for what is missing; `asked` gives the bit
    in a request of each source that the root of the tree sends. A source whose bit does not fit the
    lanes is left out and always asked. With none, all are.

    `absent`: ranks of the workers that the first allocation leaves out.
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
    answer_interval: int = 0
    first_chunk: int = 0
    recipient: Recipient | None = None
    window: int = 0
    stream: Stream | None = None
    asked: Mapping[int, int] = field(default_factory=dict)
    requests: RequestConfig | None = None
    absent: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for name, bits in (("job", 16), ("epoch", 32)):
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
        if self.stream is not None and (self.window < 1 or self.chunks):
            raise ConfigError(
                f"destination of job {self.job}: an endless job needs the workers' window and has "
                f"no number of chunks, not window {self.window} and {self.chunks} chunks"
            )
        if self.requests is not None and self.window < 1:
            raise ConfigError(
                f"destination of job {self.job}: whoever asks needs the workers' window"
            )
        if self.stream is not None:
            self.stream.check_workers(f"destination of job {self.job}", len(self.workers))
            if self.stream.lanes != self.lanes:
                raise ConfigError(
                    f"destination of job {self.job}: an endless tensor of {self.stream.lanes} "
                    f"lanes in a job of {self.lanes}"
                )
        check_laminar(self.job, self.sources, len(self.workers), self.absent)

    @property
    def pool(self) -> int:
        """How many chunks below the lowest incomplete one a worker may still ask, at most."""
        return 1 << (self.window - 1).bit_length() if self.window else self.chunks


class Verdict(Enum):
    """What became of a well-formed frame; frames that are not end as their `Refusal`."""

    COUNTED = "counted"
    COMPLETING = "completing"
    DUPLICATE = "duplicate"
    COVERED = "covered"
    ANSWERED_AGAIN = "answered-again"
    ANSWERED_LATELY = "answered-lately"
    NOT_ADDRESSED = "not-addressed"
    OTHER_JOB = "other-job"
    OTHER_EPOCH = "other-epoch"
    OTHER_KIND = "other-kind"
    NO_SUCH_CHUNK = "no-such-chunk"
    LONG_COMPLETE = "long-complete"
    UNKNOWN_SOURCE = "unknown-source"
    WRONG_WEIGHT = "wrong-weight"


@dataclass(frozen=True, slots=True)
class DestinationStats:
    """Frames of a destination. Every frame received is in exactly one cell of `frames`.

    The other numbers count again, among the contributions of this job: those marked so, answers
    sent (first ones and repeated ones), chunks whose sum did not fit, and requests.
    """

    frames: Mapping[str, int]
    direct: int
    late: int
    resent: int
    answers: int
    answers_again: int
    overflowed: int
    requests: int = 0
