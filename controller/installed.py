"""What this machine has of what networks over Mininet need; imports nothing that takes long."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from topologies.mininet_net import load_mininet

SWITCH_PROGRAMS = {"softswitch": "softswitch", "bmv2": "simple_switch_grpc"}
"""The program of a switch, by target."""
SHELL_PYTHON = Path(__file__).resolve().parents[1] / ".venv-shell" / "bin" / "python"
"""Of p4runtime-shell's own environment."""
TOOLS = ("ip", "tc", "ethtool", "setpriv")


def why_not(target: str) -> str | None:
    """What this machine lacks for a target, as one line; None if nothing."""
    program = SWITCH_PROGRAMS[target]
    if program_path(program) is None:
        return f"--target {target}: {program} is not on PATH; install it or use --target fabric"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    try:
        load_mininet()
    except ImportError:
        missing.append("mininet")
    if missing:
        return (
            f"--target {target}: {', '.join(missing)} not found; on Debian, as root: "
            "apt-get install mininet iproute2 ethtool (or use --target fabric)"
        )
    return None


def program_path(name: str) -> str | None:
    """The path of a program: beside this Python, or on PATH; None where it is not installed."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)
