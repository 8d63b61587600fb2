"""The state machine of digests: what is sent when, by a clock that the test turns."""

from __future__ import annotations

import pytest

from softswitch.p4runtime.digests import DigestBuffer, DigestConfig, SampleList

A, B, C = (1,), (2,), (3,)


def buffer(
    max_timeout_ns: int = 0, max_list_size: int = 0, ack_timeout_ns: int = 0
) -> DigestBuffer:
    return DigestBuffer(DigestConfig(max_timeout_ns, max_list_size, ack_timeout_ns))


def test_without_a_timeout_every_sample_is_sent_at_once() -> None:
    sent = buffer(max_list_size=10)
    assert [sent.learn(s, 0) for s in (A, A)] == [SampleList(1, (A,)), SampleList(2, (A,))]
    assert sent.due_ns() is None


def test_samples_gather_until_the_list_is_full() -> None:
    gathered = buffer(max_timeout_ns=100, max_list_size=2)
    assert gathered.learn(A, 0) is None
    assert gathered.learn(B, 1) == SampleList(1, (A, B))
    assert gathered.learn(C, 2) is None
    assert gathered.due_ns() == 102


@pytest.mark.parametrize(("now", "sent"), [(104, None), (105, SampleList(1, (A, B)))])
def test_the_first_sample_waits_no_longer_than_the_timeout(
    now: int, sent: SampleList | None
) -> None:
    waiting = buffer(max_timeout_ns=100)
    assert waiting.learn(A, 5) is None
    assert waiting.learn(B, 50) is None
    assert waiting.tick(now) == sent


def test_a_sample_is_new_again_once_it_is_acknowledged() -> None:
    known = buffer(ack_timeout_ns=1000)
    assert known.learn(A, 0) == SampleList(1, (A,))
    assert known.learn(A, 1) is None
    known.acknowledge(7)
    assert known.learn(A, 2) is None
    known.acknowledge(1)
    assert known.learn(A, 3) == SampleList(2, (A,))


def test_a_sample_is_new_again_when_no_acknowledgement_comes() -> None:
    known = buffer(ack_timeout_ns=1000)
    known.learn(A, 0)
    assert known.learn(A, 999) is None
    assert known.learn(A, 1000) == SampleList(2, (A,))


def test_a_list_that_is_not_sent_yet_takes_no_sample_twice() -> None:
    known = buffer(max_timeout_ns=100, ack_timeout_ns=1000)
    for sample in (A, A, B):
        known.learn(sample, 0)
    assert known.tick(100) == SampleList(1, (A, B))


def test_what_waits_survives_another_configuration() -> None:
    changed = buffer(max_timeout_ns=100)
    changed.learn(A, 0)
    changed.reconfigure(DigestConfig(10, 0, 0))
    assert changed.tick(10) == SampleList(1, (A,))
