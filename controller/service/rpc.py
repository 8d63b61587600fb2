"""The API's methods by name, for either side, from the descriptor: nothing is said twice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.message import Message

from controller.service import bluetree_pb2 as api

SERVICE = api.DESCRIPTOR.services_by_name["Controller"]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the API."""

    name: str
    request: type[Message]
    reply: type[Message]
    is_stream: bool

    @property
    def python_name(self) -> str:
        """Its name in Python: get_status for GetStatus."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()

    @property
    def path(self) -> str:
        """Its name on the wire."""
        return f"/{SERVICE.full_name}/{self.name}"


METHODS: Mapping[str, Method] = {
    method.name: Method(
        method.name,
        message_factory.GetMessageClass(method.input_type),
        message_factory.GetMessageClass(method.output_type),
        method.server_streaming,
    )
    for method in SERVICE.methods
}


def handler(servicer: object) -> grpc.GenericRpcHandler:
    """The handler of all methods; `servicer` has a coroutine (or async generator) for each."""
    handlers = {}
    for name, method in METHODS.items():
        kind = (
            grpc.unary_stream_rpc_method_handler
            if method.is_stream
            else grpc.unary_unary_rpc_method_handler
        )
        handlers[name] = kind(
            getattr(servicer, method.python_name),
            request_deserializer=method.request.FromString,
            response_serializer=method.reply.SerializeToString,
        )
    return grpc.method_handlers_generic_handler(SERVICE.full_name, handlers)


def caller(channel: grpc.Channel, name: str) -> Any:
    """The callable of one method on a channel."""
    method = METHODS[name]
    make = channel.unary_stream if method.is_stream else channel.unary_unary
    return make(
        method.path,
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.reply.FromString,
    )
