"""bmv2's simple_switch_grpc as a target: one process, on veth pairs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import grpc
from finsy.proto import p4r, p4r_grpc

from controller.p4rt import SwitchAddress
from tests.packet.targets import CPU_PORT, PORTS, Target
from tests.packet.targets_veth import Links

SWITCH = "simple_switch_grpc"
FIRST_PORT = 9559
"""P4Runtime's own port, and the first that is tried. The last stays below those that the kernel
gives to clients."""

LAST_PORT = 32000
START_DEADLINE_S = 30.0
STOP_DEADLINE_S = 10.0
ATTEMPT_S = 0.5
LOG_TAIL_LINES = 40


def why_not() -> str | None:
    """Say why this target cannot run here, or return None when it can."""
    if shutil.which(SWITCH) is None:
        return f"{SWITCH} is not on PATH: nothing here was checked against bmv2"
    if os.geteuid() != 0:
        return "bmv2 needs root for veth pairs and raw sockets: nothing here was checked against it"
    if shutil.which("ip") is None:
        return "bmv2 needs the `ip` command for veth pairs: nothing here was checked against it"
    return None


class Bmv2Target(Target):
    """simple_switch_grpc without a program until one is pushed."""

    kind = "bmv2"

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="bluetree-bmv2-")
        self._log = Path(self._directory.name, "log")
        self._process: subprocess.Popen[bytes] | None = None
        self._links = Links(PORTS)
        try:
            address = f"127.0.0.1:{_free_port()}"
            device_id = os.getpid()  # also names a socket in /tmp, so it must be nobody else's
            self._process = self._start(address, device_id)
            super().__init__(SwitchAddress("bmv2", address, device_id))
            self._wait_until_ready()
        except BaseException:
            self._take_down()
            raise

    def close(self) -> None:
        self.disconnect()
        self._take_down()

    def evidence(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        tail = "\n".join(lines[-LOG_TAIL_LINES:])
        return f"the last lines of the log of {SWITCH}:\n{tail}"

    def _inject(self, port: int, frame: bytes) -> None:
        self._links.send(port, frame)

    def _receive(self, seconds: float) -> tuple[int, bytes] | None:
        return self._links.receive(seconds)

    def _start(self, address: str, device_id: int) -> subprocess.Popen[bytes]:
        interfaces = [
            part for port in PORTS for part in ("-i", f"{port}@{self._links.switch_end[port]}")
        ]
        with self._log.open("wb") as log:
            return subprocess.Popen(
                [
                    SWITCH,
                    "--no-p4",
                    "--device-id",
                    str(device_id),
                    *interfaces,
                    "--thrift-port",
                    str(_free_port(int(address.rpartition(":")[2]) + 1)),
                    "--log-console",
                    "--log-level",
                    "warn",
                    "--",
                    "--grpc-server-addr",
                    address,
                    "--cpu-port",
                    str(CPU_PORT),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._directory.name,
            )

    def _wait_until_ready(self) -> None:
        """Wait for an RPC to be answered: a listening port alone says too little."""
        deadline = time.monotonic() + START_DEADLINE_S
        options = [
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.min_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 200),
        ]
        with grpc.insecure_channel(self.address.address, options=options) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            while time.monotonic() < deadline and self._alive():
                try:
                    stub.Capabilities(
                        p4r.CapabilitiesRequest(), timeout=ATTEMPT_S, wait_for_ready=True
                    )
                except grpc.RpcError:
                    continue
                return
        state = "did not answer" if self._alive() else "ended"
        raise AssertionError(f"{SWITCH} {state} within {START_DEADLINE_S:g} s\n{self.evidence()}")

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


def _free_port(first: int = FIRST_PORT) -> int:
    for port in range(first, LAST_PORT):
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free TCP port in {first}..{LAST_PORT - 1}")
