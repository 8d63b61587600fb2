/* The parser: mid-byte selects, lookahead, varbit, stacks, value sets, verify, advance; checksums
 * with options. The last header tells what the parser made of the packet.
 */
#include <core.p4>
#include <v1model.p4>

const bit<32> SENTINELS = 1000;

header kind_h {
    bit<4> high;
    bit<3> middle;
    bit<1> low;
}

header label_h {
    bit<20> label;
    bit<3>  tc;
    bit<1>  bottom;
    bit<8>  ttl;
}

header ipv4_h {
    bit<4>      version;
    bit<4>      ihl;
    bit<8>      tos;
    bit<16>     total_length;
    bit<16>     identification;
    bit<16>     fragment;
    bit<8>      ttl;
    bit<8>      protocol;
    bit<16>     checksum;
    bit<32>     src_addr;
    bit<32>     dst_addr;
    varbit<320> options;
}

header tail_h {
    bit<16> value;
}

header report_h {
    bit<8> parser_error;
    bit<8> bad_checksum;
    bit<8> path;
    bit<8> depth;
}

struct headers_t {
    report_h   report;
    kind_h     kind;
    label_h[3] labels;
    ipv4_h     ipv4;
    tail_h     tail;
}

struct metadata_t {
    bit<8> path;
    bit<8> depth;
}

error {
    NotFour
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) tails;

    state start {
        packet.extract(hdr.kind);
        transition select(hdr.kind.middle) {
            0: labels;
            1: ipv4;
            2: peek;
            3: skip;
            4: members;
            5 &&& 5: odd;
            default: accept;
        }
    }
    state labels {
        packet.extract(hdr.labels.next);
        meta.depth = meta.depth + 1;
        transition select(hdr.labels.last.bottom) {
            0: labels;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4, (bit<32>)(packet.lookahead<bit<8>>()[3:0] - 5) * 32);
        verify(hdr.ipv4.version == 4, error.NotFour);
        meta.path = 4;
        transition accept;
    }
    state peek {
        transition select(packet.lookahead<bit<24>>()) {
            0x010203: tail;
            default: accept;
        }
    }
    state skip {
        packet.advance(24);
        transition tail;
    }
    state members {
        packet.extract(hdr.tail);
        transition select(hdr.tail.value) {
            tails: member;
            default: accept;
        }
    }
    state member {
        meta.path = 9;
        transition accept;
    }
    state odd {
        meta.path = 5;
        transition accept;
    }
    state tail {
        packet.extract(hdr.tail);
        meta.path = 2;
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.options },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control IngressPipe(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        hdr.report.setValid();
        hdr.report.parser_error = 0;
        if (standard_metadata.parser_error == error.PacketTooShort) {
            hdr.report.parser_error = 1;
        } else if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.report.parser_error = 2;
        } else if (standard_metadata.parser_error == error.NotFour) {
            hdr.report.parser_error = 3;
        } else if (standard_metadata.parser_error == error.HeaderTooShort) {
            hdr.report.parser_error = 4;
        } else if (standard_metadata.parser_error != error.NoError) {
            hdr.report.parser_error = 0xFF;
        }
        hdr.report.bad_checksum = (bit<8>)standard_metadata.checksum_error;
        hdr.report.path = meta.path;
        hdr.report.depth = meta.depth;
        if (hdr.kind.isValid() && hdr.kind.high == 1) {
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0].label = 0xABCDE;
            hdr.labels[0].bottom = 0;
            hdr.labels[0].ttl = 64;
        } else if (hdr.kind.isValid() && hdr.kind.high == 2) {
            hdr.labels.pop_front(1);
        }
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }
        // a sentinel of the packet tests: its length tells the port that it leaves by
        if (standard_metadata.packet_length > SENTINELS) {
            standard_metadata.egress_spec = (bit<9>)(standard_metadata.packet_length - SENTINELS);
        }
    }
}

control EgressPipe(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply { }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.fragment, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.options },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.kind);
        packet.emit(hdr.labels);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tail);
    }
}

V1Switch(Parse(), Verify(), IngressPipe(), EgressPipe(), Update(), Deparse()) main;
