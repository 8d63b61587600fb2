"""Damaged pipelines: each is refused with a SoftswitchError, or runs; nothing else comes out."""

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from softswitch.device import Device
from softswitch.errors import SoftswitchError
from softswitch.native.errors import NotNativeError
from softswitch.native.module import generate
from tests.unit.softswitch.programs import document

Path = tuple[str | int, ...]
ODD_VALUES: tuple[Any, ...] = (None, -1, 0, 1, 1 << 40, "", "x", [], {}, True, "0x1", 1.5)


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """The place of everything in a JSON document, sources left out."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != "source_info":
                yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*path, index))


def at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def damage(program: dict[str, Any], places: list[Path], draw: random.Random) -> None:
    """Delete, replace or repeat one thing."""
    place = draw.choice(places[1:])
    owner: Any = at(program, place[:-1])
    key: Any = place[-1]
    choice = draw.randrange(4)
    if choice == 0:
        del owner[key]
    elif choice == 1:
        owner[key] = draw.choice(ODD_VALUES)
    elif choice == 2:
        owner[key] = copy.deepcopy(at(program, draw.choice(places)))
    elif isinstance(owner, list):
        owner.append(copy.deepcopy(owner[key]))


@pytest.fixture
def backend() -> str:
    """Not both: C is made of what loads, but to compile each would take a second."""
    return "python"


@pytest.mark.parametrize(
    "name", ["tables", "state", "copies", "parsing", "arithmetic", "profiles", "unions"]
)
def test_damaged_pipelines(name: str) -> None:
    draw = random.Random(name)
    intact = document(name)
    places = list(paths(intact))
    refused = 0
    for _ in range(150):
        program = copy.deepcopy(intact)
        damage(program, places, draw)
        device = Device(backend="python")
        try:
            device.load_pipeline(json.dumps(program).encode())
        except SoftswitchError:
            refused += 1
            continue
        with suppress(NotNativeError):
            generate(device.program)
        for _ in range(5):
            device.process(draw.choice([0, 510]), draw.randbytes(draw.randrange(40)))
    assert refused > 20
