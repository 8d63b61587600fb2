"""The programs of tests/programs, and helpers to make their packets."""

import json
from pathlib import Path
from typing import Any

from softswitch import Switch

PROGRAMS = Path(__file__).parents[2] / "programs"
SHIPPED = Path(__file__).parents[3] / "p4src" / "build" / "bluetree.json"


def load(name: str, queues: int = 1) -> Switch:
    """A switch that runs one of the test programs."""
    return Switch.load(PROGRAMS / f"{name}.json", queues=queues)


def document(name: str) -> dict[str, Any]:
    """The JSON of a test program, to be changed by a test."""
    found: dict[str, Any] = json.loads((PROGRAMS / f"{name}.json").read_text())
    return found


def one(switch: Switch, packet: bytes, port: int = 0, now_us: int = 0) -> bytes:
    """Run a packet that must leave exactly once, on port 1; what leaves."""
    out = switch.process(port, packet, now_us)
    assert [p for p, _ in out] == [1]
    return out[0][1]
