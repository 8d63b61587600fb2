"""The plans of jobs that ranks have, each over the ranks that are left."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from controller.compile import JobPlan
from controller.endpoints import members
from controller.switches import SwitchControl
from topologies.network import Network


class Plans:
    """What the switches hold for jobs whose ranks may be lost."""

    def __init__(self, network: Network, switches: SwitchControl, plans: Sequence[JobPlan]) -> None:
        """`plans` are installed, and are over all ranks."""
        self._network = network
        self._switches = switches
        self._plans = {plan.job: plan for plan in plans}

    def __getitem__(self, job: int) -> JobPlan:
        return self._plans[job]

    def ranks(self, job: int) -> int:
        """How many ranks a job has, the lost ones too."""
        return len(members(self._network, self._plans[job]))

    def over(self, job: int, ranks: Collection[int]) -> JobPlan:
        """A job's plan over some of its ranks; where it was over others, under a newer epoch.

        None of its calls is running, or will be answered any more: the entries before go at once.
        """
        plan = self._plans[job]
        hosts = members(self._network, plan)
        absent = frozenset(host.rank for i, host in enumerate(hosts) if i not in ranks)
        if absent != plan.absent:
            plan = self._plans[job] = replace(plan, epoch=plan.epoch + 1, absent=absent)
            self._switches.replace(list(self._plans.values()))
        return plan
