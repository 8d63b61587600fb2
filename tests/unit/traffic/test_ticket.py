"""Tickets: frames made by scapy, with options of every kind, against the byte path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import ICMP, IP, UDP, IPOption
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw

from p4src.constants import AGG_UDP_PORT
from traffic.errors import DecodeError, EncodeError
from traffic.message import Flow, Message, decode_frame, encode_frame, is_sound
from traffic.ticket import TICKET_OPTIONS_BYTES, Ticket, add_ticket, read_ticket
from traffic.wire import TicketOption

RECORD_ROUTE = IPOption(b"\x07\x07\x04\x01\x02\x03\x04")
NO_OP = IPOption(b"\x01")
SIXTEEN_BITS = st.integers(0, 0xFFFF)


def frame(*options: IPOption) -> bytes:
    return bytes(Ether() / IP(options=list(options)) / UDP(sport=4000, dport=9600) / Raw(b"tensor"))


def ticket_options(ticket: Ticket) -> tuple[IPOption, ...]:
    return (
        TicketOption(layer=ticket.layer),
        TicketOption(optclass="debug", iteration=ticket.iteration),
    )


@given(st.builds(Ticket, SIXTEEN_BITS, SIXTEEN_BITS), st.booleans())
def test_the_ticketer_and_scapy_write_the_same(ticket: Ticket, with_others: bool) -> None:
    others = (RECORD_ROUTE, NO_OP) if with_others else ()
    expected = frame(*ticket_options(ticket), *others)
    assert add_ticket(frame(*others), ticket) == expected
    assert read_ticket(expected) == ticket
    assert is_sound(expected[14 : 14 + 4 * (expected[14] & 15)])


def test_the_options_are_those_of_the_protocol() -> None:
    assert Ticket(0x0102, 0xA0B0).options() == bytes.fromhex("9e040102de04a0b0")
    packet = Ether(add_ticket(frame(), Ticket(3, 17)))
    layer, iteration = packet[IP].options
    assert (layer.layer, iteration.iteration) == (3, 17)
    assert packet[IP].len == 20 + TICKET_OPTIONS_BYTES + 8 + len(b"tensor")


def test_a_ticketed_message_is_still_a_message() -> None:
    flow = Flow("02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", "10.0.0.2", 9591)
    message = Message(1, 0, 1, 2, 1, 0, 1, bytes(128))
    ticketed = add_ticket(encode_frame(flow, message), Ticket(5))
    assert decode_frame(ticketed) == message
    assert Ether(ticketed)[UDP].dport == AGG_UDP_PORT


def test_any_ipv4_packet_may_have_one_and_padding_stays() -> None:
    ping = bytes(Ether() / IP() / ICMP()) + bytes(18)
    ticketed = add_ticket(ping, Ticket(1, 2))
    assert ticketed[-26:] == ping[-26:]
    assert read_ticket(ticketed) == Ticket(1, 2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", None),
        ("01010101", None),
        ("9e040007", Ticket(7)),
        ("de040009", None),
        ("de0400099e040007", Ticket(7, 9)),
        ("019e040007019e0400080000", Ticket(8)),
        ("009e0400", None),
        ("9e030700", None),
        ("9e0400079e05000000000000", None),
        ("9e040007de060001ffff0000", None),
        ("9e040007de020000", None),
        ("0701ffff9e040007", None),
        ("0700ffff9e040007", None),
        ("9e04000707050000", None),
        ("0101019e", None),
        ("9e04000701010107", None),
    ],
)
def test_where_a_ticket_is_read(options: str, expected: Ticket | None) -> None:
    whole = bytes(Ether() / IP(options=[Raw(bytes.fromhex(options))]) / UDP(dport=9600))
    assert read_ticket(whole) == expected


@pytest.mark.parametrize("field", ["layer", "iteration"])
@pytest.mark.parametrize("value", [-1, 0x10000])
def test_what_does_not_fit(field: str, value: int) -> None:
    with pytest.raises(EncodeError, match=f"{field} is {value}"):
        Ticket(**{"layer": 0, field: value})


def test_no_room() -> None:
    full = frame(*[NO_OP] * 33)
    with pytest.raises(EncodeError, match="36 bytes of IPv4 options leave no room"):
        add_ticket(full, Ticket(0))
    with pytest.raises(EncodeError, match="65536 bytes"):
        add_ticket(bytes(Ether() / IP(len=65528) / Raw(bytes(65508))), Ticket(0))


@pytest.mark.parametrize(
    "damaged",
    [b"", frame()[:33], bytes(Ether() / ARP()) + bytes(20), frame(*[NO_OP] * 8)[:40]],
    ids=["empty", "short", "ARP", "cut in options"],
)
def test_what_is_no_ipv4_packet(damaged: bytes) -> None:
    for call in (lambda: read_ticket(damaged), lambda: add_ticket(damaged, Ticket(0))):
        with pytest.raises(DecodeError):
            call()
