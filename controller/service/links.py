"""Looks, while some job is stuck, which links of its tree carry nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping

from controller.cuts import Cut, CutFinder
from controller.live.client import NetworkClient
from controller.live.requests import Faults
from controller.service.switchboard import Switchboard
from topologies.network import Network

_LOG = logging.getLogger(__name__)
READ_S = 0.5
"""Between two readings: a frame has arrived by then, also on a busy machine."""


class LinkWatch:
    """The links that are cut, as far as frames were sent into them."""

    def __init__(self, network: Network, board: Switchboard, hosts: NetworkClient) -> None:
        self._finder = CutFinder(network)
        self._board = board
        self._hosts = hosts
        self._read_at = 0.0
        self._found: tuple[Cut, ...] = ()
        self._told: tuple[Cut, ...] = ()
        self._is_needed = False
        self._mended: Mapping[tuple[str, str], int] = {}

    @property
    def cut(self) -> tuple[Cut, ...]:
        """Those that stuck jobs are to go round; none while no job is stuck.

        Since a link that was cut may be whole again, only what was read of late counts.
        """
        return self._found if self._is_needed else ()

    @property
    def known(self) -> tuple[Cut, ...]:
        """Those that are cut for all that is known, though nobody may use them now."""
        return self._finder.cuts(time.monotonic_ns())

    async def cut_now(self) -> tuple[Cut, ...]:
        """As `known`, without those that have been mended since the last look."""
        if self.known:
            self._forget(await asyncio.to_thread(self._hosts.faults))
        return self.known

    def _forget(self, faults: Faults) -> None:
        """Take back what was found of links that have been mended since."""
        for ends, times in faults.mended.items():
            if times != self._mended.get(ends):
                self._finder.forget(*ends)
        self._mended = faults.mended

    async def look(self, switches: Collection[str]) -> None:
        """Read the counters between these switches, those of the trees of stuck jobs.

        Without such jobs those at the ends of links that were found: they may be whole again.
        """
        self._is_needed = bool(switches)
        if not switches:
            self._found = ()
            switches = {end for cut in self.known for end in (cut.sender, cut.receiver)}
        if not switches or time.monotonic() - self._read_at < READ_S:
            return
        ports = self._finder.ports(switches)
        counts, faults = await asyncio.gather(
            self._board.port_counts(ports), asyncio.to_thread(self._hosts.faults)
        )
        self._forget(faults)
        self._finder.read(counts, time.monotonic_ns(), faults.dark)
        self._read_at = time.monotonic()
        known = self.known
        for cut in known:
            if cut not in self._told:
                _LOG.warning("%s", cut.text)
        self._told = known
        if self._is_needed:
            self._found = known
