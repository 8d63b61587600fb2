/* The IPv4 header checksum (RFC 791), options included. Verification only sets checksum_error: the
 * ingress drops. The UDP checksum is never computed here: whatever changes a UDP payload or port
 * sets it to 0, which over IPv4 means "none" (RFC 768).
 */
#ifndef BLUETREE_CHECKSUM_P4
#define BLUETREE_CHECKSUM_P4

#define IPV4_CHECKSUM_FIELDS { \
    hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, \
    hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment, \
    hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, \
    hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4_options.data }

control BluetreeVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_FIELDS, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

control BluetreeUpdateChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_FIELDS, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

#endif
