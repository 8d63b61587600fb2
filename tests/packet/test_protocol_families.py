"""The seven families of cases that a protocol of this kind must pass, and repair beside them.

A family is in the name of its tests. Values come x1 and then x3 through the same slots without a
reset between, so that what a slot kept of an earlier chunk would show. test_program_slots.py has
more of each; these also let answers come down, as in a run.
"""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from p4src.constants import Flag, Kind, Outcome
from tests.packet.program import (
    CHILD,
    OWN_SOURCE,
    PARENT_MAC,
    PARENT_PORT,
    WORKERS,
    BluetreeSwitch,
    Job,
    Source,
)
from tests.packet.program_frames import (
    DESTINATION_IP,
    answer,
    contribution,
    fanned_out,
    lanes,
    remade,
    requesting,
    source_set,
    sum_to_parent,
    summed,
    to_parent,
)
from tests.packet.targets import Target
from topologies.network import mac_text
from traffic.wire import Aggregation, Lanes

JOB = Job(sources=(*WORKERS[:3], CHILD))
ROUNDS = ((0, 1), (JOB.window, 3))
"""Chunks of one slot, each with the factor of its values."""
LAST = len(JOB.sources) - 1


@pytest.fixture
def switch(target: Target) -> BluetreeSwitch:
    """The shipped program, blue for JOB, that stores answers and knows who is behind each port."""
    made = BluetreeSwitch(target, JOB)
    target.insert(*JOB.repair())
    return made


def _frame(i: int, chunk: int, factor: int, flags: int = 0) -> bytes:
    source = JOB.sources[i]
    return contribution(source, chunk, lanes(source.source, factor), flags=flags)


def _total(factor: int) -> tuple[int, ...]:
    return summed(*(lanes(source.source, factor) for source in JOB.sources))


def _send(switch: BluetreeSwitch, i: int, chunk: int, factor: int, flags: int = 0) -> None:
    """Source i contributes, and no other has to be waited for before the last."""
    frame = _frame(i, chunk, factor, flags)
    if i == LAST:
        leaving = sum_to_parent(frame, JOB, _total(factor))
        switch.check(JOB.sources[i].port, frame, Outcome.EMITTED, leaving)
    else:
        switch.check(JOB.sources[i].port, frame, Outcome.ABSORBED)


def _complete(switch: BluetreeSwitch, chunk: int, factor: int) -> None:
    for i in range(LAST + 1):
        _send(switch, i, chunk, factor)


def _answered(switch: BluetreeSwitch, chunk: int, values: tuple[int, ...] | None) -> bytes:
    frame = answer(chunk, values)
    copies = fanned_out(frame, JOB.sources)
    switch.check_all([(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, copies)
    return frame


def _stored(frame: bytes, asking: bytes, source: Source) -> tuple[int, bytes]:
    """The stored answer `frame` on its way to who sent `asking`."""
    packet = Ether(frame)
    packet.src = Ether(asking).dst
    packet[Aggregation].flags = int(packet[Aggregation].flags) | Flag.RESENT
    packet[UDP].chksum = 0
    packet[IP].ttl = 255
    if source is not CHILD:
        ((_, to_host),) = [
            copy for copy in fanned_out(remade(packet), [source]) if copy[0] == source.port
        ]
        packet = Ether(to_host)
        packet[IP].ttl = 255
    return source.port, remade(packet)


def _asked(frame: bytes, missing: list[int]) -> list[tuple[int, bytes]]:
    """The copies of a request: to the missing sources only, with their set."""
    packet = Ether(frame)
    packet[Lanes].values = source_set(sum(1 << i for i in missing))
    packet[UDP].chksum = 0
    return fanned_out(bytes(packet), [JOB.sources[i] for i in missing])


def test_basic_reduction(switch: BluetreeSwitch) -> None:
    for chunk, factor in ROUNDS:
        _complete(switch, chunk, factor)
        _answered(switch, chunk, _total(factor))


def test_retransmit_before_completion(switch: BluetreeSwitch) -> None:
    for chunk, factor in ROUNDS:
        for i in range(LAST):
            _send(switch, i, chunk, factor)
            again = _frame(i, chunk, factor, Flag.RESENT)
            switch.check(JOB.sources[i].port, again, Outcome.DUPLICATE)
        _send(switch, LAST, chunk, factor)


@pytest.mark.parametrize("acknowledged", [False, True])
def test_retransmit_after_completion(switch: BluetreeSwitch, acknowledged: bool) -> None:
    """Before the answer has come down the sum goes up again; after that the answer comes back."""
    for chunk, factor in ROUNDS:
        _complete(switch, chunk, factor)
        for i, source in enumerate(JOB.sources):
            again = _frame(i, chunk, factor, Flag.RESENT)
            leaving = sum_to_parent(again, JOB, _total(factor), Flag.RESENT)
            switch.check(source.port, again, Outcome.REEMITTED, leaving)
        frame = _answered(switch, chunk, None if acknowledged else _total(factor))
        for i, source in enumerate(JOB.sources):
            again = _frame(i, chunk, factor, Flag.RESENT)
            switch.check(source.port, again, Outcome.ANSWERED, _stored(frame, again, source))


def test_slot_reuse(switch: BluetreeSwitch) -> None:
    for turn in range(5):
        chunk, factor = turn * JOB.window, (1, 3)[turn % 2]
        _complete(switch, chunk, factor)
        _answered(switch, chunk, _total(factor))


def test_late_packet_of_an_older_chunk(switch: BluetreeSwitch) -> None:
    """Its answer is stored until the next of the slot: then it is the destination's to answer."""
    _complete(switch, 0, 1)
    first = _answered(switch, 0, _total(1))
    for i in range(LAST):
        _send(switch, i, JOB.window, 3)
    late = _frame(0, 0, 1, Flag.RESENT)
    switch.check(JOB.sources[0].port, late, Outcome.ANSWERED, _stored(first, late, JOB.sources[0]))
    _send(switch, LAST, JOB.window, 3)
    _answered(switch, JOB.window, _total(3))
    leaving = to_parent(late, flags=Flag.RESENT | Flag.LATE)
    switch.check(JOB.sources[0].port, late, Outcome.FORWARDED_LATE, leaving)


def test_both_windows_in_flight(switch: BluetreeSwitch) -> None:
    """Whoever has the answer goes on, in the same slot, while another still asks for it."""
    for turn in range(3):
        chunk, factor = turn * 2 * JOB.window, (1, 3)[turn % 2]
        _complete(switch, chunk, factor)
        frame = _answered(switch, chunk, _total(factor))
        _send(switch, 0, chunk + JOB.window, 4 - factor)
        again = _frame(1, chunk, factor, Flag.RESENT)
        switch.check(
            JOB.sources[1].port, again, Outcome.ANSWERED, _stored(frame, again, JOB.sources[1])
        )
        for i in range(1, LAST + 1):
            _send(switch, i, chunk + JOB.window, 4 - factor)
        _answered(switch, chunk + JOB.window, _total(4 - factor))


def test_duplicate_of_every_packet(switch: BluetreeSwitch) -> None:
    for chunk, factor in ROUNDS:
        for i, source in enumerate(JOB.sources):
            _send(switch, i, chunk, factor)
            frame = _frame(i, chunk, factor)
            if i < LAST:
                switch.check(source.port, frame, Outcome.DUPLICATE)
            else:
                leaving = sum_to_parent(frame, JOB, _total(factor), Flag.RESENT)
                switch.check(source.port, frame, Outcome.REEMITTED, leaving)
        for _ in range(2):
            _answered(switch, chunk, _total(factor))


@pytest.mark.parametrize("lost", range(len(JOB.sources)))
def test_loss_of_every_packet_up(switch: BluetreeSwitch, lost: int) -> None:
    """One is lost: a request goes to that source alone, and what it repeats completes the slot."""
    for chunk, factor in ROUNDS:
        for i, source in enumerate(JOB.sources):
            if i != lost:
                switch.check(source.port, _frame(i, chunk, factor), Outcome.ABSORBED)
        request = requesting(chunk, 1)
        copies = _asked(request, [lost])
        switch.check_all([(PARENT_PORT, request)], {Outcome.FANNED_OUT: 1}, copies)
        again = _frame(lost, chunk, factor, Flag.RESENT)
        leaving = sum_to_parent(again, JOB, _total(factor))
        switch.check(JOB.sources[lost].port, again, Outcome.EMITTED, leaving)


def test_loss_of_every_packet_up_the_sum(switch: BluetreeSwitch) -> None:
    """The sum itself is lost: a request meets the full slot and is turned into it."""
    for chunk, factor in ROUNDS:
        _complete(switch, chunk, factor)
        packet = Ether(requesting(chunk, 1))
        group = packet[IP].dst
        packet.dst = mac_text(PARENT_MAC)
        packet[IP].src, packet[IP].dst, packet[IP].ttl = group, DESTINATION_IP, 254
        packet[UDP].chksum = 0
        header = packet[Aggregation]
        header.kind, header.source, header.flags = Kind.CONTRIBUTE, OWN_SOURCE, Flag.RESENT
        header.weight = JOB.weight
        packet[Lanes].values = list(_total(factor))
        leaving = (PARENT_PORT, remade(packet))
        switch.check(PARENT_PORT, requesting(chunk, 1), Outcome.REEMITTED, leaving)


@pytest.mark.parametrize("lost", range(len(JOB.sources)))
def test_loss_of_every_packet_down(switch: BluetreeSwitch, lost: int) -> None:
    """The copy for one source is lost: what it repeats is answered here, and goes no further."""
    for chunk, factor in ROUNDS:
        _complete(switch, chunk, factor)
        frame = _answered(switch, chunk, _total(factor))
        before = switch.messages()
        again = _frame(lost, chunk, factor, Flag.RESENT)
        source = JOB.sources[lost]
        switch.check(source.port, again, Outcome.ANSWERED, _stored(frame, again, source))
        assert switch.messages() == before


def test_requests_for_nothing_yet_ask_all(switch: BluetreeSwitch) -> None:
    """A switch that was restarted, or that nothing has reached: every source is asked."""
    request = requesting(0, 1)
    copies = _asked(request, list(range(LAST + 1)))
    switch.check_all([(PARENT_PORT, request)], {Outcome.FANNED_OUT: 1}, copies)


def test_requests_for_what_is_past_end_here(switch: BluetreeSwitch) -> None:
    _complete(switch, 0, 1)
    _send(switch, 0, JOB.window, 3)
    switch.check(PARENT_PORT, requesting(0, 1), Outcome.STALE)


def test_direct_requests_pass_as_they_came(switch: BluetreeSwitch) -> None:
    _complete(switch, 0, 1)
    request = requesting(0, 0, Flag.DIRECT)
    copies = fanned_out(request, JOB.sources)
    switch.check_all([(PARENT_PORT, request)], {Outcome.FANNED_OUT: 1}, copies)


def test_only_the_parent_asks_and_answers(switch: BluetreeSwitch) -> None:
    """A worker that answers or asks in the destination's place changes nothing for the others."""
    for source in JOB.sources:
        for frame in (requesting(0, 1), answer(0, lanes(9))):
            switch.check(source.port, frame, Outcome.UNREGISTERED)
    switch.check(PARENT_PORT, requesting(0, 1, job=2), Outcome.UNREGISTERED)
    _complete(switch, 0, 1)


def test_answers_of_another_epoch_are_not_stored(switch: BluetreeSwitch) -> None:
    packet = Ether(answer(0, lanes(9)))
    packet[Aggregation].epoch = 2
    del packet[UDP].chksum
    frame = bytes(packet)
    copies = fanned_out(frame, JOB.sources)
    switch.check_all([(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, copies)
    _complete(switch, 0, 1)
