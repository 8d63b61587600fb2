"""The API as the command line calls it: blocking, through restarts of the controller."""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from google.protobuf.message import Message

from controller.errors import BadInputError, BluetreeError, RunFailedError
from controller.service import bluetree_pb2 as api
from controller.service.errors import (
    AdmissionError,
    ChangeRefusedError,
    NoControllerError,
    NotNowError,
    UnknownJobError,
)
from controller.service.folder import Folder
from controller.service.rpc import caller

ANSWER_S = 120.0
"""A change waits for switches, the first chunk, and the old epoch's last."""
READ_S = 30.0
AGAIN_S = 0.1

_ERRORS: dict[grpc.StatusCode, type[BluetreeError]] = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: AdmissionError,
    grpc.StatusCode.NOT_FOUND: UnknownJobError,
    grpc.StatusCode.ABORTED: ChangeRefusedError,
    grpc.StatusCode.FAILED_PRECONDITION: NotNowError,
    grpc.StatusCode.INVALID_ARGUMENT: BadInputError,
    grpc.StatusCode.INTERNAL: RunFailedError,
}

_Reply = TypeVar("_Reply", bound=Message)


class ControllerClient:
    """The controller of the testbed in a folder; a context manager.

    Reading is tried again while one controller hands over to the next. Changes are not: when the
    controller ends in the middle of one, the next finishes it or takes it back, and `status` shows
    which. Methods raise the errors that the proto names, with the controller's own words, and
    NoTestbedError, NetworkKilledError or NoControllerError where nobody serves.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        folder.require_controller()
        self._channel = grpc.insecure_channel(
            f"unix:{folder.controller_socket.absolute()}",
            # A controller that takes over listens within tenths of a second.
            options=(
                ("grpc.initial_reconnect_backoff_ms", 50),
                ("grpc.max_reconnect_backoff_ms", 200),
            ),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()

    def status(self) -> api.Status:
        """All there is."""
        return self._read("GetStatus", api.GetStatusRequest(), api.Status)

    def counters(self) -> api.Counters:
        """Every switch's and link's counters."""
        return self._read("GetCounters", api.GetCountersRequest(), api.Counters)

    def switch(self, name: str) -> api.SwitchStatus:
        """One switch."""
        return self._read("GetSwitch", api.GetSwitchRequest(name=name), api.SwitchStatus)

    def set_defaults(self, strategy: str | None, budget: int | None) -> None:
        """What jobs get that name no strategy, or no budget; None leaves it as it is."""
        # Doing it again does no harm, so it is tried again like reading.
        self._read("SetDefaults", api.Choice(strategy=strategy or "", k=budget), api.Choice)

    def start(self, request: api.StartJobRequest) -> api.Change:
        """Add a job."""
        return self._change("StartJob", request, api.Change)

    def reallocate(self, request: api.ReallocateRequest) -> api.Change:
        """Give a job other blue switches."""
        return self._change("Reallocate", request, api.Change)

    def rejoin(self, request: api.RejoinRequest) -> api.Change:
        """Give a job workers back."""
        return self._change("Rejoin", request, api.Change)

    def stop(self, job: int | None) -> api.StopJobReply:
        """End a job, or all."""
        return self._change("StopJob", api.StopJobRequest(job=job), api.StopJobReply)

    def _read(self, name: str, request: Message, kind: type[_Reply]) -> _Reply:
        deadline = time.monotonic() + READ_S
        while True:
            try:
                return self._call(name, request, kind, deadline - time.monotonic())
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise self._failure(name, error) from error
            self._folder.require_controller()
            time.sleep(AGAIN_S)

    def _change(self, name: str, request: Message, kind: type[_Reply]) -> _Reply:
        # It waits for a connection, so a call that fails has reached a controller. Nothing here
        # subscribes to the channel's state: a thread of gRPC's would then watch it, and raise
        # where the channel is closed under it.
        call = caller(self._channel, name).future(request, timeout=ANSWER_S, wait_for_ready=True)
        try:
            return _checked(name, self._result(call), kind)
        except grpc.RpcError as error:
            raise self._failure(name, error) from error

    def _result(self, call: Any) -> object:
        """What a call is answered with; nobody need be waited for who has just been killed."""
        while True:
            with suppress(grpc.FutureTimeoutError):
                return call.result(timeout=AGAIN_S)
            try:
                self._folder.require_controller()
            except BluetreeError:
                # If the call had reached it, gRPC is about to say so.
                with suppress(grpc.FutureTimeoutError):
                    return call.result(timeout=AGAIN_S)
                call.cancel()
                raise

    def _call(self, name: str, request: Message, kind: type[_Reply], seconds: float) -> _Reply:
        return _checked(name, caller(self._channel, name)(request, timeout=seconds), kind)

    def _failure(self, name: str, error: Any) -> BluetreeError:
        code, details = error.code(), error.details() or ""
        if code in _ERRORS:
            return _ERRORS[code](details)
        if code is grpc.StatusCode.UNAVAILABLE:
            return NotNowError(
                f"the controller ended during {name}: the next one finishes the change or takes it "
                "back; see `bluetree status`"
            )
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return NoControllerError(
                f"the controller has not answered {name} in time: look at "
                f"{self._folder.controller_log}"
            )
        return RunFailedError(f"{name}: {code.name} {details}")


def _checked(name: str, reply: object, kind: type[_Reply]) -> _Reply:
    if not isinstance(reply, kind):
        raise TypeError(f"{name} was answered with {type(reply).__name__}")
    return reply
