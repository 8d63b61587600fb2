"""Ranks of all jobs at one Unix socket: takes their calls in, and brings results back.

One thread serves it: it waits for ranks, and lets the network go on in between.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from controller.ranks.rendezvous import Rendezvous
from traffic.collectives.calls import NO_ROOT, Array, Call
from traffic.collectives.errors import CollectiveError, MissingRankError
from traffic.collectives.link import Membership, OnLoss, kind_of

_BACKLOG = 1024
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Ended:
    """A call that is over: a result for each rank, or what went wrong, with `fatal` for the job.

    Attributes:
        results: by rank; None where the ranks have their results already.
        ranks: those that the results are over.
        committed: the ranks have their results, and wait to hear that all others do.
    """

    job: int
    number: int
    results: Mapping[int, Array | CollectiveError | None] | None = None
    fatal: CollectiveError | None = None
    ranks: tuple[int, ...] = ()
    committed: bool = False


def root_lost(call: Call, ranks: Collection[int]) -> MissingRankError | None:
    """What is said where the root of a call is not among its ranks; None where it is."""
    if call.root == NO_ROOT or call.root in ranks:
        return None
    return MissingRankError(
        f"{call}: rank {call.root} is lost, and with it the root of this call: choose another one",
        (call.root,),
    )


@dataclass(frozen=True, slots=True)
class Told:
    """What comes of what a rank has said: calls that ended, what others are to be told, and ranks
    that the others go on without."""

    ended: Sequence[Ended] = ()
    others: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    expelled: Mapping[int, CollectiveError] = field(default_factory=dict)


class RankNetwork(Protocol):
    """What carries calls out."""

    def membership(self, job: int) -> Membership:
        """What a rank of a job is told when it joins."""

    def begin(
        self,
        job: int,
        number: int,
        call: Call,
        arrays: Mapping[int, Array | None],
        *,
        goes_on: bool = False,
    ) -> Mapping[int, Any]:
        """Begin a call that these ranks have made; what they are to be told, by rank.

        `goes_on`: without those of them that are lost meanwhile, if it has to.
        """

    def step(self) -> Sequence[Ended]:
        """Go on for a moment; the calls that ended."""

    @property
    def busy(self) -> bool:
        """Whether `step` has something to do, rather than waiting for the ranks."""

    def told(self, job: int, rank: int, words: tuple[Any, ...]) -> Told:
        """A rank has said how it got on with packets of its own, or is gone."""


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
        self.left_out: set[int] = set()
        """Ranks that others have gone on without, though they were there."""
        self.went_without: set[int] = set()
        """Ranks that some calls went on without, gone or not."""

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
            now = time.monotonic_ns()
            for meeting in self._rendezvous.values():
                meeting.look(now)
                self._expel(meeting)
            self._begin_what_can()
            if self._network.busy:
                self._end(self._network.step())
                self._begin_what_can()
            for meeting in self._rendezvous.values():
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
            self._hear(job, self._network.told(job, rank, words))

    def _hear(self, job: int, told: Told) -> None:
        self._end(told.ended)
        for rank, words in told.others.items():
            self._send_to(job, rank, words)
        for rank, why in told.expelled.items():
            self._rendezvous[job].expel([rank], why)

    def _join(self, connection: Connection[Any, Any], job: int, rank: int, on_loss: OnLoss) -> None:
        meeting = self._rendezvous.get(job)
        try:
            if meeting is None:
                jobs = ", ".join(map(str, self._rendezvous))
                raise CollectiveError(f"there is no job {job}: this network has {jobs}")
            meeting.join(rank, on_loss)
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
            self._hear(member[0], self._network.told(*member, ("left",)))

    def _begin_what_can(self) -> None:
        for job, meeting in self._rendezvous.items():
            while (ready := meeting.begin()) is not None:
                number, call, arrays = ready
                lost = root_lost(call, arrays)
                if lost is not None:
                    self._end([Ended(job, number, dict.fromkeys(arrays, lost))])
                    continue
                self.calls += 1
                self._note_who_lacks(meeting, arrays)
                told = self._network.begin(job, number, call, arrays, goes_on=meeting.goes_on)
                for rank, words in told.items():
                    self._send_to(job, rank, words)

    def _end(self, endings: Sequence[Ended]) -> None:
        for ended in endings:
            meeting = self._rendezvous[ended.job]
            meeting.end()
            if ended.ranks:
                self._note_who_lacks(meeting, ended.ranks)
            if ended.fatal is not None:
                meeting.failure = meeting.failure or ended.fatal
            for rank, result in (ended.results or {}).items():
                if isinstance(result, CollectiveError):
                    words: tuple[Any, ...] = ("failed", ended.number, *kind_of(result))
                else:
                    words = ("result", ended.number, result, ended.ranks)
                self._send_to(ended.job, rank, words)
            for rank in ended.ranks if ended.committed else ():
                self._send_to(ended.job, rank, ("commit", ended.number))

    def _note_who_lacks(self, meeting: Rendezvous, ranks: Collection[int]) -> None:
        """A call is over these ranks."""
        self.went_without.update(set(range(meeting.ranks)).difference(ranks))

    def _expel(self, meeting: Rendezvous) -> None:
        """Ranks that the others have gone on without learn so."""
        while meeting.expelled:
            rank, error = meeting.expelled.popitem()
            self.left_out.add(rank)
            self._send_to(meeting.job, rank, ("failed", None, *kind_of(error)))

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
