"""What every testbed offers to a run, wherever its switches are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from controller.comeback import Comeback
from controller.compile import JobPlan
from controller.rescue import Rescue
from controller.switches import SwitchControl
from controller.watchdog import Stuck
from topologies.network import Network
from traffic.endpoint import Op
from traffic.reports import JobOutcome, Values

Progress = Callable[[int], None]
"""Called now and then with the number of chunks complete so far, over all jobs."""
OnStuck = Callable[[Stuck], None]
"""Called when a job has become stuck, and when what it waits for has changed."""


@dataclass(frozen=True, slots=True)
class FailurePoint:
    """What fails once `completed` chunks, over all jobs, are complete.

    Attributes:
        part: a switch, worker or destination, which dies, or a link, which goes down, by name.
        rescue: the way out, where there may be one.
        goes_on: the jobs go on without the worker.
        comeback: how it comes back then, where it does.
        resumes: it is the destination, and starts anew from its journal.
    """

    part: str
    completed: int
    rescue: Rescue | None = None
    goes_on: bool = False
    comeback: Comeback | None = None
    resumes: bool = False

    @property
    def may_cut_off(self) -> bool:
        """Whether some chunks may stay incomplete, so that workers are to give up before long."""
        return not (self.goes_on or self.resumes)


class Testbed(Protocol):
    """A network that is up: its switches run the program, its hosts wait for jobs."""

    network: Network

    @property
    def switches(self) -> SwitchControl:
        """The switches, through P4Runtime."""

    @property
    def busy(self) -> int:
        """Nanoseconds, on the network's clock, that the Reduces so far have taken together.

        One takes from its first frame until every worker has all its answers.
        """

    def reduce(
        self,
        plans: Sequence[JobPlan],
        values: Sequence[Values],
        op: Op,
        *,
        failure: FailurePoint | None = None,
        progress: Progress | None = None,
        on_stuck: OnStuck | None = None,
    ) -> tuple[JobOutcome, ...]:
        """Run one Reduce of every job, all at once; `values[j]` is int32 [workers, chunks, lanes].

        Ends when every worker has all its answers, or has given up, or, after a failure, when its
        rescue has: an outcome may then be of two trees, one after the other. `on_stuck` hears of
        jobs of which no chunk becomes complete for STUCK_NS of the network's clock, or longer where
        links are slow, and of those that end incomplete.
        """
