"""What a destination sends: answers to all workers, or to one, and requests."""

from __future__ import annotations

from collections.abc import Iterable

from p4src.constants import AGG_UDP_PORT, WORDS, Flag, Kind
from traffic.destination_config import DestinationConfig
from traffic.endpoint import Op
from traffic.epochs import Term
from traffic.ledger import Ledger
from traffic.message import (
    ANSWER_HISTORY,
    DESTINATION_SOURCE,
    LANE_BYTES,
    Flow,
    FrameEncoder,
    Message,
)


class Outgoing:
    """Frames of one job's destination, with the sums that its ledger has."""

    def __init__(self, config: DestinationConfig, ledger: Ledger) -> None:
        self.config = config
        self._ledger = ledger
        self._to_group = FrameEncoder(
            Flow(config.mac, config.group_mac, config.ip, config.group_ip, AGG_UDP_PORT),
            config.lanes,
        )
        self._to_recipient = _to_recipient(config)

    def answer(self, chunk: int, term: Term, flags: int) -> list[bytes]:
        """The sum of a complete chunk, or its acknowledgement."""
        if self.config.op == Op.ALLREDUCE:
            return [self._to_group.encode(self._message(Kind.RESULT, chunk, term, flags))]
        frames = [self._to_group.encode(self._message(Kind.ACK, chunk, term, flags))]
        if self._to_recipient is not None:
            to_one = self._message(Kind.RESULT, chunk, term, flags)
            frames.append(self._to_recipient.encode(to_one))
        return frames

    def request(self, chunk: int, term: Term, bits: Iterable[int] | None, *, direct: bool) -> bytes:
        """Ask for the sources with these bits, or for all; `direct`: for all, past all switches."""
        config = self.config
        length = config.lanes * LANE_BYTES
        word = length // WORDS
        wanted = (1 << 8 * word) - 1 if bits is None else sum(1 << bit for bit in bits)
        return self._to_group.encode(
            Message(
                Kind.REQUEST.value,
                Flag.DIRECT.value if direct else 0,
                config.job,
                DESTINATION_SOURCE,
                term.epoch,
                config.first_chunk + chunk,
                len(config.workers) - len(term.absent),
                wanted.to_bytes(word, "big") + bytes(length - word),
            )
        )

    def _message(self, kind: Kind, chunk: int, term: Term, flags: int) -> Message:
        return Message(
            kind.value,
            flags,
            self.config.job,
            self._history(chunk),
            term.epoch,
            self.config.first_chunk + chunk,
            len(self.config.workers) - len(term.absent),
            self._ledger.lanes_of(chunk) if kind is Kind.RESULT else b"",
            self._ledger.exponent_of(chunk),
        )

    def _history(self, chunk: int) -> int:
        """The source of an answer: which of the chunks just before this one are complete."""
        history = DESTINATION_SOURCE
        for back in range(1, min(chunk, ANSWER_HISTORY) + 1):
            if self._ledger.is_complete(chunk - back):
                history ^= 1 << (back - 1)
        return history


def _to_recipient(config: DestinationConfig) -> FrameEncoder | None:
    to = config.recipient
    if to is None:
        return None
    flow = Flow(config.mac, to.gateway_mac, config.ip, to.ip, AGG_UDP_PORT, to.udp_port)
    return FrameEncoder(flow, config.lanes)


__all__ = ["Outgoing"]
