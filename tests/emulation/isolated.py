"""A command on a machine of its own: ``unshare ... python -m tests.emulation.isolated``.

`run_isolated` gives a command namespaces of its own for networks, processes and mounts, with a
/tmp that is empty but for what the command needs. Nothing else goes on there, so that what it
leaves behind is the whole difference between before and after.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TEMPORARY = Path("/tmp")
_NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--mount-proc", "--propagation", "private")
_SETTLE_S = 30.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Isolated:
    """What a command came to, and what was there before and after it."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    before: dict[str, list[str]]
    after: dict[str, list[str]]


def run_isolated(
    command: list[str], folder: Path, *, kill: signal.Signals | None = None, deadline: float
) -> Isolated:
    """Run a command alone; it sees `folder`. `kill` is sent to it once it has interfaces.

    `after` is as soon as it equals `before`, at the latest 30 seconds after the command's end.
    """
    words = enter("tests.emulation.isolated", "--folder", str(folder))
    words += [*(["--kill", str(int(kill))] if kill else []), "--"]
    done = subprocess.run(
        [*words, *command], cwd=ROOT, capture_output=True, text=True, timeout=deadline
    )
    assert done.returncode == 0, done.stderr
    return Isolated(**json.loads(done.stdout))


def enter(module: str, *words: str) -> list[str]:
    """A command line that runs a module in namespaces of its own."""
    return ["unshare", *_NAMESPACES, sys.executable, "-m", module, *words]


def mount_own(folder: Path) -> None:
    """See the interfaces of this namespace, and a /tmp of its own."""
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    aside = Path("/mnt")
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(aside)], check=True)
    for needed in (ROOT, folder):
        if needed.is_relative_to(TEMPORARY):
            inside = aside / needed.relative_to(TEMPORARY)
            inside.mkdir(parents=True)
            subprocess.run(["mount", "--bind", str(needed), str(inside)], check=True)
    subprocess.run(["mount", "--move", str(aside), str(TEMPORARY)], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def look(needed: tuple[Path, ...]) -> dict[str, list[str]]:
    """Everything that a run makes: interfaces, named namespaces, processes, files."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True)
    names = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    processes = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes().decode(errors="replace").replace("\0", " ").strip()
            processes.append(f"{entry.parent.name} {words}")
    return {
        "links": sorted(line.split(":")[1] for line in links.stdout.splitlines()),
        "namespaces": sorted(names.stdout.split()),
        "processes": sorted(processes),
        "files": sorted(
            str(path)
            for path in TEMPORARY.rglob("*")
            if not any(path.is_relative_to(one) or one.is_relative_to(path) for one in needed)
        ),
    }


def settled(needed: tuple[Path, ...], before: dict[str, list[str]]) -> dict[str, list[str]]:
    """What is there once it equals what was before, or after a while."""
    deadline = time.monotonic() + _SETTLE_S
    _reap()
    while (after := look(needed)) != before and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        _reap()
    return after


def _reap() -> None:
    """This is the first process of its namespace, so orphans are its children."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _kill_when_up(process: subprocess.Popen[bytes], number: int, before: list[str]) -> None:
    deadline = time.monotonic() + _SETTLE_S
    while len(os.listdir("/sys/class/net")) == len(before) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    process.send_signal(number)


def main(arguments: list[str]) -> int:
    """Run the command and print what it came to, as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--kill", type=int)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    mount_own(options.folder)
    needed = (ROOT, options.folder)
    before = look(needed)
    outputs = [options.folder / name for name in ("stdout", "stderr")]
    start = time.monotonic()
    with outputs[0].open("wb") as out, outputs[1].open("wb") as err:
        process = subprocess.Popen(options.command, stdout=out, stderr=err, cwd=ROOT)
        if options.kill is not None:
            _kill_when_up(process, options.kill, before["links"])
        code = process.wait()
    seconds = time.monotonic() - start
    after = settled(needed, before)
    result: dict[str, Any] = {"code": code, "seconds": seconds, "before": before, "after": after}
    result |= {path.name: path.read_text(errors="replace") for path in outputs}
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
