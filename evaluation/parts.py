"""What campaigns have in common in which one part of a network fails after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table

from controller import targets
from controller.errors import BluetreeError
from topologies.network import Network
from topologies.rerooting import link_name

TARGETS = (targets.FABRIC, targets.SOFTSWITCH, targets.BMV2)
_WIDTH = 170
"""Of a table that goes to no terminal."""


class Case(Protocol):
    """A part that failed once, and what came of it."""

    @property
    def row(self) -> tuple[str, ...]:
        """It as a line of the table."""

    @property
    def fault(self) -> str:
        """What was not as it must; "" if all was."""


def campaign(
    chosen: Sequence[str] | None,
    cases_of: Callable[[str], Iterator[Case]],
    columns: Sequence[str],
    title: str,
) -> int:
    """Have all cases on every target that is there, or on those chosen, and show them.

    Returns 1 where one was not as it must, and the code of an error that ended it.
    """
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    cases: list[Case] = []
    for target in chosen or TARGETS:
        reason = targets.why_not(target)
        if reason is not None:
            console.print(f"*** ABSENT: {reason} ***")
            continue
        try:
            for case in cases_of(target):
                cases.append(case)
                # Campaigns take long: each line when it is known.
                print(" ".join(case.row), file=sys.stderr, flush=True)
        except BluetreeError as error:
            console.print(f"{target}: {error}")
            return error.exit_code
    table = Table(*columns, title=title)
    for case in cases:
        table.add_row(*case.row)
    console.print(table)
    wrong = [case for case in cases if case.fault]
    console.print(f"{len(cases)} parts, {len(wrong)} not as they must")
    return 1 if wrong or not cases else 0


def parts_of(network: Network, *, links: bool) -> list[str]:
    """The switches of the overlay; with `links` its links too."""
    overlay = network.topology.overlay
    parts = list(overlay.names)
    if links:
        parts += [
            link_name(overlay.names[v], overlay.names[above])
            for v, above in enumerate(overlay.tree.parent)
            if above >= 0
        ]
    return parts


def unreachable(network: Network, part: str) -> tuple[str, ...]:
    """The workers that no destination reaches any more; all, where one would not do for all."""
    near: dict[str, set[str]] = {name: set() for name in network.topology.switches}
    for one, other in network.topology.links:
        if part not in (link_name(one, other), link_name(other, one)):
            near[one].add(other)
            near[other].add(one)
    cuts = []
    for destination in (network.destination, *network.spares):
        reached: set[str] = set()
        waiting = [destination.switch]
        while waiting:
            at = waiting.pop()
            if at != part and at not in reached:
                reached.add(at)
                waiting.extend(near[at])
        cuts.append(tuple(host.name for host in network.workers if host.switch not in reached))
    return min(cuts, key=len)
