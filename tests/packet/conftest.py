"""The target that a packet test runs on: every test runs on each that is there.

A target that is absent is skipped with the reason, and pytest's summary (-ra) shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.packet.targets import SoftswitchTarget, Target
from tests.packet.targets_process import (
    Bmv2Target,
    ProcessTarget,
    SoftswitchProcessTarget,
    why_not,
)

_PROCESSES: dict[str, type[ProcessTarget]] = {
    kind.kind: kind for kind in (SoftswitchProcessTarget, Bmv2Target)
}


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(SoftswitchTarget.kind),
        pytest.param(SoftswitchProcessTarget.kind),
        pytest.param(Bmv2Target.kind, marks=pytest.mark.bmv2),
    ],
)
def running_target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """One switch for the whole run; tests use `target`."""
    target: Target
    if request.param == SoftswitchTarget.kind:
        target = SoftswitchTarget()
    else:
        process = _PROCESSES[request.param]
        reason = why_not(process.command)
        if reason is not None:
            pytest.skip(reason)
        target = process()
    try:
        yield target
    finally:
        target.close()


@pytest.fixture
def target(running_target: Target) -> Iterator[Target]:
    """The switch; every test starts by pushing its program, which empties it."""
    try:
        yield running_target
    finally:
        running_target.disconnect()
