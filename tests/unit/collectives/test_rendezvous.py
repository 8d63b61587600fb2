"""Who has made which call: calls begin together, and what keeps one is named."""

from __future__ import annotations

import numpy as np
import pytest

from controller.ranks.rendezvous import Rendezvous
from traffic.collectives.calls import Call, Kind
from traffic.collectives.errors import CollectiveError, MismatchError, MissingRankError
from traffic.collectives.link import OnLoss

SECOND = 10**9
SUM = Call(Kind.ALLREDUCE, "float32", (2, 3))
BARRIER = Call(Kind.BARRIER, "", ())
ARRAY = np.zeros((2, 3), dtype=np.float32)


def met(ranks: int = 3) -> Rendezvous:
    meeting = Rendezvous(7, ranks, 5 * SECOND)
    for rank in range(ranks):
        meeting.join(rank)
    return meeting


def test_a_call_begins_when_all_have_made_it_and_the_one_before_has_ended() -> None:
    meeting = met()
    for rank in (2, 0):
        meeting.call(rank, SUM, ARRAY, 0)
        meeting.call(rank, BARRIER, None, 0)
        assert meeting.begin() is None
    meeting.call(1, SUM, ARRAY, 0)
    begun = meeting.begin()
    assert begun is not None
    assert (begun[0], begun[1], sorted(begun[2])) == (0, SUM, [0, 1, 2])
    meeting.call(1, BARRIER, None, 0)
    assert meeting.begin() is None
    meeting.end()
    begun = meeting.begin()
    assert begun is not None
    assert begun[:2] == (1, BARRIER)


def test_the_missing_are_named_when_patience_ends_and_not_before() -> None:
    meeting = met(4)
    assert meeting.deadline is None
    meeting.call(1, SUM, ARRAY, 3 * SECOND)
    meeting.call(3, SUM, ARRAY, 4 * SECOND)
    assert meeting.deadline == 8 * SECOND
    meeting.look(8 * SECOND - 1)
    assert meeting.failure is None
    meeting.look(8 * SECOND)
    assert isinstance(meeting.failure, MissingRankError)
    assert meeting.failure.ranks == (0, 2)
    assert "ranks 0, 2 have not made it within 5 s" in str(meeting.failure)
    assert "allreduce(float32[2, 3], sum)" in str(meeting.failure)
    meeting.call(0, SUM, ARRAY, 9 * SECOND)
    meeting.call(2, SUM, ARRAY, 9 * SECOND)
    assert meeting.begin() is None


@pytest.mark.parametrize(
    "other",
    [
        BARRIER,
        Call(Kind.ALLREDUCE, "float64", (2, 3)),
        Call(Kind.ALLREDUCE, "float32", (3, 2)),
        Call(Kind.ALLREDUCE, "float32", (2, 3), "mean"),
        Call(Kind.REDUCE, "float32", (2, 3), "sum", 1),
    ],
    ids=str,
)
def test_different_calls_are_refused_naming_both(other: Call) -> None:
    meeting = met(2)
    meeting.call(1, SUM, ARRAY, 0)
    meeting.call(0, other, ARRAY, 0)
    assert isinstance(meeting.failure, MismatchError)
    assert f"rank 1 asks for {SUM}, rank 0 for {other}" in str(meeting.failure)


def test_one_that_left_is_blamed_at_once_for_what_it_has_not_called() -> None:
    meeting = met(3)
    meeting.call(0, SUM, ARRAY, 0)
    meeting.leave(0)
    assert meeting.failure is None, "it has made every call so far"
    meeting.call(1, SUM, ARRAY, 0)
    meeting.call(2, SUM, ARRAY, 0)
    assert meeting.begin() is not None
    meeting.end()
    meeting.call(1, BARRIER, None, 0)
    assert isinstance(meeting.failure, MissingRankError)
    assert meeting.failure.ranks == (0,)
    assert "rank 0 has left without making it" in str(meeting.failure)


def test_who_comes_late_to_a_failed_job_is_told_and_counts_as_gone() -> None:
    meeting = Rendezvous(7, 3, 5 * SECOND)
    for rank in (0, 1):
        meeting.join(rank)
    meeting.call(0, SUM, ARRAY, 0)
    meeting.leave(1)
    meeting.leave(0)
    with pytest.raises(MissingRankError, match="rank 1 has left"):
        meeting.join(2)
    meeting.join(2)
    assert meeting.failure is None, "all had come and gone"


def test_a_job_begins_anew_when_all_have_left() -> None:
    meeting = met(2)
    meeting.call(0, SUM, ARRAY, 0)
    meeting.leave(1)
    assert meeting.failure is not None
    meeting.leave(0)
    for rank in (0, 1):
        meeting.join(rank)
        meeting.call(rank, BARRIER, None, 0)
    begun = meeting.begin()
    assert begun is not None
    assert begun[:2] == (0, BARRIER)


def test_strangers_and_doubles_may_not_join() -> None:
    meeting = Rendezvous(7, 2, SECOND)
    meeting.join(1)
    for rank, text in ((2, "ranks 0 to 1, not 2"), (-1, "not -1"), (1, "joined already")):
        with pytest.raises(CollectiveError, match=text):
            meeting.join(rank)
    assert meeting.joined == {1}


def going_on(ranks: int = 3) -> Rendezvous:
    meeting = Rendezvous(7, ranks, 5 * SECOND)
    for rank in range(ranks):
        meeting.join(rank, OnLoss.CONTINUE)
    return meeting


def test_a_call_is_over_those_who_made_it_and_are_there_where_a_job_goes_on() -> None:
    meeting = going_on(4)
    for rank in (0, 1, 2):
        meeting.call(rank, SUM, ARRAY, 0)
    assert meeting.begin() is None
    # One that has made the call, and one that has not.
    meeting.leave(1)
    assert meeting.begin() is None
    meeting.leave(3)
    assert (meeting.failure, meeting.deadline) == (None, None)
    begun = meeting.begin()
    assert begun is not None
    assert sorted(begun[2]) == [0, 2]


def test_who_is_late_is_left_out_and_told_where_a_job_goes_on() -> None:
    meeting = Rendezvous(7, 4, 5 * SECOND)
    for rank in (0, 1, 2):
        meeting.join(rank, OnLoss.CONTINUE)
    meeting.call(0, SUM, ARRAY, 0)
    meeting.call(2, SUM, ARRAY, 0)
    meeting.look(5 * SECOND)
    assert meeting.failure is None
    assert sorted(meeting.expelled) == [1, 3]
    assert "ranks 1, 3 have not made it within 5 s" in str(meeting.expelled[1])
    meeting.call(1, SUM, ARRAY, 6 * SECOND)
    begun = meeting.begin()
    assert begun is not None
    assert sorted(begun[2]) == [0, 2]
    with pytest.raises(MissingRankError, match="rank 3 of job 7 is late"):
        meeting.join(3, OnLoss.CONTINUE)
    with pytest.raises(CollectiveError, match="joined already"):
        meeting.join(1, OnLoss.CONTINUE)
    # It begins anew when all have gone that were there, with all that come.
    meeting.end()
    for rank in (0, 2, 1):
        meeting.leave(rank)
    for rank in range(4):
        meeting.join(rank)
        meeting.call(rank, BARRIER, None, 0)
    begun = meeting.begin()
    assert begun is not None
    assert len(begun[2]) == 4


def test_all_ranks_ask_alike_for_what_becomes_of_a_lost_one() -> None:
    meeting = Rendezvous(7, 2, SECOND)
    meeting.join(1, OnLoss.CONTINUE)
    with pytest.raises(MismatchError, match="rank 0 asks for on_rank_loss='fail', others for 'con"):
        meeting.join(0)
    assert meeting.joined == {1}


def test_calls_that_nobody_is_left_of_are_dropped() -> None:
    meeting = going_on(2)
    meeting.call(0, SUM, ARRAY, 0)
    meeting.call(0, BARRIER, None, 0)
    meeting.leave(0)
    meeting.call(1, SUM, ARRAY, 0)
    begun = meeting.begin()
    assert begun is not None
    assert sorted(begun[2]) == [1]
