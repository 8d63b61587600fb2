"""Certificates for tests of TLS, and clients that trust them."""

from __future__ import annotations

import shutil
import socket
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc

from tests.packet.switch_process import DEADLINE_S
from tests.packet.targets_process import RECONNECT_SOON

NAME = "localhost"
"""What the certificate of a server is for."""


def why_none() -> str | None:
    """Why certificates cannot be made here; None if they can."""
    if shutil.which("openssl") is None:
        return "openssl is not on PATH: no certificates, and TLS was not checked"
    return None


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, in files."""

    certificate: Path
    key: Path


def identity(directory: Path, name: str, issuer: Identity | None) -> Identity:
    """Make a key and a certificate for `name`, signed by `issuer` or by itself."""
    made = Identity(directory / "cert.pem", directory / "key.pem")
    signer = [] if issuer is None else ["-CA", str(issuer.certificate), "-CAkey", str(issuer.key)]
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", f"/CN={name}", *signer),
            *("-addext", f"subjectAltName=DNS:{name}"),
            *("-keyout", str(made.key), "-out", str(made.certificate)),
        ],
        check=True,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    return made


def secure_channel(
    address: str, authority: Identity, client: Identity | None = None
) -> grpc.Channel:
    """A channel that trusts `authority`, shows the certificate of `client`, and retries soon."""
    credentials = grpc.ssl_channel_credentials(
        authority.certificate.read_bytes(),
        None if client is None else client.key.read_bytes(),
        None if client is None else client.certificate.read_bytes(),
    )
    options = (("grpc.ssl_target_name_override", NAME), *RECONNECT_SOON)
    return grpc.secure_channel(address, credentials, options)


def half_handshakes(stack: ExitStack, where: tuple[str, int], count: int) -> None:
    """Open connections that go no further than nothing, a few bytes, or a cut ClientHello.

    `count` of each; `stack` closes them.
    """
    for half in (b"", b"\x16\x03\x01", b"\x16\x03\x01\x02\x00" + bytes(20)):
        for _ in range(count):
            stack.enter_context(socket.create_connection(where)).sendall(half)
