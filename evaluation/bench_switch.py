"""How many packets a second one switch runs on one core: ``python -m evaluation.bench_switch``.

The shipped program, 32 lanes, through `Switch.process`; nothing but the switch is timed, in CPU
time. Each figure is the best of five rounds, since the machine may be busy with other things.

  plain forwarding   IPv4 by `ipv4_routes`, no register touched
  red                a contribution passed on to the parent
  absorb             a contribution added to its slot, which waits for others
  emit               a contribution that completes its slot: the sum leaves
  fan out            a result copied to 4 ports

Both back ends, native code where a C compiler is installed. ``--profile`` instead samples which
lines of the generated Python the time goes to.
"""

import json
import signal
import struct
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from time import process_time
from types import FrameType

from p4src.constants import AGG_VERSION
from softswitch import Switch
from softswitch.native import why_not

PROGRAM = Path(__file__).parent.parent / "p4src" / "build" / "bluetree.json"
PACKETS = 20_000
ROUNDS = 5
TARGET = 40_000
PROFILED = 200_000
SAMPLE_S = 0.001
SHOWN = 16


@dataclass(frozen=True, slots=True)
class Figure:
    """Packets a second, and microseconds a packet, of one kind of traffic on one back end."""

    backend: str
    name: str
    packets_per_second: int
    microseconds: float


def ipv4(protocol: int, destination: bytes, payload: bytes) -> bytes:
    """An Ethernet frame with an IPv4 packet from 10.0.0.1."""
    head = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        0,
        20 + len(payload),
        1,
        0,
        255,
        protocol,
        0,
        b"\n\0\0\1",
        destination,
    )
    total = int.from_bytes(head) % 0xFFFF
    head = head[:10] + (0xFFFF - total).to_bytes(2) + head[12:]
    return bytes(12) + b"\x08\x00" + head + payload


def message(kind: int, source: int, chunk: int, destination: bytes = b"\n\0\0\2") -> bytes:
    """A message of job 1, epoch 1, with 32 lanes of small values and an exponent."""
    lanes = struct.pack(">32i", *range(-16, 16))
    head = struct.pack(">BBBBHHIIHH", AGG_VERSION, kind, 0, 32, 1, source, 1, chunk, 1, source)
    udp = struct.pack(">HHHH", 40000, 9590, 8 + len(head) + len(lanes), 0)
    return ipv4(17, destination, udp + head + lanes)


def loaded(backend: str | None = None) -> Switch:
    """Blue for two sources on ports 1 and 2; source 8 on port 3 is red; parent on port 4."""
    switch = Switch.load(PROGRAM, backend=backend)
    for port, source in ((1, 1), (2, 2), (3, 8)):
        bounds = {"lowest": source, "highest": source}
        switch.insert("registered_sources", {"ingress_port": port, "job": 1}, "admit", bounds)
    for port, source in ((1, 1), (2, 2)):
        key = {"ingress_port": port, "job": 1, "epoch": 1, "source": source}
        switch.insert(
            "blue_sources",
            key,
            "join",
            {
                "source_bit": 1 << source,
                "all_sources": 0b110,
                "weight": 1,
                "slot_base": 0,
                "slot_mask": 255,
                "own_source": 9,
            },
        )
    for phase, resent in product((0, 1), (0, 1)):
        switch.insert(
            "upstream",
            {"job": 1, "phase": phase, "resent": resent},
            "to_parent",
            {"port": 4, "mac": 0x0200_0000_0004},
        )
    switch.insert("downstream", {"ingress_port": 4, "job": 1}, "fan_out", {"group": 1})
    switch.multicast_group(1, [(port, 1) for port in (1, 2, 3, 5)])
    route = {"port": 5, "mac": 0x0200_0000_0005}
    switch.insert("ipv4_routes", {"dst_addr": (0x0A000000, 8)}, "route", route)
    return switch


def timed(switch: Switch, work: list[tuple[int, bytes]]) -> float:
    """Seconds to run all packets of `work`."""
    process = switch.process
    start = process_time()
    for port, packet in work:
        process(port, packet)
    return process_time() - start


def measure(backend: str) -> list[Figure]:
    """All figures of one back end.

    Each round runs new chunks, so that slots are taken over as in a real job.
    """
    best: dict[str, float] = {}

    def note(name: str, seconds: float) -> None:
        best[name] = min(best.get(name, seconds), seconds)

    switch = loaded(backend)
    plain = [(1, ipv4(6, b"\n\0\0\7", bytes(156)))] * PACKETS
    red = [(3, message(1, 8, chunk)) for chunk in range(PACKETS)]
    results = [(4, message(2, 0xFFFF, c, b"\xef\x42\0\1")) for c in range(PACKETS // 4)]
    for number in range(1, ROUNDS + 1):
        note("plain forwarding", timed(switch, plain))
        note("red", timed(switch, red))
        note("fan out", timed(switch, results) * PACKETS / len(results))
        first: list[float] = []
        second: list[float] = []
        for base in range(number * PACKETS, (number + 1) * PACKETS, 250):
            chunks = range(base, base + 250)
            first.append(timed(switch, [(1, message(1, 1, c)) for c in chunks]))
            second.append(timed(switch, [(2, message(1, 2, c)) for c in chunks]))
        note("absorb", sum(first))
        note("emit", sum(second))
    check(switch)
    return [
        Figure(backend, name, round(PACKETS / seconds), round(seconds / PACKETS * 1e6, 2))
        for name, seconds in best.items()
    ]


def check(switch: Switch) -> None:
    """The packets did what the figures' names say."""
    outcomes = [switch.counter("outcomes", i)[0] for i in range(19)]
    total = ROUNDS * PACKETS
    wanted = {0: total, 3: total, 5: total, 7: total // 4, 8: total}
    if any(outcomes[i] != count for i, count in wanted.items()):
        raise SystemExit(f"bench_switch: the outcomes are {outcomes}, not {wanted}")


@dataclass(frozen=True, slots=True)
class Spent:
    """Share of the samples in which a line of the generated source ran."""

    share: float
    line: int
    text: str


def profile(work: list[tuple[int, bytes]]) -> list[Spent]:
    """Where `work` spends its time, sampled every millisecond of CPU, the dearest line first."""
    switch = loaded("python")
    source = switch.device.source.splitlines()
    samples: Counter[int] = Counter()

    def take(_: int, frame: FrameType | None) -> None:
        while frame is not None and not frame.f_code.co_filename.startswith("<p4"):
            frame = frame.f_back
        samples[frame.f_lineno if frame is not None else 0] += 1

    before = signal.signal(signal.SIGPROF, take)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
    try:
        timed(switch, work)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    total = samples.total()
    return [
        Spent(count / total, line, source[line - 1].strip() if line else "(around the code)")
        for line, count in samples.most_common()
    ]


def print_profiles() -> None:
    """The dearest lines for plain forwarding and for absorbed contributions."""
    kinds = {
        "plain forwarding": [(1, ipv4(6, b"\n\0\0\7", bytes(156)))] * PROFILED,
        "absorb": [(1, message(1, 1, chunk)) for chunk in range(PROFILED)],
    }
    for name, work in kinds.items():
        print(name)
        for spent in profile(work)[:SHOWN]:
            print(f"  {spent.share:6.1%}  {spent.line:4}  {spent.text[:90]}")


def main(arguments: list[str]) -> int:
    """Print the figures; exit 1 if contributions are below the target."""
    if "--profile" in arguments:
        print_profiles()
        return 0
    figures = [f for backend in backends() for f in measure(backend)]
    if "--json" in arguments:
        print(json.dumps([asdict(f) for f in figures], indent=2))
    else:
        print(f"{'':8}{'':18} {'packets/s':>10} {'us/packet':>10}")
        for f in figures:
            print(f"{f.backend:8}{f.name:18} {f.packets_per_second:10,} {f.microseconds:10.2f}")
    met = True
    for backend in backends():
        summed = [f for f in figures if f.backend == backend and f.name in ("absorb", "emit")]
        rate = len(summed) / sum(1 / f.packets_per_second for f in summed)
        met = met and rate >= TARGET
        if "--json" not in arguments:
            print(f"contributions summed, {backend}: {rate:,.0f} a second (target {TARGET:,})")
    return 0 if met else 1


def backends() -> list[str]:
    """Those that this machine has."""
    reason = why_not()
    if reason is not None:
        print(f"ABSENT: native code: {reason}", file=sys.stderr)
    return ["python"] if reason is not None else ["native", "python"]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
