"""The options of ``softswitch`` in argparse's terms: simple_switch_grpc's, and some of our own.

What is not served is refused by name with the reason; what has no effect here is noted.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

from softswitch.errors import UsageError
from softswitch.ir import DROP_PORT
from softswitch.native import BACKENDS
from softswitch.ports import PortError, PortName, parse_port
from softswitch.ports.naming import MAX_PORT
from softswitch.ports.queueing import QueueSetting, What, parse_setting

JSON_VERSION = "2.24"
"""The newest version of bmv2's JSON that is read."""

DEFAULT_ADDRESS = "0.0.0.0:9559"
LEVELS = ("trace", "debug", "info", "warn", "error", "off")

_EPILOG = """\
Options behind `--` are those of bmv2's simple_switch_grpc target; `--` itself may be left out.
Ports change while the switch runs: edit the file of --ports and send SIGHUP.
Exit codes: 0 done, 2 bad usage or input, 3 the machine lacks something.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `softswitch --help` lists the options")


def parser() -> argparse.ArgumentParser:
    """The whole command line, bmv2's options that have no effect here included."""
    found = _Parser(
        prog="softswitch",
        usage="softswitch [options] [program.json] [-- target options]",
        description="A P4 switch on Linux interfaces, controlled over P4Runtime. It takes the "
        "command line of bmv2's simple_switch_grpc.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("program", nargs="?", type=Path, help="the program, p4c's JSON for bmv2")
    _add_general(found.add_argument_group("general options"))
    _add_logging(found.add_argument_group("logging"))
    _add_target(found.add_argument_group("target options"))
    _add_ignored(found.add_argument_group("accepted, without effect"))
    return found


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
    group.add_argument(
        "--backend",
        choices=BACKENDS,
        help="what runs the packets: native code, made by the C compiler that is installed; "
        "python; or auto, the default: native where it can be had",
    )
    group.add_argument("--device-id", type=_natural, default=0, metavar="N", help="default 0")
    group.add_argument(
        "--use-files",
        type=_natural,
        metavar="SECONDS",
        help="ports are files here: after so many seconds NAME_in.pcap comes in, in the order of "
        "time stamps but at once; NAME_out.pcap goes out",
    )
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
        metavar="BYTES",
        help="begin a new log file at this size; default 5 MiB",
    )
    group.add_argument(
        "--log-file-max-files",
        type=_natural,
        metavar="N",
        help="keep so many full log files, FILE.1.txt the newest; default 3",
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
        help=f"the port of packet-ins and packet-outs, 1..{MAX_PORT}; without it there are none",
    )
    group.add_argument(
        "--drop-port",
        type=_natural,
        default=DROP_PORT,
        metavar="N",
        help=f"the port that drops, 0..{MAX_PORT}; default {DROP_PORT}",
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
_REFUSED = {
    "--packet-in": "packets come over interfaces, files (--use-files) or P4Runtime (--cpu-port), "
    "not over nanomsg",
    "--restore-state": "state is not saved: a controller writes it again over P4Runtime",
    "--load-modules": "modules are C++ for bmv2; externs are those of v1model",
    "--dp-grpc-server-addr": "packets come over interfaces, files (--use-files) or P4Runtime "
    "(--cpu-port), not over a gRPC stream",
    "--debugger": "there is no debugger: `softswitch.Switch` runs a program packet by packet",
}


def _add_ignored(group: argparse._ArgumentGroup) -> None:
    for flag, why in _IGNORED.items():
        group.add_argument(flag, metavar="ARG", help=why)
    group.add_argument("--log-flush", action="store_true", help="every line is flushed anyway")
    group.add_argument("--disable-swap", action="store_true", help="no packet sees two programs")
    for flag in _REFUSED:
        group.add_argument(flag, nargs="?", action=_Refusal, help=argparse.SUPPRESS)


class _Refusal(argparse.Action):
    """An option of bmv2 that is not served."""

    def __call__(self, *_: object) -> NoReturn:
        flag = self.option_strings[0]
        raise UsageError(f"{flag} of bmv2 is not served: {_REFUSED[flag]}")


class _QueueSetting:
    """The type of an option that sets queues."""

    def __init__(self, what: What) -> None:
        self._what = what

    def __call__(self, text: str) -> QueueSetting:
        try:
            return parse_setting(self._what, text)
        except PortError as error:
            raise UsageError(str(error)) from error


def notes(found: argparse.Namespace) -> list[str]:
    """What was asked for and has no effect, in words for the user."""
    without_file = [
        f"Ignoring {flag} option because --log-file not specified"
        for flag, given in (
            ("--log-flush", found.log_flush),
            ("--log-file-max-size", found.log_file_max_size is not None),
            ("--log-file-max-files", found.log_file_max_files is not None),
        )
        if given and found.log_file is None
    ]
    return without_file + [
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
