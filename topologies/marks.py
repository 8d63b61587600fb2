"""Whose the things on this machine are: interfaces and folders bear the mark of their run.

A run that is killed may leave some of them. The next one removes those whose process is gone, and
nothing else. A process is known by its id and its start, as ids are used again.

An interface cannot be marked as it is made, and the kill may come in between. So the run's folder
says by which tag its interfaces begin, and those of that name that bear no mark go with the folder.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from topologies.mininet_plan import FOLDER_PREFIX

ALIAS = "bluetree"
OWNER = "owner"
"""The file in a run's folder that says whose it is."""
TAG = "tag"
"""The file in a run's folder that says by what its interfaces' names begin."""
LINKS = "links"
"""The file in a run's folder that says which interfaces are made."""
_MAKERS_END_S = 10.0
_POLL_S = 0.02
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


def own_mark() -> str:
    """The alias of an interface that is of this process."""
    return f"{ALIAS}:{identity(os.getpid())}"


def mark_folder(folder: Path) -> None:
    """Say that a folder is of this process."""
    (folder / OWNER).write_text(f"{identity(os.getpid())}")


def mark_tag(folder: Path, tag: str) -> None:
    """Say in a run's folder by what the interfaces begin that are about to be made."""
    (folder / TAG).write_text(tag)


def remove_leftovers() -> None:
    """Remove the interfaces and folders of runs whose process is gone."""
    for name, mark in _marks("*"):
        kind, _, owner = mark.partition(":")
        if kind == ALIAS and _is_gone(owner):
            _remove_interface(name)
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        try:
            owner = (folder / OWNER).read_text()
        except OSError:  # not marked yet, or gone
            continue
        if _is_gone(owner):
            remove_unmarked(folder)
            shutil.rmtree(folder, ignore_errors=True)


def remove_unmarked(folder: Path) -> None:
    """Remove the interfaces of a run, its process gone, that it had no time to mark."""
    try:
        tag = (folder / TAG).read_text()
    except OSError:  # it had not begun
        return
    # What makes interfaces ends after the process that has told it to.
    deadline = time.monotonic() + _MAKERS_END_S
    while _is_made(folder) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    for name, mark in _marks(f"{tag}*-*"):
        if not mark or _is_gone(mark.partition(":")[2]):
            _remove_interface(name)


def _marks(pattern: str) -> Iterator[tuple[str, str]]:
    """Interfaces by name, and the mark of each."""
    for alias in _INTERFACES.glob(f"{pattern}/ifalias"):
        try:
            yield alias.parent.name, alias.read_text().strip()
        except OSError:  # gone between the listing and the look
            continue


def _remove_interface(name: str) -> None:
    # Its other end may have taken it along.
    subprocess.run(["ip", "link", "del", name], check=False, stderr=subprocess.DEVNULL)


def _is_made(folder: Path) -> bool:
    """Whether a process still makes the interfaces of a run."""
    words = os.fsencode(folder / LINKS)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words in path.read_bytes():
                return True
        except OSError:  # ended between the listing and the look
            continue
    return False


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
