"""The loop of a switch process: every frame from every port through the device, and out.

It runs in the main thread; the P4Runtime server, in its own, hands packet-outs over and takes
packet-ins. Ports may be added and removed while it runs.
"""

from __future__ import annotations

import logging
import select
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path

from softswitch.device import Device
from softswitch.native.carrier import Carrier
from softswitch.ports.attached import Attached
from softswitch.ports.errors import PortError
from softswitch.ports.link_events import LinkEvents, note
from softswitch.ports.mailbox import Answer, Mailbox
from softswitch.ports.naming import PortName
from softswitch.ports.port import Port
from softswitch.ports.queueing import QueueBank, QueueSetting
from softswitch.queued import MAX_PASSES

LOG = logging.getLogger("softswitch")

BATCH = 64
"""Frames taken from one port before the next one has its turn, and before they are sent."""

REPORT_S = 1.0
"""How often losses are looked for."""

PACKET_OUTS = 4096
"""Packet-outs that wait for the loop."""

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
        queues: rates and depths of queues; the device tells how many a port has.
        on_live_ports: told which ports work (up, with a carrier), at every change; the CPU port is
            one of them.
        open_port: makes a port; without it ports are network interfaces.
    """

    def __init__(
        self,
        device: Device,
        packet_in: Callable[[bytes], None],
        clock: Callable[[], int],
        *,
        capture_dir: Path | None = None,
        dump: int = 0,
        queues: Iterable[QueueSetting] = (),
        on_live_ports: Callable[[frozenset[int]], None] | None = None,
        open_port: Callable[[PortName], Attached] | None = None,
    ) -> None:
        self._device = device
        self._packet_in = packet_in
        self._clock = clock
        self._dump = dump
        self._poll = select.epoll()
        self._mailbox = Mailbox()
        self._poll.register(self._mailbox.fileno(), select.EPOLLIN)
        self._open = open_port if open_port is not None else lambda name: Port(name, capture_dir)
        self._ports: dict[int, Attached] = {}
        self._by_descriptor: dict[int, Attached] = {}
        self._ended = False
        self._packets = 0
        self._elsewhere: set[int] = set()
        self._packet_outs_dropped = 0
        self._queues = QueueBank(device.queues, queues)
        self._on_live_ports = on_live_ports
        self._links = LinkEvents()
        self._poll.register(self._links.fileno(), select.EPOLLIN)
        self._touched: dict[int, Attached] = {}
        self._carrier = Carrier()

    # Ports

    def set_ports(self, wanted: Collection[PortName]) -> None:
        """Add the ports that are missing and remove those that are not wanted.

        A port whose interface has gone is opened anew. Raises PortError for the first that
        cannot be had; those before it are there then.
        """
        for port in list(self._ports.values()):
            if port.name not in wanted or not port.is_there():
                self.remove(port.number)
        try:
            for name in wanted:
                if name.port not in self._ports:
                    self.add(name)
        finally:
            self._tell_live_ports()

    def add(self, name: PortName) -> None:
        """Attach an interface as a port; raises PortError."""
        if name.port in (*self._ports, self._device.cpu_port, self._device.drop_port):
            raise PortError(f"port {name.port} is taken: give {name.interface} another number")
        LOG.debug("Adding interface %s as port %d", name.interface, name.port)
        port = self._open(name)
        self._ports[name.port] = port
        self._carrier.attach(port)
        self._by_descriptor[port.fileno()] = port
        self._poll.register(port.fileno(), select.EPOLLIN)
        where = name.port, name.interface, name.interface
        if not port.interface.is_up:
            LOG.warning("Port %d: interface %s is down: `ip link set %s up`", *where)
        elif port.interface.offloads_checksums:
            LOG.info("Port %d: %s leaves the checksums of local senders to hardware", *where[:2])

    def ports(self) -> list[Attached]:
        """All ports, by number."""
        return [self._ports[number] for number in sorted(self._ports)]

    def remove(self, number: int) -> None:
        """Detach a port."""
        port = self._ports.pop(number)
        LOG.debug("Removing interface %s of port %d", port.interface.name, number)
        del self._by_descriptor[port.fileno()]
        self._poll.unregister(port.fileno())
        self._carrier.detach(port)
        port.tell_losses()
        port.close()
        self._queues.remove(number)

    # Queues

    def set_queues(self, settings: Iterable[QueueSetting]) -> None:
        """Have all queues as `settings` say, others as by default; raises QueueSettingError.

        From other threads only by `ask`.
        """
        self._queues.configure(settings)

    def set_queue_rate(
        self, packets_per_second: int, port: int | None = None, priority: int | None = None
    ) -> None:
        """bmv2's ``set_queue_rate``: of all ports, a port, or one queue of it; 0: unlimited."""
        self._queues.add(QueueSetting("rate", packets_per_second, port, priority))

    def set_queue_depth(
        self, packets: int, port: int | None = None, priority: int | None = None
    ) -> None:
        """bmv2's ``set_queue_depth``: of all ports, a port, or one queue of it."""
        self._queues.add(QueueSetting("depth", packets, port, priority))

    # From other threads and from signal handlers

    def ask(self, what: Callable[[], None]) -> None:
        """Have `what` called by the loop between two frames; from any thread or signal handler."""
        self._mailbox.ask(what)

    def call(self, what: Callable[[], Answer]) -> Answer:
        """Have it called, and return what it returns; see `Mailbox.call`."""
        return self._mailbox.call(what)

    def packet_out(self, packet: bytes) -> None:
        """Let a packet enter by the CPU port, controller header first; from any thread.

        Beyond PACKET_OUTS that wait they are dropped, and counted in the log.
        """
        if self._mailbox.waiting < PACKET_OUTS:
            self.ask(lambda: self._packet_out(packet))
        else:
            self._packet_outs_dropped += 1

    def replay(self, frames: Iterable[tuple[int, bytes]]) -> None:
        """Run frames as if they came in at their ports, in order; from another thread."""
        for number, frame in frames:
            self.call(partial(self._run_logged, number, frame))

    def stop(self) -> None:
        """End `run`; from any thread or signal handler."""
        self.ask(self._end)

    # The loop

    def run(self) -> None:
        """Serve the ports until `stop`."""
        chores_at = 0.0
        while not self._ended:
            sweeps = self._device.has_pipeline and self._device.has_ages
            pause = SWEEP_S if sweeps else REPORT_S
            ready = self._wait(pause)
            for descriptor, events in ready:
                port = self._by_descriptor.get(descriptor)
                if descriptor == self._mailbox.fileno():
                    self._mailbox.empty()
                elif descriptor == self._links.fileno():
                    self._on_links()
                elif port is not None:
                    if events & (select.EPOLLERR | select.EPOLLHUP):
                        self._look_after(port)
                    # Frames may have come before the interface went, and the port with it.
                    if events & select.EPOLLIN and self._by_descriptor.get(descriptor) is port:
                        self._carry(port)
            if self._queues.active:
                self._serve()
            if time.monotonic() >= chores_at:
                chores_at = time.monotonic() + pause
                if sweeps:
                    self._device.age(self._clock())
                self._report()

    def _wait(self, pause: float) -> list[tuple[int, int]]:
        """Wait for frames, for `pause` seconds, or until a queued packet's turn comes."""
        turn = self._queues.next_turn()
        if turn is None:
            return self._poll.poll(pause)
        until_turn = (turn - time.monotonic_ns()) / 1e9
        if 0 < until_turn < pause:
            # epoll counts in milliseconds, which is long at 10,000 packets/s; select does not
            select.select((self._poll.fileno(),), (), (), until_turn)
        return self._poll.poll(0)

    def close(self) -> None:
        """Detach all ports."""
        for number in list(self._ports):
            self.remove(number)
        self._links.close()
        self._poll.close()
        self._mailbox.close()

    def _end(self) -> None:
        self._ended = True

    def _report(self) -> None:
        for port in self._ports.values():
            self._carrier.settle(port)
            port.tell_losses()
        self._queues.tell_losses(self._name_of)
        if self._packet_outs_dropped:
            LOG.warning("Dropped %d packet-outs that came too fast", self._packet_outs_dropped)
            self._packet_outs_dropped = 0

    def _name_of(self, number: int) -> str:
        port = self._ports.get(number)
        return "" if port is None else f" ({port.interface.name})"

    def _on_links(self) -> None:
        """Note which interfaces went up or down."""
        changes, lost = self._links.read()
        note(self._ports.values(), changes, lost)
        self._tell_live_ports()

    def _tell_live_ports(self) -> None:
        if self._on_live_ports is not None:
            live = {port.number for port in self._ports.values() if port.works}
            if self._device.cpu_port is not None:
                live.add(self._device.cpu_port)
            self._on_live_ports(frozenset(live))

    def _look_after(self, port: Attached) -> None:
        """Clear the error that the kernel woke the loop with; a port may have lost its interface.

        That an interface went down comes with it too, but `_on_links` hears of both ways.
        """
        port.trouble()
        if not port.is_there():
            LOG.error(
                "Port %d: interface %s is gone; when it is back, SIGHUP attaches it again",
                port.number,
                port.interface.name,
            )
            self.remove(port.number)
            self._tell_live_ports()

    def _carry(self, source: Attached) -> None:
        """Take the frames of one port through the device, and send what comes of them."""
        if LOG.isEnabledFor(logging.INFO) and (self._dump or LOG.isEnabledFor(logging.DEBUG)):
            for frame in source.receive(BATCH):
                self._run_logged(source.number, frame)
        elif self._queues.active:
            for frame in source.receive(BATCH):
                self._packets += 1
                self._queue(source.number, frame)
        elif (left := self._carrier.carry(self._device.native, source, BATCH, self._clock)) is None:
            self._run(source, BATCH)
        else:
            self._send(left)
            self._packets += self._carrier.taken
            if self._carrier.unusual:
                self._run(source, 1)

    def _run(self, source: Attached, limit: int) -> None:
        frames = source.receive(limit)
        self._packets += len(frames)
        self._send(self._device.process_batch(source.number, frames, self._clock()))

    def _send(self, copies: list[tuple[int, bytes]]) -> None:
        ports, touched = self._ports, self._touched
        for out, packet in copies:
            port = ports.get(out)
            if port is None:
                self._leave_elsewhere(out, packet)
            else:
                port.outbox.append(packet)
                touched[out] = port
        self._flush()

    def _queue(self, number: int, frame: bytes, tag: str = "") -> int:
        """Run a packet up to its queues; how many copies there are."""
        packets = self._device.enqueue(number, frame, self._clock())
        for packet in packets:
            if tag:
                LOG.debug("%s Egress port is %d", tag, packet.port)
            if not self._queues.has_room(packet):
                # what may leave now would have left, had the packets come one by one
                self._serve()
            self._queues.offer(packet, time.monotonic_ns())
        return len(packets)

    def _serve(self) -> None:
        """Send every queued packet whose turn has come."""
        queues = self._queues
        now_ns = time.monotonic_ns()
        while (served := queues.take(now_ns)) is not None:
            packet = served.packet
            left = self._device.dequeue(packet, self._clock(), served.enq_qdepth, served.deq_qdepth)
            for copy in left.queued:
                queues.offer(copy, now_ns)
            self._leave(f"[queue {packet.priority}]", packet.port, left.frame)
        self._flush()

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
        if self._queues.active:
            if not self._queue(number, packet, tag):
                LOG.debug("%s Dropping packet at the end of ingress", tag)
            return
        copies = deque(self._device.enqueue(number, packet, self._clock()))
        if not copies:
            LOG.debug("%s Dropping packet at the end of ingress", tag)
        passes = MAX_PASSES
        while copies:
            copy = copies.popleft()
            LOG.debug("%s Egress port is %d", tag, copy.port)
            left = self._device.dequeue(copy, self._clock())
            again = left.queued[:passes]
            passes -= len(again)
            copies.extend(again)
            self._leave(tag, copy.port, left.frame)
        self._flush()

    def _leave(self, tag: str, out: int, frame: bytes | None) -> None:
        """Put a frame into the outbox of its port; None is one that egress dropped."""
        if frame is None:
            LOG.debug("%s Dropping packet at the end of egress", tag)
            return
        LOG.debug("%s Transmitting packet of size %d out of port %d", tag, len(frame), out)
        self._log_bytes(tag, frame)
        port = self._ports.get(out)
        if port is None:
            self._leave_elsewhere(out, frame)
        else:
            port.outbox.append(frame)
            self._touched[out] = port

    def _flush(self) -> None:
        for port in self._touched.values():
            port.flush()
        self._touched.clear()

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
