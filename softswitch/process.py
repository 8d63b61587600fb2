"""One switch as a process: its ports in the main thread, its P4Runtime server in another."""

from __future__ import annotations

import gc
import logging
import signal
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from softswitch.device import Device
from softswitch.errors import SoftswitchError, UsageError
from softswitch.native import chosen, why_not
from softswitch.options import Options
from softswitch.p4runtime import P4RuntimeServer, ServerThread, Tls
from softswitch.ports import DataPlane, PortError, PortName
from softswitch.ports.files import FilePort, replay
from softswitch.ports.queueing import QueueSetting, check_settings, read_settings
from softswitch.ports.wanted import WantedPorts
from softswitch.remote import RemoteControl
from softswitch.thrift import Services, ThriftServer

LOG = logging.getLogger("softswitch")


def run(options: Options) -> None:
    """Bring the switch up, serve until a signal, take it down.

    Raises UsageError, PortError or ServerError; the switch is down then.
    """
    _say("Calling target program-options parser")
    for note in options.notes:
        _say(f"Note: {note}")
    clock = _clock()
    device = _device(options, clock)
    started_with = None if options.program is None else _load(device, options.program)
    server = ServerThread(
        P4RuntimeServer(
            [device],
            options.address,
            packet_out=lambda _, packet: plane.packet_out(packet),
            tls=_tls(options),
        )
    )
    plane = DataPlane(
        device,
        lambda packet: server.packet_in(device.device_id, packet),
        clock,
        capture_dir=options.capture_dir,
        dump=options.dump,
        queues=_queues(options),
        on_live_ports=lambda ports: server.call_soon(lambda: device.set_live_ports(ports)),
        open_port=None if options.use_files is None else FilePort,
    )
    wanted = WantedPorts(options.ports, options.ports_file)
    _heed_signals(options, plane, wanted)
    with ExitStack() as down:
        down.callback(plane.close)
        names = wanted.now()
        for name in names:
            _say(f"Adding interface {name.interface} as port {name.port}")
        plane.set_ports(names)
        address = server.start()
        down.callback(server.stop)
        if options.thrift_port is not None:
            remote = RemoteControl(
                device.device_id,
                plane,
                wanted,
                clock,
                lambda: server.device_config(device.device_id) or started_with,
            )
            down.callback(_serve_thrift(remote, options.thrift_port).close)
        if options.use_files is not None:
            _replay_after(options.use_files, plane, names)
        _say(f"Server listening on {address}")
        # What exists by now lives as long as the process: no collector need look at it again.
        gc.freeze()
        plane.run()


def _device(options: Options, clock: Callable[[], int]) -> Device:
    try:
        backend = chosen(options.backend)
    except SoftswitchError as error:
        raise UsageError(str(error)) from error
    reason = why_not() if backend == "native" else None
    if reason is not None:
        raise UsageError(f"--backend native: {reason}; choose auto or python")
    return Device(
        options.device_id,
        cpu_port=options.cpu_port,
        queues=options.queues,
        clock=clock,
        drop_port=options.drop_port,
        backend=backend,
    )


def _replay_after(seconds: int, plane: DataPlane, names: tuple[PortName, ...]) -> None:
    """Have the files of all ports come in, once the switch has had time to be set up."""

    def run() -> None:
        try:
            plane.replay(replay(names))
            LOG.info("All packets of the files have come in")
        except PortError as error:
            LOG.error("The files did not all come in: %s", error)

    timer = threading.Timer(seconds, run)
    timer.daemon = True
    timer.start()


def _serve_thrift(remote: RemoteControl, port: int) -> ThriftServer:
    """Start the Thrift server, with the lines of bmv2's log."""
    LOG.info("Starting Thrift server on port %d", port)
    server = ThriftServer(Services(remote, port), port)
    LOG.info("Thrift server was started")
    return server


def _clock() -> Callable[[], int]:
    """Return the switch's clock: microseconds since now, as bmv2 has it."""
    started = time.monotonic_ns()
    return lambda: (time.monotonic_ns() - started) // 1000


def _load(device: Device, path: Path) -> bytes:
    """Run the program of a file, and return it; raises UsageError."""
    try:
        program = path.read_bytes()
        device.load_pipeline(program)
        return program
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except SoftswitchError as error:
        raise UsageError(f"{path} does not run here: {error}") from error


def _queues(options: Options) -> tuple[QueueSetting, ...]:
    """Return the settings of queues of the command line and of the file as it is now."""
    path = options.queue_commands
    settings = (*options.queue_settings, *(read_settings(path) if path is not None else ()))
    check_settings(settings, options.queues)
    return settings


def _tls(options: Options) -> Tls | None:
    if not options.tls or options.tls_certificate is None or options.tls_key is None:
        return None
    _check_pair(options.tls_certificate, options.tls_key)
    authority = options.tls_authority
    return Tls(
        certificate=_pem(options.tls_certificate),
        key=_pem(options.tls_key),
        client_authority=None if authority is None else _pem(authority),
        require_client=options.tls_clients,
    )


def _check_pair(certificate: Path, key: Path) -> None:
    """Raise UsageError unless both are PEM and of one pair; gRPC would not say what is wrong."""
    _pem(certificate)
    _pem(key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise UsageError(
            f"certificate {certificate} and key {key} are not a pair in PEM: {error}"
        ) from error


def _pem(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"certificate or key {path} cannot be read: {error.strerror}") from error


def _heed_signals(options: Options, plane: DataPlane, wanted: WantedPorts) -> None:
    """End on SIGTERM and SIGINT; on SIGHUP make ports and queues what is wanted now."""

    def reload() -> None:
        try:
            plane.set_ports(wanted.now())
            LOG.info("Ports are as wanted")
        except PortError as error:
            LOG.error("Ports are not all as wanted: %s", error)
        if options.queue_commands is None:
            return
        try:
            plane.set_queues(_queues(options))
            LOG.info("Queues are as wanted")
        except PortError as error:
            LOG.error("Queues stay as they were: %s", error)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: plane.stop())
    signal.signal(signal.SIGHUP, lambda *_: plane.ask(reload))


def _say(text: str) -> None:
    """Print one of the lines that bmv2 prints whatever its log is."""
    print(text, flush=True)
