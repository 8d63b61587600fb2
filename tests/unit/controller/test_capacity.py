"""What networks of processes need, and what a machine that is too small says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.capacity import BASE, HOST, SWITCH, free, needs, shortfall
from controller.targets import BMV2, SOFTSWITCH, TARGETS_OVER_MININET


@pytest.mark.parametrize("target", TARGETS_OVER_MININET)
def test_a_network_needs_what_its_parts_need(target: str) -> None:
    wanted = needs(target, 3, 5)
    assert wanted.memory == BASE.memory + 3 * SWITCH[target].memory + 5 * HOST.memory
    assert wanted.tasks == BASE.tasks + 3 * SWITCH[target].tasks + 5 * HOST.tasks
    assert wanted.terminals == 8


def test_a_large_fat_tree_fits_into_8_gib_as_softswitch() -> None:
    """k = 8: 80 switches, 128 workers and the destination."""
    machine = replace(needs(SOFTSWITCH, 80, 129), memory=8 << 30)
    assert shortfall(needs(SOFTSWITCH, 80, 129), machine) is None


@pytest.mark.parametrize(
    ("lacking", "text"),
    [
        ("memory", "GiB of memory where"),
        ("tasks", "threads and processes where 10 are free"),
        ("terminals", "pseudo-terminals where 10 are free"),
        ("files", "open files where 10 are free"),
    ],
)
def test_says_what_is_too_little(lacking: str, text: str) -> None:
    wanted = needs(BMV2, 20, 17)
    said = shortfall(wanted, replace(wanted, **{lacking: 10}))
    assert said is not None
    assert text in said


def test_this_machine_has_something_left() -> None:
    left = free()
    assert min(left.memory, left.tasks, left.terminals, left.files) > 0
