"""Mininet's helper `mnexec`, for where only the Python half of Mininet is installed.

Debian's package brings the program; that of PyPI does not. This takes the options that Mininet's
nodes and this project use, and then becomes the command behind them:

    -c      close all descriptors but the standard ones
    -d      begin a session of its own, away from the terminal
    -n      enter new namespaces for networks and mounts
    -a PID  enter those of a process
    -p      print \\001, the process id and a line's end first
"""

from __future__ import annotations

import ctypes
import getopt
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

PROGRAM = "mnexec"
_FLAGS = "-ES"
"""Of Python: nothing but its own library is needed."""
_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_MS_REC, _MS_PRIVATE = 1 << 14, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


def command() -> tuple[str, ...]:
    """The words that begin a command line of mnexec here: the program, or this file."""
    found = shutil.which(PROGRAM)
    return (found,) if found is not None else (sys.executable, _FLAGS, __file__)


def provide(folder: Path) -> None:
    """Put a program of that name on PATH, in a new folder, unless there is one."""
    if shutil.which(PROGRAM) is not None:
        return
    folder.mkdir()
    program = folder / PROGRAM
    # As a file by itself it starts several times as fast as from the package.
    text = Path(__file__).read_text(encoding="utf-8")
    program.write_text(f"#!{sys.executable} {_FLAGS}\n{text}", encoding="utf-8")
    program.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def main(arguments: Sequence[str]) -> int:
    """Do what the options say and become the command; 1 with a reason where that fails."""
    try:
        options, words = getopt.getopt(list(arguments), "+cdnpa:")
        for option, value in options:
            _act(option, value)
        if not words:
            raise getopt.GetoptError("no command")
        os.execvp(words[0], words)
    except (OSError, getopt.GetoptError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 1


def _act(option: str, value: str) -> None:
    match option:
        case "-c":
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        case "-d":
            if os.getpgrp() == os.getpid() and os.fork() > 0:
                # A leader of a group cannot begin a session; the caller waits for the child.
                _, status = os.wait()
                os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
            os.setsid()
        case "-n":
            _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWNET))
            _check(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
            # So that /sys/class/net shows the new network.
            _check(_libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None))
        case "-a":
            for kind, flag in (("net", _CLONE_NEWNET), ("mnt", _CLONE_NEWNS)):
                handle = os.open(f"/proc/{value}/ns/{kind}", os.O_RDONLY)
                _check(_libc.setns(handle, flag))
                os.close(handle)
        case "-p":
            print(f"\x01{os.getpid()}", flush=True)


def _check(code: int) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
