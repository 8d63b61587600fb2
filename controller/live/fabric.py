"""A network that lives on the fabric: its events happen on a thread of their own, in slices.

Between two slices the thread does what others ask of the hosts; P4Runtime writes come at any time.
Virtual time never runs ahead of real time: timeouts take as long as they say, so that a controller
can act before a worker gives up. Where events take longer than they should, virtual time lags, and
with nothing left to happen it stands.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from controller.errors import RunFailedError
from controller.fabric_network import FabricNetwork
from controller.live.progress import HOST_S
from controller.p4rt import SwitchAddress
from topologies.fabric import StopReason
from topologies.fabric.build import LINK_DELAY_NS, Conditions
from topologies.network import Network
from traffic.commands import Answer, Command, Commands, Progress
from traffic.durable import JournalFolder
from traffic.errors import TrafficError

SLICE_EVENTS = 32
"""Events between two looks at what others ask: one or two milliseconds."""
SWITCH_INTERVAL_S = 0.0005
"""How long the interpreter lets a thread run while others wait: P4Runtime calls need several turns
each, and with the default of 5 ms a write would take tens of milliseconds under load."""
PAUSE_NS = 50_000_000
"""How long a reallocation may hold workers without a repetition: chunks that some have sent and
others have not wait so long for an answer."""
ANSWER_DEADLINE_S = 90.0
_STOP_DEADLINE_S = 30.0
_SECOND_NS = 1_000_000_000

_Result = TypeVar("_Result")


class LiveFabric:
    """See `LiveNetwork`; a context manager."""

    target = "fabric"
    host_seconds = HOST_S
    """No host is ever silent here."""

    def __init__(self, network: Network, conditions: Conditions, journals: Path) -> None:
        """`journals`: the folder of what destinations record."""
        self.network = network
        hops = max(network.topology.overlay.tree.depths()) + 2
        self.patience = PAUSE_NS + 4 * hops * LINK_DELAY_NS
        self._up = FabricNetwork(network, conditions)
        self._journals = journals
        self._commands = {name: self._commands_of(name) for name in self._up.agents}
        self._addresses: tuple[SwitchAddress, ...] = ()
        self._changed = threading.Condition()
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._is_ending = False
        self._thread = threading.Thread(target=self._live, name="fabric", daemon=True)
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        """Serve P4Runtime, and let time flow."""
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._addresses = self._resources.enter_context(self._up.serve())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(_STOP_DEADLINE_S)
        self._resources.close()

    @property
    def addresses(self) -> tuple[SwitchAddress, ...]:
        """See `LiveNetwork`."""
        return self._addresses

    @property
    def rates(self) -> Mapping[str, int] | None:
        """See `LiveNetwork`."""
        return self._up.rates

    def pids(self) -> Mapping[str, int]:
        """See `LiveNetwork`: all is in this process."""
        return {}

    def tell(self, commands: Sequence[tuple[str, Command]]) -> list[Answer]:
        """See `LiveNetwork`; all happen at one moment."""
        return self._do(partial(self._carry_out, commands))

    def survey(self, names: Sequence[str], job: int) -> Mapping[str, Answer]:
        """See `LiveNetwork`; every host answers."""
        answers = self.tell([(name, Progress(job)) for name in names])
        return dict(zip(names, answers, strict=True))

    def ended(self) -> frozenset[str]:
        """See `LiveNetwork`: hosts have no processes."""
        return frozenset()

    def ended_switches(self) -> frozenset[str]:
        """See `LiveNetwork`: switches have no processes either."""
        return frozenset()

    def kill(self, name: str) -> None:
        """See `LiveNetwork`."""
        self._do(partial(self._up.kill, name))

    def restart(self, name: str) -> None:
        """See `LiveNetwork`."""
        self._do(partial(self._restart, name))

    def set_link(self, one: str, other: str, *, up: bool, both: bool = True) -> None:
        """See `LiveNetwork`."""
        self._do(partial(self._up.set_link, one, other, up=up, both=both))

    def dark_links(self) -> frozenset[str]:
        """See `LiveNetwork`: these links have no carrier."""
        return frozenset()

    def _restart(self, name: str) -> None:
        self._up.restart(name)
        if name in self._commands:
            self._commands[name] = self._commands_of(name)

    def _commands_of(self, host: str) -> Commands:
        journals = JournalFolder(self._journals, host)
        return Commands(self._up.agents[host], time.monotonic_ns, journals)

    def _carry_out(self, commands: Sequence[tuple[str, Command]]) -> list[Answer]:
        fabric = self._up.fabric
        answers: list[Answer] = []
        refusal: TrafficError | None = None
        for name, command in commands:
            try:
                answer, frames = self._commands[name].carry_out(command, fabric.now)
            except TrafficError as error:
                refusal = refusal or error
                continue
            answers.append(answer)
            fabric.send(name, frames)
        if refusal is not None:
            raise refusal
        return answers

    def _do(self, act: Callable[[], _Result]) -> _Result:
        """Have the fabric's thread do something between two slices."""
        future: Future[_Result] = Future()
        with self._changed:
            if self._is_ending or not self._thread.is_alive():
                raise RunFailedError("the network is down")
            self._calls.append((act, future))
            self._changed.notify()
        return future.result(ANSWER_DEADLINE_S)

    def _live(self) -> None:
        fabric = self._up.fabric
        looked_at = time.monotonic_ns()
        while self._attend():
            now = time.monotonic_ns()
            limit = fabric.now + now - looked_at
            looked_at = now
            ended = fabric.run(deadline=limit, max_events=SLICE_EVENTS)
            if ended.reason is StopReason.EVENTS:
                continue
            due = fabric.next_event
            self._rest(None if due is None else due - fabric.now)
            if due is None:
                # Time that nothing happened in is not made up for.
                looked_at = time.monotonic_ns()

    def _attend(self) -> bool:
        """Do what was asked for; False at the end."""
        while True:
            with self._changed:
                if self._is_ending:
                    return False
                if not self._calls:
                    return True
                act, future = self._calls.popleft()
            try:
                future.set_result(act())
            except Exception as error:  # whoever asked deals with it, whatever it is
                future.set_exception(error)

    def _rest(self, nanoseconds: int | None) -> None:
        """Wait until something is asked for, or for some time."""
        with self._changed:
            if not self._calls and not self._is_ending:
                self._changed.wait(None if nanoseconds is None else nanoseconds / _SECOND_NS)
