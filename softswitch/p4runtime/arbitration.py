"""Who may write to one device: P4Runtime's client arbitration, as a pure state machine.

It holds the election ids (128 bits, as Python ints) of the streams that are open to one device
and decides which of them is the primary: the highest. Streams are opaque keys. It sends nothing:
every method returns the notices that the server then delivers, so that all its behaviour can be
tested by input and output.

Where the specification (section 5) and simple_switch_grpc differ, this follows the latter: when
the primary leaves, the next lower election id becomes primary at once, without a new bid.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from dataclasses import dataclass

import grpc

from softswitch.p4runtime.status import RefusedError, invalid, unimplemented

MAX_STREAMS = 16
"""Streams to one device at a time, as in simple_switch_grpc."""


class Standing(enum.Enum):
    """What a notice tells its stream; the values are names of google.rpc codes."""

    PRIMARY = "OK"
    BACKUP = "ALREADY_EXISTS"
    NO_PRIMARY = "NOT_FOUND"

    @property
    def text(self) -> str:
        """The words of simple_switch_grpc for it."""
        return {"OK": "Is primary", "ALREADY_EXISTS": "Is backup"}.get(self.value, "No primary")


@dataclass(frozen=True, slots=True)
class Notice:
    """One arbitration update to send: to whom, its standing, the election id of the primary.

    `election_id` is None when no stream that may be primary is open.
    """

    stream: Hashable
    standing: Standing
    election_id: int | None


class Arbitration:
    """The streams open to one device and their election ids."""

    def __init__(self) -> None:
        self._bids: dict[Hashable, int | None] = {}

    @property
    def primary(self) -> Hashable | None:
        """The stream that may write, or None."""
        bids = [(bid, stream) for stream, bid in self._bids.items() if bid is not None]
        return max(bids, key=lambda pair: pair[0])[1] if bids else None

    def bid(self, stream: Hashable, election_id: int | None, role: str = "") -> tuple[Notice, ...]:
        """Enter `stream`, or change its election id, and return whom to tell.

        An election id of None (the field left out) never becomes primary. When the primary changes
        every stream is told; otherwise only the bidder.

        Raises RefusedError: a role other than the default one, an election id that another stream
        holds, too many streams. The caller then ends the stream.
        """
        if role:
            raise unimplemented(
                f"role {role!r} is not served: leave the role out for full access to the device"
            )
        if election_id is not None and any(
            other != stream and held == election_id for other, held in self._bids.items()
        ):
            raise invalid(f"Election id already exists: {election_id} is used by another stream")
        if stream not in self._bids and len(self._bids) >= MAX_STREAMS:
            raise RefusedError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"Too many connections: {MAX_STREAMS} streams are open to this device",
            )
        before = self._primary_bid()
        self._bids[stream] = election_id
        if self._primary_bid() != before:
            return self._notices()
        return (self._notice(stream),)

    def leave(self, stream: Hashable) -> tuple[Notice, ...]:
        """Remove `stream`, if it had bid, and return whom to tell: all, if it was the primary."""
        before = self._primary_bid()
        self._bids.pop(stream, None)
        return self._notices() if self._primary_bid() != before else ()

    def may_write(self, election_id: int | None) -> bool:
        """Say whether a Write or a pipeline push with `election_id` is from the primary.

        With no stream open, a request without an election id is let through (as
        simple_switch_grpc does): it serves one-off tools.
        """
        if not self._bids:
            return election_id is None
        return election_id is not None and election_id == self._primary_bid()

    def _primary_bid(self) -> int | None:
        return max((bid for bid in self._bids.values() if bid is not None), default=None)

    def _notices(self) -> tuple[Notice, ...]:
        return tuple(self._notice(stream) for stream in self._bids)

    def _notice(self, stream: Hashable) -> Notice:
        primary_bid = self._primary_bid()
        if primary_bid is None:
            return Notice(stream, Standing.NO_PRIMARY, None)
        if self._bids[stream] == primary_bid:
            return Notice(stream, Standing.PRIMARY, primary_bid)
        return Notice(stream, Standing.BACKUP, primary_bid)
