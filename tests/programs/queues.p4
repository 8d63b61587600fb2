/* Queues: the priority that picks one, from the packet or its copies, and what egress is told of
 * the wait. `show` asks for it: times differ from run to run, so that a comparison leaves it out.
 */
#include <core.p4>
#include <v1model.p4>

const bit<32> SENTINELS = 1000;

header order_h {
    bit<8>  code;
    bit<8>  priority;
    bit<16> argument;
    bit<8>  show;
    bit<8>  instance_type;
    bit<16> enq_qdepth;
    bit<16> deq_qdepth;
    bit<32> enq_timestamp;
    bit<32> deq_timedelta;
    bit<48> now;
}

struct headers_t {
    order_h order;
}

struct metadata_t {
    @field_list(1)
    bit<8> again;
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    state start {
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
        if (!hdr.order.isValid()) {
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = (bit<9>)hdr.order.argument;
            standard_metadata.priority = (bit<3>)hdr.order.priority;
            if (hdr.order.code == 1) {
                standard_metadata.mcast_grp = hdr.order.argument;
            } else if (hdr.order.code == 2) {
                clone(CloneType.I2E, 5);
            } else if (meta.again == 1) {
                standard_metadata.priority = 1;
            }
        }
        // a sentinel of the packet tests: its length tells the port that it leaves by
        if (standard_metadata.packet_length > SENTINELS) {
            standard_metadata.egress_spec = (bit<9>)(standard_metadata.packet_length - SENTINELS);
            standard_metadata.priority = 0;
        }
    }
}

control EgressPipe(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.order.isValid()) {
            hdr.order.instance_type = (bit<8>)standard_metadata.instance_type;
            if (hdr.order.code == 3 && standard_metadata.instance_type == 0) {
                clone(CloneType.E2E, 6);
            } else if (hdr.order.code == 4) {
                hdr.order.code = 5;
                meta.again = 1;
                recirculate_preserving_field_list(1);
            }
            if (hdr.order.show != 0) {
                hdr.order.enq_qdepth = (bit<16>)standard_metadata.enq_qdepth;
                hdr.order.deq_qdepth = (bit<16>)standard_metadata.deq_qdepth;
                hdr.order.enq_timestamp = standard_metadata.enq_timestamp;
                hdr.order.deq_timedelta = standard_metadata.deq_timedelta;
                hdr.order.now = standard_metadata.egress_global_timestamp;
            }
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.order);
    }
}

V1Switch(Parse(), Verify(), IngressPipe(), EgressPipe(), Update(), Deparse()) main;
