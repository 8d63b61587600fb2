"""How long a job that is stopped is waited for."""

from __future__ import annotations

from controller.service.closing import FINISH_S, MOST_S, Patience


def test_answers_are_waited_for_as_long_as_some_come() -> None:
    patience = Patience(now=100.0)
    now = 100.0
    for answers in (0, 5, 6):
        assert not patience.is_over(answers, now)
        now += FINISH_S - 0.1
    assert not patience.is_over(6, now)
    assert patience.is_over(6, now + 0.2)


def test_a_job_that_never_ends_is_not_waited_for_longer_than_the_most() -> None:
    patience = Patience(now=0.0)
    for second in range(int(MOST_S) + 1):
        assert not patience.is_over(second, float(second))
    assert patience.is_over(1_000, MOST_S + 0.1)
