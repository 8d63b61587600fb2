"""Echo request and reply (RFC 792), so that a simulated host answers a ping."""

import struct
from dataclasses import dataclass

from traffic.errors import DecodeError, Refusal
from traffic.message import (
    ETHERNET_BYTES,
    ETHERTYPE_IPV4,
    internet_checksum,
    ip_bytes,
    ipv4_extent,
    ipv4_header,
    is_sound,
    mac_bytes,
)

PROTOCOL_ICMP = 1
_PROTOCOL_AT = 23
_ECHO_REPLY = 0
_ECHO_REQUEST = 8
_HEADER = struct.Struct("!BBHHH")


@dataclass(frozen=True, slots=True)
class Echo:
    """An echo request or reply: who sent it to whom, and what it carries."""

    is_reply: bool
    src_ip: bytes
    dst_ip: bytes
    identifier: int
    sequence: int
    data: bytes


def echo_request(
    src_mac: str,
    dst_mac: str,
    src_ip: str,
    dst_ip: str,
    identifier: int,
    sequence: int,
    data: bytes = b"",
) -> bytes:
    """The frame of a ping."""
    body = _body(_ECHO_REQUEST, identifier, sequence, data)
    header = ipv4_header(src_ip, dst_ip, PROTOCOL_ICMP, len(body))
    return mac_bytes(dst_mac) + mac_bytes(src_mac) + ETHERTYPE_IPV4 + header + body


def decode_echo(frame: bytes) -> Echo | None:
    """The echo in a frame, None if it is another message; raises DecodeError on harmed bytes."""
    start, end = ipv4_extent(frame)
    if frame[_PROTOCOL_AT] != PROTOCOL_ICMP:
        return None
    body = frame[start:end]
    if len(body) < _HEADER.size:
        raise DecodeError(Refusal.TRUNCATED, f"{len(body)} bytes of an ICMP header")
    if not is_sound(body):
        raise DecodeError(Refusal.BAD_ICMP_CHECKSUM, "the message was harmed on its way")
    kind, code, _, identifier, sequence = _HEADER.unpack_from(body)
    if kind not in (_ECHO_REPLY, _ECHO_REQUEST) or code != 0:
        return None
    return Echo(
        kind == _ECHO_REPLY,
        frame[26:30],
        frame[30:34],
        identifier,
        sequence,
        body[_HEADER.size :],
    )


def echo_reply(request: bytes, own_mac: str, own_ip: str) -> bytes | None:
    """The answer to a frame, None if it is no sound echo request to this host."""
    echo = decode_echo(request)
    if echo is None or echo.is_reply or echo.dst_ip != ip_bytes(own_ip):
        return None
    body = _body(_ECHO_REPLY, echo.identifier, echo.sequence, echo.data)
    asker = ".".join(map(str, echo.src_ip))
    header = ipv4_header(own_ip, asker, PROTOCOL_ICMP, len(body))
    asker_mac = request[6 : ETHERNET_BYTES - 2]
    return asker_mac + mac_bytes(own_mac) + ETHERTYPE_IPV4 + header + body


def _body(kind: int, identifier: int, sequence: int, data: bytes) -> bytes:
    blank = _HEADER.pack(kind, 0, 0, identifier, sequence) + data
    checksum = internet_checksum(blank)
    return _HEADER.pack(kind, 0, checksum, identifier, sequence) + data
