"""How requests are taken apart and answers put together, between the servicer and what it calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import grpc
from finsy.proto import p4r, rpc_code

from softswitch.device import Device
from softswitch.p4runtime import reads, writes
from softswitch.p4runtime.arbitration import Notice
from softswitch.p4runtime.sessions import Served, Stream
from softswitch.p4runtime.status import ERROR_SPACE, RefusedError
from softswitch.p4runtime.writes import Pipeline

READ_BATCH = 500
"""Entities a ReadResponse: keeps it far below gRPC's default limit of 4 MiB for a client."""

_NUMBERED = "\0role "
"""In front of the number of a role without a name: no name can begin so, for a name is text."""


def primary_of(stream: Stream) -> Served:
    """Return the device that `stream` may write to; raises RefusedError."""
    served = stream.served
    if served is None or not served.arbitration.is_primary(stream):
        raise RefusedError(grpc.StatusCode.PERMISSION_DENIED, "Not primary")
    return served


def outcome_of(device: Device, pipeline: Pipeline, update: p4r.Update) -> RefusedError | None:
    """Carry out an update; None, or why it is refused."""
    try:
        writes.apply(device, pipeline, update)
    except RefusedError as refused:
        return refused
    return None


def batched(
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


def deliver(served: Served, notices: Iterable[Notice]) -> None:
    """Send what arbitration has to tell."""
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
        notice.stream.tell(message)


def is_down(device_id: int) -> RefusedError:
    """The refusal of a call for a device that was withdrawn."""
    return RefusedError(grpc.StatusCode.UNAVAILABLE, f"device {device_id} is down")


def stream_error(refused: RefusedError) -> p4r.StreamError:
    """A refusal as a stream carries it."""
    return p4r.StreamError(
        canonical_code=refused.code.value[0], message=refused.text, space=ERROR_SPACE
    )


def role_name(name: str, number: int) -> str:
    """A role by its name, or by the number that named it before P4Runtime 1.3; "": the default."""
    return name or (f"{_NUMBERED}{number}" if number else "")


def u128(message: p4r.Uint128) -> int:
    """An election id as one integer."""
    return message.high << 64 | message.low
