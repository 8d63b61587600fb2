/* Delivery (egress): turns the copy of a result that leaves for a host into a datagram that the
 * host's own UDP socket accepts: its MAC and IP address, its port.
 */
#ifndef BLUETREE_DELIVERY_P4
#define BLUETREE_DELIVERY_P4

control Delivery(inout headers_t hdr,
                 in standard_metadata_t standard_metadata) {
    action to_host(mac_t mac, ipv4_t addr, bit<16> udp_port) {
        hdr.ethernet.dst_mac = mac;
        hdr.ipv4.dst_addr = addr;
        hdr.udp.dst_port = udp_port;
        hdr.udp.checksum = 0;
    }

    table hosts {
        key = {
            standard_metadata.egress_port: exact @name("egress_port");
            hdr.agg.job: exact @name("job");
        }
        actions = { to_host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = HOSTS_SIZE;
    }

    apply {
        hosts.apply();
    }
}

#endif
