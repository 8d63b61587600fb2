"""The connection between a rank and the network that it belongs to: what is said on it.

    rank                                   network
    ("join", job, rank, OnLoss)            ("joined", Membership)
                                           ("failed", None, kind, text, ranks)
    ("call", number, Call, array | None)   ("result", number, array | None, ranks)
                                           ("failed", number, kind, text, ranks)

Calls are numbered from 0, by every rank alike. A network on a virtual clock is sent the array and
answers with the result. One of real links is sent no array: it answers

                                           ("go", number, WorkerConfig)

when every rank has made the call, and the rank's own worker exchanges packets; at its end the rank
says ("done", number, resent, epoch), or ("stuck", number, epoch, text) where its worker has given
up. The end of the connection is the end of the rank.

Where a job goes on without ranks that it loses, a call is over those that have made it and are
there. A rank whose worker is done keeps the result to itself until all of these are: then it hears

                                           ("commit", number)

and where one of them has gone before, another ("go", ...) with the same number instead: the call
is carried out anew, without that one, and what there was of it is dropped. So all have the same
result.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from traffic.collectives.errors import (
    CollectiveError,
    MismatchError,
    MissingRankError,
    SumOverflowError,
)

RANK, SIZE, ADDRESS, JOB = "RANK", "WORLD_SIZE", "BLUETREE_ADDRESS", "BLUETREE_JOB"
ON_LOSS = "BLUETREE_ON_RANK_LOSS"
"""Environment variables of a rank."""


class OnLoss(StrEnum):
    """What becomes of a job that loses a rank: it fails, or goes on with the others."""

    FAIL = "fail"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Membership:
    """What a rank is told when it joins.

    Attributes:
        ranks: how many ranks the job has.
        lanes: int32 values in a message.
        window: chunks that may be in flight.
        interface: of this network namespace, where the rank sends packets itself; else None.
    """

    ranks: int
    lanes: int
    window: int
    interface: str | None = None


_ERRORS = {
    "mismatch": MismatchError,
    "overflow": SumOverflowError,
    "failed": CollectiveError,
}


def error_of(kind: str, text: str, ranks: tuple[int, ...]) -> CollectiveError:
    """The error that a ("failed", ...) stands for."""
    if kind == "missing":
        return MissingRankError(text, ranks)
    return _ERRORS.get(kind, CollectiveError)(text)


def kind_of(error: CollectiveError) -> tuple[str, str, tuple[int, ...]]:
    """The words of a ("failed", ...) for an error: kind, text, ranks."""
    if isinstance(error, MissingRankError):
        return "missing", str(error), error.ranks
    kind = next((word for word, kind in _ERRORS.items() if isinstance(error, kind)), "failed")
    return kind, str(error), ()


def dial(address: Path) -> tuple[socket.socket, Connection[Any, Any]]:
    """Connect to a network's Unix socket; raises CollectiveError.

    Shutting the socket down ends what waits on the connection; both must be closed.
    """
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.connect(str(address))
    except OSError as error:
        stream.close()
        raise CollectiveError(
            f"{address}: no network answers ({error.strerror}); start ranks with `bluetree launch`"
        ) from None
    return stream, Connection(os.dup(stream.fileno()))
