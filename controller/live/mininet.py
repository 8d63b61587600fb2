"""A network that lives in Mininet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from controller.errors import SilentHostsError
from controller.live.progress import HOST_S
from controller.mininet_running import RunningMininet
from controller.mininet_testbed import FAULTY_PATIENCE_NS, PATIENCE_NS
from controller.p4rt import SwitchAddress
from topologies.fabric.build import Conditions, link_rates
from topologies.mininet_plan import LinkPlan
from topologies.network import Network
from traffic.commands import Answer, Command


class LiveMininet:
    """See `LiveNetwork`; a context manager."""

    def __init__(
        self,
        network: Network,
        target: str,
        conditions: Conditions,
        journals: Path,
        host_seconds: float = HOST_S,
    ) -> None:
        """`journals`: the folder of what destinations record; `host_seconds`: see `LiveNetwork`."""
        self.target = target
        self.network = network
        self.host_seconds = host_seconds
        links = LinkPlan(
            conditions.base,
            conditions.loss,
            conditions.duplicate,
            conditions.reorder,
            conditions.seed,
        )
        self.patience = FAULTY_PATIENCE_NS if links.has_faults else PATIENCE_NS
        self._base = conditions.base
        self._running = RunningMininet(network, target, links, None, journals)

    def __enter__(self) -> Self:
        """Bring it up; every switch listens, none has a program."""
        self._running.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._running.__exit__(kind, error, trace)

    @property
    def addresses(self) -> tuple[SwitchAddress, ...]:
        """See `LiveNetwork`."""
        return self._running.addresses

    @property
    def rates(self) -> Mapping[str, int] | None:
        """See `LiveNetwork`."""
        return None if self._base is None else link_rates(self.network, self._base)

    def pids(self) -> Mapping[str, int]:
        """See `LiveNetwork`."""
        return self._running.pids()

    def tell(self, commands: Sequence[tuple[str, Command]]) -> list[Answer]:
        """See `LiveNetwork`."""
        try:
            return self._running.hosts.tell(commands, self.host_seconds)
        except SilentHostsError as error:
            pids = self.pids()
            hosts = {name: pids.get(name) for name in error.hosts}
            raise SilentHostsError(hosts, error.seconds) from None

    def survey(self, names: Sequence[str], job: int) -> Mapping[str, Answer]:
        """See `LiveNetwork`."""
        return self._running.hosts.survey(names, job)

    def ended(self) -> frozenset[str]:
        """See `LiveNetwork`."""
        return self._running.ended_hosts()

    def ended_switches(self) -> frozenset[str]:
        """See `LiveNetwork`."""
        return self._running.ended_switches()

    def kill(self, name: str) -> None:
        """See `LiveNetwork`."""
        self._running.kill(name)

    def restart(self, name: str) -> None:
        """See `LiveNetwork`."""
        self._running.restart(name)

    def set_link(self, one: str, other: str, *, up: bool, both: bool = True) -> None:
        """See `LiveNetwork`."""
        self._running.set_link(one, other, up=up, both=both)

    def dark_links(self) -> frozenset[str]:
        """See `LiveNetwork`."""
        return self._running.dark_links()
