"""Ranks of all jobs at one Unix socket: takes their calls in, and brings results back.

One thread serves it: it waits for ranks, and lets the network go on in between.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from controller.ranks.rendezvous import Rendezvous
from traffic.collectives.calls import Array, Call
from traffic.collectives.errors import CollectiveError, MissingRankError
from traffic.collectives.link import Membership, kind_of

_BACKLOG = 1024
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Ended:
    """A call that is over: a result for each rank, or what went wrong, with `fatal` for the job.

    `results` is None where the ranks have their results already.
    """

    job: int
    number: int
    results: Sequence[Array | CollectiveError | None] | None = None
    fatal: CollectiveError | None = None


class RankNetwork(Protocol):
    """What carries calls out."""

    def membership(self, job: int) -> Membership:
        """What a rank of a job is told when it joins."""

    def begin(
        self, job: int, number: int, call: Call, arrays: Mapping[int, Array | None]
    ) -> Mapping[int, Any]:
        """Begin a call that every rank has made; what the ranks are to be told, by rank."""

    def step(self) -> Sequence[Ended]:
        """Go on for a moment; the calls that ended."""

    @property
    def busy(self) -> bool:
        """Whether `step` has something to do, rather than waiting for the ranks."""

    def told(self, job: int, rank: int, words: tuple[Any, ...]) -> Sequence[Ended]:
        """A rank has said how it got on with packets of its own; the calls that ended."""


class RankServer:
    """Serves the ranks of `rendezvous` (by job); a context manager."""

    def __init__(
        self, address: Path, rendezvous: Mapping[int, Rendezvous], network: RankNetwork
    ) -> None:
        self._address = address
        self._rendezvous = rendezvous
        self._network = network
        self._selector = selectors.DefaultSelector()
        self._members: dict[tuple[int, int], Connection[Any, Any]] = {}
        self._stop_in, self._stop_out = socket.socketpair()
        self._stopping = False
        self.calls = 0
        self.blamed: set[int] = set()
        """Ranks that others missed."""

    def __enter__(self) -> Self:
        """Listen."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._address))
        self._listener.listen(_BACKLOG)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._stop_out, selectors.EVENT_READ)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, Connection):
                key.fileobj.close()
        self._selector.close()
        self._listener.close()
        self._address.unlink(missing_ok=True)
        self._stop_in.close()
        self._stop_out.close()

    def stop(self) -> None:
        """Let `serve` return; from any thread."""
        with contextlib.suppress(OSError):
            self._stop_in.send(b"\0")

    def serve(self) -> None:
        """Serve until `stop`."""
        while not self._stopping:
            for key, _ in self._selector.select(self._patience()):
                self._heed(key)
            self._begin_what_can()
            if self._network.busy:
                self._end(self._network.step())
                self._begin_what_can()
            now = time.monotonic_ns()
            for meeting in self._rendezvous.values():
                meeting.look(now)
                self._tell_failure(meeting)

    def _patience(self) -> float | None:
        if self._network.busy:
            return 0
        deadlines = [meeting.deadline for meeting in self._rendezvous.values()]
        due = [deadline for deadline in deadlines if deadline is not None]
        return max(0.0, (min(due) - time.monotonic_ns()) / _SECOND_NS) if due else None

    def _heed(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._listener:
            stream, _ = self._listener.accept()
            self._selector.register(Connection(stream.detach()), selectors.EVENT_READ)
        elif key.fileobj is self._stop_out:
            self._stopping = True
        elif isinstance(key.fileobj, Connection):
            try:
                words = key.fileobj.recv()
            except (EOFError, OSError):
                self._drop(key.fileobj, key.data)
            else:
                self._take(key.fileobj, key.data, words)

    def _take(
        self, connection: Connection[Any, Any], member: tuple[int, int] | None, words: Any
    ) -> None:
        said, *rest = words
        if member is None:
            if said == "join":
                self._join(connection, *rest)
            return
        job, rank = member
        meeting = self._rendezvous[job]
        if said == "call":
            number, call, array = rest
            meeting.call(rank, call, array, time.monotonic_ns())
            if meeting.failure is not None and meeting.failure_told:
                self._send(connection, ("failed", number, *kind_of(meeting.failure)))
        else:
            self._end(self._network.told(job, rank, words))

    def _join(self, connection: Connection[Any, Any], job: int, rank: int) -> None:
        meeting = self._rendezvous.get(job)
        try:
            if meeting is None:
                jobs = ", ".join(map(str, self._rendezvous))
                raise CollectiveError(f"there is no job {job}: this network has {jobs}")
            meeting.join(rank)
        except CollectiveError as error:
            self._send(connection, ("failed", None, *kind_of(error)))
            return
        self._selector.modify(connection, selectors.EVENT_READ, (job, rank))
        self._members[job, rank] = connection
        self._send(connection, ("joined", self._network.membership(job)))

    def _drop(self, connection: Connection[Any, Any], member: tuple[int, int] | None) -> None:
        self._selector.unregister(connection)
        connection.close()
        if member is not None:
            del self._members[member]
            self._rendezvous[member[0]].leave(member[1])
            self._end(self._network.told(*member, ("left",)))

    def _begin_what_can(self) -> None:
        for job, meeting in self._rendezvous.items():
            ready = meeting.begin()
            if ready is not None:
                self.calls += 1
                for rank, words in self._network.begin(job, *ready).items():
                    self._send_to(job, rank, words)

    def _end(self, endings: Sequence[Ended]) -> None:
        for ended in endings:
            meeting = self._rendezvous[ended.job]
            meeting.end()
            if ended.fatal is not None:
                meeting.failure = meeting.failure or ended.fatal
            for rank, result in enumerate(ended.results or ()):
                if isinstance(result, CollectiveError):
                    words: tuple[Any, ...] = ("failed", ended.number, *kind_of(result))
                else:
                    words = ("result", ended.number, result)
                self._send_to(ended.job, rank, words)

    def _tell_failure(self, meeting: Rendezvous) -> None:
        """A job that has failed has no future: its ranks learn so once."""
        if meeting.failure is None or meeting.failure_told:
            return
        meeting.failure_told = True
        if isinstance(meeting.failure, MissingRankError):
            self.blamed.update(meeting.failure.ranks)
        for rank in meeting.joined:
            self._send_to(meeting.job, rank, ("failed", None, *kind_of(meeting.failure)))

    def _send_to(self, job: int, rank: int, words: tuple[Any, ...]) -> None:
        connection = self._members.get((job, rank))
        if connection is not None:
            self._send(connection, words)

    def _send(self, connection: Connection[Any, Any], words: tuple[Any, ...]) -> None:
        # A rank that is gone is noticed when its end of the connection is read.
        with contextlib.suppress(OSError):
            connection.send(words)
