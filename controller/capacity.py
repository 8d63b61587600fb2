"""Whether a network of processes fits on this machine: an estimate before anything is started.

The figures a process are measured ones, after a Reduce, shared pages counted once, with some room:
see docs/topologies.md. `make bench-testbed` prints what networks really take.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MIB = 1 << 20
_GIB = 1 << 30
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Needs:
    """What something takes of each thing that a machine has a limit of."""

    memory: int
    tasks: int
    terminals: int
    files: int

    def times(self, count: int) -> Needs:
        """What so many take."""
        return Needs(
            count * self.memory, count * self.tasks, count * self.terminals, count * self.files
        )

    def plus(self, other: Needs) -> Needs:
        """What both take."""
        return Needs(
            self.memory + other.memory,
            self.tasks + other.tasks,
            self.terminals + other.terminals,
            self.files + other.files,
        )


_GROUP = "/sys/fs/cgroup"
_MEMORY_GROUPS = (
    (f"{_GROUP}/memory.max", f"{_GROUP}/memory.current"),
    (f"{_GROUP}/memory/memory.limit_in_bytes", f"{_GROUP}/memory/memory.usage_in_bytes"),
)
_TASK_GROUPS = (
    (f"{_GROUP}/pids.max", f"{_GROUP}/pids.current"),
    (f"{_GROUP}/pids/pids.max", f"{_GROUP}/pids/pids.current"),
)
"""Limit and use, of control groups of version 2 and 1."""

# Mininet keeps a shell with a terminal for each switch and each host.
SWITCH = {
    "bmv2": Needs(memory=56 * _MIB, tasks=28, terminals=1, files=10),
    "softswitch": Needs(memory=42 * _MIB, tasks=12, terminals=1, files=10),
}
HOST = Needs(memory=12 * _MIB, tasks=2, terminals=1, files=10)
BASE = Needs(memory=300 * _MIB, tasks=60, terminals=0, files=100)
"""The command, Mininet, the nursery. Files are those of Mininet's process, which has most."""


def needs(target: str, switches: int, hosts: int) -> Needs:
    """What a network takes as processes."""
    return BASE.plus(SWITCH[target].times(switches)).plus(HOST.times(hosts))


def free() -> Needs:
    """What this machine has left, as far as it says so."""
    return Needs(_free_memory(), _free_tasks(), _free_terminals(), _files())


def shortfall(wanted: Needs, have: Needs) -> str | None:
    """What is too little, with both figures; None where all of it fits."""
    for text, need, left in _compared(wanted, have):
        if need > left:
            return text
    return None


def _compared(wanted: Needs, have: Needs) -> Iterator[tuple[str, int, int]]:
    yield (
        f"about {wanted.memory / _GIB:.1f} GiB of memory where {have.memory / _GIB:.1f} GiB are "
        "free",
        wanted.memory,
        have.memory,
    )
    for what, need, left in (
        ("threads and processes", wanted.tasks, have.tasks),
        ("pseudo-terminals", wanted.terminals, have.terminals),
        ("open files", wanted.files, have.files),
    ):
        yield f"about {need:,} {what} where {left:,} are free", need, left


def _free_memory() -> int:
    available = _UNLIMITED
    for line in _lines("/proc/meminfo"):
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            available = int(value.split()[0]) * 1024
    return min([available, *_of_control_group(_MEMORY_GROUPS)])


def _free_tasks() -> int:
    most = [_UNLIMITED]
    running = 0
    for line in _lines("/proc/loadavg"):
        running = int(line.split()[3].partition("/")[2])
    for path in ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"):
        limit = _number(path)
        if limit is not None:
            most.append(limit - running)
    return min([*most, *_of_control_group(_TASK_GROUPS)])


def _free_terminals() -> int:
    most, used = _number("/proc/sys/kernel/pty/max"), _number("/proc/sys/kernel/pty/nr")
    return _UNLIMITED if most is None or used is None else most - used


def _files() -> int:
    """The hard limit of one process: Mininet raises its own to it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard


def _of_control_group(pairs: tuple[tuple[str, str], ...]) -> Iterator[int]:
    """What a container's limits leave; there is none where the file says "max" or is absent."""
    for limit_path, used_path in pairs:
        limit, used = _number(limit_path), _number(used_path)
        if limit is not None and used is not None:
            yield limit - used


def _number(path: str) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return []
