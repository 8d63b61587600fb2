"""What a change of a running job consists of.

    propose     planned, admitted and noted, not installed
    install     the new entries are on every switch, or the proposal is taken back
    move        the workers go on under the new entries, from a chunk on that is agreed on
    (who carries it out waits for the first chunk under them, then until the old are of no use)
    settle      the old entries are removed

A controller that died between two steps is followed by one that goes on: the store has the phase.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from controller.live.client import NetworkClient
from controller.live.progress import JobProgress
from controller.service import ledger
from controller.service.admission import Choice, Wish
from controller.service.closing import Closer
from controller.service.moments import Step, Stopwatch
from controller.service.planner import Planner
from controller.service.store import Job, Phase, Store
from controller.service.switchboard import Switchboard, Written
from topologies.network import Network


@dataclass(frozen=True, slots=True)
class Changed:
    """A change that was carried out. Times are seconds since it was asked for.

    Attributes:
        total: psi of all jobs together.
        steps: how long each took; "turn" is the wait for other changes.
        full: available switches that have no capacity left.
        root: the switch of the job's destination.
        was: the number of the job before, where the root has changed.
        came_back: the workers that it has again.
    """

    job: Job
    congestion: Fraction
    total: Fraction
    first_chunk: int
    written: Written
    first_chunk_after: float | None
    seconds: float
    steps: Sequence[Step]
    full: tuple[str, ...]
    root: str
    was: int | None
    came_back: tuple[str, ...] = ()

    @property
    def installed_after(self) -> float:
        """When all switches held the new entries."""
        names = [step.name for step in self.steps]
        return sum(step.seconds for step in self.steps[: names.index("write") + 1])


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a job shall go on with: under which number and epoch, and which blue switches."""

    job: int
    epoch: int
    choice: Choice


class Change(ABC):
    """A kind of change."""

    def __init__(
        self,
        network: Network,
        store: Store,
        board: Switchboard,
        hosts: NetworkClient,
        planner: Planner,
        closer: Closer,
    ) -> None:
        self._network = network
        self._store = store
        self._board = board
        self._hosts = hosts
        self._planner = planner
        self._closer = closer

    @abstractmethod
    def propose(self, job: Job, wish: Wish | None, root: str | None) -> Proposal:
        """Plan, and note it in the store; raises what `Planner` raises, with nothing noted."""

    @abstractmethod
    async def move(self, job: Job, watch: Stopwatch, *, again: bool) -> None:
        """From moving to draining. With `again`, it may have been begun before.

        Raises NotNowError with all taken back, the job running as before.
        """

    @abstractmethod
    def is_through(self, job: Job, progress: JobProgress) -> bool:
        """Whether a draining job needs its old entries no more."""

    def is_over(self, job: Job) -> bool:
        """Whether others have settled the change meanwhile."""
        return False

    @abstractmethod
    async def settle(self, job: Job) -> Written:
        """Remove the old entries, and note that."""


async def install(network: Network, store: Store, board: Switchboard, number: int) -> Written:
    """Give all switches what a job's proposal adds: from installing to moving.

    Where a switch refuses, the proposal is taken back, all being as before: raises
    ChangeRefusedError.
    """
    try:
        written = await board.change(ledger.programs(network, store.jobs()))
    except BaseException:
        store.withdraw(number)
        raise
    store.set_phase(number, Phase.MOVING)
    return written
