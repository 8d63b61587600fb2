// A program that exercises the rest of a P4Runtime server: action profiles and selectors, direct and
// indirect meters, digests, idle timeouts, a parser value set, a register. It computes nothing of use.
//
//   known (from the parser) -> digest (by its Ethernet type) -> pace -> aged -> balanced or picked
//   -> metered -> routes

#include <core.p4>
#include <v1model.p4>

const bit<16> TELL = 0x88b6;
const bit<9> KNOWN_PORT = 7;
const bit<9> YELLOW_PORT = 5;
const bit<9> RED_PORT = 6;
const bit<32> CELLS = 8;

header ethernet_h {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_h ethernet;
}

struct metadata_t {
    bit<1> known;
    bit<1> chosen;
    bit<2> colour;
    bit<32> cell;
}

struct learned_t {
    bit<48> src_addr;
    bit<9> port;
}

parser ControlParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) known_types;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            known_types: mark_known;
            default: accept;
        }
    }
    state mark_known {
        meta.known = 1;
        transition accept;
    }
}

control ControlVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ControlIngress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    meter(CELLS, MeterType.packets) rates;
    direct_meter<bit<2>>(MeterType.packets) paces;
    direct_counter(CounterType.packets) seen;
    register<bit<32>>(CELLS) cells;
    @max_group_size(4)
    action_selector(HashAlgorithm.crc16, 32w16, 32w14) ways;
    action_profile(4) picks;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
        meta.chosen = 1;
    }

    action measure(bit<32> cell) {
        rates.execute_meter(cell, meta.colour);
    }

    action note(bit<32> cell) {
        cells.write(cell, (bit<32>)standard_metadata.ingress_port);
    }

    action watch(bit<9> port) {
        paces.read(meta.colour);
        standard_metadata.egress_spec = port;
        meta.chosen = 1;
    }

    table measured {
        key = { hdr.ethernet.src_addr: exact @name("src_addr"); }
        actions = { measure; note; @defaultonly NoAction; }
        default_action = NoAction;
        size = 16;
    }

    table aged {
        key = { hdr.ethernet.src_addr: exact @name("src_addr"); }
        actions = { to_port; @defaultonly NoAction; }
        default_action = NoAction;
        support_timeout = true;
        size = 16;
    }

    table balanced {
        key = {
            hdr.ethernet.dst_addr: exact @name("dst_addr");
            hdr.ethernet.src_addr: selector;
        }
        actions = { to_port; drop; }
        implementation = ways;
        size = 16;
    }

    table picked {
        key = { hdr.ethernet.dst_addr: exact @name("dst_addr"); }
        actions = { to_port; drop; }
        implementation = picks;
        size = 16;
    }

    table watched {
        key = { hdr.ethernet.dst_addr: exact @name("dst_addr"); }
        actions = { watch; @defaultonly NoAction; }
        default_action = NoAction;
        meters = paces;
        counters = seen;
        size = 16;
    }

    table routes {
        key = { hdr.ethernet.dst_addr: lpm @name("dst_addr"); }
        actions = { to_port; drop; }
        const default_action = drop;
        size = 32;
    }

    apply {
        if (meta.known == 1) {
            standard_metadata.egress_spec = KNOWN_PORT;
        } else {
            if (hdr.ethernet.ether_type == TELL) {
                digest<learned_t>(1, { hdr.ethernet.src_addr, standard_metadata.ingress_port });
            }
            measured.apply();
            aged.apply();
            balanced.apply();
            picked.apply();
            watched.apply();
            if (meta.chosen == 0) {
                routes.apply();
            }
            if (meta.colour == 1) {
                standard_metadata.egress_spec = YELLOW_PORT;
            } else if (meta.colour == 2) {
                standard_metadata.egress_spec = RED_PORT;
            }
        }
    }
}

control ControlEgress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    apply { }
}

control ControlCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ControlDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(ControlParser(), ControlVerify(), ControlIngress(), ControlEgress(), ControlCompute(),
         ControlDeparser()) main;
