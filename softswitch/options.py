"""The command line of ``softswitch``: that of bmv2's simple_switch_grpc.

bmv2 has general options, then ``--``, then those of its target. Here the ``--`` is only let
through, so that what starts simple_switch_grpc starts softswitch.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from softswitch.command_line import notes, parser
from softswitch.errors import UsageError
from softswitch.ports import PortName
from softswitch.ports.naming import MAX_PORT
from softswitch.ports.queueing import QueueSetting

LOG_SIZE = 5 * 1024 * 1024
"""Bytes of a log file, if nothing is said, as in bmv2."""

LOG_FILES = 3
"""Full log files that are kept, if nothing is said, as in bmv2."""

LAST_TCP_PORT = 65_535

LAST_DEVICE_ID = (1 << 64) - 1
"""P4Runtime's ``uint64 device_id``."""

MOST_QUEUES = 1024
"""A queue of a port takes memory, also while it is empty."""

_SOCKET_FILES = ("unix:", "unix-abstract:")


@dataclass(frozen=True, slots=True)
class Options:
    """What a switch process was told to do."""

    program: Path | None
    ports: tuple[PortName, ...]
    ports_file: Path | None
    device_id: int
    cpu_port: int | None
    drop_port: int
    queues: int
    queue_settings: tuple[QueueSetting, ...]
    queue_commands: Path | None
    address: str
    thrift_port: int | None
    capture_dir: Path | None
    use_files: int | None
    """Ports are files, replayed after so many seconds."""
    dump: int
    log_level: str
    log_console: bool
    log_file: Path | None
    log_size: int
    log_files: int
    tls: bool
    tls_authority: Path | None
    tls_certificate: Path | None
    tls_key: Path | None
    tls_clients: bool
    backend: str | None
    """What runs the packets, see `softswitch.native.BACKENDS`; None: as the environment says."""
    notes: tuple[str, ...]
    """What was asked for and has no effect, in words for the user."""


def parse(arguments: Sequence[str]) -> Options:
    """Read a command line; raises UsageError. ``--help`` and the like print and exit."""
    words = list(arguments)
    if "--" in words:
        words.remove("--")
    _bind_directory_of_pcap(words)
    found = parser().parse_args(words)
    if not found.no_p4 and found.program is None:
        raise UsageError("give a program in JSON, or --no-p4 to wait for one over P4Runtime")
    _check_numbers(found)
    _check_address(found.grpc_server_addr)
    _check_tls(found)
    if found.log_console and found.log_file is not None:
        raise UsageError("--log-console and --log-file exclude each other")
    if found.pcap is not None and not found.pcap.is_dir():
        raise UsageError(f"--pcap: there is no directory {found.pcap}")
    return Options(
        program=None if found.no_p4 else found.program,
        ports=tuple(found.interface),
        ports_file=found.ports,
        device_id=found.device_id,
        cpu_port=found.cpu_port,
        drop_port=found.drop_port,
        queues=found.priority_queues,
        queue_settings=(*found.queue_rate, *found.queue_depth),
        queue_commands=found.queue_commands,
        address=found.grpc_server_addr,
        thrift_port=found.thrift_port,
        capture_dir=found.pcap,
        use_files=found.use_files,
        dump=found.dump_packet_data,
        log_level=found.log_level,
        log_console=found.log_console,
        log_file=found.log_file,
        log_size=_or(found.log_file_max_size, LOG_SIZE),
        log_files=_or(found.log_file_max_files, LOG_FILES),
        tls=found.grpc_server_ssl,
        tls_authority=found.grpc_server_cacert,
        tls_certificate=found.grpc_server_cert,
        tls_key=found.grpc_server_key,
        tls_clients=found.grpc_server_with_client_auth,
        backend=found.backend,
        notes=tuple(notes(found)),
    )


def _or(given: int | None, default: int) -> int:
    return default if given is None else given


def _bind_directory_of_pcap(words: list[str]) -> None:
    """Make ``--pcap DIR`` one word: only the next word's being a directory tells it apart."""
    for at, word in enumerate(words):
        if word == "--pcap":
            following = words[at + 1] if at + 1 < len(words) else ""
            if following and Path(following).is_dir():
                del words[at + 1]
                words[at] = f"--pcap={following}"
            else:
                words[at] = "--pcap=."
            return


def _check_numbers(found: argparse.Namespace) -> None:
    if found.drop_port > MAX_PORT:
        raise UsageError(f"--drop-port {found.drop_port} is outside 0..{MAX_PORT}")
    if found.cpu_port is not None and not 0 < found.cpu_port <= MAX_PORT:
        raise UsageError(f"--cpu-port {found.cpu_port} is outside 1..{MAX_PORT}")
    if found.cpu_port == found.drop_port:
        raise UsageError(
            f"--cpu-port {found.cpu_port} is the port that drops: packet-ins would vanish; choose "
            "another, or another --drop-port"
        )
    if found.device_id > LAST_DEVICE_ID:
        raise UsageError(f"--device-id {found.device_id} is outside 0..{LAST_DEVICE_ID}")
    if found.thrift_port is not None and found.thrift_port > LAST_TCP_PORT:
        raise UsageError(f"--thrift-port {found.thrift_port} is outside 0..{LAST_TCP_PORT}")
    if found.priority_queues == 0:
        raise UsageError("--priority-queues 0: a port has at least one queue")
    if found.priority_queues > MOST_QUEUES:
        raise UsageError(
            f"--priority-queues {found.priority_queues}: a port has at most {MOST_QUEUES} queues; "
            "standard_metadata.priority tells 8 apart"
        )
    if found.log_file_max_size == 0:
        raise UsageError("--log-file-max-size must be greater than 0")
    for name in found.interface:
        if name.port == found.cpu_port:
            raise UsageError(f"{name}: port {name.port} is the CPU port")
        if name.port == found.drop_port:
            raise UsageError(f"{name}: port {name.port} drops; choose another, or --drop-port")


def _check_address(address: str) -> None:
    """Raise UsageError for what gRPC would make another port of than was meant."""
    if address.startswith(_SOCKET_FILES):
        return
    host, _, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not host or not (port.isascii() and port.isdigit()) or (":" in host and not bracketed):
        raise UsageError(
            f"--grpc-server-addr {address}: write HOST:PORT, as 127.0.0.1:9559 or [::1]:9559, or "
            "unix:PATH"
        )
    if int(port) > LAST_TCP_PORT:
        raise UsageError(f"--grpc-server-addr {address}: TCP ports are 0..{LAST_TCP_PORT}")


def _check_tls(found: argparse.Namespace) -> None:
    if not found.grpc_server_ssl:
        if found.grpc_server_with_client_auth or found.grpc_server_cert or found.grpc_server_key:
            raise UsageError("certificates without TLS: add --grpc-server-ssl, or leave them out")
        return
    for flag, given in (
        ("--grpc-server-cert", found.grpc_server_cert),
        ("--grpc-server-key", found.grpc_server_key),
    ):
        if given is None:
            raise UsageError(f"--grpc-server-ssl needs {flag}")
    if found.grpc_server_with_client_auth and found.grpc_server_cacert is None:
        raise UsageError("--grpc-server-with-client-auth needs --grpc-server-cacert")
