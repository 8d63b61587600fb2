/* Decides what a packet is. An aggregation message is accepted only if every length in it agrees:
 * what is not exactly a message is an error here and counted MALFORMED by the ingress.
 *
 *   start -> ipv4 -> [options] -> udp -> agg -> lanes
 *              \         \          \      \
 *               `---------`----------`------`--> accept (routed as ordinary IPv4, or refused)
 */
#ifndef BLUETREE_PARSER_P4
#define BLUETREE_PARSER_P4

parser BluetreeParser(packet_in packet,
                      out headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    bit<16> ipv4_header_length;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.Ipv4Malformed);
        ipv4_header_length = (bit<16>)hdr.ipv4.ihl << 2;
        verify(hdr.ipv4.total_length >= ipv4_header_length, error.Ipv4Malformed);
        transition select(hdr.ipv4.ihl) {
            5: parse_transport;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        transition parse_transport;
    }

    /* Fragments carry no whole message: they are only routed. */
    state parse_transport {
        transition select(hdr.ipv4.protocol, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset) {
            (PROTOCOL_UDP, 0, 0): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            AGG_UDP_PORT: parse_agg;
            default: accept;
        }
    }

    state parse_agg {
        packet.extract(hdr.agg);
        verify(hdr.agg.version == AGG_VERSION && hdr.agg.lane_count == LANES, error.AggMalformed);
        verify(hdr.ipv4.total_length == ipv4_header_length + hdr.udp.length, error.AggMalformed);
        transition select(hdr.agg.kind) {
            kind_t.CONTRIBUTE: parse_lanes;
            kind_t.RESULT: parse_lanes;
            kind_t.ACK: parse_ack;
            default: accept;
        }
    }

    state parse_lanes {
        verify(hdr.udp.length == UDP_BYTES + AGG_BYTES + LANES_BYTES, error.AggMalformed);
        packet.extract(hdr.lanes);
        transition accept;
    }

    state parse_ack {
        verify(hdr.udp.length == UDP_BYTES + AGG_BYTES, error.AggMalformed);
        transition accept;
    }
}

control BluetreeDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.udp);
        packet.emit(hdr.agg);
        packet.emit(hdr.lanes);
    }
}

#endif
