"""What a device tells its controller unasked, besides packets: digests, and entries gone idle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import grpc
from finsy.proto import p4d, p4r

from softswitch.entries import Digest, TableEntry
from softswitch.p4runtime import translate
from softswitch.p4runtime.digests import DigestBuffer, DigestConfig, Sample, SampleList
from softswitch.p4runtime.p4info import DigestInfo, PipelineInfo
from softswitch.p4runtime.status import RefusedError, invalid, not_found
from softswitch.p4runtime.values import encode

Clock = Callable[[], int]
"""Nanoseconds, never going back."""


class Digests:
    """The digests of a running pipeline: which the controller wants, and what waits of them."""

    def __init__(self, info: PipelineInfo, clock: Clock) -> None:
        self._clock = clock
        self._infos = info.digests
        self._named = {digest.name: digest for digest in info.digests.values()}
        self._buffers: dict[int, DigestBuffer] = {}
        self._configs: dict[int, p4r.DigestEntry] = {}

    def write(self, kind: p4r.Update.Type.ValueType, entry: p4r.DigestEntry) -> None:
        """Want a digest, want it otherwise, or want it no more; raises RefusedError."""
        number = entry.digest_id
        digest = self._infos.get(number)
        if digest is None:
            raise not_found(f"{number:#010x} is not a valid digest id")
        there = number in self._buffers
        if kind == p4r.Update.INSERT and there:
            raise RefusedError(
                grpc.StatusCode.ALREADY_EXISTS, f"Digest {digest.name} already configured"
            )
        if kind != p4r.Update.INSERT and not there:
            raise not_found(f"Digest {digest.name} not configured")
        if kind == p4r.Update.DELETE:
            del self._buffers[number], self._configs[number]
            return
        config = _config(digest, entry.config)
        if there:
            self._buffers[number].reconfigure(config)
        else:
            self._buffers[number] = DigestBuffer(config)
        self._configs[number] = entry

    def succeed(self, old: Digests) -> None:
        """Go on with the lists of another program where it declares a digest alike."""
        for number, buffer in old._buffers.items():
            if number in self._buffers and self._infos[number] == old._infos[number]:
                self._buffers[number] = buffer

    def read(self, request: p4r.DigestEntry) -> Iterator[p4r.Entity]:
        """Yield the configuration of one digest, or with id 0 of all that are configured."""
        number = request.digest_id
        if number and number not in self._infos:
            raise not_found(f"{number:#010x} is not a valid digest id")
        if number and number not in self._configs:
            raise not_found(f"Digest {self._infos[number].name} not configured")
        for found in [number] if number else sorted(self._configs):
            yield p4r.Entity(digest_entry=self._configs[found])

    def learn(self, digest: Digest) -> p4r.StreamMessageResponse | None:
        """Take a message of the data plane; return the list that it completes, if it does."""
        info = self._named.get(digest.name)
        buffer = self._buffers.get(info.id) if info is not None else None
        if info is None or buffer is None:
            return None
        now = self._clock()
        complete = buffer.learn(digest.members, now)
        return None if complete is None else _message(info, complete, now)

    def acknowledge(self, ack: p4r.DigestListAck) -> None:
        """The controller has a list; one that is not known is none of our business."""
        buffer = self._buffers.get(ack.digest_id)
        if buffer is not None:
            buffer.acknowledge(ack.list_id)

    def due_ns(self) -> int | None:
        """Return when `overdue` has something to say next, or None."""
        times = [buffer.due_ns() for buffer in self._buffers.values()]
        return min((time for time in times if time is not None), default=None)

    def overdue(self) -> Iterator[p4r.StreamMessageResponse]:
        """Yield the lists that have waited long enough."""
        now = self._clock()
        for number, buffer in self._buffers.items():
            complete = buffer.tick(now)
            if complete is not None:
                yield _message(self._infos[number], complete, now)


def _config(digest: DigestInfo, message: p4r.DigestEntry.Config) -> DigestConfig:
    values = (message.max_timeout_ns, message.max_list_size, message.ack_timeout_ns)
    if min(values) < 0:
        raise invalid(f"digest {digest.name}: timeouts and list size cannot be negative")
    return DigestConfig(*values)


def _message(digest: DigestInfo, complete: SampleList, now_ns: int) -> p4r.StreamMessageResponse:
    response = p4r.StreamMessageResponse()
    message = response.digest
    message.digest_id = digest.id
    message.list_id = complete.list_id
    message.timestamp = now_ns
    for sample in complete.samples:
        message.data.append(_data(digest, sample))
    return response


def _data(digest: DigestInfo, sample: Sample) -> p4d.P4Data:
    data = p4d.P4Data()
    match digest.shape:
        case "struct":
            members = data.struct.members
        case "tuple":
            members = data.tuple.members
        case _:
            data.bitstring = encode(sample[0])
            return data
    for value in sample:
        members.add(bitstring=encode(value))
    return data


def idle_notification(
    info: PipelineInfo,
    entries: Iterable[tuple[TableEntry, tuple[int, bytes] | None]],
    now_ns: int,
) -> p4r.StreamMessageResponse:
    """Return the notice that entries are idle; with each its client's metadata, if it has any."""
    named = {table.name: table for table in info.tables.values()}
    response = p4r.StreamMessageResponse()
    notice = response.idle_timeout_notification
    notice.timestamp = now_ns
    for entry, metadata in entries:
        message = translate.encode_key(named[entry.table], entry.matches, entry.priority)
        message.idle_timeout_ns = entry.idle_timeout_ns
        if metadata is not None:
            message.controller_metadata, message.metadata = metadata
        notice.table_entry.append(message)
    return response
