"""Whose the things on this machine are: interfaces and folders bear the mark of their run.

A run that is killed may leave some of them. The next one removes those whose process is gone, and
nothing else. A process is known by its id and its start, as ids are used again.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from topologies.mininet_plan import FOLDER_PREFIX

ALIAS = "bluetree"
OWNER = "owner"
"""The file in a run's folder that says whose it is."""
_INTERFACES = Path("/sys/class/net")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_START_FIELD = 19
"""Of /proc/PID/stat behind the name in brackets: the start, in ticks since the machine's."""


def identity(pid: int) -> str | None:
    """What tells a process from all others, None where there is none of that id."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return f"{pid}.{fields[_START_FIELD]}"


def mark_interface(name: str) -> None:
    """Say that an interface is of this process."""
    (_INTERFACES / name / "ifalias").write_text(f"{ALIAS}:{identity(os.getpid())}")


def mark_folder(folder: Path) -> None:
    """Say that a folder is of this process."""
    (folder / OWNER).write_text(f"{identity(os.getpid())}")


def remove_leftovers() -> None:
    """Remove the interfaces and folders of runs whose process is gone."""
    for alias in _INTERFACES.glob("*/ifalias"):
        try:
            kind, _, owner = alias.read_text().strip().partition(":")
        except OSError:  # gone between the listing and the look
            continue
        if kind == ALIAS and _is_gone(owner):
            delete = ["ip", "link", "del", alias.parent.name]
            # Its other end may have taken it along.
            subprocess.run(delete, check=False, stderr=subprocess.DEVNULL)
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        try:
            owner = (folder / OWNER).read_text()
        except OSError:  # not marked yet, or gone
            continue
        if _is_gone(owner):
            shutil.rmtree(folder, ignore_errors=True)


def free_tag() -> str:
    """Four characters that no interface begins with."""
    for number in itertools.count(os.getpid()):
        text = ""
        for _ in range(3):
            number, digit = divmod(number, len(_DIGITS))
            text = _DIGITS[digit] + text
        if not any(_INTERFACES.glob(f"b{text}*")):
            return "b" + text
    raise AssertionError("unreachable: the count has no end")


def _is_gone(owner: str) -> bool:
    pid, _, _ = owner.partition(".")
    return not pid.isdigit() or identity(int(pid)) != owner
