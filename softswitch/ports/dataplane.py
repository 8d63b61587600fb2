"""The loop of a switch process: every frame from every port through the device, and out.

It runs in the main thread; the P4Runtime server, in its own, hands packet-outs over and takes
packet-ins. Ports may be added and removed while it runs.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections import deque
from collections.abc import Callable, Collection
from pathlib import Path

from softswitch.device import Device
from softswitch.ir import Program
from softswitch.ports.errors import PortError
from softswitch.ports.naming import PortName
from softswitch.ports.port import Port

LOG = logging.getLogger("softswitch")

BATCH = 64
"""Frames taken from one port before the next one has its turn, and before they are sent."""

REPORT_S = 1.0
"""How often losses are looked for."""

SWEEP_S = 0.25
"""How often idle entries are looked for, if the program has tables that support it."""


class DataPlane:
    """The ports of one device.

    Args:
        device: the device. Nothing else may run its packets.
        packet_in: takes a packet that leaves by the CPU port.
        clock: the switch's clock in microseconds, the same that the device has.
        capture_dir: where every port records what comes and goes, if given.
        dump: how many bytes of every packet to log.
    """

    def __init__(
        self,
        device: Device,
        packet_in: Callable[[bytes], None],
        clock: Callable[[], int],
        *,
        capture_dir: Path | None = None,
        dump: int = 0,
    ) -> None:
        self._device = device
        self._packet_in = packet_in
        self._clock = clock
        self._capture_dir = capture_dir
        self._dump = dump
        self._poll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll.register(self._wake, select.EPOLLIN)
        self._ports: dict[int, Port] = {}
        self._by_descriptor: dict[int, Port] = {}
        self._asked: deque[Callable[[], None]] = deque()
        self._ended = False
        self._program: Program | None = None
        self._has_ages = False
        self._packets = 0
        self._elsewhere: set[int] = set()

    # Ports

    def set_ports(self, wanted: Collection[PortName]) -> None:
        """Add the ports that are missing and remove those that are not wanted.

        A port whose interface has gone is opened anew. Raises PortError for the first that
        cannot be had; those before it are there then.
        """
        for port in list(self._ports.values()):
            if port.name not in wanted or not port.is_there():
                self.remove(port.number)
        for name in wanted:
            if name.port not in self._ports:
                self.add(name)

    def add(self, name: PortName) -> None:
        """Attach an interface as a port; raises PortError."""
        if name.port in self._ports or name.port == self._device.cpu_port:
            raise PortError(f"port {name.port} is taken: give {name.interface} another number")
        LOG.debug("Adding interface %s as port %d", name.interface, name.port)
        port = Port(name, self._capture_dir)
        self._ports[name.port] = port
        self._by_descriptor[port.fileno()] = port
        self._poll.register(port.fileno(), select.EPOLLIN)
        if not port.interface.is_up:
            LOG.warning(
                "Port %d: interface %s is down: `ip link set %s up`",
                name.port,
                name.interface,
                name.interface,
            )
        elif port.interface.offloads_checksums:
            LOG.info(
                "Port %d: %s leaves the checksums of local senders to hardware",
                name.port,
                name.interface,
            )

    def remove(self, number: int) -> None:
        """Detach a port."""
        port = self._ports.pop(number)
        LOG.debug("Removing interface %s of port %d", port.interface.name, number)
        del self._by_descriptor[port.fileno()]
        self._poll.unregister(port.fileno())
        port.tell_losses()
        port.close()

    # From other threads and from signal handlers

    def ask(self, what: Callable[[], None]) -> None:
        """Have `what` called by the loop between two frames; from any thread or signal handler."""
        self._asked.append(what)
        os.eventfd_write(self._wake, 1)

    def packet_out(self, packet: bytes) -> None:
        """Let a packet enter by the CPU port, controller header first; from any thread."""
        self.ask(lambda: self._packet_out(packet))

    def stop(self) -> None:
        """End `run`; from any thread or signal handler."""
        self.ask(self._end)

    # The loop

    def run(self) -> None:
        """Serve the ports until `stop`."""
        chores_at = 0.0
        while not self._ended:
            pause = SWEEP_S if self._ages() else REPORT_S
            ready = self._poll.poll(pause)
            for descriptor, events in ready:
                port = self._by_descriptor.get(descriptor)
                if descriptor == self._wake:
                    self._answer()
                elif port is not None:
                    if events & (select.EPOLLERR | select.EPOLLHUP):
                        self._look_after(port)
                    if events & select.EPOLLIN:
                        self._carry(port)
            if time.monotonic() >= chores_at:
                chores_at = time.monotonic() + pause
                if self._ages():
                    self._device.age(self._clock())
                self._report()

    def close(self) -> None:
        """Detach all ports."""
        for number in list(self._ports):
            self.remove(number)
        self._poll.close()
        os.close(self._wake)

    def _end(self) -> None:
        self._ended = True

    def _ages(self) -> bool:
        """Say whether the running program has tables whose entries may go idle."""
        if not self._device.has_pipeline:
            return False
        program = self._device.program
        if program is not self._program:
            self._program = program
            self._has_ages = any(table.supports_timeout for table in program.tables.values())
        return self._has_ages

    def _answer(self) -> None:
        os.eventfd_read(self._wake)
        while self._asked:
            self._asked.popleft()()

    def _report(self) -> None:
        for port in self._ports.values():
            port.tell_losses()

    def _look_after(self, port: Port) -> None:
        """Note why the kernel woke the loop for a port: its interface went down, or away."""
        trouble = port.trouble()
        if not port.is_there():
            LOG.error(
                "Port %d: interface %s is gone; when it is back, SIGHUP attaches it again",
                port.number,
                port.interface.name,
            )
            self.remove(port.number)
        elif trouble is not None:
            LOG.warning("Port %d: interface %s went down", port.number, port.interface.name)

    def _carry(self, source: Port) -> None:
        """Take the frames of one port through the device, and send what comes of them."""
        frames = source.receive(BATCH)
        if LOG.isEnabledFor(logging.INFO) and (self._dump or LOG.isEnabledFor(logging.DEBUG)):
            for frame in frames:
                self._run_logged(source.number, frame)
            return
        process, number, now = self._device.process, source.number, self._clock()
        ports = self._ports
        touched: list[Port] = []
        for frame in frames:
            for out, packet in process(number, frame, now):
                port = ports.get(out)
                if port is None:
                    self._leave_elsewhere(out, packet)
                    continue
                outbox = port.outbox
                if not outbox:
                    touched.append(port)
                outbox.append(packet)
        self._packets += len(frames)
        for port in touched:
            port.flush()

    def _packet_out(self, packet: bytes) -> None:
        cpu_port = self._device.cpu_port
        if cpu_port is not None:
            self._run_logged(cpu_port, packet)

    def _run_logged(self, number: int, packet: bytes) -> None:
        """Run one packet, with the lines of bmv2's log as far as they are known here."""
        tag = f"[{self._packets}.0] [cxt 0]"
        self._packets += 1
        LOG.debug("%s Processing packet received on port %d", tag, number)
        self._log_bytes(tag, packet)
        copies = self._device.process(number, packet, self._clock())
        if not copies:
            LOG.debug("%s Dropping packet", tag)
        for out, copy in copies:
            LOG.debug("%s Transmitting packet of size %d out of port %d", tag, len(copy), out)
            self._log_bytes(tag, copy)
            port = self._ports.get(out)
            if port is None:
                self._leave_elsewhere(out, copy)
            else:
                port.outbox.append(copy)
                port.flush()

    def _log_bytes(self, tag: str, packet: bytes) -> None:
        if self._dump:
            LOG.info("%s Packet data: %s", tag, packet[: self._dump].hex())

    def _leave_elsewhere(self, out: int, packet: bytes) -> None:
        """Deal with a packet for no interface: one for the controller, or a lost one."""
        if out == self._device.cpu_port:
            self._packet_in(packet)
        elif out not in self._elsewhere:
            self._elsewhere.add(out)
            LOG.warning("Port %d has no interface: packets to it are dropped", out)
