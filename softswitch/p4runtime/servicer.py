"""The gRPC face of the server: one coroutine a call, no thread a stream.

Everything here runs on one event loop, so nothing is locked. What may be written and how is
decided elsewhere (`arbitration`, `writes`, `reads`); this turns requests into calls of those, and
refusals into gRPC statuses.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Protocol

import grpc
from finsy.proto import p4r, p4r_grpc, rpc_code

from softswitch.device import Device
from softswitch.p4runtime import reads, writes
from softswitch.p4runtime.arbitration import Notice
from softswitch.p4runtime.config import ConfigPool, Configuration
from softswitch.p4runtime.sessions import Served, Stream
from softswitch.p4runtime.status import (
    ERROR_SPACE,
    STATUS_DETAILS_KEY,
    RefusedError,
    batch_status,
    not_found,
    unimplemented,
)
from softswitch.p4runtime.values import pack_header, unpack_header
from softswitch.p4runtime.writes import Pipeline

API_VERSION = "1.3.0"
"""The P4Runtime version that simple_switch_grpc announces too."""

READ_BATCH = 500
"""Entities a ReadResponse: keeps it far below gRPC's default limit of 4 MiB for a client."""

_NUMBERED = "\0role "
"""In front of the number of a role without a name: no name can begin so, for a name is text."""

PacketOut = Callable[[Device, bytes], None]
"""Takes a device and a packet for its CPU port, controller header first."""


class ServerContext(Protocol):
    """The part of grpc.aio.ServicerContext used here."""

    async def abort(
        self, code: grpc.StatusCode, details: str, trailing_metadata: tuple[object, ...] = ()
    ) -> None: ...


class P4RuntimeServicer(p4r_grpc.P4RuntimeServicer):
    """Serves P4Runtime for many devices, told apart by device id."""

    def __init__(self, devices: Iterable[Device], packet_out: PacketOut | None) -> None:
        self._served: dict[int, Served] = {}
        self._pool = ConfigPool()
        self._withdrawn: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        for device in devices:
            if device.device_id in self._served:
                raise ValueError(f"device id {device.device_id} is used twice; ids must differ")
            self._served[device.device_id] = Served(device, Configuration(device, self._pool))
        self._packet_out = packet_out
        self._streams: set[Stream] = set()

    # Unary calls

    async def Capabilities(  # noqa: N802 - gRPC's name
        self, request: p4r.CapabilitiesRequest, context: ServerContext
    ) -> p4r.CapabilitiesResponse:
        """Announce the version of the API."""
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    async def Write(  # noqa: N802 - gRPC's name
        self, request: p4r.WriteRequest, context: ServerContext
    ) -> p4r.WriteResponse:
        """Carry out a batch in its order; a refused update does not stop those behind it."""
        try:
            served = self._for_primary(request)
            pipeline = served.config.running()
            if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
                raise unimplemented(
                    "Support for atomic write modes has not been implemented: use CONTINUE_ON_ERROR"
                )
        except RefusedError as refused:
            await context.abort(refused.code, refused.text)
            raise
        outcomes = [_outcome(served.device, pipeline, update) for update in request.updates]
        failed = sum(outcome is not None for outcome in outcomes)
        if failed:
            details = batch_status(outcomes).SerializeToString()
            await context.abort(
                grpc.StatusCode.UNKNOWN,
                f"{failed} of {len(outcomes)} updates failed; see the status details",
                ((STATUS_DETAILS_KEY, details),),
            )
        return p4r.WriteResponse()

    async def Read(  # noqa: N802 - gRPC's name
        self, request: p4r.ReadRequest, context: ServerContext
    ) -> AsyncIterator[p4r.ReadResponse]:
        """Answer all entities of the request in their order, in batches of READ_BATCH."""
        try:
            served = self._find(request.device_id)
            pipeline = served.config.running()
            for response in _batched(served.device, pipeline, request):
                yield response
        except RefusedError as refused:
            await context.abort(refused.code, refused.text)

    async def SetForwardingPipelineConfig(  # noqa: N802 - gRPC's name
        self, request: p4r.SetForwardingPipelineConfigRequest, context: ServerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Verify, save or commit a pipeline."""
        try:
            self._for_primary(request).config.push(request.action, request.config)
        except RefusedError as refused:
            await context.abort(refused.code, refused.text)
        return p4r.SetForwardingPipelineConfigResponse()

    async def GetForwardingPipelineConfig(  # noqa: N802 - gRPC's name
        self, request: p4r.GetForwardingPipelineConfigRequest, context: ServerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the parts of the running pipeline's config that were asked for."""
        try:
            config = self._find(request.device_id).config.read(request.response_type)
        except RefusedError as refused:
            await context.abort(refused.code, refused.text)
            raise
        return p4r.GetForwardingPipelineConfigResponse(config=config)

    # The stream

    async def StreamChannel(  # noqa: N802 - gRPC's name
        self,
        request_iterator: AsyncIterator[p4r.StreamMessageRequest],
        context: ServerContext,
    ) -> AsyncIterator[p4r.StreamMessageResponse]:
        """Hold one client's session: arbitration, packet-outs in, packet-ins and notices out."""
        stream = Stream()
        self._streams.add(stream)
        receiver = asyncio.create_task(self._receive(stream, request_iterator))
        try:
            while (message := await stream.outbox.get()) is not None:
                yield message
            if stream.refusal is not None:
                raise stream.refusal
            if not stream.ended_here:
                await receiver
        except RefusedError as refused:
            await context.abort(refused.code, refused.text)
        finally:
            receiver.cancel()
            self._streams.discard(stream)
            if stream.served is not None:
                _deliver(stream.served, stream.served.arbitration.leave(stream))

    async def _receive(
        self, stream: Stream, requests: AsyncIterator[p4r.StreamMessageRequest]
    ) -> None:
        """Take a client's messages until it ends the stream or one of them is refused."""
        try:
            async for request in requests:
                self._on_message(stream, request)
        finally:
            stream.outbox.put_nowait(None)

    def end_streams(self) -> None:
        """End every stream in order, as a server does that shuts down."""
        for stream in self._streams:
            stream.ended_here = True
            stream.outbox.put_nowait(None)

    def withdraw(self, device_id: int) -> None:
        """Serve a device no more: its streams break, and calls for it find nothing that answers."""
        served = self._find(device_id)
        served.detach()
        del self._served[device_id]
        self._withdrawn.add(device_id)
        for stream in self._streams:
            if stream.served is served:
                stream.refusal = _is_down(device_id)
                stream.outbox.put_nowait(None)

    def offer(self, device: Device) -> None:
        """Serve a device in the place of one that was withdrawn, or a further one."""
        if device.device_id in self._served:
            raise ValueError(f"device id {device.device_id} is served already: withdraw it first")
        self._withdrawn.discard(device.device_id)
        served = self._served[device.device_id] = Served(device, Configuration(device, self._pool))
        if self._loop is not None:
            served.attach(self._loop)

    def packet_in(self, device_id: int, packet: bytes) -> None:
        """Send a packet from the CPU port, controller header first, to the device's primaries.

        Without a primary, or without a pipeline that gives the header, the packet is dropped, as
        on simple_switch_grpc.
        """
        served = self._find(device_id)
        fields = served.config.packet_in_fields()
        message = None if fields is None else unpack_header(fields, packet)
        if message is not None:
            served.tell_primaries(p4r.StreamMessageResponse(packet=message))

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take what the devices tell unasked, from whatever thread runs their packets."""
        self._loop = loop
        for served in self._served.values():
            served.attach(loop)

    def detach(self) -> None:
        """Take no more of it."""
        for served in self._served.values():
            served.detach()

    def packet_ins_dropped(self, device_id: int) -> int:
        """Return how many packet-ins of a device were dropped since its primary was too slow."""
        return self._find(device_id).packet_ins_dropped

    def device_config(self, device_id: int) -> bytes | None:
        """Return the program that was pushed to a device and runs, or None before a push."""
        return self._find(device_id).config.device_config

    def _on_message(self, stream: Stream, request: p4r.StreamMessageRequest) -> None:
        match request.WhichOneof("update"):
            case "arbitration":
                self._bid(stream, request.arbitration)
            case "packet":
                self._on_packet_out(stream, request.packet)
            case "digest_ack":
                self._on_digest_ack(stream, request.digest_ack)
            case other:
                error = _stream_error(unimplemented(f"stream message {other} is not supported"))
                error.other.SetInParent()
                stream.outbox.put_nowait(p4r.StreamMessageResponse(error=error))

    def _bid(self, stream: Stream, update: p4r.MasterArbitrationUpdate) -> None:
        served = self._find(update.device_id)
        if stream.served is not None and stream.served is not served:
            raise RefusedError(
                grpc.StatusCode.FAILED_PRECONDITION,
                "Invalid device id: a stream is for one device; open another stream",
            )
        if update.role.HasField("config"):
            raise unimplemented(
                f"a configuration of role {update.role.name or update.role.id!r} is not served: "
                "leave it out for full access to the device"
            )
        role = _role(update.role.name, update.role.id)
        election_id = _u128(update.election_id) if update.HasField("election_id") else None
        notices = served.arbitration.bid(stream, election_id, role)
        stream.served = served
        _deliver(served, notices)

    def _on_digest_ack(self, stream: Stream, ack: p4r.DigestListAck) -> None:
        try:
            served = _primary_of(stream)
            served.config.running().digests.acknowledge(ack)
        except RefusedError as refused:
            error = _stream_error(refused)
            error.digest_list_ack.digest_list_ack.CopyFrom(ack)
            stream.outbox.put_nowait(p4r.StreamMessageResponse(error=error))

    def _on_packet_out(self, stream: Stream, packet: p4r.PacketOut) -> None:
        try:
            served = _primary_of(stream)
            if self._packet_out is None or served.device.cpu_port is None:
                raise unimplemented("packet-out: the device has no CPU port")
            header = pack_header(served.config.running().info.packet_out, packet.metadata)
            self._packet_out(served.device, header + packet.payload)
        except RefusedError as refused:
            error = _stream_error(refused)
            error.packet_out.packet_out.CopyFrom(packet)
            stream.outbox.put_nowait(p4r.StreamMessageResponse(error=error))

    # What calls have in common

    def _find(self, device_id: int) -> Served:
        served = self._served.get(device_id)
        if device_id in self._withdrawn:
            raise _is_down(device_id)
        if served is None:
            raise not_found(f"device id {device_id} is not served here")
        return served

    def _for_primary(
        self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
    ) -> Served:
        served = self._find(request.device_id)
        role = _role(request.role, request.role_id)
        election_id = _u128(request.election_id) if request.HasField("election_id") else None
        if not served.arbitration.may_write(election_id, role):
            raise RefusedError(grpc.StatusCode.PERMISSION_DENIED, "Not primary")
        return served


def _primary_of(stream: Stream) -> Served:
    """Return the device that `stream` may write to; raises RefusedError."""
    served = stream.served
    if served is None or not served.arbitration.is_primary(stream):
        raise RefusedError(grpc.StatusCode.PERMISSION_DENIED, "Not primary")
    return served


def _outcome(device: Device, pipeline: Pipeline, update: p4r.Update) -> RefusedError | None:
    try:
        writes.apply(device, pipeline, update)
    except RefusedError as refused:
        return refused
    return None


def _batched(
    device: Device, pipeline: Pipeline, request: p4r.ReadRequest
) -> Iterator[p4r.ReadResponse]:
    """Yield responses of at most READ_BATCH entities, and at least one response."""
    response = p4r.ReadResponse()
    for wanted in request.entities:
        for entity in reads.answer(device, pipeline, wanted):
            if len(response.entities) == READ_BATCH:
                yield response
                response = p4r.ReadResponse()
            response.entities.append(entity)
    yield response


def _deliver(served: Served, notices: Iterable[Notice]) -> None:
    for notice in notices:
        if not isinstance(notice.stream, Stream):
            raise TypeError(f"a notice for {notice.stream!r}, which is not a stream")
        message = p4r.StreamMessageResponse()
        update = message.arbitration
        update.device_id = served.device.device_id
        if notice.role.startswith(_NUMBERED):
            update.role.id = int(notice.role.removeprefix(_NUMBERED))
        elif notice.role:
            update.role.name = notice.role
        update.status.code = rpc_code.Code.Value(notice.standing.value)
        update.status.message = notice.standing.text
        if notice.election_id is not None:
            update.election_id.high = notice.election_id >> 64
            update.election_id.low = notice.election_id & ((1 << 64) - 1)
        notice.stream.outbox.put_nowait(message)


def _is_down(device_id: int) -> RefusedError:
    return RefusedError(grpc.StatusCode.UNAVAILABLE, f"device {device_id} is down")


def _stream_error(refused: RefusedError) -> p4r.StreamError:
    return p4r.StreamError(
        canonical_code=refused.code.value[0], message=refused.text, space=ERROR_SPACE
    )


def _role(name: str, number: int) -> str:
    """A role by its name, or by the number that named it before P4Runtime 1.3; "": the default."""
    return name or (f"{_NUMBERED}{number}" if number else "")


def _u128(message: p4r.Uint128) -> int:
    return message.high << 64 | message.low
