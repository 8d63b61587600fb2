/* Where packets go: drop, multicast, clones, resubmit, recirculate, truncate, packet-in and -out.
 * The egress writes into the packet what it knows of the copy.
 */
#include <core.p4>
#include <v1model.p4>

const bit<32> SENTINELS = 1000;

const bit<9> CPU_PORT = 510;

@controller_header("packet_in")
header packet_in_h {
    bit<9> ingress_port;
    bit<7> padding;
}

@controller_header("packet_out")
header packet_out_h {
    bit<9> egress_port;
    bit<7> padding;
}

header order_h {
    bit<8>  code;
    bit<8>  kept;
    bit<16> argument;
    bit<16> port;
    bit<16> rid;
    bit<8>  instance_type;
    bit<16> length;
}

struct headers_t {
    packet_out_h out_of_cpu;
    packet_in_h  into_cpu;
    order_h      order;
}

struct metadata_t {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: from_cpu;
            default: order;
        }
    }
    state from_cpu {
        packet.extract(hdr.out_of_cpu);
        transition order;
    }
    state order {
        packet.extract(hdr.order);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IngressPipe(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.out_of_cpu.isValid()) {
            standard_metadata.egress_spec = hdr.out_of_cpu.egress_port;
            hdr.out_of_cpu.setInvalid();
        } else if (!hdr.order.isValid()) {
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = (bit<9>)hdr.order.argument;
            if (hdr.order.code == 1) {
                mark_to_drop(standard_metadata);
            } else if (hdr.order.code == 2) {
                standard_metadata.mcast_grp = hdr.order.argument;
            } else if (hdr.order.code == 3) {
                standard_metadata.mcast_grp = hdr.order.argument;
                mark_to_drop(standard_metadata);
            } else if (hdr.order.code == 4) {
                mark_to_drop(standard_metadata);
                standard_metadata.mcast_grp = hdr.order.argument;
            } else if (hdr.order.code == 5) {
                mark_to_drop(standard_metadata);
                standard_metadata.egress_spec = 7;
            } else if (hdr.order.code == 6) {
                meta.kept = 0x66;
                meta.lost = 0x77;
                clone_preserving_field_list(CloneType.I2E, 5, 1);
                hdr.order.argument = 0xBEEF;
            } else if (hdr.order.code == 7) {
                if (standard_metadata.instance_type == 0) {
                    meta.kept = 0x55;
                    meta.lost = 0x44;
                    resubmit_preserving_field_list(1);
                } else {
                    hdr.order.kept = meta.kept + meta.lost;
                }
            } else if (hdr.order.code == 8) {
                if (standard_metadata.instance_type == 4) {
                    hdr.order.kept = meta.kept + meta.lost;
                }
            } else if (hdr.order.code == 10) {
                truncate(4);
            } else if (hdr.order.code == 11) {
                standard_metadata.egress_spec = CPU_PORT;
            } else if (hdr.order.code == 14) {
                standard_metadata.priority = (bit<3>)hdr.order.kept;
            } else if (hdr.order.code == 12) {
                resubmit_preserving_field_list(1);
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
    apply {
        if (hdr.order.isValid()) {
            hdr.order.port = (bit<16>)standard_metadata.egress_port;
            hdr.order.rid = standard_metadata.egress_rid;
            hdr.order.instance_type = (bit<8>)standard_metadata.instance_type;
            hdr.order.length = (bit<16>)standard_metadata.packet_length;
            if (hdr.order.code == 6 && standard_metadata.instance_type == 1) {
                hdr.order.kept = meta.kept + meta.lost;
            } else if (hdr.order.code == 8 && hdr.order.kept == 0) {
                meta.kept = 0x33;
                meta.lost = 0x22;
                recirculate_preserving_field_list(1);
            } else if (hdr.order.code == 9) {
                if (standard_metadata.instance_type == 2) {
                    hdr.order.kept = meta.kept + meta.lost;
                } else {
                    meta.kept = 0x11;
                    meta.lost = 0x02;
                    clone_preserving_field_list(CloneType.E2E, 6, 1);
                }
            } else if (hdr.order.code == 13) {
                mark_to_drop(standard_metadata);
            }
        }
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.into_cpu.setValid();
            hdr.into_cpu.ingress_port = standard_metadata.ingress_port;
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.into_cpu);
        packet.emit(hdr.order);
    }
}

V1Switch(Parse(), Verify(), IngressPipe(), EgressPipe(), Update(), Deparse()) main;
