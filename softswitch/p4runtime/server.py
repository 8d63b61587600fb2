"""A P4Runtime server that carries many devices, and a thread to run it in.

async with P4RuntimeServer(devices, "127.0.0.1:9559") as server: ...
with ServerThread(devices) as server: connect(server.address)
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType

import grpc

from softswitch.device import Device
from softswitch.p4runtime.arbitration import MAX_STREAMS
from softswitch.p4runtime.handlers import SERVICE, handlers
from softswitch.p4runtime.servicer import P4RuntimeServicer, PacketOut

MAX_MESSAGE = 16 * 1024 * 1024
"""The largest request in bytes: pipelines travel in one message. simple_switch_grpc takes 256 MiB,
which would be more memory, and more time without packets, than a client should be able to cost."""

SPARE_CALLS = 64
"""Calls at a time besides the streams that devices take; further ones are RESOURCE_EXHAUSTED."""

HANDSHAKE_MS = 10_000
"""How long a connection may take to come about."""

MAX_METADATA = 64 * 1024
"""The largest call metadata in bytes: the status details of a failed batch travel in it."""

START_DEADLINE_S = 30.0

STOP_GRACE_S = 1.0
"""How long calls in flight may take to end before they are cancelled."""


class ServerError(Exception):
    """The server cannot listen where it was told to; the text names the address."""


@dataclass(frozen=True, slots=True)
class Tls:
    """How the server proves who it is, and whom it lets in; all in PEM.

    `client_authority` verifies clients' certificates; with `require_client` only clients that
    have one are served (mutual TLS).
    """

    certificate: bytes
    key: bytes
    client_authority: bytes | None = None
    require_client: bool = False

    def credentials(self) -> grpc.ServerCredentials:
        """Return them in gRPC's form; raises ServerError where clients cannot be verified."""
        if self.require_client and self.client_authority is None:
            raise ServerError(
                "clients cannot be asked for certificates without a CA certificate to verify them"
            )
        return grpc.ssl_server_credentials(
            [(self.key, self.certificate)],
            root_certificates=self.client_authority,
            require_client_auth=self.require_client,
        )


class P4RuntimeServer:
    """Serves P4Runtime for `devices` at one address; a client picks one by its device id.

    Args:
        devices: the devices, their ids distinct. The server is their only writer.
        address: "host:port", where port 0 takes a free one, which `start` returns; or "unix:path".
        packet_out: called on the server's event loop for every packet-out, with the device and
            the packet as it enters the CPU port (controller header first). It must not block: a
            data plane that runs elsewhere queues the packet. Without it packet-outs are refused.
        tls: the server's certificate and whom it trusts; without it the server speaks plain text.
    """

    def __init__(
        self,
        devices: Iterable[Device],
        address: str = "127.0.0.1:0",
        *,
        packet_out: PacketOut | None = None,
        tls: Tls | None = None,
    ) -> None:
        self.address = address
        self._tls = tls
        self._servicer = P4RuntimeServicer(devices, packet_out)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: grpc.aio.Server | None = None

    async def start(self) -> str:
        """Listen, and return the bound address; raises ServerError if that is not possible."""
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", MAX_MESSAGE),
                ("grpc.max_metadata_size", MAX_METADATA),
                ("grpc.so_reuseport", 0),
                ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
            ],
            maximum_concurrent_rpcs=MAX_STREAMS * self._servicer.device_count + SPARE_CALLS,
        )
        generic = grpc.method_handlers_generic_handler(SERVICE, handlers(self._servicer))
        server.add_generic_rpc_handlers((generic,))
        host = self.address.rpartition(":")[0]
        try:
            if self._tls is None:
                port = server.add_insecure_port(self.address)
            else:
                port = server.add_secure_port(self.address, self._tls.credentials())
        except RuntimeError as error:
            raise ServerError(
                f"cannot listen on {self.address}: the port is taken or the address is not this "
                "machine's; choose another, or port 0 for any free one"
            ) from error
        await server.start()
        self._loop = asyncio.get_running_loop()
        self._servicer.attach(self._loop)
        self._server = server
        if not self.address.startswith("unix"):
            self.address = f"{host}:{port}"
        return self.address

    async def stop(self) -> None:
        """End all streams and calls, and stop listening."""
        if self._server is not None:
            self._servicer.detach()
            self._servicer.end_streams()
            await self._server.stop(grace=STOP_GRACE_S)
            self._server = None

    def packet_in(self, device_id: int, packet: bytes) -> None:
        """Hand a packet that left by the CPU port to the device's primary; from any thread."""
        if self._loop is None:
            raise ServerError("packet_in before start: the server has no event loop yet")
        self._servicer.hand_packet_in(device_id, packet)

    def withdraw(self, device_id: int) -> None:
        """Serve a device no more, as if it had crashed; on the server's event loop."""
        self._servicer.withdraw(device_id)

    def offer(self, device: Device) -> None:
        """Serve a device in the place of one that was withdrawn; on the server's event loop."""
        self._servicer.offer(device)

    def packet_ins_dropped(self, device_id: int) -> int:
        """Return how many packet-ins of a device were dropped since its primary was too slow."""
        return self._servicer.packet_ins_dropped(device_id)

    def device_config(self, device_id: int) -> bytes | None:
        """Return the program that was pushed to a device and runs, or None before a push."""
        return self._servicer.device_config(device_id)

    async def __aenter__(self) -> P4RuntimeServer:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


class ServerThread:
    """Runs a P4RuntimeServer on an event loop in a thread of its own.

    For programs whose main thread is busy with the data plane. The thread is the only writer of
    the devices; `Device` says what may run beside it.
    """

    def __init__(self, server: P4RuntimeServer) -> None:
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="p4runtime-server", daemon=True)

    @property
    def address(self) -> str:
        """Where the server listens."""
        return self._server.address

    def start(self) -> str:
        """Start and return the bound address; raises ServerError as `P4RuntimeServer.start`."""
        self._thread.start()
        started = asyncio.run_coroutine_threadsafe(self._server.start(), self._loop)
        try:
            return started.result(START_DEADLINE_S)
        except ServerError:
            self._end()
            raise

    def stop(self) -> None:
        """Stop the server and end the thread."""
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(START_DEADLINE_S)
        self._end()

    def packet_in(self, device_id: int, packet: bytes) -> None:
        """See `P4RuntimeServer.packet_in`."""
        self._server.packet_in(device_id, packet)

    def call_soon(self, what: Callable[[], None]) -> None:
        """Have `what` called in the thread, the only one that writes to devices; from any."""
        self._loop.call_soon_threadsafe(what)

    def device_config(self, device_id: int) -> bytes | None:
        """See `P4RuntimeServer.device_config`."""
        return self._server.device_config(device_id)

    def withdraw(self, device_id: int) -> None:
        """See `P4RuntimeServer.withdraw`; from any thread, done when it returns."""
        self._do(lambda: self._server.withdraw(device_id))

    def offer(self, device: Device) -> None:
        """See `P4RuntimeServer.offer`; from any thread, done when it returns."""
        self._do(lambda: self._server.offer(device))

    def _do(self, act: Callable[[], None]) -> None:
        async def on_loop() -> None:
            act()

        asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result(START_DEADLINE_S)

    def __enter__(self) -> ServerThread:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_DEADLINE_S)
        self._loop.close()
