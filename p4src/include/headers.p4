/* The headers on the wire, and what the program remembers of a packet while it holds it.
 * docs/protocol.md gives the meaning of every field.
 */
#ifndef BLUETREE_HEADERS_P4
#define BLUETREE_HEADERS_P4

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;
typedef bit<9>  port_t;
typedef bit<16> group_t;

typedef bit<16> job_t;
typedef bit<16> source_t;
typedef bit<32> epoch_t;
typedef bit<32> chunk_t;
/* Source ids are 16 bits wide, so no more workers than that can be in a message. */
typedef bit<16> weight_t;
/* Exponents compare as unsigned numbers; 0 asks for none. */
typedef bit<16> exponent_t;
typedef bit<32> slot_t;
typedef bit<16> layer_t;
typedef bit<16> iteration_t;
typedef bit<16> window_t;
typedef bit<3>  priority_t;

/* Newer allocations, and newer chunks of one allocation, compare greater. */
typedef bit<64> tag_t;
/* One bit for each source of a blue switch. */
typedef bit<SOURCES> source_set_t;
/* The lanes of a word side by side, the first in the most significant bits. */
typedef bit<WORD_BITS> lanes_t;
/* Kind, flags, source, weight and exponent of an answer. */
typedef bit<64> answer_head_t;
#define ANSWER_KIND     63:56
#define ANSWER_FLAGS    55:48
#define ANSWER_SOURCE   47:32
#define ANSWER_WEIGHT   31:16
#define ANSWER_EXPONENT 15:0

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  PROTOCOL_UDP   = 17;
const bit<16> AGG_UDP_PORT   = 9590;
const bit<8>  AGG_VERSION    = 2;
/* 224.0.0.0/4 */
const bit<4>  IPV4_MULTICAST = 0xE;
/* The group of job j is 239.66.(j >> 8).(j & 255), and by RFC 1112 01:00:5e:42:.. on Ethernet. */
const bit<16> GROUP_IPV4     = 0xEF42;
const bit<32> GROUP_MAC      = 0x01005E42;
const bit<8>  FIRST_TTL      = 255;

enum bit<8> kind_t {
    CONTRIBUTE = 1,
    RESULT     = 2,
    ACK        = 3,
    REQUEST    = 4
}

/* A ticket: two IPv4 options of the numbers that RFC 4727 leaves to experiments, copied into every
 * fragment. Each is kind, length 4 and a 16-bit value.
 */
const bit<8> OPTION_END       = 0;
const bit<8> OPTION_NO_OP     = 1;
const bit<8> OPTION_LAYER     = 158;
const bit<8> OPTION_ITERATION = 222;
const bit<8> TICKET_BYTES     = 4;

const bit<8> FLAG_DIRECT   = 0x01;
const bit<8> FLAG_LATE     = 0x02;
const bit<8> FLAG_RESENT   = 0x04;
const bit<8> FLAG_OVERFLOW = 0x08;

header ethernet_h {
    mac_t   dst_mac;
    mac_t   src_mac;
    bit<16> ether_type;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<1>  reserved;
    bit<1>  dont_fragment;
    bit<1>  more_fragments;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    ipv4_t  src_addr;
    ipv4_t  dst_addr;
}

header ipv4_options_h {
    varbit<MAX_OPTION_BITS> data;
}

header udp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header agg_h {
    bit<8>     version;
    bit<8>     kind;
    bit<8>     flags;
    bit<8>     lane_count;
    job_t      job;
    source_t   source;
    epoch_t    epoch;
    chunk_t    chunk;
    weight_t   weight;
    exponent_t exponent;
}

header lanes_h {
    lanes_t word;
#if WORDS > 1
    lanes_t word_1;
#endif
#if WORDS > 2
    lanes_t word_2;
#endif
#if WORDS > 3
    lanes_t word_3;
#endif
}

struct headers_t {
    ethernet_h     ethernet;
    ipv4_h         ipv4;
    ipv4_options_h ipv4_options;
    udp_h          udp;
    agg_h          agg;
    lanes_h        lanes;
}

/* What became of a packet. Each packet ends in exactly one; the counter `outcomes` has a cell for
 * each. The names go to the control plane as they stand here.
 */
enum bit<8> outcome_t {
    /* Upward: one message left for the parent. */
    FORWARDED       = 0,  // red: passed on as it came
    FORWARDED_MARKED = 1, // marked direct or late: passed on as red, everywhere
    FORWARDED_LATE  = 2,  // its slot has moved on: passed on un-aggregated, marked late here
    EMITTED         = 3,  // completed its slot: the sum went on
    REEMITTED       = 4,  // its slot was complete before: the sum went on again
    /* Upward: nothing left. */
    ABSORBED        = 5,  // added to its slot, which waits for others
    DUPLICATE       = 6,  // was in its slot already
    /* Downward and beside. */
    FANNED_OUT      = 7,  // a result or acknowledgement, copied down the tree
    ROUTED          = 8,  // ordinary IPv4 traffic
    /* Refused. */
    NOT_IPV4        = 9,
    MALFORMED       = 10, // truncated, wrong length, version or lane count
    BAD_CHECKSUM    = 11, // of the IPv4 header
    UNKNOWN_KIND    = 12,
    UNREGISTERED    = 13, // a job or source that this port may not speak for
    BAD_WEIGHT      = 14, // the source stands for another number of workers
    BAD_SLOT        = 15, // outside the slots of this build
    NO_PARENT       = 16, // a job without a link upward
    NO_ROUTE        = 17,
    TTL_EXPIRED     = 18,
    /* Repair. */
    ANSWERED        = 19, // its chunk is complete: the stored answer went back
    STALE           = 20  // a request for a chunk whose slot has moved on
}
const int OUTCOMES = 21;

/* What a slot made of a contribution. */
enum bit<3> verdict_t {
    ABSORBED  = 0,
    COMPLETED = 1,
    REPEATED  = 2,
    DUPLICATE = 3,
    LATE      = 4,
    ANSWERED  = 5
}

struct metadata_t {
    outcome_t    outcome;
    /* Sources that the ingress port may speak for. */
    source_t     lowest_source;
    source_t     highest_source;
    /* What a blue switch knows of this source. */
    source_set_t source_bit;
    source_set_t all_sources;
    weight_t     expected_weight;
    source_t     own_source;
    slot_t       slot;
    verdict_t    verdict;
    /* The low bit of the epoch: two allocations that follow each other differ in it. */
    bit<1>       phase;
    bit<1>       resent;
    /* The ticket, if the packet carries one; the parser reads it. */
    bit<1>       has_ticket;
    layer_t      layer;
    iteration_t  iteration;
    window_t     window;
    /* A request: this switch has the whole sum; all that is asked for is past; nobody asked is
     * behind the egress port.
     */
    bool         is_whole;
    bool         is_stale;
    bool         is_pruned;
}

error {
    Ipv4Malformed,
    AggMalformed
}

#endif
