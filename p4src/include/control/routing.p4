/* Routing: ordinary IPv4 forwarding (RFC 1812) for everything that is not a message of a job, so
 * that hosts can ping and share the network with other traffic.
 */
#ifndef BLUETREE_ROUTING_P4
#define BLUETREE_ROUTING_P4

control Routing(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action route(port_t port, mac_t mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst_mac = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        meta.outcome = outcome_t.ROUTED;
    }

    action no_route() {
        meta.outcome = outcome_t.NO_ROUTE;
    }

    table ipv4_routes {
        key = {
            hdr.ipv4.dst_addr: lpm @name("dst_addr");
        }
        actions = { route; @defaultonly no_route; }
        const default_action = no_route();
        size = IPV4_ROUTES_SIZE;
    }

    apply {
        ipv4_routes.apply();
    }
}

#endif
