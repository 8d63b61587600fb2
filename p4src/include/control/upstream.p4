/* Upstream: sends a message to the parent in its job's tree, and counts it.
 *
 * The direct counter of `upstream` is the measured load of the link to the parent: one entry counts
 * a job's first transmissions, another its retransmissions, so that the first can be compared with
 * the model's prediction, message for message.
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
            meta.resent: exact @name("resent");
        }
        actions = { to_parent; @defaultonly no_parent; }
        const default_action = no_parent();
        counters = messages;
        size = UPSTREAM_SIZE;
    }

    apply {
        meta.resent = (hdr.agg.flags & FLAG_RESENT) != 0 ? 1w1 : 0;
        upstream.apply();
    }
}

#endif
