"""Processes that are told what to do over Unix sockets; when one is gone, its log says why."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, wait
from pathlib import Path
from typing import Any

from controller.errors import RunFailedError
from traffic.commands import Answer, Command, Wait, WaitForChunks
from traffic.commands import Progress as ProgressCommand
from traffic.reports import DestinationProgress

ANSWER_DEADLINE_S = 90.0
_POLL_S = 0.05
_PROGRESS_S = 0.2
"""How often a destination is asked how far it is."""
SURVEY_S = 0.5
"""How long hosts have to say how far they are."""


class Peer:
    """A process at the other end of a connection."""

    def __init__(self, name: str, connection: Connection[Any, Any], log: Path) -> None:
        self.name = name
        self.connection = connection
        self.log = log

    def send(self, *message: object) -> None:
        """Send; RunFailedError names the process where it is gone."""
        try:
            self.connection.send(message)
        except OSError:
            raise self._gone() from None

    def receive(self) -> Any:
        """Receive; RunFailedError names the process where it is gone or silent."""
        try:
            if self.connection.poll(ANSWER_DEADLINE_S):
                return self.connection.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        raise RunFailedError(f"{self.name} has not answered for {ANSWER_DEADLINE_S:g} s")

    def expect(self, word: str) -> Any:
        """Receive `word` and return what comes with it."""
        said, *rest = self.receive()
        if said != word:
            raise RunFailedError(f'{self.name} said "{said}" in place of "{word}"')
        return rest[0] if rest else None

    def _gone(self) -> RunFailedError:
        return RunFailedError(f"{self.name} is gone: {tail(self.log)}")


class HostPeer(Peer):
    """A `traffic.process`: commands carry numbers, so answers may come out of turn."""

    def __init__(self, name: str, connection: Connection[Any, Any], log: Path) -> None:
        super().__init__(name, connection, log)
        self._asked = 0
        self._answers: dict[int, tuple[bool, Any]] = {}
        # Questions of surveys that are not answered, by job.
        self._pending: dict[int, int] = {}

    def survey(self, job: int) -> int:
        """Ask how far it is in a job, unless an answer is due; the number of the answer."""
        if job not in self._pending:
            self._pending[job] = self.ask(ProgressCommand(job))
        return self._pending[job]

    def is_late(self, job: int) -> bool:
        """Whether it has yet to answer an earlier survey."""
        return job in self._pending

    def surveyed(self, job: int, seconds: float) -> bool:
        """Whether it answers a survey within some time; the answer is there then."""
        number = self._pending[job]
        while not self.has(number) and self.connection.poll(max(0.0, seconds)):
            self.take()
        if self.has(number):
            del self._pending[job]
            return True
        return False

    def drop_surveys(self) -> None:
        """Forget surveys whose answers have come: it has done since what changes them."""
        for number in self._pending.values():
            self._answers.pop(number, None)
        self._pending.clear()

    def ask(self, command: Command | Wait | WaitForChunks) -> int:
        """Send a command; the number of its answer."""
        self._asked += 1
        self.send(self._asked, command)
        return self._asked

    def answer(self, number: int) -> Answer:
        """Wait for an answer; RunFailedError has the text where the command was refused."""
        while number not in self._answers:
            self.take()
        is_done, answer = self._answers.pop(number)
        if not is_done:
            raise RunFailedError(f"{self.name}: {answer}")
        known: Answer = answer
        return known

    def take(self) -> None:
        """Receive one answer, whichever comes."""
        number, is_done, answer = self.receive()
        self._answers[number] = (is_done, answer)

    def has(self, number: int) -> bool:
        """Whether an answer has come."""
        return number in self._answers


@dataclass(frozen=True, slots=True)
class Milestone:
    """What to do once so many chunks, over all jobs, are complete."""

    completed: int
    act: Callable[[], None]

    def act_if_reached(self, completed: int) -> None:
        """Act if so many are complete."""
        if completed >= self.completed:
            self.act()


@dataclass(frozen=True, slots=True)
class Watch:
    """What happens while hosts are waited for.

    `tick` is called several times a second with the number of chunks that are complete.
    """

    tick: Callable[[int], None]
    milestone: Milestone | None = None


class Hosts:
    """The host processes of a network, by name. Threads may share it."""

    def __init__(self, peers: Mapping[str, HostPeer]) -> None:
        self._peers = dict(peers)
        # What is called back while hosts are waited for may ask them.
        self._lock = threading.RLock()
        self._known: dict[int, int] = {}

    def tell(self, commands: Sequence[tuple[str, Command]]) -> list[Answer]:
        """Send all commands, each to the host of its name, and return all answers in order.

        RunFailedError is raised for the first command that failed, after all answers are in.
        """
        with self._lock:
            asked: list[tuple[HostPeer, int]] = []
            answers: list[Answer] = []
            error: RunFailedError | None = None
            for name, command in commands:
                try:
                    asked.append((self._peers[name], self._peers[name].ask(command)))
                except RunFailedError as failure:
                    error = error or failure
            for peer, number in asked:
                try:
                    answers.append(peer.answer(number))
                    # It answers in order, so earlier surveys are through.
                    peer.drop_surveys()
                except RunFailedError as failure:
                    error = error or failure
            if error is not None:
                raise error
            return answers

    def survey(self, names: Sequence[str], job: int) -> dict[str, Answer]:
        """How far hosts are in a job; those that do not answer within SURVEY_S are left out.

        One that is late is not asked again before it has answered, nor waited for.
        """
        with self._lock:
            late = {name for name in names if self._peers[name].is_late(job)}
            asked = [(name, self._peers[name].survey(job)) for name in names]
            deadline = time.monotonic() + SURVEY_S
            answers = {}
            for name, number in asked:
                peer = self._peers[name]
                seconds = 0.0 if name in late else deadline - time.monotonic()
                if peer.surveyed(job, seconds):
                    answers[name] = peer.answer(number)
            return answers

    def replace(self, name: str, peer: HostPeer) -> None:
        """A host has started anew, as another process."""
        with self._lock:
            self._peers[name].connection.close()
            self._peers[name] = peer

    def close(self) -> None:
        """End all connections."""
        with self._lock:
            for peer in self._peers.values():
                peer.connection.close()

    def dismiss(self, names: Sequence[str]) -> None:
        """Let the processes of some hosts end: others take their place."""
        with self._lock:
            for name in names:
                self._peers.pop(name).connection.close()

    def wait(
        self,
        workers: Sequence[str],
        destination: str,
        jobs: Sequence[int],
        seconds: float,
        watch: Watch,
    ) -> None:
        """Wait until every worker is done with every job, or has failed in it.

        RunFailedError names the workers that are not done after some time; what `watch` calls may
        raise its own.
        """
        with self._lock:
            waits = [(self._peers[name], Wait(job)) for name in workers for job in jobs]
            numbers = [(peer, peer.ask(wait)) for peer, wait in waits]
            above = self._peers[destination]
            milestone = watch.milestone
            reached: int | None = None
            if milestone is not None:
                reached = above.ask(WaitForChunks(tuple(jobs), milestone.completed))
            deadline = time.monotonic() + seconds
            while numbers := [(peer, number) for peer, number in numbers if not peer.has(number)]:
                late = max(0.0, deadline - time.monotonic())
                connections = {peer.connection: peer for peer in (above, *(p for p, _ in numbers))}
                for ready in wait(list(connections), timeout=min(late, _PROGRESS_S)):
                    if isinstance(ready, Connection):
                        connections[ready].take()
                if milestone is not None and reached is not None and above.has(reached):
                    above.answer(reached)
                    reached = None
                    milestone.act()
                behind = [peer.name for peer, number in numbers if not peer.has(number)]
                if behind and not late:
                    names = ", ".join(behind[:8])
                    raise RunFailedError(f"after {seconds:g} s not done: {names}")
                watch.tick(self._completed(destination, jobs))
            if milestone is not None and reached is not None:
                # Workers may be done before the news of the last chunk is here.
                milestone.act_if_reached(self._completed(destination, jobs))

    def _completed(self, destination: str, jobs: Sequence[int]) -> int:
        """Chunks complete at the destination; of a silent one, when it last answered."""
        for job in jobs:
            said = self.survey([destination], job).get(destination)
            if isinstance(said, DestinationProgress):
                self._known[job] = said.completed
        return sum(self._known.get(job, 0) for job in jobs)


def connect(
    control: Path, has_ended: Callable[[], bool], log: Path, seconds: float = ANSWER_DEADLINE_S
) -> Connection[Any, Any]:
    """Connect to a process as soon as it listens; its log says why it does not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not has_ended():
        try:
            return Client(str(control), "AF_UNIX")
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(_POLL_S)
    raise RunFailedError(f"{control.name} did not start: {tail(log)}")


def tail(log: Path, lines: int = 5) -> str:
    """The last lines of a log, in one."""
    try:
        last = log.read_text(errors="replace").splitlines()[-lines:]
        return " | ".join(last) or "it left no word"
    except OSError as error:
        return str(error)
