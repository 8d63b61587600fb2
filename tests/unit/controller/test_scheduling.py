"""Settings of the queues: what becomes an entry, and what is refused."""

import pytest

from controller.program import TableEntry
from controller.scheduling import Scheduling, SchedulingError, tensor_flow
from p4src.constants import QUEUES


def test_the_two_entries() -> None:
    assert Scheduling(queues=4, step=1, lead=9, share=5).entries() == (
        TableEntry.of(
            "scheduling",
            {"has_ticket": 1},
            "slide",
            {"top": 3, "middle": 1, "width": 8, "step": 1, "lead": 9},
        ),
        TableEntry.of(
            "scheduling", {"has_ticket": 0}, "pass_middle", {"top": 3, "middle": 1, "share": 5}
        ),
    )


def test_defaults() -> None:
    scheduling = Scheduling()
    assert (scheduling.queues, scheduling.window_layers) == (QUEUES, QUEUES)
    assert [Scheduling(queues=n).middle_queue for n in range(1, 9)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert Scheduling(step=15).window_layers == 0xFFFF


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queues", 0),
        ("queues", 9),
        ("step", 16),
        ("width", 0),
        ("lead", -1),
        ("middle", 8),
        ("share", 0x10000),
    ],
)
def test_out_of_range(name: str, value: int) -> None:
    with pytest.raises(SchedulingError, match=rf"^{name} is {value}: choose \d+ to \d+$"):
        Scheduling(**{name: value})


def test_flows() -> None:
    assert tensor_flow(1025, dst_port=9600) == TableEntry.of(
        "tensor_flows", {"dst_port": (9600, 0xFFFF)}, "use_window", {"window": 1025}, priority=1
    )
    with pytest.raises(SchedulingError, match="window 2048: choose 1025 to 2047"):
        tensor_flow(2048)
