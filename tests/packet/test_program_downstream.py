"""The way down: what the destination answers reaches every child, fit for a host's own socket."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from p4src.constants import AGG_UDP_PORT, Flag, Outcome
from tests.packet.program import (
    CHILD,
    IDLE_PORT,
    PARENT_PORT,
    WORKER_UDP_PORT,
    WORKERS,
    BluetreeSwitch,
    Job,
    route,
)
from tests.packet.program_frames import (
    answer,
    contribution,
    fanned_out,
    is_sound,
    lanes,
    remade,
    routed,
    sum_to_parent,
    summed,
    with_options,
)
from tests.packet.targets import Target
from topologies.network import mac_text
from traffic.message import decode_datagram, group_ip, group_mac

JOB = Job(sources=(*WORKERS, CHILD))
FIRST = WORKERS[0]


@pytest.fixture
def switch(target: Target) -> BluetreeSwitch:
    """The shipped program with five workers and a child switch in JOB."""
    return BluetreeSwitch(target, JOB)


@pytest.mark.parametrize("factor", [1, 3])
@pytest.mark.parametrize("flags", [0, Flag.RESENT, Flag.OVERFLOW])
def test_a_result_reaches_every_child(switch: BluetreeSwitch, factor: int, flags: int) -> None:
    frame = answer(7, lanes(1, factor), flags=flags)
    copies = fanned_out(frame, JOB.sources)
    assert all(is_sound(copy) for _, copy in copies)
    switch.check_all([(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, copies)


def test_an_acknowledgement_reaches_every_child(switch: BluetreeSwitch) -> None:
    frame = answer(7, None)
    switch.check_all(
        [(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, fanned_out(frame, JOB.sources)
    )


def test_a_copy_at_a_host_is_what_its_kernel_takes(switch: BluetreeSwitch) -> None:
    """Its own MAC and IPv4 address, its socket's port, checksums right or absent."""
    for values in (lanes(1), lanes(1, 3), None):
        copies = dict(switch.target.exchange(PARENT_PORT, answer(7, values)))
        assert sorted(copies) == [source.port for source in JOB.sources]
        for worker in WORKERS:
            packet = Ether(copies[worker.port])
            assert packet.dst == mac_text(worker.mac)
            assert (packet[IP].dst, packet[IP].ttl) == (worker.ip, 254)
            assert (packet[UDP].sport, packet[UDP].dport) == (AGG_UDP_PORT, WORKER_UDP_PORT)
            assert packet[UDP].chksum == 0
            assert is_sound(copies[worker.port])
            datagram = decode_datagram(copies[worker.port])
            assert datagram.message.values == (values or ())


def test_a_copy_to_a_switch_keeps_the_group(switch: BluetreeSwitch) -> None:
    frame = answer(7, lanes(1))
    copies = dict(switch.target.exchange(PARENT_PORT, frame))
    packet = Ether(copies[CHILD.port])
    assert packet.dst == group_mac(group_ip(1))
    assert (packet[IP].dst, packet[IP].ttl) == (group_ip(1), 254)
    assert packet[UDP].dport == AGG_UDP_PORT
    assert packet[UDP].chksum == Ether(frame)[UDP].chksum
    assert is_sound(copies[CHILD.port])


def test_options_travel_down(switch: BluetreeSwitch) -> None:
    frames = [
        with_options(answer(7, values), words) for values in (lanes(1), None) for words in (1, 10)
    ]
    for frame in frames:
        copies = fanned_out(frame, JOB.sources)
        switch.check_all([(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, copies)


def test_nobody_but_the_parent_may_answer(switch: BluetreeSwitch) -> None:
    for port in (*(source.port for source in JOB.sources), IDLE_PORT):
        for values in (lanes(1), None):
            switch.check(port, answer(7, values), Outcome.UNREGISTERED)


def test_answers_to_other_jobs_are_refused(switch: BluetreeSwitch) -> None:
    for job in (0, 2, 257, 2**16 - 1):
        switch.check(PARENT_PORT, answer(7, lanes(1), job=job), Outcome.UNREGISTERED)


def test_each_job_has_children_of_its_own(target: Target) -> None:
    jobs = [
        Job(job=1, sources=WORKERS[:3]),
        Job(job=2, sources=WORKERS[2:], slot_base=4),
        Job(job=1024, sources=(WORKERS[0], CHILD), slot_base=8),
    ]
    switch = BluetreeSwitch(target, *jobs)
    for job in jobs:
        frame = answer(7, lanes(job.job), job=job.job)
        copies = fanned_out(frame, job.sources)
        switch.check_all([(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, copies)


def test_a_group_that_is_not_there_drops_but_counts(target: Target) -> None:
    switch = BluetreeSwitch(target)
    switch.target.insert(*JOB.membership())
    switch.check(PARENT_PORT, answer(7, lanes(1)), Outcome.FANNED_OUT)
    switch.target.insert(JOB.group())
    frame = answer(7, lanes(1, 3))
    switch.check_all(
        [(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, fanned_out(frame, JOB.sources)
    )


def test_an_answer_to_one_address_is_routed(switch: BluetreeSwitch) -> None:
    """To a host whose port has an entry: nothing of it is rewritten."""
    switch.target.insert(route(FIRST.address, 32, FIRST.port, FIRST.mac))
    for values in (lanes(1), None):
        for udp_port in (AGG_UDP_PORT, WORKER_UDP_PORT):
            frame = answer(7, values, dst=FIRST.ip, udp_port=udp_port)
            switch.check(PARENT_PORT, frame, Outcome.ROUTED, routed(frame, FIRST.port, FIRST.mac))
            lost = answer(7, values, dst="192.0.2.1", udp_port=udp_port)
            switch.check(PARENT_PORT, lost, Outcome.NO_ROUTE)


def test_nobody_but_the_parent_may_answer_a_single_worker(switch: BluetreeSwitch) -> None:
    """Else any host could hand a worker a wrong sum, at the port of its socket."""
    switch.target.insert(route(FIRST.address, 32, FIRST.port, FIRST.mac))
    for port in (*(source.port for source in JOB.sources), IDLE_PORT):
        for values in (lanes(1), None):
            for udp_port in (AGG_UDP_PORT, WORKER_UDP_PORT, 1, 2**16 - 1):
                frame = answer(7, values, dst=FIRST.ip, udp_port=udp_port)
                switch.check(port, frame, Outcome.UNREGISTERED)
    for job in (0, 2, 2**16 - 1):
        frame = answer(7, lanes(1), dst=FIRST.ip, udp_port=WORKER_UDP_PORT, job=job)
        switch.check(PARENT_PORT, frame, Outcome.UNREGISTERED)


def test_the_edges_of_the_multicast_addresses(switch: BluetreeSwitch) -> None:
    """224.0.0.0/4 is fanned out whatever the group is; its neighbours are routed."""
    for address in ("224.0.0.0", "239.255.255.255"):
        frame = answer(7, lanes(1), dst=address)
        copies = fanned_out(frame, JOB.sources)
        switch.check_all([(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, copies)
    for address in ("223.255.255.255", "240.0.0.0"):
        switch.check(PARENT_PORT, answer(7, lanes(1), dst=address), Outcome.NO_ROUTE)


def test_an_answer_ages(switch: BluetreeSwitch) -> None:
    for ttl in (0, 1):
        packet = Ether(answer(7, lanes(1)))
        packet[IP].ttl = ttl
        switch.check(PARENT_PORT, remade(packet), Outcome.TTL_EXPIRED)
    packet = Ether(answer(7, lanes(1)))
    packet[IP].ttl = 2
    frame = remade(packet)
    copies = fanned_out(frame, JOB.sources)
    assert {Ether(copy)[IP].ttl for _, copy in copies} == {1}
    switch.check_all([(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, copies)


def test_answers_touch_no_slot(target: Target) -> None:
    job = Job(sources=WORKERS[:2])
    switch = BluetreeSwitch(target, job)
    for factor, chunk in ((1, 0), (3, job.window)):
        first, second = (
            contribution(source, chunk, lanes(source.source, factor)) for source in job.sources
        )
        switch.check(job.sources[0].port, first, Outcome.ABSORBED)
        for values in (lanes(9), None):
            for answered in (chunk, chunk + job.window):
                frame = answer(answered, values)
                copies = fanned_out(frame, job.sources)
                switch.check_all([(PARENT_PORT, frame)], {Outcome.FANNED_OUT: 1}, copies)
        expected = summed(*(lanes(source.source, factor) for source in job.sources))
        leaving = sum_to_parent(second, job, expected)
        switch.check(job.sources[1].port, second, Outcome.EMITTED, leaving)
    assert switch.messages() == (2, 0)
