"""A bare P4Runtime client, for what the product's own client never does.

It sends messages as they are, with a deadline each, and returns what came back: notices, codes.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType

import grpc
from finsy.proto import U128, p4r, p4r_grpc, rpc_status

from controller.p4rt import SwitchAddress

DEADLINE_S = 10.0
MAX_METADATA = 64 * 1024


class StreamEndedError(Exception):
    """The switch ended the stream, with this gRPC status."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(f"{code.name}: {text}")
        self.code = code


class Stream:
    """One StreamChannel, with a thread that takes what comes."""

    def __init__(self, stub: p4r_grpc.P4RuntimeStub, device_id: int) -> None:
        self._device_id = device_id
        self._out: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._in: queue.Queue[p4r.StreamMessageResponse | grpc.RpcError] = queue.Queue()
        self._call = stub.StreamChannel(iter(self._out.get, None))
        self._taker = threading.Thread(target=self._take, daemon=True)
        self._taker.start()

    def send(self, message: p4r.StreamMessageRequest) -> None:
        """Send one message."""
        self._out.put(message)

    def receive(self) -> p4r.StreamMessageResponse:
        """Return the next message; raises StreamEndedError, or queue.Empty when none comes."""
        message = self._in.get(timeout=DEADLINE_S)
        if isinstance(message, p4r.StreamMessageResponse):
            return message
        raise StreamEndedError(message.code(), message.details())

    def bid(self, election_id: int | None, role: str = "") -> None:
        """Send an arbitration update."""
        update = p4r.MasterArbitrationUpdate(device_id=self._device_id)
        if election_id is not None:
            update.election_id.CopyFrom(U128.encode(election_id))
        if role:
            update.role.name = role
        self.send(p4r.StreamMessageRequest(arbitration=update))

    def notice(self) -> tuple[int, int]:
        """Return the next arbitration update: status code, the primary's election id."""
        update = self.receive().arbitration
        return (update.status.code, U128.decode(update.election_id))

    def become(self, election_id: int) -> tuple[int, int]:
        """Bid, and return the answer."""
        self.bid(election_id)
        return self.notice()

    def close(self) -> None:
        """End the stream from this side, and wait until the switch has let go of it."""
        self._out.put(None)
        self._taker.join(DEADLINE_S)

    def _take(self) -> None:
        try:
            for message in self._call:
                self._in.put(message)
        except grpc.RpcError as error:
            self._in.put(error)


class StubClient:
    """A channel to one switch, and streams on it."""

    def __init__(self, where: SwitchAddress) -> None:
        self.device_id = where.device_id
        self._channel = grpc.insecure_channel(
            where.address, options=[("grpc.max_metadata_size", MAX_METADATA)]
        )
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._streams: list[Stream] = []

    def stream(self, device_id: int | None = None) -> Stream:
        """Open a stream; it is closed with the client."""
        stream = Stream(self.stub, self.device_id if device_id is None else device_id)
        self._streams.append(stream)
        return stream

    def write(self, election_id: int | None, *updates: p4r.Update) -> list[str]:
        """Write a batch; return the gRPC code of every update by name.

        Raises grpc.RpcError where the batch as a whole is refused.
        """
        request = p4r.WriteRequest(device_id=self.device_id, updates=updates)
        if election_id is not None:
            request.election_id.CopyFrom(U128.encode(election_id))
        try:
            self.stub.Write(request, timeout=DEADLINE_S)
        except grpc.RpcError as error:
            details = batch_details(error)
            if not details:
                raise
            return [code_name(detail.canonical_code) for detail in details]
        return ["OK"] * len(updates)

    def read(self, *entities: p4r.Entity) -> list[p4r.Entity]:
        """Return what the requests stand for."""
        request = p4r.ReadRequest(device_id=self.device_id, entities=entities)
        return [e for reply in self.stub.Read(request, timeout=DEADLINE_S) for e in reply.entities]

    def close(self) -> None:
        """End all streams and the channel."""
        for stream in self._streams:
            stream.close()
        self._channel.close()

    def __enter__(self) -> StubClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def batch_details(error: grpc.RpcError) -> Sequence[p4r.Error]:
    """Return the p4.v1.Error of every update of a failed batch; empty when there are none."""
    return list(_details(error))


def _details(error: grpc.RpcError) -> Iterator[p4r.Error]:
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            for packed in rpc_status.Status.FromString(value).details:
                detail = p4r.Error()
                packed.Unpack(detail)
                yield detail


def code_name(number: int) -> str:
    """Return the name of a gRPC status code."""
    return _NAMES[number]


_NAMES: dict[int, str] = {code.value[0]: code.name for code in grpc.StatusCode}
