/* Downstream: copies a result or an acknowledgement to every child that has workers of the job; one to
 * a single address is left to Routing. Only the port towards the destination may send either, so no
 * worker can answer in its place.
 */
#ifndef BLUETREE_DOWNSTREAM_P4
#define BLUETREE_DOWNSTREAM_P4

control Downstream(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    action fan_out(group_t group) {
        standard_metadata.mcast_grp = group;
        meta.outcome = outcome_t.FANNED_OUT;
    }

    action pass_to_one() {
        standard_metadata.mcast_grp = 0;
        meta.outcome = outcome_t.ROUTED;
    }

    action pass_to_all() {
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    action refuse() {
        meta.outcome = outcome_t.UNREGISTERED;
    }

    table downstream {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
            hdr.agg.job: exact @name("job");
        }
        actions = { fan_out; @defaultonly refuse; }
        const default_action = refuse();
        size = DOWNSTREAM_SIZE;
    }

    apply {
        if (downstream.apply().hit) {
            if (hdr.ipv4.dst_addr[31:28] == IPV4_MULTICAST) {
                pass_to_all();
            } else {
                pass_to_one();
            }
        }
    }
}

#endif
