"""Random packets through every program: no exception, no growth in memory, no stray state.

python -m tests.fuzz.packets [--count N] [--seed N] [--backend NAME] [--jobs N]

`--count` packets on Python, and as many on native code, over all the programs that it is made for.
Half of them meet empty tables, where every cell that may change is known; half meet random entries.
"""

import argparse
import ctypes
import gc
import multiprocessing
import os
import random
import sys
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice

from softswitch import Device
from softswitch.ir import Program
from softswitch.native import NativeUnavailable
from tests.differential.backends import Filled
from tests.fuzz.inputs import CPU_PORT, SHIPPED, device, program_names, random_packets

BACKENDS = ("python", "native")
_WARM = 200
_LEAK_BYTES_A_PACKET = 1.0
_LEAK_FLOOR = 32 * 1024
_HEAP_FLOOR = 128 * 1024
"""The C library's heap also holds tracemalloc's own tables, which grow by some 50 KiB."""


@dataclass(frozen=True, slots=True)
class Task:
    """What one process runs: `count` packets of a program, over empty tables or random entries."""

    name: str
    count: int
    seed: int
    backend: str | None = None
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What the packets of a task did."""

    task: Task
    left: int
    grown: int
    """Bytes of Python's objects."""
    heap: int
    """Bytes of the C library's heap, where native code keeps its state."""
    stray: str
    seconds: float

    @property
    def leaks(self) -> bool:
        allowed = _LEAK_BYTES_A_PACKET * self.task.count
        return self.grown > max(_LEAK_FLOOR, allowed) or self.heap > max(_HEAP_FLOOR, allowed)

    @property
    def failed(self) -> bool:
        return self.leaks or bool(self.stray)

    def __str__(self) -> str:
        return (
            f"{self.task.backend}, {'entries' if self.task.filled else 'empty'}, {self.task.name}: "
            f"{self.task.count} packets, {self.left} left, memory {self.grown:+} bytes, heap "
            f"{self.heap:+}, {self.stray or 'no stray state'}, {self.seconds:.0f} s"
            f"{', FAILED' if self.failed else ''}"
        )


class _MallocInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def _memory() -> tuple[int, int]:
    """Bytes that Python's objects hold, and that the C library's heap does (0 without glibc)."""
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    heap = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if heap is None:
        return held, 0
    heap.restype = _MallocInfo
    return held, heap().uordblks


def _registers(found: Device) -> dict[tuple[str, int], int]:
    """Cells that are not 0."""
    program: Program = found.program
    return {
        (name, index): value
        for name, register in program.registers.items()
        for index in range(register.size)
        if (value := found.register(name, index))
    }


class _Addressed:
    """What packets may change while tables are empty, told from their bytes alone."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._cells: dict[tuple[str, int], int] = {}

    def see(self, packet: bytes) -> None:
        if self._name == "state" and len(packet) >= 9 and packet[0] == 2:
            index = int.from_bytes(packet[1:5])
            if index < 16:
                self._cells["IngressPipe.cells", index] = int.from_bytes(packet[5:9])

    def stray(self, found: Device) -> str:
        """What else changed; '' if nothing."""
        changed = _registers(found)
        if self._name == SHIPPED:
            # no source is registered, so no packet may touch a slot
            return f"slots {sorted(changed)[:3]}" if changed else ""
        if self._name == "state":
            cells = {key: value for key, value in changed.items() if key[0] == "IngressPipe.cells"}
            wanted = {key: value for key, value in self._cells.items() if value}
            return "" if cells == wanted else f"cells {cells} instead of {wanted}"
        return ""


def _prepared(task: Task) -> tuple[Device, Iterator[bytes]]:
    if task.filled:
        filled = Filled(task.name, task.seed, (task.backend,))
        filled.fill()
        return filled.devices[0], filled.packets()
    found = device(task.name, task.backend)
    for group in (1, 2, 3):
        found.create_multicast_group(group, ())
    return found, random_packets(task.name, task.seed)


def run(task: Task) -> Report:
    """Packets through a fresh device; whatever they raise leaves."""
    start = time.perf_counter()
    found, packets = _prepared(task)
    addressed = _Addressed(task.name)
    ports = random.Random(task.seed)
    left, before = 0, (0, 0)
    tracemalloc.start()
    try:
        for number, packet in enumerate(islice(packets, task.count)):
            if number == min(_WARM, task.count // 2):
                before = _memory()
            addressed.see(packet)
            port = CPU_PORT if ports.random() < 0.05 else ports.randrange(1, 9)
            left += len(found.process(port, packet, now_us=number))
        grown, heap = (now - then for now, then in zip(_memory(), before, strict=True))
    finally:
        tracemalloc.stop()
    stray = "" if task.filled else addressed.stray(found)
    return Report(task, left, grown, heap, stray, time.perf_counter() - start)


def _programs(backend: str) -> Iterator[str]:
    """The programs that a back end runs; those that it does not are named."""
    for name in program_names():
        try:
            device(name, backend)
            yield name
        except NativeUnavailable as error:
            print(f"{name}: {error}", flush=True)


def tasks(backends: tuple[str, ...], count: int, seed: int) -> list[Task]:
    """`count` packets for each back end, spread over its programs."""
    found: list[Task] = []
    for backend in backends:
        names = list(_programs(backend))
        share = -(-count // (2 * max(1, len(names))))
        found += [Task(n, share, seed, backend, filled) for n in names for filled in (False, True)]
    return found


def main() -> int:
    """0 if nothing leaked or strayed, 1 if something did."""
    arguments = argparse.ArgumentParser(description="random packets through every program")
    arguments.add_argument("--count", type=int, default=1_000_000, help="packets a back end")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--backend", choices=BACKENDS, help="one alone")
    arguments.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    chosen = arguments.parse_args()
    wanted = BACKENDS if chosen.backend is None else (chosen.backend,)
    bad = 0
    # a process for each, so that one's memory is not another's
    with ProcessPoolExecutor(
        chosen.jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        for report in pool.map(run, tasks(wanted, chosen.count, chosen.seed)):
            bad += report.failed
            print(report, flush=True)
    print(f"{bad} tasks failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
