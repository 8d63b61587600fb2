// Which member of a group a packet gets, and how entries age: tables with an action profile, with a
// selector over several fields, and with idle timeouts.
#include <core.p4>
#include <v1model.p4>

const bit<32> SENTINELS = 1000;

header sample_h {
    bit<8>  kind;
    bit<8>  low;
    bit<16> flow;
    bit<32> mark;
}

struct headers_t { sample_h sample; }
struct metadata_t { bit<8> hops; }

parser ParserImpl(packet_in packet, out headers_t headers, inout metadata_t meta,
                  inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.sample);
        transition accept;
    }
}

control VerifyImpl(inout headers_t headers, inout metadata_t meta) { apply { } }

control IngressPipe(inout headers_t headers, inout metadata_t meta,
                    inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) balanced_hits;

    action to_port(bit<9> port, bit<32> mark) {
        standard.egress_spec = port;
        headers.sample.mark = mark;
    }
    action stamp(bit<32> mark) { headers.sample.mark = headers.sample.mark ^ mark; }
    action drop() { mark_to_drop(standard); }

    @max_group_size(64)
    action_selector(HashAlgorithm.crc16, 32w128, 32w14) ways;
    action_profile(32w16) stamps;

    table balanced {
        key = {
            headers.sample.kind : exact;
            headers.sample.flow : selector;
            headers.sample.low  : selector;
        }
        actions = { to_port; drop; NoAction; }
        default_action = NoAction();
        implementation = ways;
        counters = balanced_hits;
        size = 64;
    }
    table balanced_again {
        key = {
            headers.sample.low  : ternary;
            headers.sample.flow : selector;
            headers.sample.low  : selector;
        }
        actions = { to_port; drop; NoAction; }
        implementation = ways;
        size = 64;
    }
    table stamped {
        key = { headers.sample.low : exact; }
        actions = { stamp; NoAction; }
        default_action = NoAction();
        implementation = stamps;
        size = 64;
    }
    table aged {
        key = { headers.sample.flow : lpm; }
        actions = { stamp; NoAction; }
        default_action = NoAction();
        support_timeout = true;
        size = 64;
    }

    apply {
        mark_to_drop(standard);
        if (balanced.apply().hit) {
            meta.hops = 1;
        } else {
            balanced_again.apply();
        }
        stamped.apply();
        aged.apply();
        headers.sample.kind = meta.hops;
        // a sentinel of the packet tests: its length tells the port that it leaves by
        if (standard.packet_length > SENTINELS) {
            standard.egress_spec = (bit<9>)(standard.packet_length - SENTINELS);
        }
    }
}

control EgressPipe(inout headers_t headers, inout metadata_t meta,
                   inout standard_metadata_t standard) { apply { } }
control UpdateImpl(inout headers_t headers, inout metadata_t meta) { apply { } }
control DeparserImpl(packet_out packet, in headers_t headers) { apply { packet.emit(headers.sample); } }

V1Switch(ParserImpl(), VerifyImpl(), IngressPipe(), EgressPipe(), UpdateImpl(), DeparserImpl()) main;
