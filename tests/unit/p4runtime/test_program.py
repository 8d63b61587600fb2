"""Switch programs as values."""

from __future__ import annotations

import pytest

from controller.program import (
    CloneSession,
    MulticastGroup,
    Op,
    ProgramError,
    SwitchProgram,
    TableEntry,
    Update,
)


def test_entries_are_equal_whatever_order_they_were_written_in() -> None:
    one = TableEntry("t", (("b", 1), ("a", (2, 3))), "act", (("y", 1), ("x", 2)))
    other = TableEntry.of("t", {"a": (2, 3), "b": 1}, "act", {"x": 2, "y": 1})
    assert one == other
    assert len({one, other}) == 1
    assert one.match == (("a", (2, 3)), ("b", 1))
    assert one.key == ("t", (("a", (2, 3)), ("b", 1)), 0)


def test_entries_read_as_one_line() -> None:
    entry = TableEntry.of("t", {"b": 1, "a": (2, 3)}, "act", {"x": 2}, priority=4)
    assert str(Update(Op.INSERT, entry)) == "insert t[a=(2, 3), b=1] priority 4 -> act(x=2)"
    assert str(MulticastGroup(3, ((2, 1), (1, 0)))) == "multicast group 3 {1.0, 2.1}"


def test_contradictions_are_refused_by_name() -> None:
    with pytest.raises(ProgramError, match="table t: match field a is given twice"):
        TableEntry("t", (("a", 1), ("a", 2)), "act")
    with pytest.raises(ProgramError, match="table t: parameter x is given twice"):
        TableEntry("t", (), "act", (("x", 1), ("x", 1)))
    with pytest.raises(ProgramError, match="multicast group 0: ids start at 1"):
        MulticastGroup(0, ())
    with pytest.raises(ProgramError, match="multicast group 2: port 1 with instance 5 is listed"):
        MulticastGroup(2, ((1, 5), (2, 5), (1, 5)))
    with pytest.raises(ProgramError, match="clone session 0: ids start at 1"):
        CloneSession(0, ())
    one = TableEntry.of("t", {"a": 1}, "act")
    other = TableEntry.of("t", {"a": 1}, "other")
    with pytest.raises(ProgramError, match=r"s1: entries with one key: t\[a=1\] -> act\(\); t"):
        SwitchProgram("s1", (one, other))
    with pytest.raises(ProgramError, match="s1: multicast group 1 is listed twice"):
        SwitchProgram("s1", groups=(MulticastGroup(1, ()), MulticastGroup(1, ((1, 1),))))
