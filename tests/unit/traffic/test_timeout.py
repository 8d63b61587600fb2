"""The retransmission timeout follows RFC 6298."""

from hypothesis import given
from hypothesis import strategies as st

from traffic.timeout import RetransmissionTimer


def timer(initial: int = 1000, minimum: int = 10, maximum: int = 10**6) -> RetransmissionTimer:
    return RetransmissionTimer(initial, minimum, maximum, max_doublings=3)


def test_first_sample_sets_both_estimates() -> None:
    t = timer()
    assert t.timeout() == 1000
    t.sample(400)
    # SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 * RTTVAR.
    assert t.smoothed == 400
    assert t.timeout() == 400 + 4 * 200


def test_later_samples_use_gains_of_an_eighth_and_a_quarter() -> None:
    t = timer()
    t.sample(800)
    t.sample(1600)
    # RTTVAR = 3/4 * 400 + 1/4 * 800 = 500, SRTT = 7/8 * 800 + 1/8 * 1600 = 900.
    assert t.smoothed == 900
    assert t.timeout() == 900 + 4 * 500


def test_timeout_never_falls_below_twice_the_smoothed_time_or_the_minimum() -> None:
    t = timer()
    for _ in range(200):
        t.sample(100)
    assert t.timeout() == 200
    for _ in range(200):
        t.sample(1)
    assert t.timeout() == 10


def test_doubling_is_bounded() -> None:
    t = timer(initial=100, maximum=500)
    assert [t.timeout(n) for n in range(5)] == [100, 200, 400, 500, 500]
    assert [timer(initial=100).timeout(n) for n in range(5)] == [100, 200, 400, 800, 800]


def test_the_least_ambiguous_time_holds_until_the_next_sample() -> None:
    t = timer(initial=100)
    t.bound(700)
    assert t.timeout() == 1400
    assert t.timeout(1) == 2800
    t.bound(300)
    t.bound(900)
    assert t.timeout() == 600
    t.sample(100)
    assert t.timeout() == 300


def test_an_ambiguous_time_never_shortens_the_timeout() -> None:
    t = timer(initial=1000)
    t.bound(10)
    assert t.timeout() == 1000


@given(st.lists(st.integers(0, 10**9), min_size=1), st.integers(0, 10))
def test_timeout_stays_within_its_bounds(samples: list[int], doublings: int) -> None:
    t = timer()
    for elapsed in samples:
        t.sample(elapsed)
        assert t.smoothed is not None
        assert 0 <= t.smoothed <= max(samples)
        assert 10 <= t.timeout(doublings) <= 10**6
