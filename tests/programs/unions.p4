/* Header unions and stacks of them: parsed one by one and by .next, copied, compared, invalidated.
 * The report tells what the control saw.
 */
#include <core.p4>
#include <v1model.p4>

const bit<32> SENTINELS = 1000;

header order_h {
    bit<8> what;
    bit<8> count;
}

header byte_h {
    bit<8> value;
}

header word_h {
    bit<16> value;
}

header_union item_u {
    byte_h small;
    word_h large;
}

header report_h {
    bit<8> first;
    bit<8> valid;
    bit<8> last;
    bit<8> depth;
}

struct headers_t {
    report_h  report;
    order_h   order;
    item_u    alone;
    item_u[3] items;
}

struct metadata_t {
    bit<8> left;
    bit<8> depth;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.order);
        meta.left = hdr.order.count;
        transition select(hdr.order.what) {
            0x10 &&& 0x10: alone_small;
            0x20 &&& 0x20: alone_large;
            default: next;
        }
    }
    state alone_small {
        packet.extract(hdr.alone.small);
        transition next;
    }
    state alone_large {
        packet.extract(hdr.alone.large);
        transition next;
    }
    state next {
        transition select(meta.left) {
            0: accept;
            default: item;
        }
    }
    state item {
        meta.left = meta.left - 1;
        meta.depth = meta.depth + 1;
        transition select(packet.lookahead<bit<1>>()) {
            0: small;
            1: large;
        }
    }
    state small {
        packet.extract(hdr.items.next.small);
        transition next;
    }
    state large {
        packet.extract(hdr.items.next.large);
        transition next;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IngressPipe(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        hdr.report.setValid();
        hdr.report.first = hdr.alone.isValid() ? 8w1 : 0;
        hdr.report.valid = 0;
        hdr.report.last = 0;
        hdr.report.depth = meta.depth;
        if (hdr.items[0].small.isValid()) {
            hdr.report.valid = hdr.report.valid | 1;
        }
        if (hdr.items[0].large.isValid()) {
            hdr.report.valid = hdr.report.valid | 2;
        }
        if (hdr.items[1].small.isValid() || hdr.items[1].large.isValid()) {
            hdr.report.valid = hdr.report.valid | 4;
        }
        if (hdr.order.what & 0xF == 1) {
            hdr.alone = hdr.items[0];
        } else if (hdr.order.what & 0xF == 2) {
            hdr.items[1] = hdr.items[0];
        } else if (hdr.order.what & 0xF == 3) {
            hdr.items[0].small.setValid();
            hdr.items[0].small.value = 0x55;
        } else if (hdr.order.what & 0xF == 4) {
            hdr.items[0].large.setInvalid();
        } else if (hdr.order.what & 0xF == 5) {
            if (hdr.items[0].small == hdr.items[1].small) {
                hdr.report.last = 1;
            }
        } else if (hdr.order.what & 0xF == 6) {
            hdr.items.push_front(1);
        } else if (hdr.order.what & 0xF == 7) {
            hdr.items.pop_front(1);
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
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report);
        packet.emit(hdr.order);
        packet.emit(hdr.alone);
        packet.emit(hdr.items);
    }
}

V1Switch(Parse(), Verify(), IngressPipe(), EgressPipe(), Update(), Deparse()) main;
