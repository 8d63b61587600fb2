/* Every match kind. The first byte of a packet names the table; the verdict is written into the
 * packet, which leaves on the port that the action gives.
 */
#include <core.p4>
#include <v1model.p4>

const bit<32> SENTINELS = 1000;

header probe_h {
    bit<8>  which;
    bit<8>  a;
    bit<16> b;
    bit<32> c;
    bit<16> verdict;
}

struct headers_t {
    probe_h probe;
}

struct metadata_t {
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IngressPipe(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) hits;

    action send(bit<9> port, bit<16> verdict) {
        standard_metadata.egress_spec = port;
        hdr.probe.verdict = verdict;
    }
    action send_counted(bit<9> port, bit<16> verdict) {
        standard_metadata.egress_spec = port;
        hdr.probe.verdict = verdict;
        hits.count();
    }
    action miss() {
        standard_metadata.egress_spec = 1;
        hdr.probe.verdict = 0xFFFF;
    }

    table exact_one {
        key = { hdr.probe.b: exact; }
        actions = { send; miss; }
        default_action = miss();
        size = 4;
    }
    table hit_or_miss {
        key = { hdr.probe.b: exact; }
        actions = { send; miss; }
        default_action = miss();
    }
    table exact_two {
        key = { hdr.probe.a: exact; hdr.probe.b: exact; }
        actions = { send_counted; miss; }
        default_action = miss();
        counters = hits;
    }
    table longest {
        key = { hdr.probe.a: exact; hdr.probe.c: lpm; }
        actions = { send; miss; }
        default_action = miss();
    }
    table ternaries {
        key = { hdr.probe.b: ternary; hdr.probe.c: ternary; }
        actions = { send; miss; }
        default_action = miss();
    }
    table ranges {
        key = { hdr.probe.b: range; hdr.probe.a: exact; }
        actions = { send; miss; }
        default_action = miss();
    }
    table optionals {
        key = { hdr.probe.b: optional; hdr.probe.a: optional; }
        actions = { send; miss; }
        default_action = miss();
    }
    table constants {
        key = { hdr.probe.b: ternary; }
        actions = { send; miss; }
        const default_action = miss();
        const entries = {
            0x1200 &&& 0xFF00: send(2, 1);
            0x1234: send(2, 2);
            0x0034 &&& 0x00FF: send(2, 3);
        }
    }

    apply {
        if (!hdr.probe.isValid()) {
            mark_to_drop(standard_metadata);
        } else if (hdr.probe.which == 1) {
            exact_one.apply();
        } else if (hdr.probe.which == 2) {
            exact_two.apply();
        } else if (hdr.probe.which == 3) {
            longest.apply();
        } else if (hdr.probe.which == 4) {
            ternaries.apply();
        } else if (hdr.probe.which == 5) {
            ranges.apply();
        } else if (hdr.probe.which == 6) {
            optionals.apply();
        } else if (hdr.probe.which == 7) {
            constants.apply();
        } else if (hdr.probe.which == 8) {
            if (hit_or_miss.apply().hit) {
                hdr.probe.a = 1;
            } else {
                hdr.probe.a = 2;
            }
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
    apply { packet.emit(hdr.probe); }
}

V1Switch(Parse(), Verify(), IngressPipe(), EgressPipe(), Update(), Deparse()) main;
