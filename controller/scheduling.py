"""How switches place tensors in their queues: the entries that tune `p4src/.../priority.p4`. Pure.

    Scheduling(queues=8).entries()                       # for every switch with 8 queues a port
    tensor_flow(window=1025, dst_port=9600)              # plain traffic that carries tickets

Without these entries every packet has priority 0. docs/protocol.md, "Priority", has the rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.program import MatchValue, TableEntry
from p4src.constants import JOBS, QUEUES, WINDOWS

DEFAULT_SHARE = 16
_PORT_MASK = 0xFFFF
_FLOW_PRIORITY = 1


class SchedulingError(ValueError):
    """Settings that no switch can have; the text names the setting and its range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """Settings of the queues of every port.

    Attributes:
        queues: strict-priority queues a port, as the switches were started with; the highest is
            served first.
        step: 2 ** step layers share a queue.
        width: layers in a window; those beyond it share queue 0. None: as many as the queues hold.
        lead: how many layers below the first tensor of an iteration its window opens.
        middle: queue of what carries no ticket. None: the one in the middle, the lower of two.
        share: of so many tensors placed above the middle queue, and one packet without a ticket,
            the latter passes them; 0 for never.
    """

    queues: int = QUEUES
    step: int = 0
    width: int | None = None
    lead: int = 0
    middle: int | None = None
    share: int = DEFAULT_SHARE

    def __post_init__(self) -> None:
        ranges = {
            "queues": (1, QUEUES),
            "step": (0, 15),
            "width": (1, 0xFFFF),
            "lead": (0, 0xFFFF),
            "middle": (0, self.queues - 1),
            "share": (0, 0xFFFF),
        }
        for name, (lowest, highest) in ranges.items():
            value = getattr(self, name)
            if value is not None and not lowest <= value <= highest:
                raise SchedulingError(f"{name} is {value}: choose {lowest} to {highest}")

    @property
    def window_layers(self) -> int:
        """Layers that have a place in a window."""
        return min(self.queues << self.step, 0xFFFF) if self.width is None else self.width

    @property
    def middle_queue(self) -> int:
        """The queue of what carries no ticket."""
        return (self.queues - 1) // 2 if self.middle is None else self.middle

    def entries(self) -> tuple[TableEntry, ...]:
        """The two entries of a switch: for tensors, and for everything else."""
        common = {"top": self.queues - 1, "middle": self.middle_queue}
        window = {"width": self.window_layers, "step": self.step, "lead": self.lead}
        return (
            TableEntry.of("scheduling", {"has_ticket": 1}, "slide", common | window),
            TableEntry.of(
                "scheduling", {"has_ticket": 0}, "pass_middle", common | {"share": self.share}
            ),
        )


def tensor_flow(
    window: int, *, src_port: int | None = None, dst_port: int | None = None
) -> TableEntry:
    """The entry that gives plain UDP traffic of these ports a window; None is any port.

    Windows 1 .. JOBS are those of jobs, and number `job` may be shared with one. Raises
    SchedulingError for a window that there is not.
    """
    if not 0 < window < WINDOWS:
        raise SchedulingError(
            f"window {window}: choose {JOBS + 1} to {WINDOWS - 1}, or a job's own number"
        )
    ports: dict[str, MatchValue] = {
        name: (port, _PORT_MASK)
        for name, port in (("src_port", src_port), ("dst_port", dst_port))
        if port is not None
    }
    return TableEntry.of(
        "tensor_flows", ports, "use_window", {"window": window}, priority=_FLOW_PRIORITY
    )
