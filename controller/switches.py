"""The switches of a network under control: jobs in and out of them, their counters read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from controller.compile import JobPlan, compile_programs, merge_programs, share_slots
from controller.measurement import LinkCount
from controller.p4rt import BlockingFleet, CounterValue
from controller.program import MatchValue, SwitchProgram, TableEntry
from p4src.constants import Outcome
from topologies.network import Network


class SwitchControl:
    """All switches of a network, connected and running the program.

    Every change of allocation is a new epoch, and chunks of a job are numbered on from tensor to
    tensor, so that slots never meet a tag twice.
    """

    def __init__(self, network: Network, fleet: BlockingFleet, epoch: int = 0) -> None:
        """All epochs are above `epoch`: packets of earlier runs, under theirs, mean nothing."""
        self._network = network
        self._fleet = fleet
        self._epoch = epoch
        self._next_chunk: dict[int, int] = {}
        # What switches had counted that are gone since.
        self._last_links: dict[str, Mapping[TableEntry, CounterValue]] = {}
        self._last_outcomes: dict[str, Sequence[CounterValue]] = {}

    def install(self, blue_sets: Sequence[frozenset[int]], window: int) -> tuple[JobPlan, ...]:
        """Give every job its blue switches; only differences are written.

        Raises CompileError where a placement does not fit, SwitchError where a switch refuses.
        """
        self._epoch += 1
        plans = share_slots(blue_sets, self._epoch, window)
        self._fleet.reconcile(compile_programs(self._network, plans))
        self._next_chunk = {plan.job: 0 for plan in plans}
        return plans

    def install_beside(
        self, plans: Sequence[JobPlan], network: Network, others: Sequence[JobPlan]
    ) -> None:
        """Add jobs over another tree of the same network to those that are installed.

        Switches that were buried are left out. Raises what `install` raises.
        """
        self._epoch = max(self._epoch, *(plan.epoch for plan in others))
        programs = merge_programs(
            compile_programs(self._network, plans), compile_programs(network, others)
        )
        alive = self._alive()
        self._fleet.reconcile(program for program in programs if program.name in alive)

    def replace(self, plans: Sequence[JobPlan]) -> None:
        """Give jobs other plans, in place of all that are installed; their chunks are numbered on.

        Raises what `install` raises.
        """
        self._epoch = max(self._epoch, *(plan.epoch for plan in plans))
        self._fleet.reconcile(compile_programs(self._network, plans))

    def hold(self, programs: Sequence[SwitchProgram]) -> None:
        """Make the switches hold programs of the caller's own; only differences are written."""
        self._fleet.reconcile(programs)

    def take_chunks(self, job: int, count: int) -> int:
        """Reserve chunk numbers for a tensor of a job; the first of them."""
        first = self._next_chunk[job]
        self._next_chunk[job] += count
        return first

    def bury(self, name: str) -> None:
        """Read the counters of a switch that is about to be killed, for the last time."""
        self._last_links[name] = self._fleet.direct_counters(name, "upstream")
        self._last_outcomes[name] = self._fleet.counter(name, "outcomes")

    def link_counts(
        self, job: int | None = None, epoch: int | None = None
    ) -> Mapping[str, LinkCount]:
        """Messages that each overlay switch has sent to its parent, over all jobs or of one.

        With an epoch, those of its phase only: of every second allocation, which are the messages
        of this one since the one before the last has drained.
        """

        def is_meant(match: Mapping[str, MatchValue]) -> bool:
            of_job = job is None or match["job"] == job
            return of_job and (epoch is None or match["phase"] == epoch & 1)

        return self._counts(self._network, is_meant)

    def link_counts_beside(
        self, network: Network, others: Sequence[JobPlan]
    ) -> Mapping[str, LinkCount]:
        """The same of jobs over another tree, on the links of that tree; see `install_beside`."""
        numbers = {plan.job for plan in others}
        return self._counts(network, lambda match: match["job"] in numbers)

    def _counts(
        self, network: Network, is_meant: Callable[[Mapping[str, MatchValue]], bool]
    ) -> Mapping[str, LinkCount]:
        counters = self._last_links | dict(
            self._fleet.all_direct_counters("upstream", self._alive())
        )
        counts = {}
        for name in network.topology.overlay.names:
            by_class = [0, 0]
            for entry, value in counters[name].items():
                match = dict(entry.match)
                if is_meant(match):
                    by_class[match["resent"] == 1] += value.packets
            counts[name] = LinkCount(*by_class)
        return counts

    def outcome_counts(self) -> Counter[str]:
        """Packets by what became of them (names of `outcome_t`), over all switches."""
        total: Counter[str] = Counter()
        living = self._fleet.all_counters("outcomes", self._alive())
        for cells in (*living.values(), *self._last_outcomes.values()):
            for outcome in Outcome:
                total[outcome.name] += cells[outcome].packets
        return total

    def _alive(self) -> list[str]:
        return [name for name in self._fleet.names if name not in self._last_links]
