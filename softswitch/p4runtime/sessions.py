"""What the server keeps of a device between calls, and of a stream: who is told what, and when."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import grpc
from finsy.proto import p4r

from softswitch.device import Device
from softswitch.entries import Digest, TableEntry
from softswitch.p4runtime.arbitration import Arbitration
from softswitch.p4runtime.config import Configuration
from softswitch.p4runtime.inbox import Inbox
from softswitch.p4runtime.notices import idle_notification
from softswitch.p4runtime.status import RefusedError

PACKET_IN_QUEUE = 4096
"""Messages waiting for a slow client before packet-ins and the like to it are dropped, counted."""

NOTICE_QUEUE = 2 * PACKET_IN_QUEUE
"""Messages waiting before the stream is ended, as what may not be lost has no room."""

REPLY_QUEUE = 256
"""Messages waiting before the next request is read: who asks, and does not listen, waits."""


class Stream:
    """One open StreamChannel: what waits to be sent on it, and its device."""

    def __init__(self) -> None:
        self.served: Served | None = None
        self.ended_here = False
        self.refusal: RefusedError | None = None
        """Why the server ends the stream, if it does."""
        self._outbox: asyncio.Queue[p4r.StreamMessageResponse | None] = asyncio.Queue()
        self._has_room = asyncio.Event()

    def offer(self, message: p4r.StreamMessageResponse) -> bool:
        """Send what may be lost; False if too much waits, and it is."""
        if self._outbox.qsize() >= PACKET_IN_QUEUE:
            return False
        self._outbox.put_nowait(message)
        return True

    def tell(self, message: p4r.StreamMessageResponse) -> None:
        """Send what may not be lost; a client that does not take it loses its stream."""
        if self.refusal is not None:
            return
        if self._outbox.qsize() < NOTICE_QUEUE:
            self._outbox.put_nowait(message)
            return
        while not self._outbox.empty():
            self._outbox.get_nowait()
        self.refuse(
            RefusedError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"the client takes its messages too slowly: {NOTICE_QUEUE} wait",
            )
        )

    async def reply(self, message: p4r.StreamMessageResponse) -> None:
        """Answer a message of the client; waits while it does not take what it is sent."""
        while self._outbox.qsize() >= REPLY_QUEUE and self.refusal is None:
            self._has_room.clear()
            await self._has_room.wait()
        self.tell(message)

    def refuse(self, why: RefusedError) -> None:
        """Break the stream, behind what waits."""
        self.refusal = why
        self.end()

    def end(self) -> None:
        """Have the stream end, behind what waits."""
        self._outbox.put_nowait(None)

    async def take(self) -> p4r.StreamMessageResponse | None:
        """Return what is to be sent next, or None at the end."""
        message = await self._outbox.get()
        if self._outbox.qsize() < REPLY_QUEUE:
            self._has_room.set()
        return message


@dataclass(slots=True)
class Served:
    """A device and what the server keeps of it between calls."""

    device: Device
    config: Configuration
    arbitration: Arbitration = field(default_factory=Arbitration)
    packet_ins_dropped: int = 0
    alarm: asyncio.TimerHandle | None = None
    """Set while digests wait for their time."""

    def tell_primaries(self, message: p4r.StreamMessageResponse) -> None:
        """Send a message to the primary of every role, if it takes what it is sent."""
        for primary in self.arbitration.primaries:
            if isinstance(primary, Stream) and not primary.offer(message):
                self.packet_ins_dropped += 1

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take what the device tells unasked, from whatever thread runs its packets."""

        digests = Inbox(loop, self._on_digest)

        def digest(message: Digest) -> None:
            if not digests.put(message):
                self.packet_ins_dropped += 1

        def idle(entries: tuple[TableEntry, ...]) -> None:
            loop.call_soon_threadsafe(self._on_idle, entries)

        self.device.on_digest, self.device.on_idle = digest, idle

    def detach(self) -> None:
        """Take no more of it."""
        self.device.on_digest = self.device.on_idle = None
        if self.alarm is not None:
            self.alarm.cancel()

    def _on_digest(self, digest: Digest) -> None:
        """Take a digest message. Nobody to tell: it is dropped, and new when it comes again."""
        pipeline = self.config.pipeline
        if pipeline is None or not self.arbitration.primaries:
            return
        waited = pipeline.digests.due_ns()
        complete = pipeline.digests.learn(digest)
        if complete is not None:
            self.tell_primaries(complete)
        if pipeline.digests.due_ns() != waited or self.alarm is None:
            self._set_alarm()

    def _set_alarm(self) -> None:
        """See that digests which wait are sent when they have waited long enough."""
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None
        pipeline = self.config.pipeline
        due = None if pipeline is None else pipeline.digests.due_ns()
        if due is None:
            return
        delay = max(0, due - time.monotonic_ns()) / 1e9
        self.alarm = asyncio.get_running_loop().call_later(delay, self._on_alarm)

    def _on_alarm(self) -> None:
        if self.config.pipeline is not None:
            for complete in self.config.pipeline.digests.overdue():
                self.tell_primaries(complete)
        self._set_alarm()

    def _on_idle(self, entries: tuple[TableEntry, ...]) -> None:
        pipeline = self.config.pipeline
        if pipeline is None:
            return
        known = {table.name for table in pipeline.info.tables.values()}
        found = [
            (entry, pipeline.metadata.get((entry.table, entry.matches, entry.priority)))
            for entry in entries
            if entry.table in known
        ]
        if found:
            self.tell_primaries(idle_notification(pipeline.info, found, time.monotonic_ns()))
