"""What clients ask of a network that lives, and what it answers: the values on its socket.

A client sends (number, request) and receives (number, True, answer) or (number, False, text). Chunk
numbers are those on the wire; times are nanoseconds of this machine's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from controller.p4rt import SwitchAddress
from topologies.network import Network
from traffic.commands import Command


@dataclass(frozen=True, slots=True)
class NetworkDescription:
    """A network that is up.

    Attributes:
        target: "fabric", "softswitch" or "bmv2".
        addresses: the P4Runtime server of every switch, with its device id.
        pids: processes by what they are: "daemon", and where they have one, switches and hosts.
        start_seconds: from the start of the daemon until all was up.
        memory: bytes that all these processes hold now, shared pages counted once.
        rates: bits a second of every overlay switch's link upward; None: as fast as the machine.
        patience: what a worker waits at least before it sends again, beside the time that links of
            those rates take, in nanoseconds.
        down: switches and hosts that were killed, and links that were cut, and not restarted.
        host_seconds: how long a host may take to do what it is told.
        newest_epoch: the largest that a host was ever told; 0 before the first.
    """

    target: str
    network: Network
    addresses: tuple[SwitchAddress, ...]
    pids: Mapping[str, int]
    start_seconds: float
    memory: int
    rates: Mapping[str, int] | None
    patience: int
    down: frozenset[str]
    host_seconds: float
    newest_epoch: int


@dataclass(frozen=True, slots=True)
class JobHosts:
    """The hosts that take part in a job: the workers by rank, and the destination."""

    job: int
    workers: tuple[str, ...]
    destination: str
    window: int


class Part(Enum):
    """Whom of a job a command is for."""

    WORKERS = "workers"
    DESTINATION = "destination"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Describe:
    """Answered with `NetworkDescription`."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """Answered with a tuple of `JobHosts`, by job."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Commands by host; answered with a list of their answers.

    Where one is refused the answer is its text; the others were carried out.
    """

    commands: tuple[tuple[str, Command], ...]


@dataclass(frozen=True, slots=True)
class TellJob:
    """One command for the hosts of a job; answered with their answers by host.

    Hosts that were killed, and workers that the job goes on without, are left out.
    """

    command: Command
    part: Part


@dataclass(frozen=True, slots=True)
class SurveyJob:
    """Answered with how far every host of a job is, by host.

    None of one that does not say in time, GONE of one that was killed or whose process has ended.
    """

    job: int


GONE = "gone"


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill a switch or a host, or cut a link A-B; `one_way`: only what A sends to B.

    `again`: it may be dead or cut already.
    """

    name: str
    one_way: bool = False
    again: bool = True


@dataclass(frozen=True, slots=True)
class Restart:
    """Start a switch or host anew that was killed, or let a link carry all again."""

    name: str


@dataclass(frozen=True, slots=True)
class LookForFaults:
    """Answered with `Faults`."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What is the matter with a network, as far as it knows itself.

    Attributes:
        dead: switches that were killed, or whose processes have ended.
        dark: links between switches that have no carrier; see `LiveNetwork.dark_links`.
        mended: how often a link was let carry all again, by its ends in either order.
    """

    dead: frozenset[str]
    dark: frozenset[str]
    mended: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Down:
    """Take the network down; answered before that begins."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to a `Kill` or `Restart` of what is not there, or is as asked for already."""

    text: str


@dataclass(frozen=True, slots=True)
class Silent:
    """The answer in place of a text where hosts do not answer: see `SilentHostsError`."""

    hosts: Mapping[str, int | None]
    seconds: float


Request: TypeAlias = (
    Describe | Jobs | Tell | TellJob | SurveyJob | Kill | Restart | LookForFaults | Down
)
