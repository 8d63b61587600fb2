/* Decides what a packet is. An aggregation message is accepted only if every length in it agrees:
 * what is not exactly a message is an error here and counted MALFORMED by the ingress.
 *
 *   start -> ipv4 -> [options] -> udp -> agg -> lanes
 *              \         \          \      \
 *               `---------`----------`------`--> accept (routed as ordinary IPv4, or refused)
 *
 * IPv4 options are carried as they are, in one piece. Beside that they are read, one after the other,
 * for a ticket; each step takes at least one byte of the 40 that there can be. A ticket in options
 * that are not well formed, or of another length, is none.
 */
#ifndef BLUETREE_PARSER_P4
#define BLUETREE_PARSER_P4

parser BluetreeParser(packet_in packet,
                      out headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    bit<16> ipv4_header_length;
    /* Options not yet read, at the left; how many bytes; kind, length and value of the next. */
    bit<MAX_OPTION_BITS> options;
    bit<8>  options_left;
    bit<8>  option_length;
    bit<1>  option_fits;

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
            6: look_at_1_word;
            7: look_at_2_words;
            8: look_at_3_words;
            9: look_at_4_words;
            10: look_at_5_words;
            11: look_at_6_words;
            12: look_at_7_words;
            13: look_at_8_words;
            14: look_at_9_words;
            default: look_at_10_words;
        }
    }

    state look_at_1_word {
        options = packet.lookahead<bit<32>>() ++ 288w0;
        transition parse_ipv4_options;
    }

    state look_at_2_words {
        options = packet.lookahead<bit<64>>() ++ 256w0;
        transition parse_ipv4_options;
    }

    state look_at_3_words {
        options = packet.lookahead<bit<96>>() ++ 224w0;
        transition parse_ipv4_options;
    }

    state look_at_4_words {
        options = packet.lookahead<bit<128>>() ++ 192w0;
        transition parse_ipv4_options;
    }

    state look_at_5_words {
        options = packet.lookahead<bit<160>>() ++ 160w0;
        transition parse_ipv4_options;
    }

    state look_at_6_words {
        options = packet.lookahead<bit<192>>() ++ 128w0;
        transition parse_ipv4_options;
    }

    state look_at_7_words {
        options = packet.lookahead<bit<224>>() ++ 96w0;
        transition parse_ipv4_options;
    }

    state look_at_8_words {
        options = packet.lookahead<bit<256>>() ++ 64w0;
        transition parse_ipv4_options;
    }

    state look_at_9_words {
        options = packet.lookahead<bit<288>>() ++ 32w0;
        transition parse_ipv4_options;
    }

    state look_at_10_words {
        options = packet.lookahead<bit<320>>();
        transition parse_ipv4_options;
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>)hdr.ipv4.ihl - 5) << 5);
        options_left = ((bit<8>)hdr.ipv4.ihl - 5) << 2;
        transition read_option;
    }

    state read_option {
        transition select(options_left, options[MAX_OPTION_BITS - 1:MAX_OPTION_BITS - 8]) {
            (0, _): parse_transport;
            (_, OPTION_END): parse_transport;
            (_, OPTION_NO_OP): skip_no_op;
            (1, _): void_ticket;
            default: read_option_length;
        }
    }

    state skip_no_op {
        options = options << 8;
        options_left = options_left - 1;
        transition read_option;
    }

    state read_option_length {
        option_length = options[MAX_OPTION_BITS - 9:MAX_OPTION_BITS - 16];
        option_fits = (option_length >= 2 && option_length <= options_left) ? 1w1 : 0;
        transition select(option_fits, options[MAX_OPTION_BITS - 1:MAX_OPTION_BITS - 8],
                          option_length) {
            (0, _, _): void_ticket;
            (_, OPTION_LAYER, TICKET_BYTES): take_layer;
            (_, OPTION_ITERATION, TICKET_BYTES): take_iteration;
            (_, OPTION_LAYER, _): void_ticket;
            (_, OPTION_ITERATION, _): void_ticket;
            default: skip_option;
        }
    }

    state take_layer {
        meta.has_ticket = 1;
        meta.layer = options[MAX_OPTION_BITS - 17:MAX_OPTION_BITS - 32];
        transition skip_option;
    }

    state take_iteration {
        meta.iteration = options[MAX_OPTION_BITS - 17:MAX_OPTION_BITS - 32];
        transition skip_option;
    }

    state skip_option {
        /* By 8 bits a byte, in two steps: a shift is limited to 255. */
        options = options << (option_length << 2);
        options = options << (option_length << 2);
        options_left = options_left - option_length;
        transition read_option;
    }

    state void_ticket {
        meta.has_ticket = 0;
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
        /* From that port as well: an answer to a single worker goes to the port of its socket. */
        transition select(hdr.udp.src_port, hdr.udp.dst_port) {
            (_, AGG_UDP_PORT): parse_agg;
            (AGG_UDP_PORT, _): parse_agg;
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
            kind_t.REQUEST: parse_lanes;
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
