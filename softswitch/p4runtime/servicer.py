"""The gRPC face of the server: one coroutine a call, no thread a stream.

Everything here runs on one event loop, so nothing is locked. What may be written and how is
decided elsewhere (`arbitration`, `writes`, `reads`); this turns requests into calls of those.
`handlers` turns what they refuse into gRPC statuses.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol

import grpc
from finsy.proto import p4r, p4r_grpc

from softswitch.device import Device
from softswitch.p4runtime.complaints import Complaints
from softswitch.p4runtime.config import ConfigPool, Configuration
from softswitch.p4runtime.handlers import Malformed
from softswitch.p4runtime.inbox import Inbox
from softswitch.p4runtime.replies import (
    batched,
    deliver,
    is_down,
    outcome_of,
    primary_of,
    role_name,
    stream_error,
    u128,
)
from softswitch.p4runtime.sessions import Served, Stream
from softswitch.p4runtime.status import (
    STATUS_DETAILS_KEY,
    RefusedError,
    batch_status,
    invalid,
    not_found,
    unimplemented,
)
from softswitch.p4runtime.values import pack_header, unpack_header

API_VERSION = "1.3.0"
"""The P4Runtime version that simple_switch_grpc announces too."""

MAX_FRAME = 65535
"""Bytes of a packet-out."""

_NOTED = (grpc.StatusCode.INTERNAL, grpc.StatusCode.RESOURCE_EXHAUSTED)
"""How streams end that an operator should hear of."""

PacketOut = Callable[[Device, bytes], None]
"""Takes a device and a packet for its CPU port, controller header first."""


class ServerContext(Protocol):
    """The part of grpc.aio.ServicerContext used here."""

    async def abort(
        self, code: grpc.StatusCode, details: str, trailing_metadata: tuple[object, ...] = ()
    ) -> None: ...

    def peer(self) -> str: ...


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
        self._complaints = Complaints()
        self._packet_ins: Inbox[tuple[int, bytes]] | None = None
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
        served = self._for_primary(request)
        pipeline = served.config.running()
        if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
            raise unimplemented(
                "Support for atomic write modes has not been implemented: use CONTINUE_ON_ERROR"
            )
        outcomes = [outcome_of(served.device, pipeline, update) for update in request.updates]
        failed = sum(outcome is not None for outcome in outcomes)
        if failed:
            details = batch_status(outcomes).SerializeToString()
            raise RefusedError(
                grpc.StatusCode.UNKNOWN,
                f"{failed} of {len(outcomes)} updates failed; see the status details",
                ((STATUS_DETAILS_KEY, details),),
            )
        return p4r.WriteResponse()

    async def Read(  # noqa: N802 - gRPC's name
        self, request: p4r.ReadRequest, context: ServerContext
    ) -> AsyncIterator[p4r.ReadResponse]:
        """Answer all entities of the request in their order, in batches of READ_BATCH."""
        served = self._find(request.device_id)
        for response in batched(served.device, served.config.running(), request):
            yield response

    async def SetForwardingPipelineConfig(  # noqa: N802 - gRPC's name
        self, request: p4r.SetForwardingPipelineConfigRequest, context: ServerContext
    ) -> p4r.SetForwardingPipelineConfigResponse:
        """Verify, save or commit a pipeline."""
        self._for_primary(request).config.push(request.action, request.config)
        return p4r.SetForwardingPipelineConfigResponse()

    async def GetForwardingPipelineConfig(  # noqa: N802 - gRPC's name
        self, request: p4r.GetForwardingPipelineConfigRequest, context: ServerContext
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the parts of the running pipeline's config that were asked for."""
        config = self._find(request.device_id).config.read(request.response_type)
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
        status: tuple[grpc.StatusCode, str] | None = None
        receiver = asyncio.create_task(self._receive(stream, request_iterator))
        try:
            while (message := await stream.take()) is not None:
                yield message
            if stream.refusal is not None:
                raise stream.refusal
            if not stream.ended_here:
                await receiver
        except RefusedError as refused:
            status = refused.code, refused.text
        finally:
            receiver.cancel()
            self._streams.discard(stream)
            if stream.served is not None:
                deliver(stream.served, stream.served.arbitration.leave(stream))
        del receiver  # it knows the last request: see `handlers`
        if status is not None:
            if status[0] in _NOTED:
                self._complaints.add("stream ended", f"{status[1]}, from {context.peer()}")
            await context.abort(*status)

    async def _receive(
        self, stream: Stream, requests: AsyncIterator[p4r.StreamMessageRequest]
    ) -> None:
        """Take a client's messages until it ends the stream or one of them is refused."""
        try:
            async for request in requests:
                if isinstance(request, Malformed):
                    raise RefusedError(grpc.StatusCode.INTERNAL, request.text)
                await self._on_message(stream, request)
        finally:
            stream.end()

    def end_streams(self) -> None:
        """End every stream in order, as a server does that shuts down."""
        for stream in self._streams:
            stream.ended_here = True
            stream.end()

    def withdraw(self, device_id: int) -> None:
        """Serve a device no more: its streams break, and calls for it find nothing that answers."""
        served = self._find(device_id)
        served.detach()
        del self._served[device_id]
        self._withdrawn.add(device_id)
        for stream in self._streams:
            if stream.served is served:
                stream.refuse(is_down(device_id))

    def offer(self, device: Device) -> None:
        """Serve a device in the place of one that was withdrawn, or a further one."""
        if device.device_id in self._served:
            raise ValueError(f"device id {device.device_id} is served already: withdraw it first")
        self._withdrawn.discard(device.device_id)
        served = self._served[device.device_id] = Served(device, Configuration(device, self._pool))
        if self._loop is not None:
            served.attach(self._loop)

    @property
    def device_count(self) -> int:
        """How many devices are served."""
        return len(self._served)

    def hand_packet_in(self, device_id: int, packet: bytes) -> None:
        """Have `packet_in` called on the loop; from any thread, after `attach`."""
        if self._packet_ins is not None and not self._packet_ins.put((device_id, packet)):
            self._find(device_id).packet_ins_dropped += 1

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
        self._packet_ins = Inbox(loop, lambda item: self.packet_in(*item))
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

    async def refuse_malformed(self, request: Malformed, context: ServerContext) -> None:
        """End a call whose request is no message of its type."""
        self._complaints.add("bad request", f"{request.text}, from {context.peer()}")
        await context.abort(grpc.StatusCode.INTERNAL, request.text)

    async def _on_message(self, stream: Stream, request: p4r.StreamMessageRequest) -> None:
        match request.WhichOneof("update"):
            case "arbitration":
                self._bid(stream, request.arbitration)
            case "packet":
                await self._on_packet_out(stream, request.packet)
            case "digest_ack":
                await self._on_digest_ack(stream, request.digest_ack)
            case other:
                error = stream_error(unimplemented(f"stream message {other} is not supported"))
                error.other.SetInParent()
                await stream.reply(p4r.StreamMessageResponse(error=error))

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
        role = role_name(update.role.name, update.role.id)
        election_id = u128(update.election_id) if update.HasField("election_id") else None
        notices = served.arbitration.bid(stream, election_id, role)
        stream.served = served
        deliver(served, notices)

    async def _on_digest_ack(self, stream: Stream, ack: p4r.DigestListAck) -> None:
        try:
            served = primary_of(stream)
            served.config.running().digests.acknowledge(ack)
        except RefusedError as refused:
            error = stream_error(refused)
            error.digest_list_ack.digest_list_ack.CopyFrom(ack)
            await stream.reply(p4r.StreamMessageResponse(error=error))

    async def _on_packet_out(self, stream: Stream, packet: p4r.PacketOut) -> None:
        try:
            served = primary_of(stream)
            if self._packet_out is None or served.device.cpu_port is None:
                raise unimplemented("packet-out: the device has no CPU port")
            if len(packet.payload) > MAX_FRAME:
                raise invalid(f"packet-out of {len(packet.payload)} bytes: at most {MAX_FRAME}")
            header = pack_header(served.config.running().info.packet_out, packet.metadata)
            self._packet_out(served.device, header + packet.payload)
        except RefusedError as refused:
            error = stream_error(refused)
            if len(packet.payload) <= MAX_FRAME:
                error.packet_out.packet_out.CopyFrom(packet)
            else:
                error.packet_out.packet_out.metadata.extend(packet.metadata)
            await stream.reply(p4r.StreamMessageResponse(error=error))

    # What calls have in common

    def _find(self, device_id: int) -> Served:
        served = self._served.get(device_id)
        if device_id in self._withdrawn:
            raise is_down(device_id)
        if served is None:
            raise not_found(f"device id {device_id} is not served here")
        return served

    def _for_primary(
        self, request: p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest
    ) -> Served:
        served = self._find(request.device_id)
        role = role_name(request.role, request.role_id)
        election_id = u128(request.election_id) if request.HasField("election_id") else None
        if not served.arbitration.may_write(election_id, role):
            raise RefusedError(grpc.StatusCode.PERMISSION_DENIED, "Not primary")
        return served
