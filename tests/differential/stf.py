"""Runs p4c's v1model test programs with their recorded packets (.stf files) on the switch.

    python -m tests.differential.stf FOLDER [--only NAME] [--json-folder DIR] [--backend NAME]

FOLDER is ``testdata/p4_16_samples`` of a checkout of p4c; nothing of it is kept here. Every
program that has an .stf file and names v1model is compiled with p4c-bm2-ss into a scratch folder
and driven through the public Python API: `Switch.load`, `insert`, `set_default`,
`multicast_group`, `mirror` and `process`. As in p4c's own run on bmv2, packets are compared port
by port in order, a ``*`` stands for any digit, and only a ``$`` at the end fixes the length.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from softswitch import Switch
from softswitch.entries import CloneSession, MeterConfig, Replica
from softswitch.errors import SoftswitchError
from softswitch.ir import Key
from softswitch.native import BACKENDS, NativeUnavailable

COMPILER = "p4c-bm2-ss"
COMPILE_DEADLINE_S = 120
REQUIRED = 0.95
_CALL = re.compile(r"^(?P<name>[\w.$]+)\((?P<args>.*)\)$")
_BITS = {"0x": 4, "0b": 1, "0o": 3}


class StfError(Exception):
    """A line that does not parse, or whose packets differ; one line of text."""


@dataclass(frozen=True, slots=True)
class Line:
    """One command: its number in the file, its first word, and the rest."""

    number: int
    command: str
    rest: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one program fared: no `reason` where it passed, not `compiled` where p4c failed.

    Not `native`: native code was asked for, and is not made for it.
    """

    name: str
    reason: str
    compiled: bool = True
    native: bool = True


@dataclass(slots=True)
class Expected:
    """What must leave one port: hexadecimal patterns in order, or anything at all."""

    patterns: list[str] = field(default_factory=list)
    anything: bool = False


def parse(text: str) -> list[Line]:
    """The commands of an .stf file; ``#`` starts a comment."""
    found: list[Line] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split(maxsplit=1)
        if words:
            found.append(Line(number, words[0].lower(), words[1].strip() if words[1:] else ""))
    return found


def number(text: str) -> int:
    """A constant as .stf files write it: decimal, or with 0x, 0b or 0o."""
    return int(text, 0)


class Run:
    """One program being driven by its .stf file."""

    def __init__(self, switch: Switch) -> None:
        self.switch = switch
        self.expected: dict[int, Expected] = {}
        self.left: dict[int, list[bytes]] = {}
        self._nodes: list[tuple[int, list[int]]] = []
        self._groups: dict[int, list[int]] = {}
        self._sessions: dict[int, int] = {}

    def run(self, lines: Iterable[Line]) -> None:
        """All commands, then the comparison; StfError names the first that fails."""
        for line in lines:
            try:
                self._command(line)
            except (SoftswitchError, ValueError, KeyError) as error:
                raise StfError(f"line {line.number}: {line.command}: {error}") from error
        self._compare()

    def _command(self, line: Line) -> None:
        words = line.rest.split()
        match line.command:
            case "packet":
                port, _, data = line.rest.partition(" ")
                packet = bytes.fromhex("".join(data.split()))
                for out, frame in self.switch.process(int(port), packet):
                    self.left.setdefault(out, []).append(frame)
            case "expect":
                port, _, data = line.rest.partition(" ")
                wanted = self.expected.setdefault(int(port), Expected())
                pattern = "".join(data.split()).upper()
                wanted.anything |= not pattern
                if pattern:
                    wanted.patterns.append(pattern)
            case "add":
                self._add(line.rest)
            case "setdefault":
                table, _, call = line.rest.partition(" ")
                self.switch.set_default(table, *_call(call))
            case "wait" | "mirroring_get" | "meter_get_rates" | "counter_read":
                pass
            case "register_read":
                self.switch.register(words[0], number(words[1]))
            case "register_write":
                name = _full(words[0], self.switch.program.registers)
                self.switch.device.set_register(name, number(words[1]), number(words[2]))
            case "register_reset":
                name = _full(words[0], self.switch.program.registers)
                for index in range(self.switch.program.registers[name].size):
                    self.switch.device.set_register(name, index, 0)
            case "meter_set_rates" | "meter_array_set_rates":
                self._meter(words, line.command == "meter_array_set_rates")
            case _:
                self._replication(line.command, words)

    def _meter(self, words: list[str], whole: bool) -> None:
        name = _full(words[0], self.switch.program.meters)
        rates = [r.split(":") for r in words[1 if whole else 2 :]]
        # units a microsecond
        (cir, cburst), (pir, pburst) = ((round(float(r) * 1e6), int(b)) for r, b in rates)
        cells = range(self.switch.program.meters[name].size) if whole else [number(words[1])]
        for index in cells:
            self.switch.device.set_meter(name, index, MeterConfig(cir, cburst, pir, pburst))

    def _replication(self, command: str, words: list[str]) -> None:
        numbers = [number(w) for w in words]
        match command:
            case "mirroring_add":
                self.switch.mirror(*numbers)
            case "mirroring_add_mc":
                self._sessions[numbers[0]] = numbers[1]
            case "mc_mgrp_create":
                self._groups[numbers[0]] = []
            case "mc_node_create":
                self._nodes.append((numbers[0], numbers[1:]))
            case "mc_node_associate":
                self._groups[numbers[0]].append(numbers[1])
            case _:
                raise ValueError("unknown command")
        for group, nodes in self._groups.items():
            copies = [(port, self._nodes[n][0]) for n in nodes for port in self._nodes[n][1]]
            self.switch.multicast_group(group, copies)
        for session, group in self._sessions.items():
            copied = self.switch.device.multicast_groups().get(group, ())
            self._session(session, copied)

    def _session(self, session: int, replicas: tuple[Replica, ...]) -> None:
        device = self.switch.device
        wanted = CloneSession(session, replicas)
        if session in device.clone_sessions():
            device.modify_clone_session(wanted)
        else:
            device.create_clone_session(wanted)

    def _add(self, rest: str) -> None:
        # the arguments of the action may have blanks between them
        words = re.sub(r",\s+", ",", rest).split()
        name = _full(words[0], self.switch.program.tables)
        table = self.switch.program.tables[name]
        ordered = table.kind in ("ternary", "range")
        keys = words[1:-1]
        priority = 0
        if keys and keys[0].isdigit():
            # a larger one wins, and unlike in P4Runtime 0 is one of them
            priority = int(keys.pop(0)) + 1
        match: dict[str, int | tuple[int, int]] = {}
        for word in keys:
            written, _, value = word.rpartition(":")
            key = table.keys[_key(re.sub(r"\$(\d+)", r"[\1]", written), table.keys)]
            match[key.name] = _match(key, value)
        action, params = _call(words[-1])
        self.switch.insert(name, match, action, params, priority or 1 if ordered else 0)

    def _compare(self) -> None:
        for port in sorted(self.expected.keys() | self.left.keys()):
            wanted, frames = self.expected.get(port, Expected()), self.left.get(port, [])
            if wanted.anything:
                continue
            if len(wanted.patterns) != len(frames):
                raise StfError(
                    f"port {port}: {len(frames)} packets instead of {len(wanted.patterns)}"
                )
            for i, (pattern, frame) in enumerate(zip(wanted.patterns, frames, strict=True)):
                if not same(pattern, frame):
                    raise StfError(f"port {port}, packet {i}: {frame.hex()} instead of {pattern}")


def same(pattern: str, frame: bytes) -> bool:
    """True if `frame` starts as `pattern` says, and ends with it where it ends with ``$``."""
    found = frame.hex().upper()
    if pattern.endswith("$"):
        pattern = pattern[:-1]
        if len(found) != len(pattern):
            return False
    return len(found) >= len(pattern) and all(
        p in ("*", f) for p, f in zip(pattern, found, strict=False)
    )


def _full(name: str, among: Iterable[str]) -> str:
    names = list(among)
    if name in names:
        return name
    found = [n for n in names if n.endswith(name)]
    if len(found) != 1:
        raise ValueError(f"'{name}' is {'ambiguous' if found else 'unknown'}")
    return found[0]


def _key(written: str, keys: tuple[Key, ...]) -> int:
    for wanted in (written, f"{written}$", f"{written}.$valid$"):
        for position, key in enumerate(keys):
            if key.name == wanted:
                return position
    for position, key in enumerate(keys):
        if key.name.endswith("." + written) or (written == "valid" and "$valid$" in key.name):
            return position
    raise ValueError(f"no key '{written}'")


def _match(key: Key, value: str) -> int | tuple[int, int]:
    bits = _BITS.get(value[:2].lower())
    if key.kind == "lpm":
        if "/" in value:
            address, _, prefix = value.partition("/")
            below = (1 << max(0, key.width - int(prefix))) - 1
            return number(address) & ~below, int(prefix)
        length = bits * (len(value) - 2 - value.count("*")) if bits else key.width
        return number(value.replace("*", "0")), min(length, key.width)
    if key.kind == "ternary" and bits:
        ones = format((1 << bits) - 1, "x")
        mask = "".join("0" if d == "*" else ones for d in value[2:])
        return number(value.replace("*", "0")), int(mask, 1 << bits)
    return number(value)


def _call(text: str) -> tuple[str, dict[str, int]]:
    found = _CALL.match(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is no action")
    pairs = [a.split(":") for a in found["args"].split(",") if a.strip()]
    return found["name"], {name.strip(): number(value.strip()) for name, value in pairs}


def compile_program(source: Path, folder: Path) -> Path | None:
    """The JSON that p4c makes of `source`, or None where it refuses."""
    out = folder / f"{source.stem}.json"
    if not out.exists():
        done = subprocess.run(
            [COMPILER, "-o", str(out), source.name],
            cwd=source.parent,
            capture_output=True,
            timeout=COMPILE_DEADLINE_S,
            check=False,
        )
        if done.returncode:
            out.unlink(missing_ok=True)
            return None
    return out


def run_one(source: Path, folder: Path, backend: str | None = None) -> Outcome:
    """Compile and run one program."""
    compiled = compile_program(source, folder)
    if compiled is None:
        return Outcome(source.stem, "p4c refuses it", compiled=False)
    lines = parse(source.with_suffix(".stf").read_text())
    try:
        Run(Switch.load(compiled, backend=backend)).run(lines)
    except NativeUnavailable as error:
        return Outcome(source.stem, str(error), native=False)
    except (StfError, SoftswitchError) as error:
        return Outcome(source.stem, str(error))
    return Outcome(source.stem, "")


def programs(folder: Path, only: str = "") -> list[Path]:
    """Sources with an .stf file that are written for v1model."""
    found = [p.with_suffix(".p4") for p in sorted(folder.glob("*.stf"))]
    return [
        p
        for p in found
        if only in p.stem and p.exists() and "v1model.p4" in p.read_text(errors="replace")
    ]


def main() -> int:
    """Print every failure with its reason; 0 if more than 95 % pass."""
    arguments = argparse.ArgumentParser(description="p4c's recorded packets on softswitch")
    arguments.add_argument("folder", type=Path, help="testdata/p4_16_samples of p4c's sources")
    arguments.add_argument("--only", default="", help="programs whose name contains this")
    arguments.add_argument("--json-folder", type=Path, help="keep what p4c makes in this folder")
    arguments.add_argument("--backend", choices=BACKENDS, help="what runs the packets")
    chosen = arguments.parse_args()
    if shutil.which(COMPILER) is None:
        print(f"stf: {COMPILER} is not on PATH; install p4c", file=sys.stderr)
        return 3
    sources = programs(chosen.folder, chosen.only)
    if not sources:
        print(f"stf: {chosen.folder} has no v1model programs with .stf files", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        folder = chosen.json_folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        outcomes = list(pool.map(lambda source: run_one(source, folder, chosen.backend), sources))
    compiled = [o for o in outcomes if o.compiled and o.native]
    for outcome in outcomes:
        if outcome.reason:
            print(f"{outcome.name}: {outcome.reason}")
    passed = sum(not o.reason for o in compiled)
    print(f"{passed} of {len(compiled)} programs that p4c compiles pass; {len(sources)} tried")
    return 0 if passed > REQUIRED * len(compiled) else 1


if __name__ == "__main__":
    sys.exit(main())
