"""The methods of the service as gRPC calls them: refusals become statuses here.

Bytes that are no message are INTERNAL, as from simple_switch_grpc, with a text; grpc.aio by itself
would answer with an exception's name.

A call is aborted when nothing refers to its request any more. gRPC's error and its call refer to
each other until the next garbage collection, and to all that is in sight where `abort` is called:
of a few large requests that would be more memory than all the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc
from finsy.proto import p4r
from google.protobuf.message import DecodeError, Message

from softswitch.p4runtime.status import RefusedError

SERVICE = "p4.v1.P4Runtime"


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that came in the place of a message of type `kind`."""

    kind: str

    @property
    def text(self) -> str:
        """What to tell the client."""
        return f"the request is no {SERVICE.rpartition('.')[0]}.{self.kind}"


def _reader(kind: type[Message]) -> Callable[[bytes], Message | Malformed]:
    def read(data: bytes) -> Message | Malformed:
        try:
            return kind.FromString(data)
        except DecodeError:
            return Malformed(kind.__name__)

    return read


def _unary(
    method: Callable[..., Awaitable[Message]], refuse: Callable[..., Awaitable[None]]
) -> Callable[..., Awaitable[Message]]:
    async def call(request: Message | Malformed, context: Any) -> Message:
        if isinstance(request, Malformed):
            await refuse(request, context)
        try:
            return await method(request, context)
        except RefusedError as refused:
            status = refused.code, refused.text, refused.trailing
        del request
        await context.abort(*status)
        raise AssertionError("abort returned")

    return call


def _streaming(
    method: Callable[..., AsyncIterator[Message]], refuse: Callable[..., Awaitable[None]]
) -> Callable[..., AsyncIterator[Message]]:
    async def call(request: Message | Malformed, context: Any) -> AsyncIterator[Message]:
        if isinstance(request, Malformed):
            await refuse(request, context)
        try:
            async for response in method(request, context):
                yield response
            return
        except RefusedError as refused:
            status = refused.code, refused.text
        del request
        await context.abort(*status)

    return call


def handlers(servicer: Any) -> dict[str, grpc.RpcMethodHandler]:
    """Handlers of all methods of a `P4RuntimeServicer`; `refuse_malformed` ends a call."""
    refuse = servicer.refuse_malformed
    found: dict[str, grpc.RpcMethodHandler] = {}
    for name, request, response in (
        ("Write", p4r.WriteRequest, p4r.WriteResponse),
        (
            "SetForwardingPipelineConfig",
            p4r.SetForwardingPipelineConfigRequest,
            p4r.SetForwardingPipelineConfigResponse,
        ),
        (
            "GetForwardingPipelineConfig",
            p4r.GetForwardingPipelineConfigRequest,
            p4r.GetForwardingPipelineConfigResponse,
        ),
        ("Capabilities", p4r.CapabilitiesRequest, p4r.CapabilitiesResponse),
    ):
        found[name] = grpc.unary_unary_rpc_method_handler(
            _unary(getattr(servicer, name), refuse),
            request_deserializer=_reader(request),
            response_serializer=response.SerializeToString,
        )
    found["Read"] = grpc.unary_stream_rpc_method_handler(
        _streaming(servicer.Read, refuse),
        request_deserializer=_reader(p4r.ReadRequest),
        response_serializer=p4r.ReadResponse.SerializeToString,
    )
    found["StreamChannel"] = grpc.stream_stream_rpc_method_handler(
        servicer.StreamChannel,
        request_deserializer=_reader(p4r.StreamMessageRequest),
        response_serializer=p4r.StreamMessageResponse.SerializeToString,
    )
    return found
