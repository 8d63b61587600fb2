"""Virtual links between this process and a switch process: veth pairs and raw sockets."""

from __future__ import annotations

import secrets
import select
import socket
import time
from collections.abc import Sequence

from softswitch.ports.pair import create_pair, delete_pair

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
RECEIVE_BUFFER = 64 * 1024 * 1024
MAX_FRAME = 65536


class Links:
    """One veth pair a port: the switch opens one end, a raw socket here is bound to the other."""

    def __init__(self, ports: Sequence[int]) -> None:
        token = secrets.token_hex(3)
        self.switch_end = {port: f"bt{token}s{port}" for port in ports}
        self.host_end = {port: f"bt{token}h{port}" for port in ports}
        self._sockets: dict[int, socket.socket] = {}
        self._poll = select.poll()
        self._port_of: dict[int, int] = {}
        self._ready: list[int] = []
        try:
            for port in ports:
                self._create(port)
        except BaseException:
            self.close()
            raise

    def send(self, port: int, frame: bytes) -> None:
        """Send a frame into the switch's port."""
        self._sockets[port].send(frame)

    def receive(self, seconds: float) -> tuple[int, bytes] | None:
        """Return the next frame out of any port, or None when none comes in `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._ready:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._ready = [fd for fd, _ in self._poll.poll(left * 1000)]
        port = self._port_of[self._ready.pop()]
        return (port, self._sockets[port].recv(MAX_FRAME))

    def close(self) -> None:
        """Remove the links."""
        for sock in self._sockets.values():
            sock.close()
        self._sockets.clear()
        for name in self.host_end.values():
            delete_pair(name)

    def _create(self, port: int) -> None:
        here, there = self.host_end[port], self.switch_end[port]
        create_pair(here, there)
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._sockets[port] = sock
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
        sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        sock.bind((here, 0))
        self._port_of[sock.fileno()] = port
        self._poll.register(sock, select.POLLIN)
