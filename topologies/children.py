"""The processes of a network, by name: started, looked after, killed, started again, ended."""

from __future__ import annotations

import pickle
import select
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from topologies.mininet_plan import RELAY_READY, RelayPlan
from topologies.nursery import Birth, Nursery

RELAY = "the relay of the links"
"""Its name among the processes."""
_STOP_DEADLINE_S = 5.0
_RELAY_DEADLINE_S = 60.0


class Child(Protocol):
    """What a started process can do: that of `Popen` which is needed here."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""


@dataclass(frozen=True, slots=True)
class _Started:
    """A process, where it writes to, and how to start it again."""

    child: Child
    log: Path
    again: Callable[[], Child]


class Children:
    """All processes of one network. Should this process be killed, the kernel ends them."""

    def __init__(self) -> None:
        self._started: dict[str, _Started] = {}
        self._killed: dict[str, _Started] = {}
        self._nursery: Nursery | None = None

    def open_nursery(self, modules: Sequence[str], log: Path) -> None:
        """Import modules, once, in a process that the others are forked from."""
        with log.open("ab") as stream:
            self._nursery = Nursery(modules, stream)

    def fork(self, birth: Birth) -> None:
        """Start a process from the nursery, by its title."""
        nursery = self._nursery
        if nursery is None:
            raise RuntimeError("the nursery is not open")
        self._start(birth.title, birth.log, lambda: nursery.fork(birth))

    def run(self, name: str, words: Sequence[str], log: Path) -> None:
        """Start a program."""
        self._start(name, log, lambda: _spawn(words, log))

    def run_relay(self, plan: RelayPlan, log: Path) -> None:
        """Start what joins the halves of links, and wait until it has them all."""
        words = [sys.executable, "-m", "topologies.relay"]
        relay = _spawn(words, log, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._start(RELAY, log, lambda: relay)
        assert relay.stdin is not None
        assert relay.stdout is not None
        relay.stdin.write(pickle.dumps(plan))
        relay.stdin.flush()
        if not select.select([relay.stdout], (), (), _RELAY_DEADLINE_S)[0]:
            raise RuntimeError(f"{RELAY} is not ready in {_RELAY_DEADLINE_S:g} s")
        if relay.stdout.readline() != RELAY_READY:
            raise RuntimeError(f"{RELAY}: {log.read_text(errors='replace')}")

    def stop(self) -> None:
        """End every process."""
        for started in self._started.values():
            started.child.terminate()
        for started in self._started.values():
            try:
                started.child.wait(_STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                started.child.kill()
                started.child.wait()
        if self._nursery is not None:
            self._nursery.close()

    def dead(self) -> list[Path]:
        """The logs of processes that have ended, though nobody asked them to."""
        started = self._started.values()
        return [one.log for one in started if one.child.poll() is not None]

    def pids(self) -> dict[str, int]:
        """The processes that run, by name."""
        return {name: started.child.pid for name, started in self._started.items()}

    def kill(self, name: str) -> None:
        """Kill a process where it stands."""
        started = self._started.pop(name, None)
        if started is not None:
            started.child.kill()
            started.child.wait()
            self._killed[name] = started

    def restart(self, name: str) -> int | None:
        """Start anew what was killed; its process id, None if it was not."""
        killed = self._killed.pop(name, None)
        if killed is None:
            return None
        self._start(name, killed.log, killed.again)
        return self._started[name].child.pid

    def _start(self, name: str, log: Path, start: Callable[[], Child]) -> None:
        self._started[name] = _Started(start(), log, start)


def _spawn(
    words: Sequence[str], log: Path, stdin: int = subprocess.DEVNULL, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    with log.open("ab") as stream:
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *words],
            stdin=stdin,
            stdout=stream if stdout is None else stdout,
            stderr=stream,
            start_new_session=True,
        )
