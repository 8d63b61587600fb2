"""softswitch and simple_switch_grpc do the same, byte for byte, on random entries and packets."""

from collections.abc import Iterator

import pytest

from tests.differential.cases import CASES, Case
from tests.differential.compare import WithPorts, differs, traffic
from tests.packet.targets import Target
from tests.packet.targets_process import Bmv2Target, why_not

SEED = 1
PACKETS = 60


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Target, Target]]:
    reason = why_not(Bmv2Target.command)
    if reason is not None:
        pytest.skip(reason)
    ours = WithPorts()
    try:
        theirs = Bmv2Target()
        try:
            yield ours, theirs
        finally:
            theirs.close()
    finally:
        ours.close()


@pytest.mark.bmv2
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_switches_do_the_same(pair: tuple[Target, Target], case: Case) -> None:
    assert differs(*pair, case, SEED, PACKETS) == ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_seed_always_makes_the_same_traffic(case: Case) -> None:
    first, second = (traffic(case, 7, 30) for _ in range(2))
    assert first == second
    assert first.bursts != traffic(case, 8, 30).bursts
