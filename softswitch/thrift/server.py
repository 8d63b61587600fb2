"""The TCP side of the Thrift interface: a thread that listens, and one for each connection."""

from __future__ import annotations

import logging
import socket
import threading

from softswitch.ports.errors import PortError
from softswitch.thrift.protocol import PROTOCOL_ERROR, Call, ThriftError, exception, read_call
from softswitch.thrift.services import Services

LOG = logging.getLogger("softswitch")

MAX_CONNECTIONS = 16
"""A client has one; those beyond are closed at once."""

HOST = "127.0.0.1"
"""The interface has no authentication, so it is this machine's alone."""


class ThriftServer:
    """Serves `services` until `close`."""

    def __init__(self, services: Services, port: int) -> None:
        """Listen; raises PortError if the TCP port cannot be had."""
        self._services = services
        try:
            self._listener = socket.create_server((HOST, port))
        except OSError as error:
            raise PortError(
                f"cannot serve Thrift at {HOST}:{port}: {error.strerror}; choose another "
                "--thrift-port, or leave it out"
            ) from error
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._closed = False
        threading.Thread(target=self._accept, name="thrift-server", daemon=True).start()

    @property
    def port(self) -> int:
        """The TCP port."""
        return int(self._listener.getsockname()[1])

    def close(self) -> None:
        """Stop listening and end all connections."""
        with self._lock:
            self._closed = True
            connections = list(self._connections)
        # wakes the thread that accepts
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in connections:
            _end(connection)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                continue
            with self._lock:
                welcome = not self._closed and len(self._connections) < MAX_CONNECTIONS
                if welcome:
                    self._connections.add(connection)
            if not welcome:
                connection.close()
                continue
            threading.Thread(
                target=self._serve, args=(connection,), name="thrift-client", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection.makefile("rb") as stream:
                while (call := read_call(stream)) is not None:
                    connection.sendall(self._services.answer(call))
        except ThriftError as error:
            LOG.warning("Thrift: a connection is closed: %s", error)
            self._excuse(connection, error)
        except OSError as error:
            LOG.debug("Thrift: a connection broke: %s", error)
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    @staticmethod
    def _excuse(connection: socket.socket, error: ThriftError) -> None:
        try:
            connection.sendall(exception(Call("", 0, 0, {}), PROTOCOL_ERROR, str(error)))
        except OSError as broken:
            LOG.debug("Thrift: a connection broke: %s", broken)


def _end(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        LOG.debug("Thrift: a connection had ended: %s", error)
