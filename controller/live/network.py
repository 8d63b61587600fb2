"""What a network that lives offers, whatever its target, and who takes part in which job."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from controller.errors import BadInputError, RunFailedError, SilentHostsError
from controller.live.requests import GONE, Faults, JobHosts, Part
from controller.live.script import Script
from controller.p4rt import SwitchAddress
from topologies.network import Network
from topologies.rerooting import find_link, link_name
from traffic.commands import (
    Answer,
    AttachDestination,
    AttachWorker,
    Command,
    Detach,
    Exclude,
    Move,
)

_END_S = 2.0
"""For how long a process may take to end once it is killed."""
_LOOK_S = 0.05


class LiveNetwork(Protocol):
    """A network that is up. Threads may share it."""

    target: str
    network: Network
    patience: int
    host_seconds: float

    @property
    def addresses(self) -> tuple[SwitchAddress, ...]:
        """The P4Runtime server of every switch."""

    @property
    def rates(self) -> Mapping[str, int] | None:
        """Bits a second of every overlay switch's link upward; None: as fast as the machine."""

    def pids(self) -> Mapping[str, int]:
        """Processes beside this one, by switch or host."""

    def tell(self, commands: Sequence[tuple[str, Command]]) -> list[Answer]:
        """Carry out commands, each on the host of its name; all answers, in order.

        Raises RunFailedError or TrafficError for the first that is refused, after all are done, or
        SilentHostsError for hosts that take longer than `host_seconds`: they do it when they go on.
        """

    def survey(self, names: Sequence[str], job: int) -> Mapping[str, Answer]:
        """How far hosts are in a job; those that do not answer in time are left out."""

    def ended(self) -> frozenset[str]:
        """Hosts whose processes have ended, though nobody ended them."""

    def ended_switches(self) -> frozenset[str]:
        """Switches likewise."""

    def kill(self, name: str) -> None:
        """Kill a switch or a host where it stands."""

    def restart(self, name: str) -> None:
        """Start anew what was killed, or has ended, and wait until it listens: a switch without a
        program, a host without a job."""

    def set_link(self, one: str, other: str, *, up: bool, both: bool = True) -> None:
        """Let the link between two switches lose every frame, or none any more.

        Both ways, or that from the one to the other alone. To those at its ends it looks as before.
        """

    def dark_links(self) -> frozenset[str]:
        """The links between switches, as `link_name` has them, of which an end is gone or down."""


class Roster:
    """The jobs of a network's hosts, and which parts of the network were killed.

    A destination whose process ends by itself is started anew, with what it had completed: to its
    jobs it is silent for that long. A worker's is not; it has no part in its jobs any more.
    """

    def __init__(self, network: LiveNetwork) -> None:
        self._up = network
        self._lock = threading.Lock()
        self._workers: dict[int, dict[str, tuple[int, int]]] = {}
        self._destination: dict[int, str] = {}
        self._down: set[str] = set()
        # Sender and receiver of each direction between switches that was cut.
        self._cut: set[tuple[str, str]] = set()
        # How often a link was let carry all again, by its ends.
        self._mended: dict[tuple[str, str], int] = {}
        # Destinations that have ended and are not up again.
        self._ill: set[str] = set()
        self._scripts: dict[int, Script] = {}
        # Workers that were started anew, by the jobs that count on them still.
        self._lost: dict[int, set[str]] = {}
        self._newest_epoch = 0

    @property
    def newest_epoch(self) -> int:
        """The largest epoch that a host was ever told: switches may hold what was sent under it."""
        return self._newest_epoch

    @property
    def down(self) -> frozenset[str]:
        """What was killed, or cut, and not restarted."""
        return frozenset(self._down | {link_name(*way) for way in self._cut})

    def faults(self) -> Faults:
        """What is the matter with the switches and the links between them."""
        dead = (self._down | self._up.ended_switches()).intersection(
            self._up.network.topology.switches
        )
        return Faults(frozenset(dead), self._up.dark_links(), dict(self._mended))

    def jobs(self) -> tuple[JobHosts, ...]:
        """Who takes part in which job."""
        with self._lock:
            return tuple(self._job(job) for job in sorted(self._destination))

    def tell(self, commands: Sequence[tuple[str, Command]]) -> list[Answer]:
        """See `LiveNetwork.tell`; BadInputError for a host that is not there."""
        network = self._up.network
        hosts = {host.name for host in network.hosts}
        for name, _ in commands:
            if name not in hosts:
                raise BadInputError(f"{name}: the network has no such host")
            if name in self._down:
                raise BadInputError(f"{name}: the host was killed")
            if name in self._ill:
                raise RunFailedError(f"{name}: the host has ended, and is being started anew")
        try:
            answers = self._up.tell(commands)
        except SilentHostsError:
            for name, command in commands:
                self._note(name, command, None)
            raise
        except RunFailedError:
            self._notice()
            raise
        for (name, command), answer in zip(commands, answers, strict=True):
            self._note(name, command, answer)
        return answers

    def tell_job(self, command: Command, part: Part) -> dict[str, Answer]:
        """Tell hosts of a job, and return their answers; BadInputError where nobody has it."""
        job = command.config.job if isinstance(command, _ATTACH) else command.job
        alive = self._alive(job, part)
        if isinstance(command, Detach):
            self._forget_away(command, part)
        return dict(zip(alive, self.tell([(name, command) for name in alive]), strict=True))

    def survey(self, job: int) -> dict[str, Answer | str]:
        """How far each host of a job is, None where it is silent, GONE where it is no more;
        BadInputError as `tell_job`."""
        alive = self._alive(job, Part.ALL)
        answers = self._up.survey(alive, job)
        if len(answers) < len(alive) and self._notice():
            alive = self._alive(job, Part.ALL)
        with self._lock:
            hosts = self._job(job)
        lost = self._down | self._lost.get(job, set())
        gone = lost.intersection((hosts.destination, *hosts.workers))
        silent = self._ill.intersection((hosts.destination,))
        said = {name: answers.get(name) for name in alive}
        return said | dict.fromkeys(silent) | dict.fromkeys(gone, GONE)

    def kill(self, name: str, *, one_way: bool = False) -> None:
        """Kill a switch or a host, or cut a link A-B; once more is no error.

        `one_way`: of the link, what A sends to B alone.
        """
        link = self._link(name)
        if link is not None:
            self._up.set_link(*link, up=False, both=not one_way)
            self._cut.update((link,) if one_way else (link, link[::-1]))
            return
        if one_way:
            raise BadInputError(f"{name}: is no link, and only a link has two ways")
        if name not in self._down:
            self._up.kill(name)
            self._down.add(name)

    def fail(self, name: str, *, one_way: bool = False) -> None:
        """As `kill`; BadInputError where it is dead or cut already."""
        link = self._link(name)
        dead = self._down | self._up.ended_switches()
        if link is None:
            if name in dead:
                raise BadInputError(
                    f"{name}: is dead already; `bluetree restart {name}` starts it anew"
                )
        elif ends := sorted(dead.intersection(link)):
            raise BadInputError(
                f"{name}: carries nothing, since switch {ends[0]} is dead; `bluetree restart "
                f"{ends[0]}` first"
            )
        elif self._cut.issuperset((link,) if one_way else (link, link[::-1])):
            raise BadInputError(
                f"{name}: nothing that {link[0]} sends to {link[1]} arrives"
                + ("" if one_way else ", nor the other way,")
                + f" already; `bluetree restart {name}` ends that"
            )
        self.kill(name, one_way=one_way)

    def restart(self, name: str) -> None:
        """Start a switch or host anew; BadInputError unless it was killed, or is a switch whose
        process has ended. A link A-B that was cut carries all again, both ways.

        A destination goes on with its jobs, with what it had completed; a worker has none.
        """
        link = self._link(name)
        if link is not None:
            ways = {link, link[::-1]}
            if self._cut.isdisjoint(ways) and self._up.dark_links().isdisjoint(
                link_name(*way) for way in ways
            ):
                raise BadInputError(f"{name}: is not cut, and only what is cut is made whole")
            self._up.set_link(*link, up=True)
            self._cut -= ways
            for way in ways:
                self._mended[way] = self._mended.get(way, 0) + 1
            return
        # A killed process is deaf for a moment before it has ended.
        deadline = time.monotonic() + _END_S
        while name not in self._down and name not in self._up.ended_switches():
            if time.monotonic() > deadline:
                raise BadInputError(f"{name}: it runs, and only what is dead is started anew")
            time.sleep(_LOOK_S)
        self._start_anew(name)
        self._down.discard(name)

    def look_after(self) -> None:
        """Start destinations anew whose processes have ended."""
        self._notice()
        for name in sorted(self._ill - self._down):
            self._start_anew(name)
            self._ill.discard(name)

    def _link(self, name: str) -> tuple[str, str] | None:
        """The ends of a link as they are named, None where it is the name of a switch or host;
        BadInputError where there is nothing of the name."""
        network = self._up.network
        if name in network.topology.switches or name in {host.name for host in network.hosts}:
            return None
        ends = find_link(network.topology, name)
        if ends is None:
            raise BadInputError(f"{name}: the network has no such switch, host or link")
        return ends if name == link_name(*ends) else ends[::-1]

    def _start_anew(self, name: str) -> None:
        self._up.restart(name)
        with self._lock:
            for job, workers in self._workers.items():
                if name in workers:
                    self._lost.setdefault(job, set()).add(name)
            jobs = [job for job, at in self._destination.items() if at == name]
            script = [command for job in jobs for command in self._scripts[job].replay()]
        self._up.tell([(name, command) for command in script])

    def _notice(self) -> bool:
        """Look which hosts have ended by themselves; whether there are some more."""
        more = self._up.ended() - self._down - self._ill
        workers = {host.name for host in self._up.network.workers}
        self._down |= more & workers
        self._ill |= more - workers
        return bool(more)

    def _alive(self, job: int, part: Part) -> list[str]:
        """The hosts of a job that were not killed, have not ended, and know of it."""
        away = self._away(job)
        return [name for name in self._hosts_of(job, part) if name not in away]

    def _forget_away(self, command: Detach, part: Part) -> None:
        """Hosts that hear of nothing leave a job too: the next one of its number is not theirs."""
        away = self._away(command.job)
        for name in self._hosts_of(command.job, part):
            if name in away:
                self._note(name, command, None)

    def _hosts_of(self, job: int, part: Part) -> tuple[str, ...]:
        with self._lock:
            hosts = self._job(job)
        return {
            Part.WORKERS: hosts.workers,
            Part.DESTINATION: (hosts.destination,),
            Part.ALL: (hosts.destination, *hosts.workers),
        }[part]

    def _away(self, job: int) -> set[str]:
        return self._down | self._ill | self._lost.get(job, set())

    def _job(self, job: int) -> JobHosts:
        """Who takes part in a job; BadInputError where nobody does (any more). Under the lock."""
        if job not in self._destination:
            raise BadInputError(f"job {job}: no host takes part in it")
        workers = self._workers.get(job, {})
        return JobHosts(
            job,
            tuple(sorted(workers, key=lambda name: workers[name][0])),
            self._destination[job],
            max((window for _, window in workers.values()), default=0),
        )

    def _note(self, name: str, command: Command, answer: Answer) -> None:
        with self._lock:
            match command:
                case AttachWorker(config) | AttachDestination(config):
                    self._newest_epoch = max(self._newest_epoch, config.epoch)
                case Move(_, epoch) | Exclude(_, epoch):
                    self._newest_epoch = max(self._newest_epoch, epoch)
            match command:
                case AttachWorker(config):
                    part = (config.rank, config.window)
                    self._workers.setdefault(config.job, {})[name] = part
                    self._lost.get(config.job, set()).discard(name)
                    return
                case AttachDestination(to):
                    self._destination[to.job] = name
                    self._scripts[to.job] = Script(to)
                    return
            if self._destination.get(command.job) == name:
                self._scripts[command.job].note(command, answer)
            match command:
                case Exclude(job, _, absent):
                    workers = self._workers.get(job, {})
                    for gone in [at for at, (rank, _) in workers.items() if rank in absent]:
                        del workers[gone]
                case Detach(job) if self._destination.get(job) == name:
                    del self._destination[job], self._scripts[job]
                    self._lost.pop(job, None)
                case Detach(job):
                    self._workers.get(job, {}).pop(name, None)


_ATTACH = AttachWorker | AttachDestination


def resident_bytes(pids: Sequence[int]) -> int:
    """Memory that processes hold, shared pages split among them; 0 of those that are gone."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total
