"""One host as a process: its machines on a raw socket, in real time.

The process is told what to do over a Unix socket, which reaches it in any network namespace:

    ("attach", config, values)   a worker (values) or a destination (None); answered ("attached",)
    ("start",)                   send; when all machines are done or have failed: ("finished",)
    ("report",)                  answered ("report", WorkerReport | DestinationReport)

It listens on its interface before it says "attached", so that nothing that is sent is missed, and
it ends when the connection does.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Listener
from typing import Any

from p4src.constants import AGG_UDP_PORT
from traffic.destination import Destination, DestinationConfig
from traffic.host import Host
from traffic.message import PROTOCOL_UDP
from traffic.reports import DestinationReport, WorkerReport
from traffic.worker import Worker
from traffic.worker_config import WorkerConfig

_ETH_P_IP = 0x0800
_PACKET_OUTGOING = 4
_PROTOCOL_AT = 23
_BUFFER_BYTES = 16 * 1024 * 1024
_LARGEST_FRAME = 65535
_RECEIVED_AT_ONCE = 64
_SECOND_NS = 1_000_000_000


class HostProcess:
    """A `Host` on an interface of this network namespace, told what to do by a connection."""

    def __init__(self, host: Host, interface: str, connection: Connection) -> None:
        self._host = host
        self._connection = connection
        self._socket = _open(interface)
        self._endpoint: Worker | Destination | None = None
        self._is_reporting = False

    def run(self) -> None:
        """Serve until the connection ends."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ, self._receive)
            selector.register(self._connection, selectors.EVENT_READ, self._command)
            try:
                while True:
                    for key, _ in selector.select(self._patience()):
                        key.data()
                    self._tick()
            except EOFError:
                return

    def _patience(self) -> float | None:
        deadline = self._host.next_deadline
        return None if deadline is None else max(0.0, (deadline - _now()) / _SECOND_NS)

    def _receive(self) -> None:
        for _ in range(_RECEIVED_AT_ONCE):
            try:
                frame, address = self._socket.recvfrom(_LARGEST_FRAME, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            # The kernel answers everything but UDP, and shows a raw socket what it sends itself.
            if address[2] == _PACKET_OUTGOING or frame[_PROTOCOL_AT : _PROTOCOL_AT + 1] != bytes(
                (PROTOCOL_UDP,)
            ):
                continue
            self._send(self._host.receive(frame, _now()))
        self._say_when_finished()

    def _tick(self) -> None:
        deadline = self._host.next_deadline
        if deadline is not None and deadline <= _now():
            self._send(self._host.tick(_now()))
        self._say_when_finished()

    def _command(self) -> None:
        what, *arguments = self._connection.recv()
        commands: dict[str, Callable[..., None]] = {
            "attach": self._attach,
            "start": self._start,
            "report": self._report,
        }
        commands[what](*arguments)

    def _attach(self, config: WorkerConfig | DestinationConfig, values: Any) -> None:
        if isinstance(config, WorkerConfig):
            self._endpoint = Worker(config, values)
        else:
            self._endpoint = Destination(config)
        self._host.detach(config.job)
        self._host.attach(self._endpoint)
        self._connection.send(("attached",))

    def _start(self) -> None:
        if self._endpoint is not None:
            self._is_reporting = True
            self._send(self._endpoint.start(_now()))

    def _report(self) -> None:
        endpoint = self._endpoint
        if isinstance(endpoint, Worker):
            self._connection.send(("report", WorkerReport.of(endpoint)))
        elif isinstance(endpoint, Destination):
            self._connection.send(("report", DestinationReport.of(endpoint)))

    def _say_when_finished(self) -> None:
        if self._is_reporting and self._host.finished:
            self._is_reporting = False
            self._connection.send(("finished",))

    def _send(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            self._socket.send(frame)


def _open(interface: str) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP))
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        raw.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
    raw.bind((interface, _ETH_P_IP))
    return raw


def _occupy(ip: str, port: int) -> socket.socket:
    """Hold the UDP port, so that the kernel does not answer each message with "unreachable"."""
    holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    holder.bind((ip, port))
    return holder


def _now() -> int:
    return time.monotonic_ns()


def main(arguments: Sequence[str]) -> int:
    """Serve one host; see the module's text."""
    parser = argparse.ArgumentParser(prog="traffic.process", description=__doc__)
    for name in ("name", "mac", "ip", "interface", "control"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--udp-port", type=int, default=AGG_UDP_PORT)
    options = parser.parse_args(arguments)
    with (
        Listener(options.control, "AF_UNIX") as listener,
        _occupy(options.ip, options.udp_port),
        listener.accept() as connection,
    ):
        host = Host(options.name, options.mac, options.ip)
        HostProcess(host, options.interface, connection).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
