"""P4Runtime over TLS, with the flags of simple_switch_grpc, and with it where it is there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from tests.packet import certificates
from tests.packet.certificates import Identity, half_handshakes, identity, secure_channel
from tests.packet.switch_process import COMMAND, DEADLINE_S, run
from tests.packet.targets_process import free_port, why_not

pytestmark = pytest.mark.skipif(
    certificates.why_none() is not None, reason=str(certificates.why_none())
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return identity(tmp_path_factory.mktemp("ca"), "authority", None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: Identity) -> Identity:
    return identity(tmp_path_factory.mktemp("server"), certificates.NAME, authority)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, authority: Identity) -> Identity:
    return identity(tmp_path_factory.mktemp("client"), "controller", authority)


@pytest.fixture(
    params=[COMMAND, pytest.param("simple_switch_grpc", marks=pytest.mark.bmv2)],
    ids=["softswitch", "bmv2"],
)
def command(request: pytest.FixtureRequest) -> str:
    if request.param != COMMAND and why_not(request.param) is not None:
        pytest.skip(str(why_not(request.param)))
    name: str = request.param
    return name


@pytest.fixture
def start(
    command: str, server: Identity, tmp_path: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that a test started; they are ended with it."""
    running: list[subprocess.Popen[bytes]] = []
    yield running
    for process in running:
        process.kill()
        process.wait()


def listen(
    running: list[subprocess.Popen[bytes]], command: str, server: Identity, *options: str
) -> str:
    """Start a switch that serves over TLS; return its address."""
    port = free_port()
    running.append(
        subprocess.Popen(
            [
                *(command, "--no-p4", "--device-id", str(os.getpid())),
                *("--thrift-port", str(free_port(port + 1)), "--"),
                *("--grpc-server-addr", f"127.0.0.1:{port}", "--grpc-server-ssl"),
                *("--grpc-server-cert", str(server.certificate)),
                *("--grpc-server-key", str(server.key), *options),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    )
    return f"127.0.0.1:{port}"


def version(
    address: str, authority: Identity, client: Identity | None = None, *, wait: bool = True
) -> str:
    """Ask the switch for its P4Runtime version, as a client that trusts `authority`.

    `wait` until it is up, however often it refuses before.
    """
    with secure_channel(address, authority, client) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        reply = stub.Capabilities(
            p4r.CapabilitiesRequest(), timeout=DEADLINE_S, wait_for_ready=wait
        )
    found: str = reply.p4runtime_api_version
    return found


def test_clients_verify_the_server(
    start: list[subprocess.Popen[bytes]], command: str, server: Identity, authority: Identity
) -> None:
    address = listen(start, command, server)
    assert version(address, authority) == "1.3.0"
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as refused:
        p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=DEADLINE_S)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_handshakes_that_go_no_further_hold_nobody_up(
    start: list[subprocess.Popen[bytes]], command: str, server: Identity, authority: Identity
) -> None:
    address = listen(start, command, server)
    assert version(address, authority) == "1.3.0"
    host, _, port = address.rpartition(":")
    with ExitStack() as stack:
        half_handshakes(stack, (host, int(port)), 50)
        assert version(address, authority, wait=False) == "1.3.0"


def test_the_server_verifies_clients(
    start: list[subprocess.Popen[bytes]],
    command: str,
    server: Identity,
    authority: Identity,
    client: Identity,
) -> None:
    address = listen(
        start,
        command,
        server,
        *("--grpc-server-with-client-auth", "--grpc-server-cacert", str(authority.certificate)),
    )
    assert version(address, authority, client) == "1.3.0"
    with pytest.raises(grpc.RpcError):
        version(address, authority, wait=False)


def test_a_certificate_that_is_not_there_is_named() -> None:
    result = run(
        *("--no-p4", "--", "--grpc-server-ssl", "--grpc-server-cert", "/nowhere.pem"),
        *("--grpc-server-key", "/nowhere.key"),
    )
    assert result.returncode == 2
    assert "certificate or key /nowhere.pem cannot be read" in result.stderr


def test_a_certificate_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("no certificate")
    result = run(
        *("--no-p4", "--", "--grpc-server-addr", f"127.0.0.1:{free_port()}", "--grpc-server-ssl"),
        *("--grpc-server-cert", str(tmp_path / "x.pem")),
        *("--grpc-server-key", str(tmp_path / "x.pem")),
    )
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "are not a pair in PEM" in line
