"""`kill -9` at random moments, again and again: `make campaign-kill`, as root.

Each round brings a small network up, lets a job run, and kills one process at a random moment: the
command, a switch, a worker, the destination, Mininet's process, the one that forks the others, or,
of a testbed that stays up, the controller or the network's daemon. Then

- the command ends within a bound, and either everything was right or one line says what happened;
- a controller that was killed is started anew, and the job that never noticed is right;
- what is on the machine is what was there before;
- the next run works.

The campaign runs on a machine of its own (`tests.emulation.isolated`). A fault is printed with its
round, which `--seed` and `--only` run again.

    python -m tests.emulation.campaign_kill [--count 50] [--seed 0] [--only ROUND]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller import targets
from controller.live.client import NetworkClient
from tests.emulation import isolated
from tests.emulation.runs import TREE, Process, descendants

BOUND_S = 120.0
"""From the kill until the command has ended; workers give a chunk up within it."""
LONGEST_DELAY_S = 4.0
"""After a process of the kind is there (the command: after it has started)."""
CHUNKS = 3_000
_POLL_S = 0.05
INSIDE = "--inside"
VICTIMS = ("command", "switch", "worker", "destination", "mininet", "nursery")
LASTING_VICTIMS = ("controller", "daemon", "switch", "worker", "mininet")


class FaultError(Exception):
    """A round went wrong; the text says how."""


@dataclass(frozen=True, slots=True)
class Round:
    """What is done in one round."""

    number: int
    target: str
    victim: str
    lasting: bool
    delay: float

    def __str__(self) -> str:
        kind = "up" if self.lasting else "run"
        return (
            f"round {self.number}: {kind} on {self.target}, {self.victim} after {self.delay:.2f} s"
        )


def _rounds(count: int, seed: int) -> list[Round]:
    rng = random.Random(seed)
    present = [target for target in targets.TARGETS_OVER_MININET if not targets.why_not(target)]
    rounds = []
    for number in range(count):
        lasting = number % 3 == 2
        victim = rng.choice(LASTING_VICTIMS if lasting else VICTIMS)
        target = present[number % len(present)]
        delay = rng.uniform(0, LONGEST_DELAY_S)
        rounds.append(Round(number, target, victim, lasting, delay))
    return rounds


def _victims(victim: str, processes: dict[int, Process]) -> list[int]:
    """Processes of a kind, among those that a command has started."""
    switches = {*TREE["switches"]}
    mininet = [p for p, one in processes.items() if "topologies.mininet_net" in one.words]
    tests: dict[str, Callable[[Process], bool]] = {
        "switch": lambda one: (
            one.name.startswith("simple_switch") or one.name in {s[:15] for s in switches}
        ),
        "worker": lambda one: re.fullmatch(r"w\d+", one.name) is not None,
        "destination": lambda one: one.name == "destination",
        "nursery": lambda one: "topologies.nursery" in one.words and one.name.startswith("python"),
    }
    if victim == "mininet":
        return mininet
    return [pid for pid, one in processes.items() if tests[victim](one)]


def _kill(round_: Round, command: subprocess.Popen[str]) -> str:
    """Kill the victim when its time has come; what was killed, in words."""
    if round_.victim == "command":
        time.sleep(round_.delay)
        command.kill()
        return "the command"
    while not _victims(round_.victim, descendants(command.pid)) and command.poll() is None:
        time.sleep(_POLL_S)
    time.sleep(round_.delay)
    found = _victims(round_.victim, descendants(command.pid))
    if not found:
        return "nothing, as the run was over"
    pid = random.Random(round_.number).choice(sorted(found))
    os.kill(pid, signal.SIGKILL)
    return f"process {pid}"


def _bluetree(*words: str) -> list[str]:
    return [sys.executable, "-m", "controller.cli", *words]


def _call(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            _bluetree(*words), capture_output=True, text=True, timeout=BOUND_S, cwd=isolated.ROOT
        )
    except subprocess.TimeoutExpired:
        raise FaultError(f"`bluetree {' '.join(words)}` has not ended in {BOUND_S:g} s") from None


def _check_ending(
    code: int, shown: str, errors: str, *, killed: bool = False, failing: Sequence[int] = (4,)
) -> str:
    """Raise FaultError unless a command was right, or has said in one line what happened.

    `failing`: the exit codes of a command that has failed for what was killed.
    """
    if killed and code == -signal.SIGKILL:
        return "killed"
    if code == 0:
        document: dict[str, Any] = json.loads(shown)
        jobs = document["jobs"] if isinstance(document["jobs"], list) else [document]
        if not all(job["correct"] for job in jobs):
            raise FaultError("exit code 0 with a wrong sum")
        return "right"
    if "Traceback" in errors:
        raise FaultError(f"a traceback: {errors[-2000:]}")
    if code not in failing or len(errors.strip().splitlines()) != 1:
        raise FaultError(f"exit code {code}: {errors.strip()}")
    return errors.strip()


def _run(round_: Round, tree: Path) -> str:
    words = ("run", str(tree), "-k", "1", "--target", round_.target, "--chunks", str(CHUNKS))
    with subprocess.Popen(
        _bluetree(*words, "--op", "allreduce", "--json"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=isolated.ROOT,
    ) as one:  # fmt: skip
        killed = _kill(round_, one)
        try:
            shown, errors = one.communicate(timeout=BOUND_S)
        except subprocess.TimeoutExpired:
            one.kill()
            raise FaultError(f"killed {killed}; the run has not ended in {BOUND_S:g} s") from None
    said = _check_ending(one.returncode, shown, errors, killed=round_.victim == "command")
    return f"killed {killed}: {said}"


def _stay_up(round_: Round, tree: Path, state: Path) -> str:
    where = ("--state", str(state), "--json")
    up = _call("up", str(tree), "-k", "1", "--target", round_.target, *where)
    _expect(up, "up")
    _expect(_call("start", "--op", "allreduce", *where), "start")
    time.sleep(round_.delay)
    with NetworkClient(state) as network:
        pids = dict(network.describe().pids)
    controller = json.loads(up.stdout)["controller"]
    daemon = pids["daemon"]
    if round_.victim == "controller":
        os.kill(controller, signal.SIGKILL)
        _expect(_call("up", *where), "up again")
        stopped = _call("stop", *where)
        _expect(stopped, "stop")
        said = _check_ending(stopped.returncode, stopped.stdout, stopped.stderr)
    else:
        victim = daemon
        if round_.victim != "daemon":
            found = _victims(round_.victim, descendants(daemon))
            victim = random.Random(round_.number).choice(sorted(found))
        os.kill(victim, signal.SIGKILL)
        stopped = _call("stop", *where)
        # The job did not end whole (1), or nobody is there to ask (4).
        codes = (stopped.returncode, stopped.stdout, stopped.stderr)
        said = _check_ending(*codes, failing=(1, 4))
    down = _call("down", *where)
    if down.returncode not in (0, 2):
        raise FaultError(f"down: exit code {down.returncode}: {down.stderr}")
    return f"killed the {round_.victim}: {said}"


def _expect(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode != 0:
        raise FaultError(f"{what}: exit code {done.returncode}: {done.stderr[-2000:]}")


def _check_next_run(target: str, tree: Path) -> None:
    done = _call("run", str(tree), "-k", "1", "--target", target, "--chunks", "4", "--json")
    if done.returncode != 0 or not json.loads(done.stdout)["correct"]:
        raise FaultError(f"the next run fails: {done.stderr[-2000:]}")


def _play(round_: Round, folder: Path, needed: tuple[Path, ...]) -> str:
    tree = folder / "tree.json"
    tree.write_text(json.dumps(TREE))
    before = isolated.look(needed)
    if round_.lasting:
        with tempfile.TemporaryDirectory(dir=folder) as state:
            said = _stay_up(round_, tree, Path(state))
    else:
        said = _run(round_, tree)
    after = isolated.settled(needed, before)
    for kind, things in after.items():
        left = sorted({*things} - {*before[kind]})
        if left:
            raise FaultError(f"{said}; left behind, {kind}: {', '.join(left)[:500]}")
    _check_next_run(round_.target, tree)
    return said


def _inside(options: argparse.Namespace) -> int:
    """The campaign, on the machine of its own."""
    isolated.mount_own(options.folder)
    needed = (isolated.ROOT, options.folder)
    faults: Counter[str] = Counter()
    played = 0
    for round_ in _rounds(options.count, options.seed):
        if options.only is not None and round_.number != options.only:
            continue
        played += 1
        began = time.monotonic()
        try:
            said = _play(round_, options.folder, needed)
        except FaultError as fault:
            faults[round_.victim] += 1
            said = f"FAULT: {fault}"
        print(f"{round_}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
    total = sum(faults.values())
    print(f"{played} rounds, {total} faults {dict(faults) if faults else ''}", flush=True)
    return 1 if faults else 0


def main(arguments: Sequence[str]) -> int:
    """Run the campaign; 1 if a round went wrong, 3 if it cannot run here."""
    parser = argparse.ArgumentParser(prog="campaign_kill", description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="ROUND")
    parser.add_argument("--folder", type=Path)
    parser.add_argument(INSIDE, action="store_true")
    options = parser.parse_args(arguments)
    if options.inside:
        return _inside(options)
    reasons = [targets.why_not(target) for target in targets.TARGETS_OVER_MININET]
    if all(reasons):
        print(f"*** ABSENT: {reasons[0]} ***", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as folder:
        words = isolated.enter("tests.emulation.campaign_kill", INSIDE, "--folder", folder)
        return subprocess.run([*words, *arguments], cwd=isolated.ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
