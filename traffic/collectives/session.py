"""One rank's open calls: each is a future until the network says what came of it."""

from __future__ import annotations

import contextlib
import socket
import threading
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from traffic.collectives.calls import Array, Call, part_of
from traffic.collectives.errors import CollectiveError
from traffic.collectives.link import Membership, OnLoss, dial, error_of
from traffic.collectives.packets import PacketRunner
from traffic.worker_config import WorkerConfig

_Result = TypeVar("_Result")


class CallFuture(Future[_Result]):
    """The result of a call, and the ranks that it is over, which are known with it."""

    def __init__(self) -> None:
        super().__init__()
        self.ranks: tuple[int, ...] = ()


_FLUSH_S = 5.0
"""How long leaving waits for what has been said to reach the network."""


class Session:
    """The connection of one rank to its network, with a thread that reads and one that writes it.

    Neither the program nor the reader ever waits for the network to take something in: it may be
    waiting itself, for this rank to take a result.
    """

    def __init__(self, address: Path, rank: int, job: int, on_loss: OnLoss = OnLoss.FAIL) -> None:
        """Join; raises CollectiveError where nobody answers or the rank is not wanted."""
        self._rank = rank
        self._on_loss = on_loss
        # The result of a call that other ranks have yet to be done with.
        self._kept: tuple[int, Array | CollectiveError | None, tuple[int, ...]] | None = None
        self.ranks: tuple[int, ...] = ()
        """The ranks that the latest result is over."""
        self._lock = threading.Lock()
        self._open: dict[int, tuple[Call, Array, CallFuture[Any]]] = {}
        self._next = 0
        self._end: CollectiveError | None = None
        self._socket, self._connection = dial(address)
        try:
            self._connection.send(("join", job, rank, on_loss))
            said, *rest = self._connection.recv()
        except (EOFError, OSError):
            self._socket.close()
            raise CollectiveError(f"{address}: the network is gone") from None
        if said != "joined":
            self._socket.close()
            raise error_of(*rest[1:])
        self.membership: Membership = rest[0]
        self.ranks = tuple(range(self.membership.ranks))
        self._packets: PacketRunner | None = None
        if self.membership.interface is not None:
            self._packets = PacketRunner(self.membership.interface, self._connection)
        self._outgoing: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name=f"rank {rank} out", daemon=True)
        self._reader = threading.Thread(target=self._read, name=f"rank {rank} in", daemon=True)
        self._writer.start()
        self._reader.start()

    def submit(self, call: Call, array: Array) -> CallFuture[Any]:
        """Make the next call. Raises CollectiveError once the session has ended."""
        future: CallFuture[Any] = CallFuture()
        # A call cannot be taken back: other ranks count on it.
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._end is not None:
                raise self._end
            number = self._next
            self._next += 1
            self._open[number] = (call, array, future)
            sent = None if self.membership.interface is not None else array
            self._outgoing.put(("call", number, call, sent))
        return future

    def close(self) -> None:
        """Leave; open calls fail."""
        self._fail(CollectiveError(f"rank {self._rank} has closed its communicator"))
        self._outgoing.put(None)
        self._writer.join(_FLUSH_S)
        # The network may have closed it before.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._reader:
            self._reader.join()
        self._socket.close()

    def _read(self) -> None:
        try:
            while True:
                self._take(self._connection.recv())
        except (EOFError, OSError):
            self._fail(CollectiveError("the network is gone: see what it said last"))
        finally:
            self._connection.close()
            if self._packets is not None:
                self._packets.close()

    def _write(self) -> None:
        # Where it fails the network is gone, which the reader notices too.
        with contextlib.suppress(OSError):
            while (words := self._outgoing.get()) is not None:
                self._connection.send(words)

    def _take(self, message: tuple[Any, ...]) -> None:
        said, number, *rest = message
        if said == "failed":
            error = error_of(*rest)
            if number is None:
                self._fail(error)
            else:
                self._settle(number, error)
        elif said == "result":
            self._settle(number, rest[0], rest[1])
        elif said == "commit" and self._kept is not None and self._kept[0] == number:
            self._settle(*self._kept)
            self._kept = None
        elif said == "go" and self._packets is not None:
            self._exchange(self._packets, number, rest[0])

    def _exchange(self, packets: PacketRunner, number: int, config: WorkerConfig) -> None:
        """Carry a call out with packets of our own."""
        call, array, _ = self._open[number]
        lanes, window = self.membership.lanes, self.membership.window
        ranks = tuple(rank for rank in range(config.workers) if rank not in config.absent)
        part = part_of(call, array, self._rank, len(ranks), lanes, window)
        outcome = packets.run(config, part)
        if outcome.interrupted is not None:
            self._take(outcome.interrupted)
            return
        if outcome.failure is not None:
            self._outgoing.put(("stuck", number, config.epoch, str(outcome.failure)))
            return
        result: Array | CollectiveError | None
        try:
            result = part.result(outcome.overflowed)
        except CollectiveError as error:
            result = error
        if self._on_loss is OnLoss.CONTINUE:
            self._kept = (number, result, ranks)
        self._outgoing.put(("done", number, outcome.resent, config.epoch))
        if self._on_loss is OnLoss.FAIL:
            self._settle(number, result, ranks)

    def _settle(
        self, number: int, what: Array | CollectiveError | None, ranks: tuple[int, ...] = ()
    ) -> None:
        with self._lock:
            entry = self._open.pop(number, None)
        if entry is None:
            return
        future = entry[2]
        future.ranks = self.ranks = ranks or self.ranks
        if isinstance(what, CollectiveError):
            future.set_exception(what)
        else:
            future.set_result(what)

    def _fail(self, error: CollectiveError) -> None:
        with self._lock:
            self._end = self._end or error
            entries, self._open = list(self._open.values()), {}
        for _, _, future in entries:
            future.set_exception(self._end)
