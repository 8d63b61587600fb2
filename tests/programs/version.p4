/* Tells which pipeline ran a packet: ingress, a register and egress each write the version, which
 * is a constant of the program. Tests push it again with another constant while packets run.
 */
#include <core.p4>
#include <v1model.p4>

const bit<16> VERSION = 0x0A0A;

header stamp_h {
    bit<16> ingress;
    bit<16> stored;
    bit<16> egress;
    bit<16> passes;
}

struct headers_t {
    stamp_h stamp;
}

struct metadata_t {
    @field_list(1)
    bit<16> passes;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.stamp);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control IngressPipe(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    register<bit<16>>(1) version;

    action out_of(bit<9> port) { standard_metadata.egress_spec = port; }
    action drop() { mark_to_drop(standard_metadata); }

    table route {
        key = { hdr.stamp.ingress: exact; }
        actions = { out_of; drop; }
        const default_action = drop();
    }

    apply {
        route.apply();
        hdr.stamp.ingress = VERSION;
        version.write(0, VERSION);
        version.read(hdr.stamp.stored, 0);
        hdr.stamp.passes = meta.passes;
    }
}

control EgressPipe(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply {
        hdr.stamp.egress = VERSION;
        if (standard_metadata.instance_type == 0 && hdr.stamp.passes == 0) {
            hdr.stamp.ingress = 0;
            meta.passes = 1;
            recirculate_preserving_field_list(1);
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.stamp); }
}

V1Switch(Parse(), Verify(), IngressPipe(), EgressPipe(), Update(), Deparse()) main;
