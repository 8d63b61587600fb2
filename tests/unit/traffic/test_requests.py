"""When a destination asks for what a chunk lacks, and repeats its last answers."""

from traffic.requests import REPEATS, RequestConfig, Requests

TIMEOUT = 10
QUIET = 1_000
CONFIG = RequestConfig(quiet=QUIET, timeout=TIMEOUT, max_timeout=100_000, direct_time=50_000)


def started(chunks: int = 1_000, window: int = 4) -> Requests:
    requests = Requests(CONFIG, chunks, window)
    requests.start(0)
    return requests


def complete(requests: Requests, *chunks: int, now: int) -> None:
    for chunk in chunks:
        requests.completed(chunk, now, direct=False)


def test_a_chunk_is_asked_for_when_three_that_were_sent_later_are_complete() -> None:
    requests = started()
    complete(requests, 0, 1, 3, now=1)
    assert list(requests.due(1)) == []
    # 3, 4 and 5 left after 2 did; two of them may have been faster.
    complete(requests, 4, now=2)
    assert list(requests.due(2)) == []
    complete(requests, 5, now=3)
    assert list(requests.due(3)) == [2]


def test_what_was_sent_later_may_have_a_lower_number() -> None:
    requests = started()
    # Slot 0 runs ahead: 12 is expected before 5, 6 and 7 are.
    complete(requests, 0, 4, 8, now=1)
    list(requests.due(1))
    complete(requests, 1, 2, 3, now=2)
    list(requests.due(2))
    complete(requests, 5, 6, 7, now=3)
    assert list(requests.due(3)) == [12]


def test_a_chunk_that_takes_twice_as_long_as_usual_is_asked_for_whatever_others_do() -> None:
    requests = started(window=2)
    now = 0
    for chunk in range(0, 100, 2):
        now += 50
        complete(requests, chunk, chunk + 1, now=now)
        assert list(requests.due(now)) == []
    # 101 is expected from `now` on. The other slot goes on; its chunks are two that overtake it.
    complete(requests, 100, now=now + 50)
    assert list(requests.due(now + 50)) == []
    assert requests.next_deadline == now + 100
    complete(requests, 102, now=now + 99)
    assert list(requests.due(now + 99)) == []
    assert list(requests.due(now + 100)) == [101]


def test_the_first_chunks_may_wait_for_the_windows_of_others() -> None:
    requests = started(window=4)
    now = 0
    for chunk in range(0, 64, 4):
        now += 50
        complete(requests, *range(chunk, chunk + 4), now=now)
    assert requests.next_deadline == now + QUIET


def test_how_long_a_chunk_may_take_is_said_by_those_of_which_nothing_was_lost() -> None:
    requests = started(chunks=10_000, window=8)
    now = 0
    for _ in range(20):
        first, second, *_ = requests.expected
        complete(requests, first, second, now=now + 50)
        # The others lost something, and had to be asked for.
        now += 400
        list(requests.due(now))
        complete(requests, *requests.expected, now=now)
    assert requests.next_deadline == now + 100
    assert list(requests.due(now + 99)) == []
    assert sorted(requests.due(now + 100)) == list(requests.expected)


def test_it_waits_at_most_the_given_time_and_at_least_the_least() -> None:
    requests = started(window=1)
    assert requests.next_deadline == QUIET
    complete(requests, 0, now=900)
    assert requests.next_deadline == 900 + QUIET
    for chunk in range(1, 200):
        complete(requests, chunk, now=900 + chunk)
    assert requests.next_deadline == 900 + 199 + TIMEOUT


def test_it_asks_again_no_sooner_than_a_chunk_usually_takes() -> None:
    # What is asked for stands in the same queues: sooner, and requests would fill them.
    requests = started(window=1)
    for chunk in range(100):
        complete(requests, chunk, now=80 * (chunk + 1))
    now = 100 * 80 + 160
    assert list(requests.due(now)) == [100]
    assert list(requests.due(now + 79)) == []
    assert list(requests.due(now + 80)) == [100, 100]


def test_the_last_answers_are_repeated_ever_more_rarely() -> None:
    requests = started(chunks=40, window=32)
    assert list(requests.due(QUIET)) == list(range(32))
    complete(requests, *range(39), now=QUIET)
    assert list(requests.repeats(10_000)) == []
    complete(requests, 39, now=QUIET)
    times = []
    while (deadline := requests.next_deadline) is not None:
        times.append(deadline)
        assert list(requests.due(deadline)) == []
        assert list(requests.repeats(deadline - 1)) == []
        # Each tells of itself and the 15 before it: together of the last window.
        assert list(requests.repeats(deadline)) == [39, 23]
    gaps = [after - before for before, after in zip([QUIET, *times], times, strict=False)]
    assert gaps == [TIMEOUT << i for i in range(REPEATS)]


def test_they_are_repeated_when_the_job_is_told_where_it_ended() -> None:
    requests = started(window=4)
    list(requests.due(QUIET))
    complete(requests, 0, 1, 2, 3, now=QUIET + 7)
    requests.end_at(4)
    assert requests.next_deadline == QUIET + 7 + TIMEOUT
    assert list(requests.repeats(QUIET + 7 + TIMEOUT)) == [3]


def test_nothing_is_repeated_where_nothing_had_to_be_asked_for() -> None:
    requests = started(chunks=40, window=32)
    complete(requests, *range(40), now=100)
    assert requests.next_deadline is None
    assert list(requests.repeats(10**9)) == []


def lose(requests: Requests, now: int, losses: int) -> int:
    """Have one slot of eight get on, and all others asked for, so often before they are complete;
    twenty times. Returns the time then."""
    ahead = max(requests.expected)
    for _ in range(20):
        others = [chunk for chunk in requests.expected if chunk != ahead]
        for _ in range(losses):
            complete(requests, ahead, now=now + 1)
            ahead += 8
            now += 10 * QUIET
            list(requests.due(now))
        complete(requests, *others, now=now)
    return now


def test_answers_leave_more_than_once_while_chunks_have_to_be_asked_for() -> None:
    requests = started(chunks=100_000, window=8)
    assert requests.copies == 1
    now = lose(requests, 0, losses=1)
    assert requests.copies == 2
    now = lose(requests, now, losses=4)
    assert requests.copies == 3
    for _ in range(8):
        complete(requests, *requests.expected, now=now + 1)
    assert requests.copies == 1


def test_what_is_asked_for_while_nothing_gets_on_was_not_lost() -> None:
    requests = started(window=32)
    now = 0
    for first in range(0, 320, 32):
        now += 1
        complete(requests, *range(first, first + 32), now=now)
    # Some worker is stopped for a while: nothing that is asked for comes.
    asked = 0
    for _ in range(100):
        now += QUIET
        asked += len(list(requests.due(now)))
    assert asked > 32
    complete(requests, *range(320, 352), now=now)
    assert requests.copies == 1
