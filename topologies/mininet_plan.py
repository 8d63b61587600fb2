"""What Mininet's process is told to bring up: values that cross from the controller's process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER_PREFIX = "bluetree-run-"
"""Of the folder of a run; nothing else is ever removed."""
RELAY_READY = b"ready\n"
"""What the relay says once it holds every interface."""


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """How switches are started: for each, the words after its `-i port@interface` options.

    `command` is the program with its first words, `arguments[name]` what follows the interfaces.
    Where `module` names Python modules, the first has the program's `main`; switches are then
    forked from a process that has imported them all.
    """

    command: tuple[str, ...]
    arguments: dict[str, tuple[str, ...]]
    logs: Path
    module: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class HostPlan:
    """How host processes are started: the module with their `main`, and the folders of their
    control sockets and of what destinations record, if they do."""

    module: str
    controls: Path
    logs: Path
    journals: Path | None = None


@dataclass(frozen=True, slots=True)
class LinkPlan:
    """What links do to frames.

    Attributes:
        base: bits a second of a link of rate 1; None leaves links as fast as the machine.
        loss, duplicate, reorder: probabilities of every frame, each way; seed: of all chance.
    """

    base: int | None = None
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    seed: int = 0

    @property
    def has_faults(self) -> bool:
        """Whether anything happens to frames."""
        return any((self.loss, self.duplicate, self.reorder))


@dataclass(frozen=True, slots=True)
class StartTimes:
    """When a network was brought up, by the machine's monotonic clock, in seconds.

    Attributes:
        began: before the first namespace.
        built: all namespaces and links are there; processes are started from now on.
    """

    began: float
    built: float


@dataclass(frozen=True, slots=True)
class Half:
    """One half of a link: this process's interface, and the node's name and port beyond it."""

    interface: str
    node: str
    port: int


@dataclass(frozen=True, slots=True)
class RelayPlan:
    """All links with what they do to frames; see `topologies.fabric.build.Conditions`."""

    links: tuple[tuple[Half, Half], ...]
    loss: float
    duplicate: float
    reorder: float
    seed: int
