"""Random packets through every program: no exception, no growth in memory, no stray state.

python -m tests.fuzz.packets [--count N] [--seed N] [--backend NAME]
"""

import argparse
import gc
import random
import sys
import time
import tracemalloc
from dataclasses import dataclass
from itertools import islice

from softswitch import Device
from softswitch.ir import Program
from softswitch.native import BACKENDS
from tests.fuzz.inputs import CPU_PORT, SHIPPED, device, program_names, random_packets

_WARM = 200
_LEAK_BYTES_A_PACKET = 1.0
_LEAK_FLOOR = 32 * 1024


@dataclass(frozen=True, slots=True)
class Report:
    """What `count` packets of one program did."""

    name: str
    count: int
    left: int
    grown: int
    stray: str

    @property
    def leaks(self) -> bool:
        return self.grown > max(_LEAK_FLOOR, _LEAK_BYTES_A_PACKET * self.count)


def _registers(found: Device) -> dict[tuple[str, int], int]:
    """Cells that are not 0."""
    program: Program = found.program
    return {
        (name, index): value
        for name, register in program.registers.items()
        for index in range(register.size)
        if (value := found.register(name, index))
    }


def stray_state(name: str, found: Device, packets: list[bytes]) -> str:
    """What changed that these packets do not address, told from the bytes alone; '' if nothing."""
    changed = _registers(found)
    if name == SHIPPED:
        # no source is registered, so no packet may touch a slot
        return f"slots {sorted(changed)[:3]}" if changed else ""
    if name == "state":
        written = {
            ("IngressPipe.cells", int.from_bytes(p[1:5])): int.from_bytes(p[5:9])
            for p in packets
            if len(p) >= 9 and p[0] == 2 and int.from_bytes(p[1:5]) < 16
        }
        cells = {key: value for key, value in changed.items() if key[0] == "IngressPipe.cells"}
        wanted = {key: value for key, value in written.items() if value}
        return "" if cells == wanted else f"cells {cells} instead of {wanted}"
    return ""


def run(name: str, count: int, seed: int, backend: str | None = None) -> Report:
    """`count` packets through a fresh device; whatever they raise leaves."""
    found = device(name, backend)
    for group in (1, 2, 3):
        found.create_multicast_group(group, ())
    ports = random.Random(seed)
    packets = random_packets(name, seed)
    kept: list[bytes] = []
    left = 0
    before = 0
    tracemalloc.start()
    try:
        for number, packet in enumerate(islice(packets, count)):
            if number == min(_WARM, count // 2):
                gc.collect()
                before = tracemalloc.get_traced_memory()[0] - sum(map(sys.getsizeof, kept))
            if name == "state" and packet[:1] == b"\2":
                kept.append(packet)
            port = CPU_PORT if ports.random() < 0.05 else ports.randrange(1, 9)
            left += len(found.process(port, packet, now_us=number))
        gc.collect()
        after = tracemalloc.get_traced_memory()[0] - sum(map(sys.getsizeof, (kept, *kept)))
    finally:
        tracemalloc.stop()
    return Report(name, count, left, after - before, stray_state(name, found, kept))


def main() -> int:
    """0 if nothing leaked or strayed, 1 if something did."""
    arguments = argparse.ArgumentParser(description="random packets through every program")
    arguments.add_argument("--count", type=int, default=1_000_000, help="packets in all")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--backend", choices=BACKENDS, help="what runs the packets")
    chosen = arguments.parse_args()
    names = program_names()
    bad = 0
    for name in names:
        start = time.perf_counter()
        report = run(name, -(-chosen.count // len(names)), chosen.seed, chosen.backend)
        seconds = time.perf_counter() - start
        bad += report.leaks or bool(report.stray)
        print(
            f"{name}: {report.count} packets, {report.left} left, memory {report.grown:+} bytes,"
            f" {report.stray or 'no stray state'}, {seconds:.0f} s",
            flush=True,
        )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
