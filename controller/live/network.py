"""What a network that lives offers, whatever its target, and who takes part in which job."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from controller.errors import BadInputError, RunFailedError
from controller.live.requests import GONE, JobHosts, Part
from controller.p4rt import SwitchAddress
from topologies.network import Network
from traffic.commands import (
    Answer,
    AttachDestination,
    AttachWorker,
    Command,
    Detach,
    Exclude,
)


class LiveNetwork(Protocol):
    """A network that is up. Threads may share it."""

    target: str
    network: Network
    patience: int

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

        Raises RunFailedError or TrafficError for the first that is refused, after all are done.
        """

    def survey(self, names: Sequence[str], job: int) -> Mapping[str, Answer]:
        """How far hosts are in a job; those that do not answer in time are left out."""

    def ended(self) -> frozenset[str]:
        """Hosts whose processes have ended, though nobody ended them."""

    def kill(self, name: str) -> None:
        """Kill a switch or a host where it stands."""

    def restart(self, switch: str) -> None:
        """Start a killed switch anew, without a program, and wait until it listens."""


class Roster:
    """The jobs of a network's hosts, and which parts of the network were killed."""

    def __init__(self, network: LiveNetwork) -> None:
        self._up = network
        self._lock = threading.Lock()
        self._workers: dict[int, dict[str, tuple[int, int]]] = {}
        self._destination: dict[int, str] = {}
        self._down: set[str] = set()

    @property
    def down(self) -> frozenset[str]:
        """What was killed and not restarted."""
        return frozenset(self._down)

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
        try:
            answers = self._up.tell(commands)
        except RunFailedError:
            self._notice()
            raise
        for name, command in commands:
            self._note(name, command)
        return answers

    def tell_job(self, command: Command, part: Part) -> dict[str, Answer]:
        """Tell hosts of a job, and return their answers; BadInputError where nobody has it."""
        job = command.config.job if isinstance(command, _ATTACH) else command.job
        alive = self._alive(job, part)
        return dict(zip(alive, self.tell([(name, command) for name in alive]), strict=True))

    def survey(self, job: int) -> dict[str, Answer | str]:
        """How far each host of a job is, None where it is silent, GONE where it is no more;
        BadInputError as `tell_job`."""
        alive = self._alive(job, Part.ALL)
        try:
            answers = self._up.survey(alive, job)
        except RunFailedError:
            if not self._notice():
                raise
            alive = self._alive(job, Part.ALL)
            answers = self._up.survey(alive, job)
        with self._lock:
            hosts = self._job(job)
        gone = self._down.intersection((hosts.destination, *hosts.workers))
        return {name: answers.get(name) for name in alive} | dict.fromkeys(gone, GONE)

    def kill(self, name: str) -> None:
        """Kill a switch or a host; once more is no error."""
        network = self._up.network
        hosts = [host.name for host in network.hosts]
        if name not in hosts and name not in network.topology.switches:
            raise BadInputError(f"{name}: the network has no such switch or host")
        if name not in self._down:
            self._up.kill(name)
            self._down.add(name)

    def restart(self, switch: str) -> None:
        """Start a switch anew; BadInputError unless it is one that was killed."""
        if switch not in self._down or switch not in self._up.network.topology.switches:
            raise BadInputError(f"{switch}: is no switch that was killed")
        self._up.restart(switch)
        self._down.discard(switch)

    def _notice(self) -> bool:
        """Look which hosts have ended by themselves; whether there are some more."""
        more = self._up.ended() - self._down
        self._down |= more
        return bool(more)

    def _alive(self, job: int, part: Part) -> list[str]:
        """The hosts of a job that were not killed, and have not ended."""
        with self._lock:
            if job not in self._destination:
                raise BadInputError(f"job {job}: no host takes part in it")
            hosts = self._job(job)
        names = {
            Part.WORKERS: hosts.workers,
            Part.DESTINATION: (hosts.destination,),
            Part.ALL: (hosts.destination, *hosts.workers),
        }[part]
        return [name for name in names if name not in self._down]

    def _job(self, job: int) -> JobHosts:
        workers = self._workers.get(job, {})
        return JobHosts(
            job,
            tuple(sorted(workers, key=lambda name: workers[name][0])),
            self._destination[job],
            max((window for _, window in workers.values()), default=0),
        )

    def _note(self, name: str, command: Command) -> None:
        with self._lock:
            match command:
                case AttachWorker(config):
                    part = (config.rank, config.window)
                    self._workers.setdefault(config.job, {})[name] = part
                case AttachDestination(to):
                    self._destination[to.job] = name
                case Exclude(job, _, absent):
                    workers = self._workers.get(job, {})
                    for gone in [at for at, (rank, _) in workers.items() if rank in absent]:
                        del workers[gone]
                case Detach(job) if self._destination.get(job) == name:
                    del self._destination[job]
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
