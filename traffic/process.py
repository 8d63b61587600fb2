"""One host as a process: its machines on a raw socket, in real time.

The process is told what to do over a Unix socket, which reaches it in any network namespace.
Whoever commands it sends (number, command) and receives (number, True, answer) or (number, False,
text), the text saying what was wrong; see `traffic.commands`. `Wait` and `WaitForChunks` are
answered, out of turn, once it is so; all else at once. Several may command it at a time.

It listens on its interface before it answers anything, so that nothing that is sent is missed. It
ends when its last commander's connection does, or, with --keep, when it is killed.
"""

from __future__ import annotations

import argparse
import errno
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from p4src.constants import AGG_UDP_PORT
from traffic.commands import Commands, Wait, WaitForChunks
from traffic.durable import JournalFolder
from traffic.errors import TrafficError
from traffic.host import Host
from traffic.raw import occupy, open_raw, received

_SECOND_NS = 1_000_000_000


class HostProcess:
    """A `Host` on an interface of this network namespace, told what to do over `listener`."""

    def __init__(
        self,
        host: Host,
        interface: str,
        listener: socket.socket,
        *,
        keep: bool = False,
        journals: JournalFolder | None = None,
    ) -> None:
        self._host = host
        self._commands = Commands(host, journals=journals)
        self._listener = listener
        self._keep = keep
        self._socket = open_raw(interface)
        self._selector = selectors.DefaultSelector()
        self._is_over = False
        self._commanders: set[Connection[Any, Any]] = set()
        # The waits that are not answered, with commander and number.
        self._waits: list[tuple[Wait | WaitForChunks, Connection[Any, Any], int]] = []

    def run(self) -> None:
        """Serve until the last commander is gone, or for ever."""
        self._selector.register(self._socket, selectors.EVENT_READ, self._receive)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        while True:
            for key, _ in self._selector.select(self._patience()):
                key.data()
            self._tick()
            if self._waits:
                self._answer_waits()
            if not self._commanders and self._is_over:
                return

    def _patience(self) -> float | None:
        deadline = self._host.next_deadline
        return None if deadline is None else max(0.0, (deadline - _now()) / _SECOND_NS)

    def _receive(self) -> None:
        for frame in received(self._socket):
            self._send(self._host.receive(frame, _now()))

    def _tick(self) -> None:
        deadline = self._host.next_deadline
        if deadline is not None and deadline <= _now():
            self._send(self._host.tick(_now()))

    def _accept(self) -> None:
        accepted, _ = self._listener.accept()
        # Commands are small and whole once they begin: reading one blocks for no time that matters.
        accepted.setblocking(True)
        commander: Connection[Any, Any] = Connection(accepted.detach())
        self._commanders.add(commander)
        self._selector.register(commander, selectors.EVENT_READ, partial(self._obey, commander))

    def _obey(self, commander: Connection[Any, Any]) -> None:
        try:
            number, command = commander.recv()
        except (EOFError, OSError):
            self._forget(commander)
            return
        if isinstance(command, Wait | WaitForChunks):
            self._waits.append((command, commander, number))
            return
        try:
            answer, frames = self._commands.carry_out(command, _now())
        except TrafficError as error:
            self._answer(commander, (number, False, str(error)))
            return
        self._send(frames)
        self._answer(commander, (number, True, answer))

    def _answer(self, commander: Connection[Any, Any], answer: tuple[int, bool, object]) -> None:
        try:
            commander.send(answer)
        except OSError:
            self._forget(commander)

    def _forget(self, commander: Connection[Any, Any]) -> None:
        if commander in self._commanders:
            self._commanders.remove(commander)
            self._selector.unregister(commander)
            self._waits = [wait for wait in self._waits if wait[1] is not commander]
            commander.close()
            self._is_over = not self._keep

    def _answer_waits(self) -> None:
        over = [wait for wait in self._waits if self._is_so(wait[0])]
        self._waits = [wait for wait in self._waits if wait not in over]
        for _, commander, number in over:
            self._answer(commander, (number, True, None))

    def _is_so(self, wait: Wait | WaitForChunks) -> bool:
        if isinstance(wait, Wait):
            return self._has_ended(wait.job)
        endpoints = [self._host.endpoints.get(job) for job in wait.jobs]
        return wait.completed <= sum(endpoint.completed for endpoint in endpoints if endpoint)

    def _has_ended(self, job: int) -> bool:
        endpoint = self._host.endpoints.get(job)
        return endpoint is None or endpoint.done or endpoint.failed

    def _send(self, frames: Sequence[bytes]) -> None:
        for frame in frames:
            try:
                self._socket.send(frame)
            except OSError as error:
                # A full queue in front of a slow link drops, as any does; repetition repairs it.
                if error.errno != errno.ENOBUFS:
                    raise


def _now() -> int:
    return time.monotonic_ns()


def main(arguments: Sequence[str]) -> int:
    """Serve one host; see the module's text."""
    parser = argparse.ArgumentParser(prog="traffic.process", description=__doc__)
    for name in ("name", "mac", "ip", "interface", "control"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--udp-port", type=int, default=AGG_UDP_PORT)
    parser.add_argument("--keep", action="store_true", help="outlive the last commander")
    parser.add_argument("--journals", type=Path, help="folder of what destinations record")
    options = parser.parse_args(arguments)
    with occupy(options.ip, options.udp_port), socket.socket(socket.AF_UNIX) as listener:
        host = Host(options.name, options.mac, options.ip)
        bound = str(options.control)
        Path(bound).unlink(missing_ok=True)
        # Bound under another name first: a socket that has its name can be connected to.
        listener.bind(f"{bound}.new")
        listener.listen()
        Path(f"{bound}.new").rename(bound)
        folder = options.journals
        journals = None if folder is None else JournalFolder(folder, host.name)
        HostProcess(host, options.interface, listener, keep=options.keep, journals=journals).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
