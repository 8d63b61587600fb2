"""What the fuzzers feed, and what counts as a failure; no fuzzing engine in here.

A target takes bytes, from an engine or from a seeded generator. An exception that leaves it is a
failure: what may be refused is refused by the one error of its layer, and what is accepted runs.
"""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from types import FunctionType
from typing import Any

from p4src import artefacts
from softswitch import Device
from softswitch.device import compile_json
from softswitch.errors import SoftswitchError
from softswitch.native import NativeUnavailable
from softswitch.native.errors import NotNativeError
from softswitch.native.module import generate
from tests.differential.packets import Domains, PacketMaker
from tests.unit.softswitch.programs import PROGRAMS
from tests.unit.softswitch.test_damaged import damage, paths

CPU_PORT = 510
SHIPPED = "bluetree"
_DAMAGES = 4
_LONGEST = 1600
_CHOICE = 2
_PORTS = 9


@cache
def program_names() -> tuple[str, ...]:
    """The test programs, and the shipped one."""
    return (SHIPPED, *(path.stem for path in sorted(PROGRAMS.glob("*.json"))))


@cache
def pipeline(name: str) -> bytes:
    """The JSON of a program."""
    if name == SHIPPED:
        return artefacts.load().json
    return (PROGRAMS / f"{name}.json").read_bytes()


@cache
def _places(name: str) -> list[tuple[str | int, ...]]:
    return list(paths(json.loads(compact(name))))


def device(name: str, backend: str | None = None) -> Device:
    """A device that runs a program, with nothing in its tables."""
    found = Device(device_id=1, cpu_port=CPU_PORT, backend=backend)
    found.load_pipeline(pipeline(name))
    return found


class Steered(random.Random):
    """Takes its choices from bytes, then from a generator seeded by them.

    So an engine that changes a byte changes one choice, not all of them.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._left = int.from_bytes(data)
        self._bits = 8 * len(data)

    def getrandbits(self, k: int, /) -> int:
        """`k` bits, a byte's last ones for less than a byte."""
        wide = -(-k // 8) * 8
        if wide > self._bits:
            return super().getrandbits(k)
        self._bits -= wide
        taken = self._left >> self._bits
        self._left &= (1 << self._bits) - 1
        return taken & ((1 << k) - 1)

    def random(self) -> float:
        """A number in [0, 1) from two bytes."""
        return self.getrandbits(16) / (1 << 16)


class Twins:
    """Every program on Python and, where it can be made, on native code; both must agree."""

    def __init__(self) -> None:
        self._pairs = [_twins(name) for name in program_names()]

    def feed(self, data: bytes) -> None:
        """One packet: its first bytes choose the program and the port. AssertionError."""
        if len(data) < _CHOICE:
            return
        port = data[1] % _PORTS
        left = [
            device.process(port, data[_CHOICE:])
            for device in self._pairs[data[0] % len(self._pairs)]
        ]
        assert all(out == left[0] for out in left), left


def _twins(name: str) -> tuple[Device, ...]:
    python = device(name, "python")
    try:
        return python, device(name, "native")
    except NativeUnavailable:
        return (python,)


def packet_seeds(count: int) -> Iterator[bytes]:
    """What `Twins.feed` takes, `count` packets of every program."""
    for number, name in enumerate(program_names()):
        for at, packet in enumerate(islice(random_packets(name, seed=1), count)):
            yield bytes([number, at % _PORTS]) + packet


def generated_functions() -> Iterator[FunctionType]:
    """The Python functions that the programs were made into."""
    for name in program_names():
        code = compile_json(pipeline(name))
        for entry in (code.ingress, code.queued_ingress):
            assert isinstance(entry, FunctionType)
            own = entry.__code__.co_filename
            for found in entry.__globals__.values():
                if isinstance(found, FunctionType) and found.__code__.co_filename == own:
                    yield found


@cache
def compact(name: str) -> bytes:
    """A program's JSON without places of the source and without blanks."""
    return json.dumps(_without_places(json.loads(pipeline(name))), separators=(",", ":")).encode()


def _without_places(value: Any) -> Any:
    match value:
        case dict():
            return {k: _without_places(v) for k, v in value.items() if k != "source_info"}
        case list():
            return [_without_places(v) for v in value]
    return value


def load(text: bytes) -> None:
    """Any bytes as a pipeline: refused by a SoftswitchError, or it runs packets."""
    draw = random.Random(text)
    found = Device(device_id=1, cpu_port=CPU_PORT, backend="python")
    try:
        found.load_pipeline(text)
    except SoftswitchError:
        return
    # C is made, not compiled: that would take a second
    with suppress(NotNativeError):
        generate(found.program)
    for _ in range(3):
        found.process(draw.choice([0, CPU_PORT]), draw.randbytes(draw.randrange(60)))


def load_damaged(data: bytes) -> None:
    """A pipeline with a few things deleted, replaced or repeated."""
    draw = Steered(data)
    name = draw.choice(program_names())
    document: dict[str, Any] = json.loads(compact(name))
    for _ in range(draw.randint(1, _DAMAGES)):
        try:
            damage(document, _places(name), draw)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier damage took the place away
    load(json.dumps(document).encode())


def random_packets(name: str, seed: int) -> Iterator[bytes]:
    """Packets without end: most as the parser expects them, some of any bytes, cut or changed."""
    draw = random.Random(f"{name} {seed}")
    found = device(name).program
    maker = PacketMaker(found, draw, Domains(draw), lambda fields, rng: None, anything=True)
    yield from harmed(maker, draw)


def harmed(maker: PacketMaker, draw: random.Random) -> Iterator[bytes]:
    """Packets of a maker without end, some of them changed, cut, prolonged or replaced by noise."""
    while True:
        packet = bytearray(maker.make())
        for _ in range(draw.choice([0, 0, 1, 3])):
            packet[draw.randrange(len(packet))] = draw.randrange(256)
        match draw.randrange(12):
            case 0:
                yield draw.randbytes(draw.randrange(_LONGEST))
            case 1:
                yield bytes(packet[: draw.randrange(len(packet))])
            case 2:
                yield bytes(packet) + draw.randbytes(draw.randrange(_LONGEST))
            case _:
                yield bytes(packet)
