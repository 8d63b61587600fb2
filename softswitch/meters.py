"""Two-rate three-colour meters (RFC 2698), colour-blind, as bmv2 runs them."""

from softswitch.entries import MeterConfig

GREEN, YELLOW, RED = 0, 1, 2


class Meter:
    """One meter cell; without a configuration every packet is green."""

    __slots__ = ("_by_bytes", "_committed", "_peak", "_then", "config")

    def __init__(self, by_bytes: bool, config: MeterConfig | None = None, now_us: int = 0) -> None:
        self._by_bytes = by_bytes
        self.config = config
        # tokens times 1,000,000, so that a microsecond at rate 1 is one unit
        self._committed = config.cburst * 1_000_000 if config else 0
        self._peak = config.pburst * 1_000_000 if config else 0
        self._then = now_us

    def colour(self, _index: int, size: int, now_us: int) -> int:
        """Colour of a packet of `size` bytes at `now_us`; takes its tokens."""
        config = self.config
        if config is None:
            return GREEN
        passed = max(now_us - self._then, 0)
        self._then = max(now_us, self._then)
        self._committed = min(self._committed + passed * config.cir, config.cburst * 1_000_000)
        self._peak = min(self._peak + passed * config.pir, config.pburst * 1_000_000)
        cost = (size if self._by_bytes else 1) * 1_000_000
        if self._peak < cost:
            return RED
        self._peak -= cost
        if self._committed < cost:
            return YELLOW
        self._committed -= cost
        return GREEN


class MeterArray:
    """`size` cells, made when they are configured."""

    __slots__ = ("by_bytes", "cells", "size")

    def __init__(self, size: int, by_bytes: bool) -> None:
        self.size = size
        self.by_bytes = by_bytes
        self.cells: dict[int, Meter] = {}

    def colour(self, index: int, size: int, now_us: int) -> int:
        """Colour of a packet at cell `index`."""
        cell = self.cells.get(index)
        return GREEN if cell is None else cell.colour(0, size, now_us)

    def configure(self, index: int, config: MeterConfig | None) -> None:
        """Set a cell; None makes it all green again."""
        if config is None:
            self.cells.pop(index, None)
        else:
            self.cells[index] = Meter(self.by_bytes, config)
