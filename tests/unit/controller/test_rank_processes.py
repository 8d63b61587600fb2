"""The processes of a launch: who is waited for, and who is named."""

from __future__ import annotations

import time

import pytest

from controller.errors import RunFailedError
from controller.ranks import processes
from controller.ranks.processes import RankCommand, RankProcesses

STAYS = RankCommand(("sleep", "100"), {})
RIGHT = RankCommand(("true",), {})
WRONG = RankCommand(("false",), {})


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.1)


def test_one_that_was_left_out_is_not_waited_for_when_the_others_have_ended() -> None:
    began = time.monotonic()
    with RankProcesses([STAYS, RIGHT, WRONG]) as ranks:
        lost = ranks.wait(left_out=lambda: {0}, goes_on=True)
    assert lost == {
        0: "was left out, and did not end by itself",
        2: "ended with exit code 1",
    }
    assert time.monotonic() - began < 50


def test_a_launch_of_which_nobody_is_left_has_failed() -> None:
    with (
        RankProcesses([STAYS, WRONG]) as ranks,
        pytest.raises(RunFailedError, match="rank 1 ended"),
    ):
        ranks.wait(left_out=lambda: {0}, goes_on=True)
