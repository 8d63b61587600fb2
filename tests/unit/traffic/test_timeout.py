"""The retransmission timeout follows RFC 6298, and losses of others do not drive it up."""

from hypothesis import given
from hypothesis import strategies as st

from traffic.timeout import HORIZON, RetransmissionTimer


def timer(initial: int = 1000, minimum: int = 10, maximum: int = 10**6) -> RetransmissionTimer:
    return RetransmissionTimer(initial, minimum, maximum, max_doublings=3)


def sample(t: RetransmissionTimer, *times: int) -> None:
    for elapsed in times:
        t.answered(elapsed, unambiguous=True)


def test_first_sample_sets_both_estimates() -> None:
    t = timer()
    assert t.timeout() == 1000
    sample(t, 400)
    # SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 * RTTVAR.
    assert t.smoothed == 400
    assert t.timeout() == 400 + 4 * 200


def test_later_samples_use_gains_of_an_eighth_and_a_quarter() -> None:
    t = timer()
    sample(t, 800, 1600)
    # RTTVAR = 3/4 * 400 + 1/4 * 800 = 500, SRTT = 7/8 * 800 + 1/8 * 1600 = 900.
    assert t.smoothed == 900
    assert t.timeout() == 900 + 4 * 500


def test_timeout_never_falls_below_twice_the_smoothed_time_or_the_minimum() -> None:
    t = timer()
    sample(t, *[100] * 200)
    assert t.timeout() == 200
    sample(t, *[1] * 200)
    assert t.timeout() == 10


def test_doubling_is_bounded() -> None:
    t = timer(initial=100, maximum=500)
    assert [t.timeout(n) for n in range(5)] == [100, 200, 400, 500, 500]
    assert [timer(initial=100).timeout(n) for n in range(5)] == [100, 200, 400, 800, 800]


def test_samples_held_up_by_the_losses_of_others_are_left_out() -> None:
    t = timer()
    sample(t, *[100] * 50)
    for _ in range(50):
        sample(t, 5000, 300, 100)
    assert t.timeout() == 200


def test_a_path_that_becomes_slower_is_believed_after_the_horizon() -> None:
    t = timer()
    sample(t, *[100] * 50)
    sample(t, *[500] * (HORIZON - 1))
    assert t.smoothed == 100
    sample(t, *[500] * 40)
    assert t.timeout() >= 900


def test_a_path_that_becomes_slower_little_by_little_is_believed_at_once() -> None:
    t = timer()
    elapsed = 100.0
    for _ in range(400):
        elapsed *= 1.01
        sample(t, int(elapsed))
        assert t.timeout() > 1.01 * elapsed


def test_while_all_answers_are_ambiguous_the_least_of_them_counts() -> None:
    t = timer(initial=100)
    t.answered(800, unambiguous=False)
    assert t.timeout() == 1000
    t.answered(400, unambiguous=False)
    t.answered(1200, unambiguous=False)
    assert t.timeout() == 500
    sample(t, 450)
    assert t.timeout() == 450 + 4 * 225


def test_ambiguous_answers_do_not_touch_the_estimates_nor_shorten_the_timeout() -> None:
    t = timer()
    t.answered(10, unambiguous=False)
    assert t.smoothed is None
    assert t.timeout() == 1000


@given(st.lists(st.tuples(st.integers(0, 10**9), st.booleans()), min_size=1), st.integers(0, 10))
def test_timeout_stays_within_its_bounds(answers: list[tuple[int, bool]], doublings: int) -> None:
    t = timer()
    for elapsed, unambiguous in answers:
        t.answered(elapsed, unambiguous=unambiguous)
        assert t.smoothed is None or 0 <= t.smoothed <= max(answers)[0]
        assert 10 <= t.timeout(doublings) <= 10**6
