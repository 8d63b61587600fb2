"""The fast path and the scapy layers are two readings of one header."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from p4src.constants import AGG_VERSION
from traffic.errors import ConfigError, DecodeError, EncodeError, Refusal
from traffic.message import (
    HEADER,
    HEADER_BYTES,
    LANES,
    Flag,
    Flow,
    FrameEncoder,
    Kind,
    Message,
    decode_datagram,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
    group_ip,
    group_mac,
    internet_checksum,
    pack_lanes,
)
from traffic.wire import Aggregation, Lanes

FLOW = Flow("02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", "10.0.0.2", 40001)
LANE = st.integers(-(2**31), 2**31 - 1)
LANE_VALUES = st.lists(LANE, min_size=LANES, max_size=LANES)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    kind = draw(st.sampled_from(Kind))
    lanes = b"" if kind is Kind.ACK else pack_lanes(draw(LANE_VALUES))
    return Message(
        kind=kind.value,
        flags=draw(st.integers(0, 255)),
        job=draw(st.integers(1, 2**16 - 1)),
        source=draw(st.integers(1, 2**16 - 1)),
        epoch=draw(st.integers(1, 2**32 - 1)),
        chunk=draw(st.integers(0, 2**32 - 1)),
        weight=draw(st.integers(0, 2**16 - 1)),
        lanes=lanes,
        exponent=draw(st.integers(0, 2**16 - 1)),
    )


@given(messages())
def test_round_trip(message: Message) -> None:
    assert decode_message(encode_message(message)) == message
    assert decode_frame(encode_frame(FLOW, message)) == message


@given(messages())
def test_scapy_reads_what_the_fast_path_writes(message: Message) -> None:
    packet = Ether(encode_frame(FLOW, message))
    header = packet[Aggregation]
    for field in ("kind", "flags", "job", "source", "epoch", "chunk", "weight", "exponent"):
        assert int(getattr(header, field)) == getattr(message, field)
    assert header.lane_count == LANES
    if message.kind == Kind.ACK:
        assert Lanes not in packet
    else:
        assert tuple(packet[Lanes].values) == message.values


@given(messages())
def test_both_build_the_same_bytes_and_checksums(message: Message) -> None:
    header = Aggregation(
        kind=message.kind,
        flags=message.flags,
        job=message.job,
        source=message.source,
        epoch=message.epoch,
        chunk=message.chunk,
        weight=message.weight,
        exponent=message.exponent,
    )
    payload = header / Lanes(values=list(message.values)) if message.lanes else header
    packet = (
        Ether(src=FLOW.src_mac, dst=FLOW.dst_mac)
        / IP(src=FLOW.src_ip, dst=FLOW.dst_ip, ttl=255, id=0, flags="DF")
        / UDP(sport=FLOW.src_port, dport=FLOW.dst_port)
        / payload
    )
    assert bytes(packet) == FrameEncoder(FLOW).encode(message)


@given(messages(), st.data())
def test_a_truncated_frame_is_an_error_and_nothing_else(
    message: Message, data: st.DataObject
) -> None:
    frame = encode_frame(FLOW, message)
    cut = data.draw(st.integers(0, len(frame) - 1))
    with pytest.raises(DecodeError) as caught:
        decode_frame(frame[:cut])
    assert caught.value.reason in {Refusal.TRUNCATED}


@given(st.binary(max_size=250))
def test_any_bytes_decode_or_raise_decode_error(data: bytes) -> None:
    for decode in (decode_message, decode_frame):
        with contextlib.suppress(DecodeError):
            assert isinstance(decode(data), Message)


@given(messages(), st.data())
def test_a_harmed_byte_is_noticed_or_harmless(message: Message, data: st.DataObject) -> None:
    frame = bytearray(encode_frame(FLOW, message))
    at = data.draw(st.integers(14, len(frame) - 1))
    frame[at] ^= data.draw(st.integers(1, 255))
    try:
        decoded = decode_datagram(bytes(frame))
    except DecodeError:
        return
    # A UDP checksum of 0 means none: both of its bytes would have to be harmed.
    assert decoded.message == message
    assert at in (40, 41)


def valid_payload(**changes: int) -> bytes:
    fields = {
        "version": AGG_VERSION,
        "kind": 1,
        "flags": 0,
        "lane_count": LANES,
        "job": 1,
        "source": 2,
        "epoch": 3,
        "chunk": 4,
        "weight": 1,
        "exponent": 0,
    }
    fields.update(changes)
    return struct.pack("!BBBBHHIIHH", *fields.values()) + bytes(4 * LANES)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (valid_payload(version=1), Refusal.BAD_VERSION),
        (valid_payload(kind=0), Refusal.UNKNOWN_KIND),
        (valid_payload(kind=5), Refusal.UNKNOWN_KIND),
        (valid_payload(lane_count=LANES - 1), Refusal.BAD_LANE_COUNT),
        (valid_payload(job=0), Refusal.ZERO_ID),
        (valid_payload(source=0), Refusal.ZERO_ID),
        (valid_payload(epoch=0), Refusal.ZERO_ID),
        (valid_payload(kind=3), Refusal.BAD_LENGTH),
        (valid_payload()[:-4], Refusal.BAD_LENGTH),
        (valid_payload() + b"\x00", Refusal.BAD_LENGTH),
        (valid_payload()[: HEADER_BYTES - 1], Refusal.TRUNCATED),
    ],
)
def test_bad_payloads_say_what_is_wrong(payload: bytes, reason: Refusal) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_message(payload)
    assert caught.value.reason is reason


def with_fixed_checksum(frame: bytes) -> bytes:
    """The frame with its IPv4 checksum made right again."""
    end = 14 + (frame[14] & 0xF) * 4
    blank = frame[14:24] + b"\x00\x00" + frame[26:end]
    return frame[:24] + internet_checksum(blank).to_bytes(2, "big") + frame[26:]


CONTRIBUTION = Message(Kind.CONTRIBUTE, 0, 1, 2, 3, 4, 1, bytes(4 * LANES))


def test_bad_frames_say_what_is_wrong() -> None:
    good = encode_frame(FLOW, CONTRIBUTION)
    cases = {
        Refusal.NOT_IPV4: good[:12] + b"\x86\xdd" + good[14:],
        Refusal.NOT_UDP: with_fixed_checksum(good[:23] + b"\x06" + good[24:]),
        Refusal.FRAGMENT: with_fixed_checksum(good[:20] + b"\x20\x00" + good[22:]),
        Refusal.BAD_IPV4_CHECKSUM: good[:22] + b"\x01" + good[23:],
        Refusal.BAD_IPV4_HEADER: with_fixed_checksum(good[:14] + b"\x44" + good[15:]),
        Refusal.BAD_UDP_CHECKSUM: good[:-1] + b"\x01",
        Refusal.BAD_LENGTH: good[:38] + b"\x00\x20" + good[40:],
    }
    for reason, frame in cases.items():
        with pytest.raises(DecodeError) as caught:
            decode_frame(frame)
        assert caught.value.reason is reason, reason


def test_ip_options_padding_and_absent_udp_checksum_are_accepted() -> None:
    good = encode_frame(FLOW, CONTRIBUTION)
    optioned = bytearray(good[:34] + b"\x01\x01\x01\x00" + good[34:])
    optioned[14] = 0x46
    optioned[16:18] = (len(good) + 4 - 14).to_bytes(2, "big")
    assert decode_frame(with_fixed_checksum(bytes(optioned))) == CONTRIBUTION
    assert decode_frame(good + bytes(6)) == CONTRIBUTION
    assert decode_frame(good[:40] + b"\x00\x00" + good[42:]) == CONTRIBUTION


def test_encoding_names_the_field_that_does_not_fit() -> None:
    with pytest.raises(EncodeError, match="job is 65536: the field has 16 bits"):
        encode_message(Message(Kind.ACK, 0, 65536, 1, 1, 0, 1))
    with pytest.raises(EncodeError, match="chunk is -1"):
        encode_message(Message(Kind.ACK, 0, 1, 1, 1, -1, 1))
    with pytest.raises(EncodeError, match="lane 2 is 2147483648"):
        pack_lanes([0, 1, 2**31])
    with pytest.raises(EncodeError, match="carries 128 bytes of lanes, not 4"):
        encode_message(Message(Kind.RESULT, 0, 1, 1, 1, 0, 1, bytes(4)))
    with pytest.raises(EncodeError, match="carries 0 bytes of lanes, not 128"):
        encode_message(Message(Kind.ACK, 0, 1, 1, 1, 0, 1, bytes(128)))


def test_addresses_are_checked() -> None:
    for flow, text in (
        (Flow("02:00", "02:00:00:00:00:02", "10.0.0.1", "10.0.0.2", 1), "no MAC address"),
        (Flow(FLOW.src_mac, FLOW.dst_mac, "10.0.0", "10.0.0.2", 1), "no IPv4 address"),
        (Flow(FLOW.src_mac, FLOW.dst_mac, "10.0.0.1", "10.0.0.2", 0), "src_port is 0"),
    ):
        with pytest.raises(ConfigError, match=text):
            FrameEncoder(flow)


def test_group_addresses() -> None:
    assert group_ip(0x1234) == "239.66.18.52"
    assert group_mac("239.194.18.52") == "01:00:5e:42:12:34"


def test_other_lane_counts() -> None:
    message = Message(Kind.CONTRIBUTE, 0, 1, 2, 3, 4, 1, pack_lanes([1, -2, 3]))
    assert decode_message(encode_message(message, lanes=3), lanes=3) == message


def test_header_is_twenty_bytes_of_known_layout() -> None:
    assert sum(field.bits for field in HEADER) == 8 * HEADER_BYTES == 160
    message = Message(Kind.ACK, Flag.RESENT, 0x0102, 0x0304, 5, 6, 7, exponent=0x0809)
    assert encode_message(message) == bytes.fromhex(
        "02 03 04 20 0102 0304 00000005 00000006 0007 0809"
    )
