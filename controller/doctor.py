"""`bluetree doctor`: what is installed, what is missing, and which targets will work."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from controller import targets
from controller.installed import SHELL_PYTHON
from p4src import artefacts
from softswitch.native.build import compiler
from topologies.mininet_net import load_mininet

_PACKAGES = (
    "click",
    "finsy",
    "grpcio",
    "matplotlib",
    "networkx",
    "numba",
    "numpy",
    "pillow",
    "protobuf",
    "pyyaml",
    "rich",
    "scapy",
    "scikit-learn",
    "scipy",
)
BMV2 = "simple_switch_grpc"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for. `needed_for` says what works only with it."""

    name: str
    found: bool
    detail: str
    needed_for: str


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """Whether a target of `bluetree run --target` works on this machine, and why."""

    target: str
    works: bool
    why: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that `bluetree doctor` says."""

    findings: tuple[Finding, ...]
    targets: tuple[TargetVerdict, ...]


def diagnose() -> Diagnosis:
    """Look at this machine; changes nothing."""
    findings = (
        Finding("python", True, platform.python_version(), "everything"),
        *(_package(name) for name in _PACKAGES),
        _program(),
        _tool(artefacts.COMPILER, "make p4 (the committed output works without it)"),
        _tool(BMV2, "target bmv2, packet tests on bmv2"),
        _mininet(),
        Finding(
            "root",
            os.geteuid() == 0,
            f"user id {os.geteuid()}",
            "targets softswitch and bmv2, packet tests on bmv2",
        ),
        _tool("tc", "targets softswitch and bmv2 (iproute2)", "-V"),
        _tool("ethtool", "targets softswitch and bmv2"),
        _compiler(),
        _shell(),
        _torch(),
    )
    found = {finding.name: finding.found for finding in findings}
    needed = [name for name in (*_PACKAGES, "P4 program") if not found[name]]
    return Diagnosis(
        findings,
        (
            TargetVerdict(
                "fabric",
                not needed,
                "needs Python packages only" if not needed else "missing: " + ", ".join(needed),
            ),
            *(_over_mininet(target) for target in (targets.SOFTSWITCH, targets.BMV2)),
        ),
    )


def _over_mininet(target: str) -> TargetVerdict:
    reason = targets.why_not(target)
    return TargetVerdict(
        target,
        reason is None,
        "root, Mininet and the switch program are there"
        if reason is None
        else reason.removeprefix(f"--target {target}: "),
    )


def _package(name: str) -> Finding:
    try:
        return Finding(name, True, importlib.metadata.version(name), "everything")
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, "not installed: make setup", "everything")


def _compiler() -> Finding:
    path, needed_for = compiler(), "softswitch as native code (without it as Python, slower)"
    if path is None:
        return Finding("C compiler", False, "no $CC, cc, gcc or clang", needed_for)
    return Finding("C compiler", True, path, needed_for)


def _shell() -> Finding:
    found = SHELL_PYTHON.exists()
    detail = str(SHELL_PYTHON) if found else "no environment: make shell-env"
    return Finding("p4runtime-shell", found, detail, "bluetree shell")


def _torch() -> Finding:
    needed_for = "traffic.collectives.pytorch, examples/train_digits.py"
    try:
        return Finding("torch", True, importlib.metadata.version("torch"), needed_for)
    except importlib.metadata.PackageNotFoundError:
        remedy = ".venv/bin/pip install -c constraints.txt -e '.[torch]'"
        return Finding("torch", False, remedy, needed_for)


def _mininet() -> Finding:
    needed_for = "targets softswitch and bmv2"
    try:
        where = load_mininet().__file__
    except ImportError:
        return Finding("mininet", False, "on Debian: apt-get install mininet", needed_for)
    return Finding("mininet", True, str(Path(where).parent), needed_for)


def _program() -> Finding:
    stale = artefacts.stale()
    return Finding(
        "P4 program",
        not stale,
        "compiled output is fresh" if not stale else f"stale ({stale[0]}): make p4",
        "everything",
    )


def _tool(name: str, needed_for: str, option: str = "--version") -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, False, "not on PATH", needed_for)
    try:
        shown = subprocess.run(
            [name, option], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(name, False, f"{path} does not answer: {error}", needed_for)
    version = re.search(r"\d+\.\d+[\w.\-]*", shown.stdout + shown.stderr)
    return Finding(name, True, version.group() if version else path, needed_for)
