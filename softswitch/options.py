"""The command line of ``softswitch``: that of bmv2's simple_switch_grpc.

bmv2 has general options, then ``--``, then those of its target. Here the ``--`` is only let
through, so that what starts simple_switch_grpc starts softswitch.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from softswitch.errors import SoftswitchError
from softswitch.ports import PortError, PortName, parse_port
from softswitch.ports.queueing import QueueSetting, What, parse_setting

JSON_VERSION = "2.24"
"""The newest version of bmv2's JSON that is read."""

DEFAULT_ADDRESS = "0.0.0.0:9559"
DROP_PORT = 511
LEVELS = ("trace", "debug", "info", "warn", "error", "off")

_EPILOG = """\
Options behind `--` are those of bmv2's simple_switch_grpc target; `--` itself may be left out.
Ports change while the switch runs: edit the file of --ports and send SIGHUP.
Exit codes: 0 done, 2 bad usage or input, 3 the machine lacks something.
"""


class UsageError(SoftswitchError):
    """The command line is not one; the text says what to write."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a switch process was told to do."""

    program: Path | None
    ports: tuple[PortName, ...]
    ports_file: Path | None
    device_id: int
    cpu_port: int | None
    queues: int
    queue_settings: tuple[QueueSetting, ...]
    queue_commands: Path | None
    address: str
    thrift_port: int | None
    capture_dir: Path | None
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
    notes: tuple[str, ...]
    """What was asked for and has no effect, in words for the user."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `softswitch --help` lists the options")


def parse(arguments: Sequence[str]) -> Options:
    """Read a command line; raises UsageError. ``--help`` and the like print and exit."""
    words = list(arguments)
    if "--" in words:
        words.remove("--")
    _bind_directory_of_pcap(words)
    found = _parser().parse_args(words)
    if not found.no_p4 and found.program is None:
        raise UsageError("give a program in JSON, or --no-p4 to wait for one over P4Runtime")
    _check_numbers(found)
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
        queues=found.priority_queues,
        queue_settings=(*found.queue_rate, *found.queue_depth),
        queue_commands=found.queue_commands,
        address=found.grpc_server_addr,
        thrift_port=found.thrift_port,
        capture_dir=found.pcap,
        dump=found.dump_packet_data,
        log_level=found.log_level,
        log_console=found.log_console,
        log_file=found.log_file,
        log_size=found.log_file_max_size,
        log_files=found.log_file_max_files,
        tls=found.grpc_server_ssl,
        tls_authority=found.grpc_server_cacert,
        tls_certificate=found.grpc_server_cert,
        tls_key=found.grpc_server_key,
        tls_clients=found.grpc_server_with_client_auth,
        notes=tuple(_notes(found)),
    )


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


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="softswitch",
        usage="softswitch [options] [program.json] [-- target options]",
        description="A P4 switch on Linux interfaces, controlled over P4Runtime. It takes the "
        "command line of bmv2's simple_switch_grpc.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", nargs="?", type=Path, help="the program, p4c's JSON for bmv2")
    _add_general(parser.add_argument_group("general options"))
    _add_logging(parser.add_argument_group("logging"))
    _add_target(parser.add_argument_group("target options"))
    _add_ignored(parser.add_argument_group("accepted, without effect"))
    return parser


def _add_general(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-i",
        "--interface",
        action="append",
        default=[],
        type=_port,
        metavar="PORT@NAME",
        help="attach an interface as a port; may come many times",
    )
    group.add_argument(
        "--ports",
        type=Path,
        metavar="FILE",
        help="attach the PORT@NAME of every line too; SIGHUP reads the file again, and adds and "
        "removes ports",
    )
    group.add_argument("--device-id", type=_natural, default=0, metavar="N", help="default 0")
    group.add_argument(
        "--thrift-port",
        type=_natural,
        metavar="N",
        help="serve simple_switch_CLI's commands for queues, ports and the time here; default: no",
    )
    group.add_argument("--no-p4", action="store_true", help="start without a program")
    group.add_argument(
        "--pcap",
        type=Path,
        metavar="DIR",
        help="record every interface in DIR/NAME_in.pcap and DIR/NAME_out.pcap (default: here)",
    )
    group.add_argument(
        "-v", "--version", action="version", version=version("bluetree"), help="print the version"
    )
    group.add_argument(
        "--json-version",
        action="version",
        version=JSON_VERSION,
        help="print the newest version of bmv2's JSON that is read",
    )


def _add_logging(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--log-console", action="store_true", help="log to stdout")
    group.add_argument("--log-file", type=Path, metavar="FILE", help="log to FILE.txt")
    group.add_argument(
        "-L",
        "--log-level",
        choices=LEVELS,
        default="trace",
        metavar="LEVEL",
        help=f"{', '.join(LEVELS)}; default trace. Without a log, warnings go to stderr",
    )
    group.add_argument(
        "--log-file-max-size",
        type=_natural,
        default=5 * 1024 * 1024,
        metavar="BYTES",
        help="begin a new log file at this size; default 5 MiB",
    )
    group.add_argument(
        "--log-file-max-files", type=_natural, default=3, metavar="N", help="default 3"
    )
    group.add_argument(
        "--dump-packet-data",
        type=_natural,
        default=0,
        metavar="BYTES",
        help="log so much of every packet, at level info",
    )


def _add_target(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--grpc-server-addr",
        default=DEFAULT_ADDRESS,
        metavar="HOST:PORT",
        help=f"where P4Runtime is served; default {DEFAULT_ADDRESS}",
    )
    group.add_argument("--grpc-server-ssl", action="store_true", help="serve it over TLS")
    group.add_argument(
        "--grpc-server-cacert", type=Path, metavar="PEM", help="verifies clients' certificates"
    )
    group.add_argument(
        "--grpc-server-cert", type=Path, metavar="PEM", help="the server's certificate"
    )
    group.add_argument("--grpc-server-key", type=Path, metavar="PEM", help="the server's key")
    group.add_argument(
        "--grpc-server-with-client-auth",
        action="store_true",
        help="serve only clients with a valid certificate",
    )
    group.add_argument(
        "--cpu-port",
        type=_natural,
        metavar="N",
        help="the port of packet-ins and packet-outs, 1..510; without it there are none",
    )
    group.add_argument(
        "--drop-port", type=_natural, default=DROP_PORT, metavar="N", help="only 511 is served"
    )
    group.add_argument(
        "--priority-queues",
        type=_natural,
        default=1,
        metavar="N",
        help="queues a port; default 1. standard_metadata.priority picks one; N-1 is served first",
    )
    _add_queue_setting(
        group,
        "rate",
        "PPS",
        "packets/s of each queue (of PORT, of its QUEUE); default 0: unlimited",
    )
    _add_queue_setting(
        group, "depth", "N", "packets that each queue holds (of PORT, of its QUEUE); default 64"
    )
    group.add_argument(
        "--queue-commands",
        type=Path,
        metavar="FILE",
        help="set queues as every line says: set_queue_rate PPS [PORT [QUEUE]], set_queue_depth N "
        "[PORT [QUEUE]]; SIGHUP reads the file again",
    )


def _add_queue_setting(group: argparse._ArgumentGroup, what: What, unit: str, text: str) -> None:
    group.add_argument(
        f"--queue-{what}",
        action="append",
        default=[],
        type=_QueueSetting(what),
        metavar=f"[PORT:[QUEUE:]]{unit}",
        help=f"{text}; may come many times",
    )


_IGNORED = {
    "--nanolog": "there is no nanomsg log: use --log-console",
    "--notifications-addr": "notifications come over P4Runtime",
    "--max-port-count": "ports are not limited",
    "--max-mc-groups": "multicast groups are not limited",
    "--max-l1-entries": "multicast groups are not limited",
    "--max-l2-entries": "multicast groups are not limited",
}
_IGNORED_FLAGS = ("--log-flush", "--disable-swap")
_REFUSED = ("--use-files", "--packet-in", "--restore-state", "--load-modules")
_REFUSED_TARGET = "--dp-grpc-server-addr"


def _add_ignored(group: argparse._ArgumentGroup) -> None:
    for flag, why in _IGNORED.items():
        group.add_argument(flag, metavar="ARG", help=why)
    group.add_argument("--log-flush", action="store_true", help="every line is flushed anyway")
    group.add_argument("--disable-swap", action="store_true", help="no packet sees two programs")
    for flag in (*_REFUSED, _REFUSED_TARGET):
        group.add_argument(flag, type=_Refusal(flag), help=argparse.SUPPRESS)


class _Refusal:
    """The type of an option of bmv2 that is not there."""

    def __init__(self, flag: str) -> None:
        self._flag = flag

    def __call__(self, text: str) -> NoReturn:
        raise UsageError(f"{self._flag} of bmv2 is not supported: see docs/softswitch.md")


class _QueueSetting:
    """The type of an option that sets queues."""

    def __init__(self, what: What) -> None:
        self._what = what

    def __call__(self, text: str) -> QueueSetting:
        try:
            return parse_setting(self._what, text)
        except PortError as error:
            raise UsageError(str(error)) from error


def _notes(found: argparse.Namespace) -> list[str]:
    return [
        f"{flag} has no effect: {why}"
        for flag, why in _IGNORED.items()
        if getattr(found, flag[2:].replace("-", "_")) is not None
    ]


def _port(text: str) -> PortName:
    try:
        return parse_port(text)
    except PortError as error:
        raise UsageError(str(error)) from error


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")
    return int(text)


def _check_numbers(found: argparse.Namespace) -> None:
    if found.drop_port != DROP_PORT:
        raise UsageError(f"--drop-port {found.drop_port}: only {DROP_PORT}, v1model's, is served")
    if found.cpu_port is not None and not 0 < found.cpu_port < DROP_PORT:
        raise UsageError(
            f"--cpu-port {found.cpu_port} is outside 1..{DROP_PORT - 1}: v1model has 9 bits for a "
            f"port, and {DROP_PORT} drops"
        )
    if found.priority_queues == 0:
        raise UsageError("--priority-queues 0: a port has at least one queue")
    if found.log_file_max_size == 0:
        raise UsageError("--log-file-max-size must be greater than 0")
    for name in found.interface:
        if name.port == found.cpu_port:
            raise UsageError(f"{name}: port {name.port} is the CPU port")


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
