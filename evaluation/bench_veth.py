"""softswitch against bmv2 on real links, in one run: ``python -m evaluation.bench_veth``.

Each switch is a process on three veth pairs, runs the shipped program, is programmed over
P4Runtime, and is sent the same frames by the same closed-loop sender: a window of frames is in the
switch, and what leaves it lets the next ones in, so that nothing is dropped. Logs are off. Two
kinds of traffic:

  forwarding    IPv4 by `ipv4_routes`; a packet in, a packet out
  aggregation   two sources' contributions, summed; two packets in, one out

A packet is one that enters the switch. CPU is that of the switch's process, all threads, with the
kernel's work on its behalf. softswitch runs twice,
with either back end. Rounds alternate between the switches; the best of each counts, as
the machine may be busy with other things. Every sum is compared with the right one.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from controller.p4rt import SwitchAddress, connect_blocking
from controller.program import Op, TableEntry, Update
from evaluation.bench_switch import ipv4
from p4src import artefacts
from p4src.constants import LANES, Kind
from softswitch.loader import load_program
from softswitch.native import compile_native, why_not
from softswitch.ports.errors import PortError
from softswitch.ports.interface import Interface, open_socket
from softswitch.ports.pair import create_pair, delete_pair
from softswitch.ports.ring import Ring
from softswitch.ports.sender import Sender
from topologies.network import mac_text
from traffic.message import Flow, FrameEncoder, Message, pack_lanes

ROUNDS = 3
SECONDS = 2.0
"""Of one measurement."""

CHUNKS = 60_000
"""Most chunks of one measurement; contributions are built before the clock starts."""

WINDOW = 48
"""Frames in the switch: below the 64 that a queue of bmv2 holds."""

STALLED_S = 5.0
MORE_LANES = 64
AGGREGATION_TARGET, FORWARDING_TARGET = 4.0, 1.5
PORTS = (1, 2, 4)
PARENT = 4
SWITCHES = {
    "native": ("softswitch", "--backend", "native"),
    "python": ("softswitch", "--backend", "python"),
    "bmv2": ("simple_switch_grpc",),
}
"""Commands by kind; `native` and `python` are softswitch's back ends."""

_FIRST_TCP_PORT = 9700
_START_S = 30.0


class BenchError(Exception):
    """A measurement cannot be made here, or went wrong; the text says why."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement: packets that entered the switch a second, CPU microseconds a packet."""

    switch: str
    traffic: str
    lanes: int
    packets_per_second: int
    cpu_us: float


@dataclass(frozen=True, slots=True)
class _Load:
    """Frames to send, in turns that belong together, and what comes out of a turn."""

    name: str
    turns: list[tuple[tuple[int, bytes], ...]]
    tail: bytes
    """With which every frame that leaves must end."""


class _Links:
    """Three veth pairs, and this process's ends of them."""

    def __init__(self, stack: ExitStack) -> None:
        token = secrets.token_hex(3)
        self.names: dict[int, str] = {}
        self.senders: dict[int, Sender] = {}
        self.rings: dict[int, Ring] = {}
        self.poll = select.poll()
        for port in PORTS:
            here, there = f"bv{token}h{port}", f"bv{token}s{port}"
            create_pair(here, there)
            stack.callback(delete_pair, here)
            sock = stack.enter_context(open_socket(here))
            self.names[port] = there
            self.rings[port] = Ring(sock, Interface.look_at(here))
            stack.callback(self.rings[port].close)
            self.senders[port] = Sender(sock)
        self.poll.register(sock, select.POLLIN)  # the parent's

    def drain(self) -> None:
        """Forget what is there from before."""
        for ring in self.rings.values():
            while ring.receive(1024):
                pass


def _entries(lanes_job: int) -> list[TableEntry]:
    """Blue for source 1 at port 1 and source 2 at port 2; the parent is at port 4."""
    entries = []
    for port, source in ((1, 1), (2, 2)):
        entries += [
            TableEntry.of(
                "registered_sources",
                {"ingress_port": port, "job": lanes_job},
                "admit",
                {"lowest": source, "highest": source},
            ),
            TableEntry.of(
                "blue_sources",
                {"ingress_port": port, "job": lanes_job, "epoch": 1, "source": source},
                "join",
                {
                    "source_bit": 1 << source,
                    "all_sources": 0b110,
                    "weight": 1,
                    "slot_base": 0,
                    "slot_mask": 255,
                    "own_source": 9,
                },
            ),
        ]
    for phase, resent in product((0, 1), (0, 1)):
        entries.append(
            TableEntry.of(
                "upstream",
                {"job": lanes_job, "phase": phase, "resent": resent},
                "to_parent",
                {"port": PARENT, "mac": 0x0200_0000_0004},
            )
        )
    route = {"port": PARENT, "mac": 0x0200_0000_0005}
    entries.append(TableEntry.of("ipv4_routes", {"dst_addr": (0x0A00_0000, 8)}, "route", route))
    return entries


def _forwarding(lanes: int) -> _Load:
    payload = bytes(range(128)) + bytes(28 + 4 * (lanes - LANES))
    frame = ipv4(6, b"\n\0\0\7", payload)
    return _Load("forwarding", [((1, frame),)] * (2 * CHUNKS), payload)


def _aggregation(lanes: int, first_chunk: int) -> _Load:
    """Contributions of value i and 2 i in lane i: the sum has 3 i."""
    encoders = [
        FrameEncoder(
            Flow(mac_text(0x0200_0000_0100 + n), mac_text(0x0200_0000_0001), f"10.0.0.{n}",
                 "10.255.255.1", 40_000 + n),
            lanes,
        )
        for n in (1, 2)
    ]  # fmt: skip
    values = [pack_lanes([n * i for i in range(lanes)]) for n in (1, 2, 3)]
    turns = [
        tuple(
            (n, encoders[n - 1].encode(Message(Kind.CONTRIBUTE, 0, 1, n, 1, c, 1, values[n - 1])))
            for n in (1, 2)
        )
        for c in range(first_chunk, first_chunk + CHUNKS)
    ]
    return _Load("aggregation", turns, values[2])


def _run(links: _Links, load: _Load, process: subprocess.Popen[bytes]) -> tuple[int, float, float]:
    """Send for SECONDS; return the packets that went in, seconds, CPU seconds of the switch."""
    links.drain()
    ring, each = links.rings[PARENT], len(load.turns[0])
    turns = iter(load.turns)
    in_flight = sent = 0
    cpu, start = _cpu_s(process.pid), time.perf_counter()
    end = start + SECONDS
    while True:
        if time.perf_counter() < end:
            batches: dict[int, list[bytes]] = {}
            for _ in range(WINDOW // each - in_flight):
                for port, frame in next(turns, ()):
                    batches.setdefault(port, []).append(frame)
            for port, frames in batches.items():
                links.senders[port].send(frames)
            count = sum(map(len, batches.values()))
            sent += count
            in_flight += count // each
        if not in_flight:
            break
        if not links.poll.poll(STALLED_S * 1000):
            raise BenchError(f"{in_flight} answers of {load.name} never came: packets were lost")
        for frame in ring.receive(2 * WINDOW):
            if not frame.endswith(load.tail):
                raise BenchError(f"{load.name}: a frame left that is not the right one")
            in_flight -= 1
    return sent, time.perf_counter() - start, _cpu_s(process.pid) - cpu


def _cpu_s(pid: int) -> float:
    """CPU seconds that a process has used, in user mode and in the kernel, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _switch(kind: str, links: _Links, program: artefacts.Artefacts) -> Iterator[
    subprocess.Popen[bytes]
]:  # fmt: skip
    """A switch process, programmed; it is ended with the block."""
    grpc_port = _free_port(_FIRST_TCP_PORT)
    address = f"127.0.0.1:{grpc_port}"
    interfaces = [word for port in PORTS for word in ("-i", f"{port}@{links.names[port]}")]
    command = [
        _found(kind) or "",
        *SWITCHES[kind][1:],
        *("--no-p4", "--device-id", str(os.getpid()), *interfaces, "--log-level", "off"),
        *("--thrift-port", str(_free_port(grpc_port + 1)), "--"),
        *("--grpc-server-addr", address, "--cpu-port", "510"),
    ]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _await_listening(address, process)
            name = SwitchAddress(kind, address, os.getpid())
            with connect_blocking([name], program, election_id=1) as fleet:
                fleet.push()
                fleet.write(kind, [Update(Op.INSERT, entry) for entry in _entries(1)])
                yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_START_S)


def _await_listening(address: str, process: subprocess.Popen[bytes]) -> None:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            select.select((), (), (), 0.05)
        else:
            return
    raise BenchError(f"{process.args!r} does not listen on {address}")


def _free_port(first: int) -> int:
    for port in range(first, first + 1000):
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise BenchError("no TCP port is free")


def _found(kind: str) -> str | None:
    """Where a switch's command is: beside this Python, or on PATH."""
    command = SWITCHES[kind][0]
    beside = Path(sys.executable).with_name(command)
    return str(beside) if beside.exists() else shutil.which(command)


def measure(kinds: list[str], lanes: int, program: artefacts.Artefacts) -> list[Figure]:
    """The best of ROUNDS of both kinds of traffic on every switch, for one build."""
    best: dict[tuple[str, str], Figure] = {}
    if "native" in kinds:  # so that no push waits for the compiler
        compile_native(load_program(program.json), "native")
    for _ in range(ROUNDS):
        for kind in kinds:
            with ExitStack() as stack:
                links = _Links(stack)
                process = stack.enter_context(_switch(kind, links, program))
                for load in (_forwarding(lanes), _aggregation(lanes, 0)):
                    packets, seconds, cpu = _run(links, load, process)
                    figure = Figure(
                        kind, load.name, lanes, round(packets / seconds), cpu / packets * 1e6
                    )
                    old = best.get((kind, load.name))
                    if old is None or figure.packets_per_second > old.packets_per_second:
                        best[kind, load.name] = figure
    return list(best.values())


def _programs() -> Iterator[tuple[int, artefacts.Artefacts]]:
    yield LANES, artefacts.load()
    if artefacts.compiler_version() is None:
        print(f"{artefacts.COMPILER} is absent: {MORE_LANES} lanes not measured", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as directory:
        artefacts.compile_program(Path(directory), defines=(f"LANES={MORE_LANES}",))
        yield MORE_LANES, artefacts.load(Path(directory))


def _ratios(figures: list[Figure]) -> Iterator[tuple[Figure, float | None]]:
    rates = {(f.switch, f.traffic, f.lanes): f.packets_per_second for f in figures}
    for figure in figures:
        other = rates.get(("bmv2", figure.traffic, figure.lanes))
        yield figure, figure.packets_per_second / other if other else None


def main(arguments: list[str]) -> int:
    """Print the table; exit 1 if a target is missed, 3 if it cannot be measured here."""
    kinds = [k for k in SWITCHES if _found(k) and not (k == "native" and why_not())]
    for kind in SWITCHES.keys() - set(kinds):
        what = why_not() if kind == "native" else f"{SWITCHES[kind][0]} is absent"
        print(f"{kind}: {what}: not measured", file=sys.stderr)
    try:
        figures = [
            figure
            for lanes, program in _programs()
            for figure in sorted(measure(kinds, lanes, program), key=lambda f: f.traffic)
        ]
    except (BenchError, PortError, artefacts.ArtefactError) as error:
        print(f"bench_veth: {error}", file=sys.stderr)
        return 3
    met = True
    if "--json" in arguments:
        print(json.dumps([asdict(figure) for figure in figures], indent=2))
    else:
        print(f"window {WINDOW} packets, best of {ROUNDS} rounds of {SECONDS:g} s, logging off")
        print(f"{'traffic':12} {'lanes':>5}  {'switch':10} {'packets/s':>10} {'CPU us':>7} x bmv2")
    for figure, ratio in _ratios(figures):
        target = AGGREGATION_TARGET if figure.traffic == "aggregation" else FORWARDING_TARGET
        met = met and (figure.switch == "bmv2" or ratio is None or ratio >= target)
        if "--json" not in arguments:
            print(
                f"{figure.traffic:12} {figure.lanes:5}  {figure.switch:10} "
                f"{figure.packets_per_second:10,} {figure.cpu_us:7.2f} "
                f"{'' if ratio is None else f'{ratio:7.2f}'}"
            )
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
