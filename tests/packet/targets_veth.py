"""Virtual links between this process and a switch process: veth pairs and raw sockets."""

from __future__ import annotations

import ctypes
import fcntl
import secrets
import select
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
RECEIVE_BUFFER = 64 * 1024 * 1024
SIOCETHTOOL = 0x8946
OFFLOADS = {
    "receive checksum": 0x15,
    "transmit checksum": 0x17,
    "scatter-gather": 0x19,
    "TCP segmentation": 0x1F,
    "generic segmentation": 0x24,
    "generic receive": 0x2C,
}
"""The ETHTOOL_S* commands of linux/ethtool.h that switch an offload on or off."""

MAX_FRAME = 65536
COMMAND_DEADLINE_S = 30


class Links:
    """One veth pair a port: the switch opens one end, a raw socket here is bound to the other.

    IPv6 is off, so that no router solicitation reaches the switch, and so are the offloads, which
    would leave checksums to hardware that is not there.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        token = secrets.token_hex(3)
        self.switch_end = {port: f"bt{token}s{port}" for port in ports}
        self._host_end = {port: f"bt{token}h{port}" for port in ports}
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
        for name in self._host_end.values():
            if Path("/sys/class/net", name).exists():
                _run("ip", "link", "delete", name)

    def _create(self, port: int) -> None:
        here, there = self._host_end[port], self.switch_end[port]
        _run("ip", "link", "add", here, "type", "veth", "peer", "name", there)
        for name in (here, there):
            disable_ipv6 = Path("/proc/sys/net/ipv6/conf", name, "disable_ipv6")
            if disable_ipv6.exists():
                disable_ipv6.write_text("1")
            for command in OFFLOADS.values():
                _ethtool(name, command, 0)
            _run("ip", "link", "set", name, "up")
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._sockets[port] = sock
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER)
        sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        sock.bind((here, 0))
        self._port_of[sock.fileno()] = port
        self._poll.register(sock, select.POLLIN)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=COMMAND_DEADLINE_S)


def _ethtool(name: str, command: int, value: int) -> None:
    """Do what `ethtool -K` does, which is not installed everywhere."""
    request = ctypes.create_string_buffer(struct.pack("=II", command, value))
    ifreq = struct.pack("16sP", name.encode(), ctypes.addressof(request))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCETHTOOL, ifreq)
