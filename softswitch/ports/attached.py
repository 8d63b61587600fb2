"""What the loop of a switch process needs of a port: an interface, or a pair of files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from softswitch.ports.interface import Interface
from softswitch.ports.naming import PortName


class Attached(Protocol):
    """A port. `outbox` is what waits for `flush`; `works`: frames sent to it leave."""

    name: PortName
    number: int
    interface: Interface
    outbox: list[bytes]
    works: bool

    def fileno(self) -> int:
        """Return a descriptor that is readable when frames have come."""

    def receive(self, limit: int) -> Sequence[bytes]:
        """Return the frames that have come, at most `limit`."""

    def flush(self) -> None:
        """Send all of `outbox`, and empty it."""

    def trouble(self) -> OSError | None:
        """Return, and clear, an error that the kernel notes."""

    def is_there(self) -> bool:
        """Say whether what was opened still exists."""

    def look(self) -> bool:
        """Find out whether the port works; return and note it."""

    def tell_losses(self) -> None:
        """Log what was dropped since the last call."""

    def close(self) -> None:
        """Give it back."""
