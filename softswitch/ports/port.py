"""One port of a switch on one interface."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from softswitch.ports.capture import Capture
from softswitch.ports.errors import PortError
from softswitch.ports.interface import Interface, open_socket
from softswitch.ports.naming import PortName
from softswitch.ports.ring import Ring, RingView
from softswitch.ports.sender import Sender

LOG = logging.getLogger("softswitch")


class Port:
    """Frames from and to one interface; `outbox` is what waits for `flush`."""

    def __init__(self, name: PortName, capture_dir: Path | None = None) -> None:
        """Open the port, recording to `capture_dir` if given; raises PortError."""
        self.name = name
        self.number = name.port
        self.interface = Interface.look_at(name.interface)
        self._socket = open_socket(name.interface)
        self._captures: tuple[Capture, ...] = ()
        try:
            self._ring = Ring(self._socket, self.interface)
            self._sender = Sender(self._socket)
            if capture_dir is not None:
                self._captures = tuple(
                    Capture(capture_dir / f"{name.interface}_{way}.pcap") for way in ("in", "out")
                )
        except PortError:
            self._socket.close()
            raise
        self.works = self.interface.works
        """Whether the interface is up and has a carrier, as far as anybody has heard."""
        self.outbox: list[bytes] = []
        self._told: dict[str, int] = {}
        self._ring_full = 0

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def receive(self, limit: int) -> Sequence[bytes]:
        """Return the frames that have come, at most `limit`."""
        frames = self._ring.receive(limit)
        if self._captures:
            for frame in frames:
                self._captures[0].record(frame)
        return frames

    def native_ring(self) -> RingView | None:
        """The ring for native code, see `Ring.view`; None if the port is recorded."""
        return None if self._captures else self._ring.view()

    def ring_moved(self, at: int) -> None:
        """Native code has read the ring up to `at`."""
        self._ring.moved(at)

    def count_losses(self, received: int, oversize: int, refused: int) -> None:
        """Add what native code lost: frames too long for the ring or the MTU, or not taken."""
        self._ring.oversize += received
        self._sender.oversize += oversize
        self._sender.refused += refused

    def flush(self) -> None:
        """Send all of `outbox`, and empty it."""
        if self._captures:
            for frame in self.outbox:
                self._captures[1].record(frame)
        self._sender.send(self.outbox)
        self.outbox.clear()

    def trouble(self) -> OSError | None:
        """Return, and clear, the error that the kernel notes on the port's socket."""
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(code, os.strerror(code)) if code else None

    def is_there(self) -> bool:
        """Say whether the interface is still the one that was opened."""
        try:
            return socket.if_nametoindex(self.interface.name) == self.interface.index
        except OSError:
            return False

    def look(self) -> bool:
        """Ask the kernel whether the interface is there and works; return and note it."""
        try:
            self.works = self.is_there() and Interface.look_at(self.interface.name).works
        except PortError:
            self.works = False
        return self.works

    def tell_losses(self) -> None:
        """Log what was dropped since the last call, and once that checksums are completed here."""
        self._ring_full += self._ring.dropped()
        name = self.interface.name
        for what, count, remedy in (
            ("that found the switch too busy", self._ring_full, "send more slowly"),
            (
                "too long to be received",
                self._ring.oversize,
                f"turn segmentation offload off at the sender of {name}, as with "
                "`ethtool -K ... tso off gso off`",
            ),
            (
                f"above the MTU of {name}",
                self._sender.oversize,
                f"send smaller ones or raise it, as with `ip link set {name} mtu 9000`",
            ),
            ("that the interface did not take", self._sender.refused, "its link is slow or down"),
        ):
            news = count - self._told.get(what, 0)
            if news:
                self._told[what] = count
                LOG.warning(
                    "Port %d: dropped %d frames %s (%d so far): %s",
                    self.number,
                    news,
                    what,
                    count,
                    remedy,
                )
        if self._ring.unfinished and "checksums" not in self._told:
            self._told["checksums"] = 1
            LOG.warning(
                "Port %d: senders on %s leave UDP and TCP checksums to hardware that is not there; "
                "they are completed here, which bmv2 does not do: `ethtool -K ... tx off` at the "
                "sender makes both alike",
                self.number,
                name,
            )

    def close(self) -> None:
        """Give the interface back."""
        for capture in self._captures:
            capture.close()
        self._ring.close()
        self._socket.close()
