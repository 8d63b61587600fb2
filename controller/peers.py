"""Processes that are told what to do over Unix sockets; when one is gone, its log says why."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, wait
from pathlib import Path
from typing import Any

from controller.errors import RunFailedError, SilentHostsError
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

    def receive(self, seconds: float = ANSWER_DEADLINE_S) -> Any:
        """Receive; RunFailedError names the process where it is gone, or silent for so long."""
        try:
            if self.connection.poll(seconds):
                return self.connection.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        raise RunFailedError(f"{self.name} has not answered for {seconds:g} s")

    def expect(self, word: str) -> Any:
        """Receive `word` and return what comes with it."""
        said, *rest = self.receive()
        if said != word:
            raise RunFailedError(f'{self.name} said "{said}" in place of "{word}"')
        return rest[0] if rest else None

    def _gone(self) -> RunFailedError:
        return RunFailedError(f"{self.name} is gone: {tail(self.log)}")


class HostPeer(Peer):
    """A `traffic.process`: commands carry numbers, so answers may come out of turn.

    Threads may share it. One at a time receives, for all that wait.
    """

    def __init__(self, name: str, connection: Connection[Any, Any], log: Path) -> None:
        super().__init__(name, connection, log)
        self._sending = threading.Lock()
        self._asked = 0
        # The latest command that is no survey.
        self._told = 0
        self._changed = threading.Condition()
        self._is_read = False
        self._answers: dict[int, tuple[bool, Any]] = {}
        self._unwanted: set[int] = set()
        # Questions of surveys whose answers nobody has taken, by job.
        self._surveys: dict[int, int] = {}

    def ask(self, command: Command | Wait | WaitForChunks) -> int:
        """Send a command; the number of its answer."""
        with self._sending:
            self._asked += 1
            if not isinstance(command, ProgressCommand):
                self._told = self._asked
            self.send(self._asked, command)
            return self._asked

    def answer(self, number: int) -> Answer:
        """Take an answer that has come; RunFailedError has the text of a refusal."""
        with self._changed:
            is_done, answer = self._answers.pop(number)
        if not is_done:
            raise RunFailedError(f"{self.name}: {answer}")
        known: Answer = answer
        return known

    def has(self, number: int, seconds: float = 0.0) -> bool:
        """Whether an answer has come, or comes within some time; RunFailedError if it cannot."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while number not in self._answers:
                left = max(0.0, deadline - time.monotonic())
                has_come = self._changed.wait(left) if self._is_read else self._read(left)
                if not has_come and number not in self._answers:
                    return False
        return True

    def catch_up(self) -> None:
        """Take what has come, if anything."""
        with self._changed:
            while not self._is_read and self._read(0.0):
                pass

    def give_up(self, number: int) -> None:
        """Nobody waits for an answer any more. The command is carried out all the same."""
        with self._changed:
            if self._answers.pop(number, None) is None:
                self._unwanted.add(number)

    def is_behind(self) -> bool:
        """Whether it still owes an answer that was given up."""
        self.catch_up()
        return bool(self._unwanted)

    def survey(self, job: int) -> int:
        """Ask how far it is in a job, unless an answer is due; the number of the answer."""
        number = self._surveys.get(job)
        # It answers in order: one from before the latest command is not about what is now.
        if number is not None and number < self._told:
            self.give_up(number)
            number = None
        if number is None:
            number = self._surveys[job] = self.ask(ProgressCommand(job))
        return number

    def is_late(self, job: int) -> bool:
        """Whether it has yet to answer an earlier survey."""
        return job in self._surveys or self.is_behind()

    def surveyed(self, job: int, seconds: float) -> Answer:
        """The answer to a survey, if it comes within some time, else None."""
        if not self.has(self._surveys[job], seconds):
            return None
        return self.answer(self._surveys.pop(job))

    def _read(self, seconds: float) -> bool:
        """Receive one answer, if it comes in time, for whoever waits for it; the lock is held."""
        self._is_read = True
        self._changed.release()
        message = None
        try:
            if self.connection.poll(seconds):
                message = self.connection.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        finally:
            self._changed.acquire()
            self._is_read = False
            self._changed.notify_all()
        if message is None:
            return False
        number, is_done, answer = message
        if number in self._unwanted:
            self._unwanted.discard(number)
        else:
            self._answers[number] = (is_done, answer)
        return True


@dataclass(frozen=True, slots=True)
class Milestone:
    """What to do once so many chunks, over all jobs, are complete, and what `then`."""

    completed: int
    act: Callable[[], None]
    then: Milestone | None = None

    def act_if_reached(self, completed: int) -> None:
        """Act if so many are complete, and likewise what comes then."""
        if completed >= self.completed:
            self.act()
            if self.then is not None:
                self.then.act_if_reached(completed)


@dataclass(frozen=True, slots=True)
class Watch:
    """What happens while hosts are waited for.

    `tick` is called several times a second with the number of chunks that are complete.
    """

    tick: Callable[[int], None]
    milestone: Milestone | None = None


class Hosts:
    """The host processes of a network, by name. Threads may share it, and do not wait in turn."""

    def __init__(self, peers: Mapping[str, HostPeer]) -> None:
        self._peers = dict(peers)
        self._surveying = threading.Lock()
        self._known: dict[int, int] = {}

    def tell(
        self, commands: Sequence[tuple[str, Command]], seconds: float = ANSWER_DEADLINE_S
    ) -> list[Answer]:
        """Send all commands, each to the host of its name, and return all answers in order.

        RunFailedError is raised for the first command that failed, after all answers are in; or
        SilentHostsError for the hosts that have not answered after some time. These carry out what
        they were told once they go on, and are not waited for again before they have.
        """
        asked: list[tuple[str, HostPeer, int, bool]] = []
        error: RunFailedError | None = None
        for name, command in commands:
            peer = self._peers[name]
            try:
                is_behind = peer.is_behind()
                asked.append((name, peer, peer.ask(command), is_behind))
            except RunFailedError as failure:
                error = error or failure
        deadline = time.monotonic() + seconds
        answers: list[Answer] = []
        silent: list[str] = []
        for name, peer, number, is_behind in asked:
            try:
                left = 0.0 if is_behind else max(0.0, deadline - time.monotonic())
                if peer.has(number, left):
                    answers.append(peer.answer(number))
                else:
                    peer.give_up(number)
                    silent.append(name)
            except RunFailedError as failure:
                error = error or failure
        if error is not None:
            raise error
        if silent:
            raise SilentHostsError(dict.fromkeys(silent), seconds)
        return answers

    def survey(self, names: Sequence[str], job: int) -> dict[str, Answer]:
        """How far hosts are in a job; those that do not answer within SURVEY_S are left out.

        One that is late is not asked again before it has answered, nor waited for. One that is gone
        does not answer either.
        """
        with self._surveying:
            deadlines: dict[str, float] = {}
            deadline = time.monotonic() + SURVEY_S
            for name in names:
                with suppress(RunFailedError):
                    is_late = self._peers[name].is_late(job)
                    self._peers[name].survey(job)
                    deadlines[name] = 0.0 if is_late else deadline
            said: dict[str, Answer] = {}
            for name, until in deadlines.items():
                with suppress(RunFailedError):
                    left = max(0.0, until - time.monotonic())
                    said[name] = self._peers[name].surveyed(job, left)
        return {name: answer for name, answer in said.items() if answer is not None}

    def replace(self, name: str, peer: HostPeer) -> None:
        """A host has started anew, as another process."""
        before = self._peers.get(name)
        self._peers[name] = peer
        if before is not None:
            before.connection.close()

    def close(self) -> None:
        """End all connections."""
        for peer in self._peers.values():
            peer.connection.close()

    def dismiss(self, names: Sequence[str]) -> None:
        """Let the processes of some hosts end: others take their place."""
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
        known = {name: self._peers[name] for name in workers}
        numbers = [(peer, peer.ask(Wait(job))) for peer in known.values() for job in jobs]
        above = self._peers[destination]
        milestone = watch.milestone
        reached: int | None = None
        if milestone is not None:
            reached = above.ask(WaitForChunks(tuple(jobs), milestone.completed))
        deadline = time.monotonic() + seconds
        while numbers := self._waited_for(numbers):
            late = max(0.0, deadline - time.monotonic())
            connections = [peer.connection for peer in {above, *(peer for peer, _ in numbers)}]
            wait(connections, timeout=min(late, _PROGRESS_S))
            if milestone is not None and reached is not None and above.has(reached):
                above.answer(reached)
                milestone.act()
                milestone, reached = milestone.then, None
                # A host may have been started anew, as another process.
                above = self._peers[destination]
                if milestone is not None:
                    reached = above.ask(WaitForChunks(tuple(jobs), milestone.completed))
                anew = {name: self._peers[name] for name in workers if name in self._peers}
                new = [peer for name, peer in anew.items() if peer is not known.get(name)]
                numbers += [(peer, peer.ask(Wait(job))) for peer in new for job in jobs]
                known |= anew
            behind = [peer.name for peer, _ in self._waited_for(numbers)]
            if behind and not late:
                names = ", ".join(behind[:8])
                raise RunFailedError(f"after {seconds:g} s not done: {names}")
            watch.tick(self._completed(destination, jobs))
        if milestone is not None and reached is not None:
            # Workers may be done before the news of the last chunk is here.
            milestone.act_if_reached(self._completed(destination, jobs))

    def _waited_for(self, numbers: Sequence[tuple[HostPeer, int]]) -> list[tuple[HostPeer, int]]:
        """The answers that have not come, of hosts that were not dismissed."""
        here = set(self._peers.values())
        return [(peer, number) for peer, number in numbers if peer in here and not peer.has(number)]

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
