"""The fate of frames: by chance, from a seed, each kind on its own."""

from __future__ import annotations

import itertools

import pytest

from topologies.faults import LOST, ON_TIME, Faults, direction_name

FRAMES = 20_000


def _fates(
    count: int = FRAMES,
    *,
    seed: int = 1,
    name: str = "a:1>b:2",
    loss: float = 0.0,
    duplicate: float = 0.0,
    reorder: float = 0.0,
) -> list[tuple[int, ...]]:
    faults = Faults(
        seed, name, loss=loss, duplicate=duplicate, reorder=reorder, reorder_delay=1_000
    )
    return [faults.fate() for _ in range(count)]


def test_without_chances_every_frame_is_on_time() -> None:
    assert set(_fates()) == {ON_TIME}


def test_the_same_seed_and_direction_give_the_same_fates() -> None:
    one = _fates(loss=0.1, duplicate=0.1, reorder=0.1)
    assert one == _fates(loss=0.1, duplicate=0.1, reorder=0.1)
    assert one != _fates(loss=0.1, duplicate=0.1, reorder=0.1, seed=2)
    assert one != _fates(loss=0.1, duplicate=0.1, reorder=0.1, name="b:2>a:1")


@pytest.mark.parametrize("probability", [0.01, 0.5, 0.99])
def test_chances_are_what_was_asked_for(probability: float) -> None:
    tolerance = 4 * (probability * (1 - probability) / FRAMES) ** 0.5
    lost = sum(fate == LOST for fate in _fates(loss=probability))
    doubled = sum(len(fate) == 2 for fate in _fates(duplicate=probability))
    late = sum(fate[0] > 0 for fate in _fates(reorder=probability))
    for count in (lost, doubled, late):
        assert abs(count / FRAMES - probability) < tolerance


def test_one_kind_does_not_shift_another() -> None:
    """Losses fall on the same frames whether or not others are doubled and delayed."""
    alone = [fate == LOST for fate in _fates(loss=0.2)]
    together = [fate == LOST for fate in _fates(loss=0.2, duplicate=0.3, reorder=0.3)]
    assert alone == together


def test_lateness_is_bounded() -> None:
    late = list(itertools.chain.from_iterable(_fates(duplicate=1.0, reorder=1.0)))
    assert all(0 <= delay <= 1_000 for delay in late)
    assert len(set(late)) > 900


def test_a_direction_has_a_name() -> None:
    assert direction_name("a", 1, "b", 2) == "a:1>b:2"
