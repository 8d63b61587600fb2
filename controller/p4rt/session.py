"""One switch over P4Runtime: arbitration, the pipeline, writes and reads, each with a deadline.

A session holds the StreamChannel that makes it the primary. All its RPCs are coroutines of one
event loop; several may be in flight.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias, TypeVar

import grpc
from finsy import P4ClientError
from finsy.grpcutil import GRPCStatusCode
from finsy.proto import U128, p4r, p4r_grpc, rpc_code

from controller.p4rt.errors import (
    DeadlineExceededError,
    EntryRefusedError,
    NotPrimaryError,
    PipelineMissingError,
    PipelineRefusedError,
    Refusal,
    RequestRefusedError,
    SchemaError,
    SwitchError,
    SwitchUnreachableError,
)
from controller.p4rt.schema import Schema
from controller.program import CloneSession, Entity, MulticastGroup, Op, Update

WRITE_BATCH = 200
"""Updates a Write. The status of a refused batch is metadata of about 50 bytes an update and, when
all are refused, 200: it has to stay under MAX_METADATA."""

CLOSE_DEADLINE_S = 2.0

MAX_METADATA = 64 * 1024
MAX_MESSAGE = 64 * 1024 * 1024

CHANNEL_OPTIONS = (
    ("grpc.max_metadata_size", MAX_METADATA),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    # A switch that comes back is found within a second, not within gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)

_Reply = TypeVar("_Reply")
Stream: TypeAlias = "grpc.aio.StreamStreamCall[p4r.StreamMessageRequest, p4r.StreamMessageResponse]"


@dataclass(frozen=True, slots=True)
class SwitchAddress:
    """Where a switch is reached: its name for people, "host:port", and its P4Runtime device id."""

    name: str
    address: str
    device_id: int


class Session:
    """The primary's session with one switch.

    Args:
        where: the switch.
        channel: an open channel to its address; sessions of switches behind one server share it.
        schema: the program that the switch runs, or shall run.
        election_id: 1 .. 2^128-1; the highest among all controllers is the primary.
        deadline: seconds for every single RPC, and for becoming primary.
    """

    def __init__(
        self,
        where: SwitchAddress,
        channel: grpc.aio.Channel,
        schema: Schema,
        election_id: int,
        deadline: float,
    ) -> None:
        self.where = where
        self._stub = p4r_grpc.P4RuntimeStub(channel)
        self._schema = schema
        self._election_id = election_id
        self._deadline = deadline
        self._stream: Stream | None = None
        self._listener: asyncio.Task[None] | None = None
        self._lost: SwitchError | None = None
        self._primary = 0
        self._changed = asyncio.Event()

    @property
    def name(self) -> str:
        """The switch's name."""
        return self.where.name

    @property
    def trouble(self) -> SwitchError | None:
        """Why this session may not write now: not the primary, or the switch is lost."""
        if self._stream is None:
            return SwitchUnreachableError(self.name, "the session is closed")
        return self._lost

    async def open(self, *, standby: bool = False) -> None:
        """Become the primary of the switch; or, with `standby`, wait behind one.

        Raises SwitchUnreachableError, DeadlineExceededError, NotPrimaryError (another controller
        has a higher or the same election id, and this is no standby) or RequestRefusedError (no
        such device, ...).
        """
        await self.close()
        self._lost = None
        stream = self._stub.StreamChannel()
        try:
            async with self._errors("arbitration", within=self._deadline):
                await self._bid(stream)
                answer = await self._next_arbitration(stream)
        except BaseException:
            stream.cancel()
            raise
        self._stream = stream
        self._note(answer)
        if self._lost is not None and not standby:
            await self.close()
            raise self._lost
        self._listener = asyncio.create_task(self._listen(stream))

    async def promote(self, election_id: int) -> None:
        """Bid with another election id on the open session, and wait until it is the primary.

        A later `open` uses this id too. Raises as `open` does.
        """
        self._election_id = election_id
        stream = self._stream
        if stream is None or self._is_gone:
            await self.open()
            return
        async with self._errors("arbitration", within=self._deadline):
            await self._bid(stream)
            # Until the switch answers, it may tell of others that come and go.
            while self._lost is not None or self._primary != election_id:
                if self._lost is not None and (self._primary > election_id or self._is_gone):
                    raise self._lost
                self._changed.clear()
                await self._changed.wait()

    async def wait_for_trouble(self) -> SwitchError:
        """Wait until this session may not write, and say why."""
        while self.trouble is None:
            self._changed.clear()
            await self._changed.wait()
        return self.trouble

    async def close(self) -> None:
        """End the stream, and with it the right to write. Does nothing when it is closed.

        It waits, CLOSE_DEADLINE_S at most, until the switch has let go of the session: the next
        controller may then bid with the same election id.
        """
        stream, self._stream = self._stream, None
        listener, self._listener = self._listener, None
        self._changed.set()
        # A call that has ended, such as one cancelled while it bid, has nothing to wait for.
        if stream is None or stream.done():
            return
        # A read that is cancelled ends the whole call at once, so the listener is left to read on.
        with suppress(TimeoutError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            async with asyncio.timeout(CLOSE_DEADLINE_S):
                await stream.done_writing()
                if listener is not None:
                    await listener
                else:
                    while await stream.read() is not grpc.aio.EOF:
                        pass
        stream.cancel()

    async def running_cookie(self) -> int | None:
        """Return the cookie of the running pipeline, or None when none runs or it has none."""
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.where.device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY,
        )
        try:
            reply = await self._call(
                "reading the pipeline's cookie", self._stub.GetForwardingPipelineConfig, request
            )
        except PipelineMissingError:
            return None
        return reply.config.cookie.cookie if reply.config.HasField("cookie") else None

    async def push(self) -> bool:
        """Make the switch run the program; say whether it had to be pushed.

        A switch that runs it already (equal cookies) is left alone, with all it holds. Otherwise
        its tables and counters start empty, and so do its multicast groups and clone sessions:
        those are deleted first, for simple_switch_grpc keeps them in its data plane over a push
        while its P4Runtime server forgets them, so that inserting them again would double every
        copy. Raises PipelineRefusedError.
        """
        if await self.running_cookie() == self._schema.cookie:
            return False
        await self._forget_replication()
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.where.device_id,
            election_id=U128.encode(self._election_id),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self._schema.pipeline,
        )
        try:
            await self._call(
                "pushing the P4 program", self._stub.SetForwardingPipelineConfig, request
            )
        except RequestRefusedError as error:
            raise PipelineRefusedError(
                self.name, f"does not take the P4 program: {error}"
            ) from error
        return True

    async def write(self, updates: Sequence[Update]) -> None:
        """Carry out `updates` in their order.

        P4Runtime leaves the order within one Write to the switch, so updates of different kinds
        go in Writes of their own. Raises SchemaError before anything is sent, and
        EntryRefusedError: then the refused Write's other updates are done, later Writes are not.
        """
        messages = [(update, self._message(update)) for update in updates]
        for _, run in groupby(messages, key=lambda pair: (pair[0].op, type(pair[0].entity))):
            step = list(run)
            for start in range(0, len(step), WRITE_BATCH):
                await self._write_batch(step[start : start + WRITE_BATCH])

    async def read(self, requests: Iterable[p4r.Entity], what: str) -> list[p4r.Entity]:
        """Return the entities that the requests stand for; `what` names the read in errors."""
        request = p4r.ReadRequest(device_id=self.where.device_id, entities=requests)
        entities: list[p4r.Entity] = []
        async with self._errors(what):
            async for reply in self._stub.Read(request, timeout=self._deadline):
                entities.extend(reply.entities)
        return entities

    async def read_values(self, requests: Iterable[p4r.Entity], what: str) -> list[Entity]:
        """Return what the requests stand for as values of `controller.program`."""
        return [self._schema.value(message) for message in await self.read(requests, what)]

    # How it is done

    def _message(self, update: Update) -> p4r.Update:
        try:
            return self._schema.update(update)
        except SchemaError as error:
            raise SchemaError(self.name, str(error)) from error

    async def _write_batch(self, batch: Sequence[tuple[Update, p4r.Update]]) -> None:
        request = p4r.WriteRequest(
            device_id=self.where.device_id,
            election_id=U128.encode(self._election_id),
            updates=[message for _, message in batch],
        )
        async with self._errors("writing entries", batch=[update for update, _ in batch]):
            await self._stub.Write(request, timeout=self._deadline)

    async def _forget_replication(self) -> None:
        groups, sessions = p4r.Entity(), p4r.Entity()
        groups.packet_replication_engine_entry.multicast_group_entry.SetInParent()
        sessions.packet_replication_engine_entry.clone_session_entry.SetInParent()
        try:
            held = await self.read_values(
                [groups, sessions], "reading multicast groups and clone sessions"
            )
        except PipelineMissingError:
            return
        await self.write(
            [
                Update(Op.DELETE, entity)
                for entity in held
                if isinstance(entity, MulticastGroup | CloneSession)
            ]
        )

    async def _call(
        self, what: str, method: Callable[..., Awaitable[_Reply]], request: object
    ) -> _Reply:
        async with self._errors(what):
            return await method(request, timeout=self._deadline)

    async def _next_arbitration(self, stream: Stream) -> p4r.MasterArbitrationUpdate:
        """Return the next arbitration update; other messages before it are passed over."""
        while True:
            message = await stream.read()
            if not isinstance(message, p4r.StreamMessageResponse):
                raise SwitchUnreachableError(
                    self.name, f"the switch at {self.where.address} ended the session"
                )
            if message.WhichOneof("update") == "arbitration":
                return message.arbitration

    async def _listen(self, stream: Stream) -> None:
        """Watch the stream for the loss of the switch or of the primary's role."""
        try:
            async with self._errors("the session"):
                while True:
                    self._note(await self._next_arbitration(stream))
        except SwitchError as error:
            self._lost = error
            self._changed.set()

    @property
    def _is_gone(self) -> bool:
        """Whether the stream has ended, not just somebody else become primary."""
        return self._lost is not None and not isinstance(self._lost, NotPrimaryError)

    async def _bid(self, stream: Stream) -> None:
        bid = p4r.MasterArbitrationUpdate(
            device_id=self.where.device_id, election_id=U128.encode(self._election_id)
        )
        await stream.write(p4r.StreamMessageRequest(arbitration=bid))

    def _note(self, answer: p4r.MasterArbitrationUpdate) -> None:
        is_primary = answer.status.code == rpc_code.OK
        self._primary = U128.decode(answer.election_id)
        self._lost = None if is_primary else self._not_primary(self._primary)
        self._changed.set()

    def _not_primary(self, other: int) -> NotPrimaryError:
        return NotPrimaryError(
            self.name,
            f"the controller with election id {other} is primary, ours is {self._election_id}: "
            "stop it, or take over with a higher election id",
            other,
        )

    @asynccontextmanager
    async def _errors(
        self, what: str, *, batch: Sequence[Update] = (), within: float | None = None
    ) -> AsyncIterator[None]:
        """Turn gRPC's errors into this package's; `within` adds a deadline of its own."""
        try:
            async with asyncio.timeout(within):
                yield
        except TimeoutError as error:
            raise self._late(what) from error
        except grpc.aio.AioRpcError as error:
            raise self._error(what, P4ClientError(error, what), batch) from error

    def _late(self, what: str) -> DeadlineExceededError:
        return DeadlineExceededError(
            self.name,
            f"{what} took longer than {self._deadline:g} s at {self.where.address}: the switch is "
            "overloaded or stuck; look at its log, or raise the deadline",
        )

    def _error(self, what: str, error: P4ClientError, batch: Sequence[Update]) -> SwitchError:
        if error.details and batch:
            return EntryRefusedError(
                self.name,
                tuple(
                    Refusal(batch[i], detail.canonical_code.name, detail.message)
                    for i, detail in sorted(error.details.items())
                ),
            )
        match error.code:
            case GRPCStatusCode.UNAVAILABLE:
                return SwitchUnreachableError(
                    self.name,
                    f"no P4Runtime server answers at {self.where.address} ({what}): start the "
                    f"switch anew (in a testbed `bluetree restart {self.name}`), or correct its "
                    "address",
                )
            case GRPCStatusCode.DEADLINE_EXCEEDED:
                return self._late(what)
            case GRPCStatusCode.PERMISSION_DENIED:
                return self._lost or NotPrimaryError(
                    self.name, f"{what}: another controller is primary ({error.message})"
                )
            case GRPCStatusCode.INVALID_ARGUMENT if error.is_election_id_used:
                return NotPrimaryError(
                    self.name,
                    f"another controller uses election id {self._election_id}: stop it, or take "
                    "over with a higher one",
                )
            case GRPCStatusCode.FAILED_PRECONDITION if error.is_pipeline_missing:
                return PipelineMissingError(self.name, "runs no P4 program yet: push one first")
        return RequestRefusedError(
            self.name, f"{what}: {error.code.name} {error.message}", error.code.name
        )
