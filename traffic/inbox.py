"""What comes to a worker: messages of its job that are addressed to it, by the destination.

The same answer comes many times where much is lost: doubled by links, and repeated for others. So
what the latest frames said is kept, and a frame that comes again is not taken apart again.
"""

from __future__ import annotations

from p4src.constants import AGG_UDP_PORT
from traffic.errors import DecodeError
from traffic.message import Message, decode_datagram, ip_bytes
from traffic.worker_config import WorkerConfig

KEPT = 128
"""Frames of which it is known what they say, at most."""

Found = tuple[Message | None, str]
"""A message, or why a frame is none."""


class Inbox:
    """Reads the frames of one worker in one job."""

    __slots__ = ("_destination", "_job", "_known", "_lanes", "_to")

    def __init__(self, config: WorkerConfig, lanes: int) -> None:
        self._job = config.job
        self._lanes = lanes
        # How results come in: rewritten by the last switch, or still to the group.
        own = (ip_bytes(config.ip), config.udp_port)
        self._to = (own, (ip_bytes(config.group_ip), AGG_UDP_PORT))
        self._destination = (ip_bytes(config.destination_ip), AGG_UDP_PORT)
        self._known: dict[bytes, Found] = {}

    def read(self, frame: bytes) -> Found:
        """The message in a frame, whatever its bytes; its epoch, kind and chunk may be any."""
        known = self._known
        found = known.get(frame)
        if found is None:
            if len(known) == KEPT:
                known.clear()
            found = known[frame] = self._read(frame)
        return found

    def _read(self, frame: bytes) -> Found:
        try:
            datagram = decode_datagram(frame, self._lanes)
        except DecodeError as error:
            return None, error.reason.value
        if (datagram.dst_ip, datagram.dst_port) not in self._to:
            return None, "not-addressed"
        if (datagram.src_ip, datagram.src_port) != self._destination:
            return None, "other-sender"
        if datagram.message.job != self._job:
            return None, "other-job"
        return datagram.message, ""
