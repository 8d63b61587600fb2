"""Who may write to one device: P4Runtime's client arbitration, as a pure state machine.

It holds the roles and election ids (128 bits, as Python ints) of the streams that are open to one
device and decides which of them is the primary of each role: the highest. Streams are opaque keys.
It sends nothing: every method returns the notices that the server then delivers, so that all its
behaviour can be tested by input and output.

Every role has an election of its own and full access to the device (section 5 of the
specification); "" is the default role. simple_switch_grpc ignores roles: it has one election.

Where the specification and simple_switch_grpc differ otherwise, this follows the latter: when
the primary leaves, the next lower election id becomes primary at once, without a new bid.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable
from dataclasses import dataclass

import grpc

from softswitch.p4runtime.status import RefusedError, invalid

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

    `election_id` is None when no stream that may be primary is open. `role` is the stream's.
    """

    stream: Hashable
    standing: Standing
    election_id: int | None
    role: str = ""


@dataclass(frozen=True, slots=True)
class _Bid:
    role: str
    election_id: int | None


class Arbitration:
    """The streams open to one device, their roles and election ids."""

    def __init__(self) -> None:
        self._bids: dict[Hashable, _Bid] = {}

    @property
    def primaries(self) -> tuple[Hashable, ...]:
        """The streams that may write, one a role at most."""
        return tuple(
            stream
            for stream, bid in self._bids.items()
            if bid.election_id is not None and bid.election_id == self._highest(bid.role)
        )

    def is_primary(self, stream: Hashable) -> bool:
        """Say whether a stream may write."""
        bid = self._bids.get(stream)
        return (
            bid is not None
            and bid.election_id is not None
            and bid.election_id == self._highest(bid.role)
        )

    def bid(self, stream: Hashable, election_id: int | None, role: str = "") -> tuple[Notice, ...]:
        """Enter `stream`, or change its election id, and return whom to tell.

        An election id of None (the field left out) never becomes primary. When the primary changes
        every stream of the role is told; otherwise only the bidder.

        Raises RefusedError: another role than the stream has, an election id that another stream of
        the role holds, too many streams. The caller then ends the stream.
        """
        known = self._bids.get(stream)
        if known is not None and known.role != role:
            raise RefusedError(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"Invalid role: the stream has role {known.role!r}; open another for {role!r}",
            )
        bid = _Bid(role, election_id)
        if election_id is not None and any(
            other != stream and held == bid for other, held in self._bids.items()
        ):
            raise invalid(f"Election id already exists: {election_id} is used by another stream")
        if known is None and len(self._bids) >= MAX_STREAMS:
            raise RefusedError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"Too many connections: {MAX_STREAMS} streams are open to this device",
            )
        before = self._highest(role)
        self._bids[stream] = bid
        if self._highest(role) != before:
            return self._notices(role)
        return (self._notice(stream, bid),)

    def leave(self, stream: Hashable) -> tuple[Notice, ...]:
        """Remove `stream`, if it had bid; return whom to tell: its role, if it was the primary."""
        bid = self._bids.get(stream)
        if bid is None:
            return ()
        before = self._highest(bid.role)
        del self._bids[stream]
        return self._notices(bid.role) if self._highest(bid.role) != before else ()

    def may_write(self, election_id: int | None, role: str = "") -> bool:
        """Say whether a Write or a pipeline push is from the primary of its role.

        With no stream open, a request without an election id is let through (as
        simple_switch_grpc does): it serves one-off tools.
        """
        if not self._bids:
            return election_id is None
        return election_id is not None and election_id == self._highest(role)

    def _highest(self, role: str) -> int | None:
        return max(
            (
                bid.election_id
                for bid in self._bids.values()
                if bid.role == role and bid.election_id is not None
            ),
            default=None,
        )

    def _notices(self, role: str) -> tuple[Notice, ...]:
        return tuple(
            self._notice(stream, bid) for stream, bid in self._bids.items() if bid.role == role
        )

    def _notice(self, stream: Hashable, bid: _Bid) -> Notice:
        highest = self._highest(bid.role)
        if highest is None:
            return Notice(stream, Standing.NO_PRIMARY, None, bid.role)
        standing = Standing.PRIMARY if bid.election_id == highest else Standing.BACKUP
        return Notice(stream, standing, highest, bid.role)
