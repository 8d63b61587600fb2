"""Arbitration as a state machine: bids in, notices out."""

from __future__ import annotations

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softswitch.p4runtime.arbitration import MAX_STREAMS, Arbitration, Notice, Standing
from softswitch.p4runtime.status import RefusedError

PRIMARY, BACKUP, NO_PRIMARY = Standing.PRIMARY, Standing.BACKUP, Standing.NO_PRIMARY


def test_the_first_is_primary_and_lower_ones_are_backups() -> None:
    arbitration = Arbitration()
    assert arbitration.bid("a", 5) == (Notice("a", PRIMARY, 5),)
    assert arbitration.bid("b", 4) == (Notice("b", BACKUP, 5),)
    assert arbitration.primaries == ("a",)


def test_everybody_hears_of_a_new_primary() -> None:
    arbitration = Arbitration()
    arbitration.bid("a", 5)
    arbitration.bid("b", 4)
    assert set(arbitration.bid("c", 6)) == {
        Notice("a", BACKUP, 6),
        Notice("b", BACKUP, 6),
        Notice("c", PRIMARY, 6),
    }


def test_the_next_highest_succeeds() -> None:
    arbitration = Arbitration()
    for stream, election_id in (("a", 5), ("b", 4), ("c", 3)):
        arbitration.bid(stream, election_id)
    assert set(arbitration.leave("a")) == {Notice("b", PRIMARY, 4), Notice("c", BACKUP, 4)}
    assert arbitration.leave("c") == ()
    assert arbitration.leave("nobody") == ()
    assert arbitration.leave("b") == ()
    assert arbitration.primaries == ()


def test_the_primary_may_lower_its_bid() -> None:
    arbitration = Arbitration()
    arbitration.bid("a", 5)
    arbitration.bid("b", 4)
    assert set(arbitration.bid("a", 3)) == {Notice("a", BACKUP, 4), Notice("b", PRIMARY, 4)}


def test_a_bid_repeated_is_answered() -> None:
    arbitration = Arbitration()
    arbitration.bid("a", 5)
    assert arbitration.bid("a", 5) == (Notice("a", PRIMARY, 5),)


def test_without_an_election_id_nobody_becomes_primary() -> None:
    arbitration = Arbitration()
    assert arbitration.bid("a", None) == (Notice("a", NO_PRIMARY, None),)
    assert not arbitration.may_write(None)
    assert set(arbitration.bid("b", 0)) == {Notice("a", BACKUP, 0), Notice("b", PRIMARY, 0)}
    assert arbitration.may_write(0)


def test_refusals_change_nothing() -> None:
    arbitration = Arbitration()
    arbitration.bid("a", 5)
    with pytest.raises(RefusedError, match="Election id already exists") as used:
        arbitration.bid("b", 5)
    assert used.value.code is grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(RefusedError, match="the stream has role ''; open another") as role:
        arbitration.bid("a", 6, "sdn")
    assert role.value.code is grpc.StatusCode.FAILED_PRECONDITION
    assert arbitration.primaries == ("a",)
    assert arbitration.may_write(5)
    assert arbitration.leave("b") == ()


def test_every_role_has_an_election_of_its_own() -> None:
    arbitration = Arbitration()
    assert arbitration.bid("a", 5) == (Notice("a", PRIMARY, 5),)
    assert arbitration.bid("b", 5, "sdn") == (Notice("b", PRIMARY, 5, "sdn"),)
    assert arbitration.bid("c", 4, "sdn") == (Notice("c", BACKUP, 5, "sdn"),)
    assert arbitration.primaries == ("a", "b")
    assert not arbitration.is_primary("c")
    assert arbitration.may_write(5, "sdn")
    assert not arbitration.may_write(5, "other")
    assert not arbitration.may_write(None, "other")
    # who leaves is of no interest to other roles
    assert arbitration.leave("b") == (Notice("c", PRIMARY, 4, "sdn"),)
    assert arbitration.may_write(4, "sdn")
    assert arbitration.primaries == ("a", "c")


def test_streams_are_limited() -> None:
    arbitration = Arbitration()
    for i in range(MAX_STREAMS):
        arbitration.bid(i, i)
    with pytest.raises(RefusedError, match="Too many connections") as many:
        arbitration.bid("one more", MAX_STREAMS)
    assert many.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert arbitration.bid(0, 100)[0].election_id == 100


def test_one_off_tools_write_while_nobody_is_connected() -> None:
    arbitration = Arbitration()
    assert arbitration.may_write(None)
    assert not arbitration.may_write(1)
    arbitration.bid("a", 1)
    assert arbitration.may_write(1)
    assert not arbitration.may_write(None)
    assert not arbitration.may_write(2)


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, (1 << 128) - 1))),
        max_size=30,
    )
)
def test_whatever_happens_the_last_notices_are_true(steps: list[tuple[int, int | None]]) -> None:
    arbitration = Arbitration()
    bids: dict[object, int] = {}
    told: dict[object, Notice] = {}
    for stream, election_id in steps:
        if election_id is None:
            notices = arbitration.leave(stream)
            bids.pop(stream, None)
            told.pop(stream, None)
        elif election_id in (bid for other, bid in bids.items() if other != stream):
            with pytest.raises(RefusedError):
                arbitration.bid(stream, election_id)
            continue
        else:
            notices = arbitration.bid(stream, election_id)
            bids[stream] = election_id
        told |= {notice.stream: notice for notice in notices}
        highest = max(bids.values(), default=None)
        assert told == {
            stream: Notice(stream, PRIMARY if bid == highest else BACKUP, highest)
            for stream, bid in bids.items()
        }
