/* Bluetree: sums the messages of a Reduce inside the network.
 *
 *            +--------------------------- ingress ---------------------------+     egress
 *            |                                                               |
 *   parser --+- contribution -> Admission -> Aggregation -> Upstream --------+--------------> out
 *            |                     |    (blue: absorb or emit; red: pass)    |
 *            |                                                ^              |
 *            |             (has the sum: sends it up again)   |              |
 *            +- result, ack, request ------> Downstream -> Repair ===========+==> Pruning, Delivery
 *            |                              (multicast)                      |    (requests) (at hosts)
 *            +- other IPv4 -------------------------------> Routing ---------+--------------> out
 *            |                                                               |
 *            +-- what was accepted -> Priority: its class in the queue of a port
 *            |                                                               |
 *            +------- every packet ends in exactly one cell of `outcomes` ---+
 *
 * `arrived` counts every frame by the port that it came in at, `departed` by the port that it left by:
 * what one end of a link counts as departed, the other counts as arrived, or it was lost between.
 *
 * This file only includes, orders the controls and instantiates the switch. All state lives in the
 * ingress: bmv2 runs it in one thread.
 */
#include <core.p4>
#include <v1model.p4>

#include "include/sizes.p4"
#include "include/headers.p4"
#include "include/slots.p4"
#include "include/parser.p4"
#include "include/checksum.p4"
#include "include/control/admission.p4"
#include "include/control/aggregation.p4"
#include "include/control/upstream.p4"
#include "include/control/downstream.p4"
#include "include/control/repair.p4"
#include "include/control/routing.p4"
#include "include/control/priority.p4"
#include "include/control/pruning.p4"
#include "include/control/delivery.p4"

control BluetreeIngress(inout headers_t hdr,
                        inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    counter(OUTCOMES, CounterType.packets) outcomes;
    counter(PORTS, CounterType.packets) arrived;
    Admission()   admission;
    Aggregation() aggregation;
    Upstream()    upstream;
    Downstream()  downstream;
    Repair()      repair;
    Routing()     routing;
    Priority()    priority;

    apply {
        arrived.count((bit<32>)standard_metadata.ingress_port);
        /* Nothing leaves unless a control below says where to. */
        mark_to_drop(standard_metadata);

        if (standard_metadata.parser_error != error.NoError) {
            meta.outcome = outcome_t.MALFORMED;
        } else if (!hdr.ipv4.isValid()) {
            meta.outcome = outcome_t.NOT_IPV4;
        } else if (standard_metadata.checksum_error == 1) {
            meta.outcome = outcome_t.BAD_CHECKSUM;
        } else if (hdr.ipv4.ttl <= 1) {
            meta.outcome = outcome_t.TTL_EXPIRED;
        } else if (!hdr.agg.isValid()) {
            routing.apply(hdr, meta, standard_metadata);
        } else if (hdr.agg.kind == kind_t.CONTRIBUTE) {
            admission.apply(hdr, meta, standard_metadata);
            if (hdr.agg.source < meta.lowest_source || hdr.agg.source > meta.highest_source) {
                meta.outcome = outcome_t.UNREGISTERED;
            } else {
                aggregation.apply(hdr, meta, standard_metadata);
            }
        } else if (hdr.agg.kind == kind_t.RESULT || hdr.agg.kind == kind_t.ACK
                   || hdr.agg.kind == kind_t.REQUEST) {
            downstream.apply(hdr, meta, standard_metadata);
            if (meta.outcome == outcome_t.FANNED_OUT) {
                repair.apply(hdr, meta, standard_metadata);
            } else if (meta.outcome == outcome_t.ROUTED) {
                routing.apply(hdr, meta, standard_metadata);
            }
        } else {
            meta.outcome = outcome_t.UNKNOWN_KIND;
        }
        if (meta.outcome <= outcome_t.REEMITTED) {
            upstream.apply(hdr, meta, standard_metadata);
        }
        /* What was absorbed needs no queue, but may move a window. */
        if ((meta.outcome < outcome_t.NOT_IPV4 || meta.outcome == outcome_t.ANSWERED)
            && (meta.has_ticket == 1 || meta.outcome != outcome_t.ABSORBED)) {
            priority.apply(hdr, meta, standard_metadata);
        }
        outcomes.count((bit<32>)(bit<8>)meta.outcome);
    }
}

control BluetreeEgress(inout headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    counter(PORTS, CounterType.packets) departed;
    Pruning()  pruning;
    Delivery() delivery;

    apply {
        meta.is_pruned = false;
        if (hdr.agg.isValid() && hdr.ipv4.dst_addr[31:28] == IPV4_MULTICAST) {
            if (hdr.agg.kind == kind_t.REQUEST && hdr.agg.flags & FLAG_DIRECT == 0) {
                pruning.apply(hdr, meta, standard_metadata);
            }
            delivery.apply(hdr, standard_metadata);
        }
        if (!meta.is_pruned) {
            departed.count((bit<32>)standard_metadata.egress_port);
        }
    }
}

V1Switch(BluetreeParser(),
         BluetreeVerifyChecksum(),
         BluetreeIngress(),
         BluetreeEgress(),
         BluetreeUpdateChecksum(),
         BluetreeDeparser()) main;
