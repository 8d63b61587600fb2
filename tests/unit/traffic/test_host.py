"""A host hands each frame to the endpoint of its job and answers pings, nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from tests.unit.traffic.hosts import JOB, answer, contribution, destination, worker
from traffic.errors import ConfigError
from traffic.host import Host
from traffic.message import decode_frame

MAC = "02:00:00:01:00:00"
IP_ADDRESS = "10.1.0.0"
ASKER_MAC = "02:00:00:00:aa:01"


def two_jobs() -> Host:
    return Host("h", MAC, IP_ADDRESS, [worker(0, 2, chunks=1), worker(0, 2, chunks=1, job=JOB + 1)])


def test_frames_go_to_the_endpoint_of_their_job() -> None:
    host = two_jobs()
    assert [decode_frame(frame).job for frame in host.start(0)] == [JOB, JOB + 1]
    first, second = host.endpoints.values()
    host.receive(answer(worker(0, 2, job=JOB + 1).config, 0), 1)
    assert (first.done, second.done, host.finished) == (False, True, False)
    host.receive(answer(worker(0, 2).config, 0), 2)
    assert (first.done, host.finished) == (True, True)


def test_deadlines_and_ticks_are_those_of_the_endpoints() -> None:
    early = worker(0, 2, chunks=1, initial_timeout=50, min_timeout=1)
    late = worker(0, 2, chunks=1, job=JOB + 1, initial_timeout=80, min_timeout=1)
    host = Host("h", MAC, IP_ADDRESS, [late, early])
    assert host.next_deadline is None
    host.start(0)
    assert host.next_deadline == 50
    assert [decode_frame(frame).job for frame in host.tick(50)] == [JOB]
    assert host.next_deadline == 80


def test_a_failed_endpoint_counts_as_finished() -> None:
    host = Host("h", MAC, IP_ADDRESS, [worker(0, 2, chunks=1, max_tries=1)])
    host.start(0)
    assert not host.finished
    host.tick(10**12)
    assert host.finished


def test_jobs_come_and_go() -> None:
    host = two_jobs()
    with pytest.raises(ConfigError, match="host h takes part in job 7 already"):
        host.attach(worker(0, 2))
    host.detach(JOB)
    host.detach(JOB)
    assert list(host.endpoints) == [JOB + 1]
    assert host.receive(answer(worker(0, 2).config, 0), 1) == []
    assert host.ignored == {"no-such-job": 1}


def test_answers_with_ip_options_reach_their_endpoint() -> None:
    host = two_jobs()
    host.start(0)
    packet = Ether(answer(worker(0, 2).config, 0))
    packet[IP].options = b"\x01\x01\x01\x00"
    del packet[IP].ihl, packet[IP].len, packet[IP].chksum
    host.receive(bytes(packet), 1)
    assert host.endpoints[JOB].done


def test_a_ping_is_answered_as_scapy_would() -> None:
    host = two_jobs()
    request = (
        Ether(src=ASKER_MAC, dst=MAC)
        / IP(src="10.7.0.1", dst=IP_ADDRESS)
        / ICMP(id=77, seq=3)
        / Raw(b"odd")
    )
    (frame,) = host.receive(bytes(request), 0)
    reply = Ether(frame)
    assert (reply.src, reply.dst) == (MAC, ASKER_MAC)
    assert (reply[IP].src, reply[IP].dst) == (IP_ADDRESS, "10.7.0.1")
    assert (reply[ICMP].type, reply[ICMP].id, reply[ICMP].seq) == (0, 77, 3)
    assert bytes(reply[Raw]) == b"odd"
    checked = reply.copy()
    del checked[IP].chksum, checked[ICMP].chksum
    assert bytes(checked) == frame


def test_hosts_ping_each_other() -> None:
    asker = Host("a", ASKER_MAC, "10.7.0.1")
    host = two_jobs()
    (reply,) = host.receive(asker.ping(MAC, IP_ADDRESS, identifier=5, sequence=2), 0)
    assert asker.receive(reply, 1) == []
    (echo,) = asker.echo_replies
    assert (echo.identifier, echo.sequence, echo.src_ip) == (5, 2, bytes([10, 1, 0, 0]))


def test_everything_else_is_ignored_by_reason() -> None:
    host = two_jobs()
    to_host = Ether(src=ASKER_MAC, dst=MAC)
    frames = {
        "not-ipv4": to_host / ARP(pdst=IP_ADDRESS),
        "other-mac": Ether(src=ASKER_MAC, dst=ASKER_MAC) / IP(dst=IP_ADDRESS) / ICMP(),
        "other-protocol": to_host / IP(dst=IP_ADDRESS, proto=6),
        "other-icmp": to_host / IP(dst="10.1.0.9") / ICMP(),
        "truncated": to_host / IP(dst=IP_ADDRESS) / UDP(dport=53),
        "no-such-job": to_host / IP(dst=IP_ADDRESS) / UDP(dport=53) / Raw(bytes(40)),
        "bad-icmp-checksum": to_host / IP(dst=IP_ADDRESS) / ICMP(chksum=1),
    }
    for frame in frames.values():
        assert host.receive(bytes(frame), 0) == []
    assert host.ignored == dict.fromkeys(frames, 1)


@given(st.binary(max_size=120), st.sampled_from([1, 17]))
def test_no_bytes_crash_a_host(data: bytes, protocol: int) -> None:
    host = two_jobs()
    host.receive(data, 0)
    head = bytearray(answer(worker(0, 2).config, 0)[:34])
    head[23] = protocol
    host.receive(bytes(head) + data, 0)
    assert not any(endpoint.done for endpoint in host.endpoints.values())


def test_a_destination_is_an_endpoint_too() -> None:
    dest = destination([frozenset({0})], 1, chunks=1)
    host = Host("d", "02:00:00:00:ff:01", "10.9.0.1", [dest])
    assert host.start(0) == []
    assert len(host.receive(contribution(1, [1] * 32), 0)) == 1
    assert host.finished
    assert host.tick(10) == []
