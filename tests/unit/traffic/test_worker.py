"""A worker sends each chunk until it is answered, and never more than its window."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4src.constants import LANES, Flag, Kind
from tests.unit.traffic.hosts import (
    DESTINATION_IP,
    EPOCH,
    JOB,
    SWITCH_MAC,
    answer,
    whole_numbers,
    worker,
    worker_config,
)
from traffic.endpoint import Op
from traffic.errors import ConfigError, Refusal
from traffic.message import DESTINATION_SOURCE, decode_datagram, decode_frame, group_ip
from traffic.worker import Worker

RESENT = Flag.RESENT.value
DIRECT = Flag.DIRECT.value


def chunks_of(frames: list[bytes]) -> list[int]:
    return [decode_frame(frame).chunk for frame in frames]


def flags_of(frames: list[bytes]) -> list[int]:
    return [decode_frame(frame).flags for frame in frames]


def test_the_first_window_leaves_at_the_start() -> None:
    values = whole_numbers(1, 9, seed=1)[0]
    w = worker(2, 5, values)
    frames = w.start(0)
    assert chunks_of(frames) == [0, 1, 2, 3]
    for frame in frames:
        assert frame[:6] == bytes.fromhex(SWITCH_MAC.replace(":", ""))
        datagram = decode_datagram(frame)
        assert datagram.dst_ip == bytes(map(int, DESTINATION_IP.split(".")))
        assert (datagram.src_port, datagram.dst_port) == (40002, 9590)
        message = datagram.message
        assert (message.kind, message.flags, message.weight) == (Kind.CONTRIBUTE, 0, 1)
        assert (message.job, message.source, message.epoch) == (JOB, 3, EPOCH)
        assert list(message.values) == values[message.chunk].tolist()


def test_each_answer_lets_the_chunk_one_window_later_go() -> None:
    w = worker(0, 2, chunks=6)
    w.start(0)
    assert chunks_of(w.receive(answer(w.config, 2), 1)) == []
    assert chunks_of(w.receive(answer(w.config, 1), 2)) == [5]
    assert chunks_of(w.receive(answer(w.config, 0), 3)) == [4]
    assert w.in_flight == 3
    for chunk in (3, 4, 5):
        assert w.receive(answer(w.config, chunk), 4) == []
    assert w.done
    assert w.next_deadline is None
    assert w.results.tolist() == [list(range(c, c + LANES)) for c in range(6)]


def test_more_window_than_chunks() -> None:
    w = worker(0, 1, chunks=2, window=16)
    assert chunks_of(w.start(0)) == [0, 1]
    empty = worker(0, 1, chunks=0)
    assert empty.start(0) == []
    assert empty.done


@given(
    st.integers(1, 9),
    st.integers(0, 40),
    st.sampled_from([0, 1, 3]),
    st.randoms(use_true_random=False),
)
def test_window_and_slots_are_respected_in_any_order_of_answers(
    window: int, chunks: int, more_slots: int, random: Any
) -> None:
    w = worker(0, 1, chunks=chunks, window=window)
    slots = (1 << (window - 1).bit_length()) << more_slots
    in_flight: set[int] = set()
    sent: list[int] = []
    answered: set[int] = set()
    frames = w.start(0)
    while True:
        for chunk in chunks_of(frames):
            assert chunk < window or chunk - window in answered
            in_flight.add(chunk)
            sent.append(chunk)
        assert len(in_flight) == w.in_flight <= window
        assert len({chunk % slots for chunk in in_flight}) == len(in_flight)
        if not in_flight:
            break
        chunk = random.choice(sorted(in_flight))
        in_flight.remove(chunk)
        answered.add(chunk)
        frames = w.receive(answer(w.config, chunk), 0)
    assert sorted(sent) == list(range(chunks))
    assert w.done


def test_reduce_waits_for_acknowledgements_and_has_no_results() -> None:
    w = worker(0, 3, chunks=1, op=Op.REDUCE)
    w.start(0)
    result = answer(worker_config(0, 3), 0)
    assert decode_frame(result).kind == Kind.RESULT
    w.receive(result, 1)
    assert w.counters.ignored == {"other-kind": 1}
    w.receive(answer(w.config, 0), 1)
    assert w.done
    assert w.results.shape == (0, LANES)


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("other-job", {"job": JOB + 1}),
        ("other-epoch", {"epoch": EPOCH - 1}),
        ("other-epoch", {"epoch": EPOCH + 1}),
        ("other-kind", {"kind": Kind.CONTRIBUTE.value}),
        ("other-kind", {"kind": Kind.ACK.value, "lanes": b""}),
        ("no-such-chunk", {"chunk": 8}),
        ("no-such-chunk", {"chunk": 2**32 - 1}),
        ("not-sent", {"chunk": 4}),
        ("wrong-weight", {"weight": 1}),
        ("not-addressed", {"dst_ip": "10.1.0.1"}),
        ("not-addressed", {"dst_port": 9590}),
        ("other-sender", {"src_ip": "10.1.0.1"}),
        ("other-sender", {"src_port": 9591}),
    ],
)
def test_what_is_no_answer_is_ignored_for_its_reason(reason: str, changes: dict[str, Any]) -> None:
    w = worker(0, 2, chunks=8)
    w.start(0)
    fields = {"chunk": 0, **changes}
    assert w.receive(answer(w.config, **fields), 1) == []
    assert w.counters.ignored == {reason: 1}
    assert w.completed == 0
    assert w.in_flight == 4
    assert not w.results.any()


def test_answers_to_the_group_are_accepted_too() -> None:
    w = worker(0, 2)
    w.start(0)
    w.receive(answer(w.config, 0, dst_ip=group_ip(JOB), dst_port=9590), 1)
    assert w.completed == 1


def test_a_second_answer_is_a_duplicate() -> None:
    w = worker(0, 2)
    w.start(0)
    assert chunks_of(w.receive(answer(w.config, 0), 1)) == [4]
    assert w.receive(answer(w.config, 0), 2) == []
    assert w.counters.ignored == {"duplicate": 1}
    assert w.counters.answered == 1


@pytest.mark.parametrize("again", [False, True], ids=["a new answer", "an answer that it has"])
def test_a_repeated_answer_has_lost_those_asked_for_that_it_calls_complete(again: bool) -> None:
    # Calls chunks 1 and 2, of four that are under way, complete.
    history = DESTINATION_SOURCE ^ 0b011
    machine = worker(0, 2, window=4)
    machine.start(0)
    if again:
        assert chunks_of(machine.receive(answer(machine.config, 3, source=history), 1)) == [7]
    frame = answer(machine.config, 3, source=history, flags=Flag.RESENT.value)
    sent = machine.receive(frame, 2)
    assert sorted(chunk for chunk in chunks_of(sent) if chunk < 4) == [1, 2]
    assert [chunk for chunk in chunks_of(machine.receive(frame, 3)) if chunk < 4] == []


def test_of_answers_that_are_not_repeated_it_takes_three() -> None:
    history = DESTINATION_SOURCE ^ 0x7FFF
    machine = worker(0, 2, chunks=16, window=8)
    machine.start(0)
    for at, repeated in ((1, []), (2, []), (3, [0])):
        sent = chunks_of(machine.receive(answer(machine.config, at, source=history), at))
        assert [chunk for chunk in sent if chunk < 8] == repeated


def test_any_bytes_are_counted_and_ignored() -> None:
    w = worker(0, 2)
    w.start(0)
    good = answer(w.config, 0)
    for cut in range(len(good)):
        assert w.receive(good[:cut], 1) == []
    assert w.counters.ignored == {Refusal.TRUNCATED.value: len(good)}


def test_an_unanswered_chunk_is_sent_again_marked_then_direct() -> None:
    w = worker(0, 2, chunks=1, initial_timeout=100, min_timeout=1, max_doublings=2, direct_after=2)
    w.start(0)
    sent_at, flags = [0], []
    for _ in range(5):
        due = w.next_deadline
        assert due is not None
        assert w.tick(due - 1) == []
        frames = w.tick(due)
        assert chunks_of(frames) == [0]
        sent_at.append(due)
        flags += flags_of(frames)
    assert sent_at[1] == 100
    # The others wait up to a quarter longer, so that workers do not stay in step.
    for wait, (earlier, later) in zip((200, 400, 400, 400), pairwise(sent_at[1:]), strict=True):
        assert wait <= later - earlier <= wait + wait // 4
    assert flags == [RESENT, RESENT, RESENT | DIRECT, RESENT | DIRECT, RESENT | DIRECT]
    counters = w.counters
    assert (counters.sent, counters.resent, counters.direct) == (1, 5, 3)


def test_only_what_is_due_is_sent_again() -> None:
    w = worker(0, 2, chunks=3, window=2, initial_timeout=100, min_timeout=100)
    w.start(0)
    w.receive(answer(w.config, 0), 50)
    assert w.next_deadline == 100
    assert chunks_of(w.tick(100)) == [1]
    assert w.next_deadline == 50 + 150
    assert w.tick(199) == []
    assert chunks_of(w.tick(200)) == [2]


def test_timeout_adapts_and_karns_rule_holds() -> None:
    w = worker(0, 2, window=1, initial_timeout=1000, min_timeout=1)
    w.start(0)
    w.receive(answer(w.config, 0), 400)
    assert w.timeout == 400 + 4 * 200
    # Chunk 1 leaves at 400, is sent again, and answered at once: no sample, as nobody can know
    # which of the two was answered.
    due = w.next_deadline
    assert due == 400 + 1200
    w.tick(due)
    w.receive(answer(w.config, 1), due + 1)
    assert w.timeout == 400 + 4 * 200
    w.receive(answer(w.config, 2), due + 1 + 400)
    assert w.timeout == 400 + 4 * 150


def test_a_chunk_sent_often_waits_the_longest_time() -> None:
    w = worker(
        0,
        2,
        chunks=1,
        initial_timeout=10,
        min_timeout=1,
        max_timeout=999,
        max_doublings=1,
        slow_after=3,
    )
    w.start(0)
    sent_at = [0]
    for _ in range(4):
        due = w.next_deadline
        assert due is not None
        w.tick(due)
        sent_at.append(due)
    waits = [later - earlier for earlier, later in pairwise(sent_at)]
    assert waits[0] == 10
    assert 20 <= waits[1] <= 25
    assert 20 <= waits[2] <= 25
    assert 999 <= waits[3] <= 999 + 250


def test_workers_and_chunks_that_fail_together_do_not_stay_in_step() -> None:
    due: set[int] = set()
    for rank in range(8):
        w = worker(rank, 8, chunks=8, window=8, initial_timeout=10**6, ask_timeout=10**6)
        w.start(0)
        assert len(w.tick(10**6)) == 8
        while (deadline := w.next_deadline) is not None and deadline < 4 * 10**6:
            if w.tick(deadline):
                due.add(deadline)
    assert len(due) > 60


def test_a_path_slower_than_the_first_timeout_is_learned() -> None:
    w = worker(
        0,
        2,
        chunks=40,
        window=1,
        initial_timeout=100,
        min_timeout=1,
        patience=10_000,
        max_doublings=2,
    )
    now, delay = 0, 1500
    w.start(now)
    for chunk in range(40):
        arrival = now + delay
        while (due := w.next_deadline) is not None and due < arrival:
            w.tick(due)
        w.receive(answer(w.config, chunk), arrival)
        now = arrival
    assert w.done
    # Only the first chunk is sent again in vain: its answer tells how long to wait.
    assert w.counters.resent == 4


def test_after_the_last_try_it_fails_and_names_the_chunk() -> None:
    w = worker(1, 2, chunks=3, window=2, initial_timeout=10, min_timeout=1, max_tries=3)
    w.start(0)
    w.receive(answer(w.config, 0), 5)
    while (due := w.next_deadline) is not None:
        w.tick(due)
    assert w.failed
    assert not w.done
    assert w.failure is not None
    assert (w.failure.worker, w.failure.chunk, w.failure.tries) == ("w1", 1, 3)
    assert "worker w1: chunk 1 of job 7 was sent 3 times and never answered" in str(w.failure)
    assert w.tick(10**9) == []
    assert w.receive(answer(w.config, 1), 10**9) == []


def test_overflow_is_noticed() -> None:
    w = worker(0, 2, chunks=2)
    w.start(0)
    w.receive(answer(w.config, 1, flags=Flag.OVERFLOW | Flag.RESENT), 1)
    assert w.overflowed == {1}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"job": 0}, "job is 0"),
        ({"job": 65536}, "job is 65536"),
        ({"source": 0}, "source is 0"),
        ({"epoch": 0}, "epoch is 0"),
        ({"window": 0}, "window is 0"),
        ({"max_tries": 0}, "max_tries is 0"),
        ({"rank": 2}, "rank is 2: 0 to 1"),
    ],
)
def test_impossible_settings_are_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        worker_config(**{"rank": 0, "workers": 2, **changes})


def test_values_must_be_int32_rows() -> None:
    values: Any
    for values in (np.zeros((2, LANES)), np.zeros(LANES, dtype=np.int32)):
        with pytest.raises(ConfigError, match="they must be int32"):
            Worker(worker_config(0, 1), values)
