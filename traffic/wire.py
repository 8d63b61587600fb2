"""The aggregation message as scapy layers, beside the fast path of `traffic.message`.

    Ether()/IP()/UDP(dport=9590)/Aggregation(job=1, source=2, epoch=1, chunk=0, weight=1)/Lanes(...)

    IP(options=[TicketOption(layer=3), TicketOption(optclass="debug", iteration=17)])

Both sides are made from `traffic.message.HEADER`. Scapy builds and takes apart packets by hand, in
tests and shells; it is never on a hot path.
"""

from typing import Any, ClassVar

from scapy.fields import (
    ByteEnumField,
    ByteField,
    ConditionalField,
    Field,
    FieldListField,
    FlagsField,
    IntField,
    ShortField,
    SignedIntField,
    _FieldContainer,
)
from scapy.layers.inet import UDP, IPOption, _IPOption_HDR
from scapy.packet import Packet, bind_bottom_up, bind_layers

from p4src.constants import (
    AGG_UDP_PORT,
    AGG_VERSION,
    LANES,
    OPTION_ITERATION,
    OPTION_LAYER,
    TICKET_BYTES,
    Flag,
    Kind,
)
from traffic.message import (
    DESTINATION_SOURCE,
    HEADER,
    HEADER_BYTES,
    LANE_BYTES,
    Datagram,
    Flow,
    FrameEncoder,
    HeaderField,
    Message,
    decode_datagram,
    decode_frame,
    decode_message,
    encode_frame,
    encode_message,
    group_ip,
    group_mac,
    pack_lanes,
    unpack_lanes,
)

_DEFAULTS = {
    "version": AGG_VERSION,
    "kind": Kind.CONTRIBUTE.value,
    "lane_count": LANES,
    "job": 1,
    "source": 1,
    "epoch": 1,
    "weight": 1,
}
_PLAIN: dict[int, type[Field[Any, Any]]] = {8: ByteField, 16: ShortField, 32: IntField}


def _scapy_field(field: HeaderField) -> Field[Any, Any]:
    default = _DEFAULTS.get(field.name, 0)
    if field.name == "kind":
        return ByteEnumField(field.name, default, {kind.value: kind.name for kind in Kind})
    if field.name == "flags":
        names = {flag.value: flag.name for flag in Flag if flag.name is not None}
        return FlagsField(field.name, default, field.bits, names)
    return _PLAIN[field.bits](field.name, default)


class Aggregation(Packet):
    """The aggregation header, 20 bytes."""

    name = "Aggregation"
    fields_desc: ClassVar[list[Field[Any, Any] | _FieldContainer]] = [
        _scapy_field(field) for field in HEADER
    ]


class Lanes(Packet):
    """The values of a contribution or a result, big-endian int32, as many as `lane_count` says."""

    name = "Lanes"
    fields_desc: ClassVar[list[Field[Any, Any] | _FieldContainer]] = [
        FieldListField(
            "values",
            [],
            SignedIntField("value", 0),
            count_from=lambda lanes: (
                lanes.underlayer.lane_count if isinstance(lanes.underlayer, Aggregation) else LANES
            ),
        )
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """Nothing follows the lanes but padding."""
        return b"", s


class TicketOption(IPOption):
    """One of the two IPv4 options of a ticket: the layer, or with `optclass` 2 the iteration."""

    name = "Ticket"
    copy_flag = OPTION_LAYER >> 7
    optclass = OPTION_LAYER >> 5 & 3
    option = OPTION_LAYER & 31
    fields_desc: ClassVar[list[Any]] = [
        _IPOption_HDR,
        ByteField("length", TICKET_BYTES),
        ConditionalField(ShortField("layer", 0), lambda ticket: not _is_iteration(ticket)),
        ConditionalField(ShortField("iteration", 0), lambda ticket: _is_iteration(ticket)),
    ]


def _is_iteration(ticket: Packet) -> bool:
    return bool(ticket.optclass == OPTION_ITERATION >> 5 & 3)


bind_layers(UDP, Aggregation, dport=AGG_UDP_PORT)
# A result is delivered to the worker's own port; the destination always speaks from this one.
bind_bottom_up(UDP, Aggregation, sport=AGG_UDP_PORT)
bind_layers(Aggregation, Lanes, kind=Kind.CONTRIBUTE.value)
bind_bottom_up(Aggregation, Lanes, kind=Kind.RESULT.value)
bind_bottom_up(Aggregation, Lanes, kind=Kind.REQUEST.value)


__all__ = [
    "AGG_UDP_PORT",
    "AGG_VERSION",
    "DESTINATION_SOURCE",
    "HEADER",
    "HEADER_BYTES",
    "LANES",
    "LANE_BYTES",
    "Aggregation",
    "Datagram",
    "Flag",
    "Flow",
    "FrameEncoder",
    "HeaderField",
    "Kind",
    "Lanes",
    "Message",
    "TicketOption",
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
