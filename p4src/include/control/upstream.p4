/* Upstream: sends a message to the parent in its job's tree, and counts it.
 *
 * The direct counter of `upstream` is the measured load of the link to the parent. A job has four
 * entries. First transmissions and retransmissions are counted apart, so that the first can be
 * compared with the model's prediction, message for message; and so are the two phases, which are
 * the low bit of the epoch: while a job moves from one allocation to the next, with messages of both
 * under way, each is measured by itself.
 */
#ifndef BLUETREE_UPSTREAM_P4
#define BLUETREE_UPSTREAM_P4

control Upstream(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) messages;

    action to_parent(port_t port, mac_t mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst_mac = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        messages.count();
    }

    action no_parent() {
        meta.outcome = outcome_t.NO_PARENT;
    }

    table upstream {
        key = {
            hdr.agg.job: exact @name("job");
            meta.phase: exact @name("phase");
            meta.resent: exact @name("resent");
        }
        actions = { to_parent; @defaultonly no_parent; }
        const default_action = no_parent();
        counters = messages;
        size = UPSTREAM_SIZE;
    }

    apply {
        meta.phase = hdr.agg.epoch[0:0];
        meta.resent = (hdr.agg.flags & FLAG_RESENT) != 0 ? 1w1 : 0;
        upstream.apply();
    }
}

#endif
