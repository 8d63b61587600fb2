"""What the machines keep to be fast says the same as working it out anew each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p4src.constants import LANES, Flag
from tests.unit.traffic.hosts import answer, worker_config
from traffic.in_flight import InFlight
from traffic.inbox import KEPT, Inbox
from traffic.message import ANSWER_HISTORY, DESTINATION_SOURCE
from traffic.requests import REORDERING
from traffic.timeout import HORIZON, RetransmissionTimer

INITIAL, LEAST, MOST = 1_000, 10, 10**6


def timeout_of(answers: list[tuple[int, bool]]) -> int:
    """The timeout after these answers (how long, whether unambiguous), by `traffic.timeout`'s
    text."""
    srtt = var = 0
    timed = False
    base = INITIAL
    for i, (elapsed, is_exact) in enumerate(answers):
        recent = answers[max(0, i + 1 - HORIZON) : i + 1]
        least = min(took for took, _ in recent)
        if is_exact and elapsed <= 2 * least:
            var = var + (abs(srtt - elapsed) - var) // 4 if timed else elapsed // 2
            srtt = srtt + (elapsed - srtt) // 8 if timed else elapsed
            timed = True
        base = srtt + max(srtt, 4 * var) if timed else INITIAL
        if not any(exact for _, exact in recent):
            base = max(base, least + least // 4)
    return min(MOST, max(LEAST, base))


@given(
    st.lists(
        st.tuples(st.integers(1, 3_000), st.booleans(), st.sampled_from([1, 1, 1, HORIZON])),
        max_size=40,
    )
)
def test_a_timeout_comes_of_the_last_answers(runs: list[tuple[int, bool, int]]) -> None:
    answers = [(elapsed, exact) for elapsed, exact, times in runs for _ in range(times)]
    timer = RetransmissionTimer(INITIAL, LEAST, MOST, max_doublings=3)
    for elapsed, exact in answers:
        timer.answered(elapsed, unambiguous=exact)
    assert timer.timeout() == timeout_of(answers)


@given(st.data())
def test_what_answers_call_complete_is_sent_again_once_known_well_enough(
    data: st.DataObject,
) -> None:
    flight = InFlight(worker_config(0, 2))
    known: dict[int, int] = {}
    for now in range(data.draw(st.integers(1, 40))):
        chunk = data.draw(st.integers(0, 40))
        step = data.draw(st.sampled_from(["send", "learn", "repeat", "hint", "answer"]))
        if step == "send":
            flight.send(chunk, now)
            known[chunk] = 0
        elif step == "answer" and chunk in known:
            flight.answer(chunk, now)
            del known[chunk]
        elif step in ("learn", "repeat", "hint"):
            complete = data.draw(st.integers(0, (1 << ANSWER_HISTORY) - 1))
            named = [chunk - 1 - i for i in range(ANSWER_HISTORY) if complete >> i & 1]
            told = [older for older in named if known.get(older, REORDERING) < REORDERING]
            proofs = {"learn": 1, "repeat": REORDERING, "hint": 0}[step]
            lost = []
            for older in told:
                known[older] = max(known[older] + proofs, 1)
                if known[older] >= REORDERING:
                    lost.append(older)
            history = DESTINATION_SOURCE ^ complete
            if step == "hint":
                flight.hint(chunk, history)
            else:
                again = flight.learn(chunk, history, now, repeated=step == "repeat")
                assert [older for older, _ in again] == lost
        assert len(flight) == len(known)


def test_a_frame_that_comes_again_is_the_same_message() -> None:
    config = worker_config(0, 2)
    inbox = Inbox(config, LANES)
    frames = [answer(config, chunk) for chunk in range(KEPT + 10)]
    frames += [answer(config, 0, flags=Flag.RESENT.value), answer(config, 0, job=config.job + 1)]
    frames += [frames[0][:-1], b"", answer(config, 0, src_port=9)]
    first = [inbox.read(frame) for frame in frames]
    assert [inbox.read(frame) for frame in frames * 2] == first * 2
    assert [message.chunk for message, _ in first if message is not None][:-1] == [
        *range(KEPT + 10)
    ]
    assert [reason for _, reason in first[-4:]] == [
        "other-job",
        "truncated",
        "truncated",
        "other-sender",
    ]
