"""A refusal by the P4Runtime server, and how a refused batch is told to the client."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from finsy.proto import p4r, rpc_code, rpc_status
from google.protobuf import any_pb2

from softswitch import errors

ERROR_SPACE = "ALL-sswitch-p4org"
"""The error space of p4.v1.Error: that of simple_switch_grpc, as the codes are its codes."""

STATUS_DETAILS_KEY = "grpc-status-details-bin"
"""Trailing metadata key under which gRPC carries a serialised google.rpc.Status."""


class RefusedError(Exception):
    """One request, or one update of a batch, is refused.

    `code` is a gRPC status code; the text says what is wrong and, where that is known, what to do;
    `trailing` is metadata that goes with the status.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        text: str,
        trailing: tuple[tuple[str, str | bytes], ...] = (),
    ) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.trailing = trailing


def invalid(text: str) -> RefusedError:
    """Return the refusal of a request that contradicts P4Info or the P4Runtime specification."""
    return RefusedError(grpc.StatusCode.INVALID_ARGUMENT, text)


def not_found(text: str) -> RefusedError:
    """Return the refusal of a request for something that does not exist."""
    return RefusedError(grpc.StatusCode.NOT_FOUND, text)


def unimplemented(text: str) -> RefusedError:
    """Return the refusal of a request that P4Runtime knows and this server does not serve."""
    return RefusedError(grpc.StatusCode.UNIMPLEMENTED, text)


def batch_status(outcomes: Sequence[RefusedError | None]) -> rpc_status.Status:
    """Return the status of a partly or wholly failed batch (P4Runtime specification, 12.3).

    One p4.v1.Error for every update, in the order of the request, the successful ones included:
    clients count on positions.
    """
    status = rpc_status.Status(code=rpc_code.UNKNOWN)
    for outcome in outcomes:
        detail = p4r.Error(canonical_code=rpc_code.OK)
        if outcome is not None:
            detail = p4r.Error(
                canonical_code=outcome.code.value[0], message=outcome.text, space=ERROR_SPACE
            )
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


_CODES: tuple[tuple[type[errors.SoftswitchError], grpc.StatusCode], ...] = (
    (errors.AlreadyExists, grpc.StatusCode.ALREADY_EXISTS),
    (errors.NotFound, grpc.StatusCode.NOT_FOUND),
    (errors.OutOfRange, grpc.StatusCode.OUT_OF_RANGE),
    (errors.InvalidArgument, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.ResourceExhausted, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.FailedPrecondition, grpc.StatusCode.FAILED_PRECONDITION),
    (errors.PermissionDenied, grpc.StatusCode.PERMISSION_DENIED),
    (errors.Unimplemented, grpc.StatusCode.UNIMPLEMENTED),
    (errors.UnsupportedConstruct, grpc.StatusCode.UNIMPLEMENTED),
)


def refusal(error: errors.SoftswitchError) -> RefusedError:
    """Return the refusal that stands for an error of the device."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return RefusedError(code, str(error))
    return RefusedError(grpc.StatusCode.UNKNOWN, str(error))
