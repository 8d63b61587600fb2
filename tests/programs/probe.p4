// A program that exercises a target and its P4Runtime server: every match kind, direct and indirect
// counters, a table small enough to fill, constant entries and defaults, multicast, clones, and
// controller headers whose fields do not end on byte borders. It computes nothing of use.
//
//   packet-out --> out of the port that its header names
//   any other  --> acl (may drop) --> forward (unicast, multicast, clone, CPU) or else routes

#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;
const bit<32> FORWARD_ENTRIES = 8;
const bit<32> PORTS = 16;

@controller_header("packet_in")
header packet_in_h {
    bit<9> ingress_port;
    bit<3> reason;
    bit<4> unused;
}

@controller_header("packet_out")
header packet_out_h {
    bit<9> egress_port;
    bit<7> unused;
}

header ethernet_h {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    packet_in_h packet_in;
    packet_out_h packet_out;
    ethernet_h ethernet;
}

struct metadata_t {
    bit<3> reason;
}

parser ProbeParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control ProbeVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ProbeIngress(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) forwarded;
    counter(PORTS, CounterType.packets_and_bytes) arrived;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action permit() { }

    action to_port(bit<9> port) {
        standard_metadata.egress_spec = port;
    }

    action to_group(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }

    action to_port_and_mirror(bit<9> port, bit<32> session) {
        standard_metadata.egress_spec = port;
        clone(CloneType.I2E, session);
    }

    action to_cpu(bit<3> reason) {
        standard_metadata.egress_spec = CPU_PORT;
        meta.reason = reason;
    }

    table acl {
        key = {
            hdr.ethernet.src_addr: ternary @name("src_addr");
            hdr.ethernet.ether_type: range @name("ether_type");
            standard_metadata.ingress_port: optional @name("ingress_port");
        }
        actions = { drop; permit; }
        const default_action = permit;
        size = 64;
    }

    table forward {
        key = {
            hdr.ethernet.dst_addr: exact @name("dst_addr");
        }
        actions = { to_port; to_group; to_port_and_mirror; to_cpu; @tableonly drop; @defaultonly NoAction; }
        default_action = NoAction;
        counters = forwarded;
        size = FORWARD_ENTRIES;
    }

    table routes {
        key = {
            hdr.ethernet.dst_addr: lpm @name("dst_addr");
        }
        actions = { to_port; drop; }
        default_action = drop;
        size = 64;
    }

    table reserved {
        key = {
            hdr.ethernet.ether_type: exact @name("ether_type");
        }
        actions = { drop; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            0xffff: drop();
        }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            arrived.count((bit<32>)standard_metadata.ingress_port);
            if (reserved.apply().miss) {
                switch (acl.apply().action_run) {
                    permit: {
                        if (forward.apply().miss) {
                            routes.apply();
                        }
                    }
                }
            }
        }
    }
}

control ProbeEgress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.reason = meta.reason;
            hdr.packet_in.unused = 0;
        }
    }
}

control ProbeCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ProbeDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(ProbeParser(), ProbeVerify(), ProbeIngress(), ProbeEgress(), ProbeCompute(),
         ProbeDeparser()) main;
