"""How ports are written: ``<port-num>@<interface-name>``, on the command line and in a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from softswitch.ports.errors import PortNameError

MAX_PORT = 511
"""The largest number of a port: v1model has 9 bits. One of them is the drop port."""

MAX_NAME = 15
"""The longest name of an interface that Linux takes (IFNAMSIZ less its end)."""


@dataclass(frozen=True, slots=True)
class PortName:
    """A port number and the interface behind it."""

    port: int
    interface: str

    def __str__(self) -> str:
        return f"{self.port}@{self.interface}"


def parse_port(text: str) -> PortName:
    """Read ``3@veth3``; raises PortNameError."""
    number, at, interface = text.partition("@")
    if not at or not (number.isascii() and number.isdigit()) or not interface:
        raise PortNameError(f"{text!r} is no port: write <port-num>@<interface-name>, as 1@veth1")
    port = int(number)
    if port > MAX_PORT:
        raise PortNameError(f"port {port} of {text!r} is outside 0..{MAX_PORT}")
    if len(interface) > MAX_NAME or "/" in interface or any(map(str.isspace, interface)):
        raise PortNameError(
            f"{interface!r} cannot be an interface: names have at most {MAX_NAME} characters"
        )
    return PortName(port, interface)


def check_distinct(names: Iterable[PortName]) -> None:
    """Raise PortNameError if two ports have one number or one interface."""
    ports: dict[int, PortName] = {}
    interfaces: dict[str, PortName] = {}
    for name in names:
        other = ports.setdefault(name.port, name)
        if other != name:
            raise PortNameError(f"port {name.port} is given twice: {other} and {name}")
        other = interfaces.setdefault(name.interface, name)
        if other != name:
            raise PortNameError(f"interface {name.interface} is given twice: {other} and {name}")


def read_ports(path: Path) -> tuple[PortName, ...]:
    """Read a file of ports, one a line; empty lines and those from a ``#`` on say nothing.

    Raises PortNameError, naming the file and every line that is wrong.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PortNameError(f"cannot read the ports of {path}: {error}") from error
    names: list[PortName] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            names.append(parse_port(text))
        except PortNameError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise PortNameError(f"{path}: " + "; ".join(problems))
    return tuple(names)
