"""The aggregation message and its fast path between bytes and values.

    Ethernet (14) | IPv4 (20, options allowed) | UDP (8) | aggregation header (20) | lanes (4 each)

`HEADER` is the one description of the header on this side: the struct format here, the scapy layer
in `traffic.wire` and the Wireshark dissector are made from it. docs/protocol.md gives the meaning.
Addresses are text ("02:00:00:00:00:01", "10.0.0.1") at the border and bytes within.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

from p4src.constants import AGG_UDP_PORT, AGG_VERSION, LANES, Flag, Kind
from traffic.errors import ConfigError, DecodeError, EncodeError, Refusal


@dataclass(frozen=True, slots=True)
class HeaderField:
    """A field of the aggregation header: name, width in bits, meaning."""

    name: str
    bits: int
    text: str


HEADER: tuple[HeaderField, ...] = (
    HeaderField("version", 8, "Version of this header"),
    HeaderField("kind", 8, "What the message is"),
    HeaderField("flags", 8, "Marks set by workers and switches"),
    HeaderField("lane_count", 8, "Lanes of this build"),
    HeaderField("job", 16, "Reduce that the message belongs to"),
    HeaderField("source", 16, "Worker or blue switch that speaks"),
    HeaderField("epoch", 32, "Generation of the allocation"),
    HeaderField("chunk", 32, "Place in the tensor"),
    HeaderField("weight", 16, "Workers summed in the message"),
    HeaderField("exponent", 16, "Largest exponent that one of them asks for"),
)

_CODES = {8: "B", 16: "H", 32: "I"}
_HEADER = struct.Struct("!" + "".join(_CODES[field.bits] for field in HEADER))
HEADER_BYTES = _HEADER.size
LANE_BYTES = 4
LANE_MIN = -(2**31)
LANE_MAX = 2**31 - 1

ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
ETHERTYPE_IPV4 = b"\x08\x00"
PROTOCOL_UDP = 17
TTL = 255
_DONT_FRAGMENT = 0x4000
_FRAGMENT_BITS = 0x3FFF
_HAS_LANES = frozenset({Kind.CONTRIBUTE.value, Kind.RESULT.value, Kind.REQUEST.value})
_KINDS = frozenset(kind.value for kind in Kind)
# RFC 768: the checksum field of a datagram that carries none.
_NO_CHECKSUM = b"\x00\x00"
# A ones' complement sum of 16-bit words is the number they spell, modulo this.
_ONES = 0xFFFF

MAX_WORKERS = 0xFFFF
"""Workers in one message at most: what `weight` can count."""

DESTINATION_SOURCE = 0xFFFF
"""Source of what the destination sends: no worker or switch has it, as 0 is never valid.

In an answer, a bit of the lower `ANSWER_HISTORY` that is 0 says that an earlier chunk is complete:
bit i stands for the chunk i + 1 before. So whoever lacks that answer knows that it was lost.
"""
ANSWER_HISTORY = 15


@dataclass(frozen=True, slots=True)
class Message:
    """One aggregation message. `lanes` holds big-endian int32 values, empty for an `ACK`.

    `exponent` is kept as the maximum over the summed workers; 0 asks for none.
    """

    kind: int
    flags: int
    job: int
    source: int
    epoch: int
    chunk: int
    weight: int
    lanes: bytes = b""
    exponent: int = 0

    @property
    def values(self) -> tuple[int, ...]:
        """The lanes as integers."""
        return unpack_lanes(self.lanes)


def pack_lanes(values: Sequence[int]) -> bytes:
    """Big-endian int32 of each value; raises EncodeError naming the lane that does not fit."""
    try:
        return struct.pack(f"!{len(values)}i", *values)
    except struct.error:
        for lane, value in enumerate(values):
            if not LANE_MIN <= value <= LANE_MAX:
                raise EncodeError(f"lane {lane} is {value}: a lane holds an int32") from None
        raise


def unpack_lanes(lanes: bytes) -> tuple[int, ...]:
    """Integers of big-endian int32 bytes, of which there must be a whole number."""
    return struct.unpack(f"!{len(lanes) // LANE_BYTES}i", lanes)


def encode_message(message: Message, lanes: int = LANES) -> bytes:
    """The UDP payload of a message; raises EncodeError naming the field that does not fit."""
    expected = lanes * LANE_BYTES if message.kind in _HAS_LANES else 0
    if len(message.lanes) != expected:
        raise EncodeError(
            f"a message of kind {message.kind} carries {expected} bytes of lanes, "
            f"not {len(message.lanes)}"
        )
    try:
        header = _HEADER.pack(
            AGG_VERSION,
            message.kind,
            message.flags,
            lanes,
            message.job,
            message.source,
            message.epoch,
            message.chunk,
            message.weight,
            message.exponent,
        )
    except struct.error:
        raise _misfit(message, lanes) from None
    return header + message.lanes


def _misfit(message: Message, lanes: int) -> EncodeError:
    for field in HEADER:
        value = {"version": AGG_VERSION, "lane_count": lanes}.get(field.name)
        if value is None:
            value = getattr(message, field.name)
        if not 0 <= value < 1 << field.bits:
            return EncodeError(f"{field.name} is {value}: the field has {field.bits} bits")
    return EncodeError(f"a field is not an integer: {message}")


def decode_message(payload: bytes, lanes: int = LANES) -> Message:
    """The message in a UDP payload; raises DecodeError, whatever the bytes are.

    Exactly the payloads that the switches' parser accepts are accepted, and of those only valid
    ids: job, source and epoch are never 0.
    """
    if len(payload) < HEADER_BYTES:
        raise DecodeError(
            Refusal.TRUNCATED, f"{len(payload)} bytes of a {HEADER_BYTES}-byte header"
        )
    version, kind, flags, lane_count, job, source, epoch, chunk, weight, exponent = (
        _HEADER.unpack_from(payload)
    )
    if version != AGG_VERSION:
        raise DecodeError(Refusal.BAD_VERSION, f"version {version}, not {AGG_VERSION}")
    if lane_count != lanes:
        raise DecodeError(Refusal.BAD_LANE_COUNT, f"{lane_count} lanes, not {lanes}")
    if kind not in _KINDS:
        raise DecodeError(Refusal.UNKNOWN_KIND, f"kind {kind}")
    length = HEADER_BYTES + (lanes * LANE_BYTES if kind in _HAS_LANES else 0)
    if len(payload) != length:
        raise DecodeError(Refusal.BAD_LENGTH, f"a payload of {len(payload)} bytes, not {length}")
    if not (job and source and epoch):
        raise DecodeError(Refusal.ZERO_ID, f"job {job}, source {source}, epoch {epoch}")
    lanes_bytes = payload[HEADER_BYTES:]
    return Message(kind, flags, job, source, epoch, chunk, weight, lanes_bytes, exponent)


def mac_bytes(mac: str) -> bytes:
    """Six bytes of "02:00:00:00:00:01"; raises ConfigError."""
    try:
        packed = bytes.fromhex(mac.replace(":", ""))
    except ValueError:
        packed = b""
    if len(packed) != 6:
        raise ConfigError(f"{mac!r} is no MAC address: write six bytes as 02:00:00:00:00:01")
    return packed


def ip_bytes(ip: str) -> bytes:
    """Four bytes of "10.0.0.1"; raises ConfigError."""
    try:
        return IPv4Address(ip).packed
    except AddressValueError:
        raise ConfigError(f"{ip!r} is no IPv4 address: write it as 10.0.0.1") from None


def group_ip(job: int) -> str:
    """Multicast address of a job's results: 239.66.high.low of the job id (RFC 2365 scope)."""
    return f"239.66.{job >> 8}.{job & 0xFF}"


def group_mac(ip: str) -> str:
    """Ethernet address of an IPv4 multicast group (RFC 1112, section 6.4)."""
    _, b, c, d = ip_bytes(ip)
    return f"01:00:5e:{b & 0x7F:02x}:{c:02x}:{d:02x}"


@dataclass(frozen=True, slots=True)
class Flow:
    """Where frames go from and to: Ethernet and IPv4 addresses and UDP ports."""

    src_mac: str
    dst_mac: str
    src_ip: str
    dst_ip: str
    src_port: int
    dst_port: int = AGG_UDP_PORT


class FrameEncoder:
    """Builds whole frames of one flow; all header bytes are made once, here.

    Datagrams are never fragmented, so the identification stays 0 (RFC 6864, atomic datagrams) and
    the IPv4 checksum is the same for every frame of a length. The UDP checksum is always right.
    """

    __slots__ = ("_lanes", "_prefixes")

    def __init__(self, flow: Flow, lanes: int = LANES) -> None:
        self._lanes = lanes
        # By payload length: the bytes before the checksum, and the checksum's constant part.
        self._prefixes = {
            length: _prefix(flow, length)
            for length in (HEADER_BYTES, HEADER_BYTES + lanes * LANE_BYTES)
        }

    def encode(self, message: Message) -> bytes:
        """The frame of a message; raises EncodeError naming the field that does not fit."""
        payload = encode_message(message, self._lanes)
        prefix, constant = self._prefixes[len(payload)]
        checksum = _ONES - (constant + int.from_bytes(payload, "big")) % _ONES
        return prefix + checksum.to_bytes(2, "big") + payload


def encode_frame(flow: Flow, message: Message, lanes: int = LANES) -> bytes:
    """One frame; keep a `FrameEncoder` where many of the same flow are built."""
    return FrameEncoder(flow, lanes).encode(message)


def _prefix(flow: Flow, payload_bytes: int) -> tuple[bytes, int]:
    for name, port in (("src_port", flow.src_port), ("dst_port", flow.dst_port)):
        if not 0 < port < 1 << 16:
            raise ConfigError(f"{name} is {port}: a UDP port is 1 to 65535")
    addresses = ip_bytes(flow.src_ip) + ip_bytes(flow.dst_ip)
    udp = struct.pack("!HHH", flow.src_port, flow.dst_port, UDP_BYTES + payload_bytes)
    pseudo_header = addresses + struct.pack("!HH", PROTOCOL_UDP, UDP_BYTES + payload_bytes)
    ethernet = mac_bytes(flow.dst_mac) + mac_bytes(flow.src_mac) + ETHERTYPE_IPV4
    ipv4 = ipv4_header(
        flow.src_ip, flow.dst_ip, PROTOCOL_UDP, UDP_BYTES + payload_bytes, fragment=_DONT_FRAGMENT
    )
    return ethernet + ipv4 + udp, int.from_bytes(pseudo_header + udp, "big") % _ONES


def ipv4_header(
    src_ip: str, dst_ip: str, protocol: int, payload_bytes: int, *, fragment: int = 0
) -> bytes:
    """A 20-byte IPv4 header (RFC 791) with its checksum, TTL 255."""
    addresses = ip_bytes(src_ip) + ip_bytes(dst_ip)
    head = struct.pack("!BBHHHBB", 0x45, 0, IPV4_BYTES + payload_bytes, 0, fragment, TTL, protocol)
    return head + internet_checksum(head + addresses).to_bytes(2, "big") + addresses


def internet_checksum(data: bytes) -> int:
    """RFC 1071 checksum; data of odd length is padded with a zero byte."""
    if len(data) % 2:
        data += b"\x00"
    return _ONES - int.from_bytes(data, "big") % _ONES


def is_sound(data: bytes) -> bool:
    """Whether data that holds its own RFC 1071 checksum is unharmed."""
    if len(data) % 2:
        data += b"\x00"
    return int.from_bytes(data, "big") % _ONES == 0


@dataclass(frozen=True, slots=True)
class Datagram:
    """A message with the addresses that it came under."""

    src_ip: bytes
    dst_ip: bytes
    src_port: int
    dst_port: int
    message: Message


def decode_datagram(frame: bytes, lanes: int = LANES) -> Datagram:
    """The message in a frame, with its addresses; raises DecodeError, whatever the bytes are.

    Checks what a host's network stack checks: lengths, both checksums (a UDP checksum of 0 means
    none), no fragment. Ethernet padding after the datagram is ignored.
    """
    start, end = ipv4_extent(frame)
    if frame[23] != PROTOCOL_UDP:
        raise DecodeError(Refusal.NOT_UDP, f"IPv4 protocol {frame[23]}")
    if end - start < UDP_BYTES:
        raise DecodeError(Refusal.TRUNCATED, f"{end - start} bytes of a UDP header")
    src_port, dst_port, udp_length = struct.unpack_from("!HHH", frame, start)
    if udp_length != end - start:
        raise DecodeError(
            Refusal.BAD_LENGTH, f"UDP length {udp_length} in {end - start} bytes of IPv4 payload"
        )
    if frame[start + 6 : start + 8] != _NO_CHECKSUM:
        # The pseudo header (RFC 768): both addresses, the protocol and the length.
        pseudo_header = int.from_bytes(frame[26:34], "big") + PROTOCOL_UDP + udp_length
        datagram = frame[start:end] if udp_length % 2 == 0 else frame[start:end] + b"\x00"
        if (pseudo_header + int.from_bytes(datagram, "big")) % _ONES:
            raise DecodeError(Refusal.BAD_UDP_CHECKSUM, "the datagram was harmed on its way")
    message = decode_message(frame[start + UDP_BYTES : end], lanes)
    return Datagram(frame[26:30], frame[30:34], src_port, dst_port, message)


def decode_frame(frame: bytes, lanes: int = LANES) -> Message:
    """The message in a frame; raises DecodeError, whatever the bytes are."""
    return decode_datagram(frame, lanes).message


def ipv4_extent(frame: bytes) -> tuple[int, int]:
    """Where the IPv4 payload of a frame starts and ends; raises DecodeError.

    The header is checked: version, lengths, checksum (options included), no fragment.
    """
    if len(frame) < ETHERNET_BYTES:
        raise DecodeError(Refusal.TRUNCATED, f"{len(frame)} bytes of an Ethernet header")
    if frame[12:14] != ETHERTYPE_IPV4:
        raise DecodeError(Refusal.NOT_IPV4, f"EtherType 0x{frame[12:14].hex()}")
    if len(frame) < ETHERNET_BYTES + IPV4_BYTES:
        raise DecodeError(Refusal.TRUNCATED, f"{len(frame) - ETHERNET_BYTES} bytes of IPv4")
    version, header_bytes = frame[14] >> 4, (frame[14] & 0xF) * 4
    total, _, fragment = struct.unpack_from("!HHH", frame, 16)
    if version != 4 or header_bytes < IPV4_BYTES or total < header_bytes:
        raise DecodeError(
            Refusal.BAD_IPV4_HEADER, f"version {version}, header {header_bytes}, length {total}"
        )
    start, end = ETHERNET_BYTES + header_bytes, ETHERNET_BYTES + total
    if len(frame) < end:
        raise DecodeError(Refusal.TRUNCATED, f"{len(frame)} bytes of a frame of {end}")
    if not is_sound(frame[ETHERNET_BYTES:start]):
        raise DecodeError(Refusal.BAD_IPV4_CHECKSUM, "the IPv4 header was harmed on its way")
    if fragment & _FRAGMENT_BITS:
        raise DecodeError(Refusal.FRAGMENT, "a fragment carries no whole message")
    return start, end


__all__ = [
    "DESTINATION_SOURCE",
    "HEADER",
    "HEADER_BYTES",
    "LANES",
    "Datagram",
    "Flag",
    "Flow",
    "FrameEncoder",
    "HeaderField",
    "Kind",
    "Message",
    "decode_datagram",
    "decode_frame",
    "decode_message",
    "encode_frame",
    "encode_message",
    "group_ip",
    "group_mac",
    "pack_lanes",
    "unpack_lanes",
]
