"""Carries the numbers of the P4 program into Python: writes the generated module `constants`.

The P4 sources are the only place where a size, a kind, a flag or an outcome is written; Python
reads `p4src.constants`, which `make p4` writes and a test keeps fresh.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_DEFINE = re.compile(r"^#define (\w+) (\d+)$", re.MULTILINE)
_CONST = re.compile(r"^const (?:bit<\d+>|int)\s+(\w+)\s*=\s*(0x[0-9A-Fa-f]+|\d+);", re.MULTILINE)
_ENUM = re.compile(r"^enum bit<\d+> (\w+)_t \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_MEMBER = re.compile(r"^\s*(\w+)\s*=\s*(\d+)", re.MULTILINE)

_EXPORTED = (
    "LANES",
    "WORDS",
    "SOURCES",
    "SLOTS",
    "JOBS",
    "QUEUES",
    "WINDOWS",
    "AGG_UDP_PORT",
    "AGG_VERSION",
    "OPTION_LAYER",
    "OPTION_ITERATION",
    "TICKET_BYTES",
)
_ENUMS = (
    ("kind", "Kind", "Kinds of message (`kind_t`)."),
    ("outcome", "Outcome", "What became of a packet (`outcome_t`): its cell in `outcomes`."),
)


@dataclass(frozen=True, slots=True)
class Constants:
    """Literal constants by name, and the members of each serializable enum (without `_t`)."""

    numbers: Mapping[str, int]
    enums: Mapping[str, Mapping[str, int]]


def extract(texts: Iterable[str]) -> Constants:
    """Return the literal #defines, consts and serializable enums of P4 source texts."""
    numbers: dict[str, int] = {}
    enums: dict[str, dict[str, int]] = {}
    for text in texts:
        for name, value in [*_DEFINE.findall(text), *_CONST.findall(text)]:
            numbers[name] = int(value, 0)
        for name, body in _ENUM.findall(text):
            enums[name] = {member: int(value) for member, value in _MEMBER.findall(body)}
    return Constants(numbers, enums)


def python_module(constants: Constants) -> str:
    """Return the text of the generated module."""
    lines = [
        '"""The numbers of the P4 program. Generated from p4src by `make p4`: do not edit."""',
        "",
        "from enum import IntEnum, IntFlag",
        "",
        *(f"{name} = {constants.numbers[name]}" for name in _EXPORTED),
    ]
    for name, title, documentation in _ENUMS:
        lines += _class(title, "IntEnum", documentation, constants.enums[name])
    flags = {
        name.removeprefix("FLAG_"): value
        for name, value in constants.numbers.items()
        if name.startswith("FLAG_")
    }
    lines += _class("Flag", "IntFlag", "Flags of a message (`FLAG_*`).", flags)
    return "\n".join(lines) + "\n"


def _class(title: str, base: str, documentation: str, members: Mapping[str, int]) -> list[str]:
    return [
        "",
        "",
        f"class {title}({base}):",
        f'    """{documentation}"""',
        "",
        *(f"    {name} = {value}" for name, value in members.items()),
    ]
