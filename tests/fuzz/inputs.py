"""What the fuzzers feed, and what counts as a failure; no fuzzing engine in here.

A target takes bytes, from an engine or from a seeded generator. An exception that leaves it is a
failure: what may be refused is refused by the one error of its layer, and what is accepted runs.
"""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from p4src import artefacts
from softswitch import Device
from softswitch.errors import SoftswitchError
from softswitch.native.errors import NotNativeError
from softswitch.native.module import generate
from tests.differential.packets import Domains, PacketMaker
from tests.unit.softswitch.programs import PROGRAMS
from tests.unit.softswitch.test_damaged import damage, paths

CPU_PORT = 510
SHIPPED = "bluetree"
_DAMAGES = 4
_LONGEST = 1600


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
    return list(paths(json.loads(pipeline(name))))


def device(name: str, backend: str | None = None) -> Device:
    """A device that runs a program, with nothing in its tables."""
    found = Device(device_id=1, cpu_port=CPU_PORT, backend=backend)
    found.load_pipeline(pipeline(name))
    return found


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
    draw = random.Random(data)
    name = draw.choice(program_names())
    document: dict[str, Any] = json.loads(pipeline(name))
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
