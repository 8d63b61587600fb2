"""Switches that are processes, on veth pairs: bmv2's simple_switch_grpc, and softswitch."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import grpc
from finsy.proto import p4r, p4r_grpc

from controller.p4rt import SwitchAddress
from p4src.constants import QUEUES
from tests.packet.targets import CPU_PORT, PORTS, Target
from tests.packet.targets_veth import Links

FIRST_PORT = 9559 + os.getpid() % 1000 * 16
"""The first port that is tried: from P4Runtime's own, 9559, on, elsewhere for each process, as two
that look at the same time would both find the same one free. The last stays below those that the
kernel gives to clients."""

LAST_PORT = 32000
START_DEADLINE_S = 30.0
STOP_DEADLINE_S = 10.0
ATTEMPT_S = 0.5
LOG_TAIL_LINES = 40


def why_not(command: str) -> str | None:
    """Say why a switch process cannot run here, or return None when it can."""
    if shutil.which(command) is None:
        return f"{command} is not on PATH: nothing here was checked against it"
    if os.geteuid() != 0:
        return f"{command} needs root for veth pairs and raw sockets: nothing was checked with it"
    if shutil.which("ip") is None:
        return f"{command} needs the `ip` command for veth pairs: nothing was checked with it"
    return None


class ProcessTarget(Target):
    """A switch process without a program until one is pushed, on veth pairs.

    Both switches take the same command line; that is part of what is tested.
    """

    command: str
    queues = QUEUES
    options: tuple[str, ...] = ()
    """Further options of the target."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix=f"bluetree-{self.kind}-")
        self._log = Path(self._directory.name, "log")
        self._process: subprocess.Popen[bytes] | None = None
        self._links = Links(PORTS)
        try:
            address = f"127.0.0.1:{free_port()}"
            device_id = os.getpid()  # also names a socket in /tmp, so it must be nobody else's
            self._process = self._start(address, device_id)
            super().__init__(SwitchAddress(self.kind, address, device_id))
            wait_until_served(address, self._alive, self.evidence)
        except BaseException:
            self._take_down()
            raise

    def close(self) -> None:
        self.disconnect()
        self._take_down()

    def evidence(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        tail = "\n".join(lines[-LOG_TAIL_LINES:])
        return f"the last lines of the log of {self.command}:\n{tail}"

    def _inject(self, port: int, frame: bytes) -> None:
        self._links.send(port, frame)

    def signal(self, number: signal.Signals) -> None:
        """Send the process a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def _receive(self, seconds: float) -> tuple[int, bytes] | None:
        return self._links.receive(seconds)

    def _start(self, address: str, device_id: int) -> subprocess.Popen[bytes]:
        self.thrift_port = free_port(int(address.rpartition(":")[2]) + 1)
        interfaces = [
            part for port in PORTS for part in ("-i", f"{port}@{self._links.switch_end[port]}")
        ]
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [
                    self.command,
                    "--no-p4",
                    "--device-id",
                    str(device_id),
                    *interfaces,
                    "--thrift-port",
                    str(self.thrift_port),
                    "--log-console",
                    "--log-level",
                    "warn",
                    "--",
                    "--grpc-server-addr",
                    address,
                    "--cpu-port",
                    str(CPU_PORT),
                    "--priority-queues",
                    str(self.queues),
                    *self.options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._directory.name,
            )

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _take_down(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        self._links.close()
        self._directory.cleanup()


class Bmv2Target(ProcessTarget):
    """bmv2's simple_switch_grpc."""

    kind = "bmv2"
    command = "simple_switch_grpc"


class SoftswitchProcessTarget(ProcessTarget):
    """The software switch as users start it."""

    kind = "softswitch-process"
    command = str(Path(sys.executable).with_name("softswitch"))


RECONNECT_SOON = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    # in spite of its name: how long an attempt may take, which under load is more than a moment
    ("grpc.min_reconnect_backoff_ms", 5000),
)
"""Options of a channel to a switch that is about to listen."""


def wait_until_served(address: str, alive: Callable[[], bool], evidence: Callable[[], str]) -> None:
    """Wait for an RPC to be answered: a listening port alone says too little."""
    deadline = time.monotonic() + START_DEADLINE_S
    with grpc.insecure_channel(address, options=RECONNECT_SOON) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        while time.monotonic() < deadline and alive():
            try:
                stub.Capabilities(p4r.CapabilitiesRequest(), timeout=ATTEMPT_S, wait_for_ready=True)
            except grpc.RpcError:
                continue
            return
    state = "did not answer" if alive() else "ended"
    raise AssertionError(f"the switch {state} within {START_DEADLINE_S:g} s\n{evidence()}")


def free_port(first: int = FIRST_PORT) -> int:
    """Return a TCP port of this machine that nothing listens on, from `first` up."""
    for port in range(first, LAST_PORT):
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free TCP port in {first}..{LAST_PORT - 1}")
