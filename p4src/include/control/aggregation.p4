/* Aggregation: blue or red, and the slots of a blue switch.
 *
 * The table blue_sources decides: a hit means that this switch is blue for this source in this
 * epoch of this job; a miss means red. Red and blue are one program, and reallocation is entries
 * only.
 *
 * A slot holds one chunk while its sum grows: its tag (epoch, chunk), the set of sources in it, how
 * many workers they stand for, the sum, and the largest exponent that any of them asks for. Slots clean themselves: a contribution with a newer tag
 * takes its slot over, so nothing ever needs to be reset from outside.
 *
 *   tag equal, source new, then all sources in   COMPLETED   the sum leaves for the parent
 *   tag equal, source new, others missing        ABSORBED
 *   tag equal, source in, all sources in         REPEATED    the sum leaves again
 *   tag equal, source in, others missing         DUPLICATE
 *   tag newer                                    the slot starts anew, then as "source new"
 *   tag older                                    LATE        left as it came
 *   whatever the slot holds, the chunk's answer
 *   has come down through here                   ANSWERED    the answer goes back
 *
 * All of it is one action: bmv2 makes an action atomic and nothing larger.
 */
#ifndef BLUETREE_AGGREGATION_P4
#define BLUETREE_AGGREGATION_P4

/* The sign bit of every lane: 0x80000000 in each. */
const int     ALL_LANES_ONE = ((1 << WORD_BITS) - 1) / ((1 << LANE_BITS) - 1);
const lanes_t LANE_SIGNS    = (lanes_t)(ALL_LANES_ONE * (1 << (LANE_BITS - 1)));

/* What `accumulate` does with the first word, for another one. */
#define ACCUMULATE_WORD(number)                                                               \
        lanes_t lanes_##number;                                                               \
        slot_lanes_##number.read(lanes_##number, meta.slot);                                  \
        lanes_##number = newer ? 0 : lanes_##number;                                          \
        lanes_t addend_##number = joins ? hdr.lanes.word_##number : 0;                        \
        lanes_t sum_##number = ((lanes_##number & ~LANE_SIGNS) +                              \
                                (addend_##number & ~LANE_SIGNS))                              \
                               ^ ((lanes_##number ^ addend_##number) & LANE_SIGNS);           \
        lanes_t overflowed_##number = (lanes_##number ^ sum_##number)                         \
                                      & (addend_##number ^ sum_##number) & LANE_SIGNS;        \
        flags = flags | (overflowed_##number != 0 ? FLAG_OVERFLOW : 0);                       \
        slot_lanes_##number.write(meta.slot, sum_##number);                                   \
        lanes_t answer_##number;                                                              \
        answer_lanes_##number.read(answer_##number, meta.slot);                               \
        hdr.lanes.word_##number = late ? hdr.lanes.word_##number : sum_##number;              \
        hdr.lanes.word_##number = answered ? answer_##number : hdr.lanes.word_##number;

control Aggregation(inout headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    /* source_bit: this source's bit; all_sources: the bits of all that the switch sums; weight: the
     * workers this source stands for; slots slot_base .. slot_base + slot_mask are the job's. The
     * addition saturates, so that it cannot come round to the slots of another job.
     */
    action join(source_set_t source_bit, source_set_t all_sources, weight_t weight,
                slot_t slot_base, slot_t slot_mask, source_t own_source) {
        meta.source_bit = source_bit;
        meta.all_sources = all_sources;
        meta.expected_weight = weight;
        meta.slot = slot_base |+| (hdr.agg.chunk & slot_mask);
        meta.own_source = own_source;
    }

    table blue_sources {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
            hdr.agg.job: exact @name("job");
            hdr.agg.epoch: exact @name("epoch");
            hdr.agg.source: exact @name("source");
        }
        actions = { join; @defaultonly NoAction; }
        const default_action = NoAction();
        size = BLUE_SOURCES_SIZE;
    }

    action accumulate() {
        tag_t        tag = hdr.agg.epoch ++ hdr.agg.chunk;
        tag_t        stored_tag;
        source_set_t sources;
        weight_t     weight;
        exponent_t   exponent;
        lanes_t      lanes;
        bit<8>       flags;
        tag_t         answered_tag;
        answer_head_t head;
        lanes_t       answer;

        slot_tag.read(stored_tag, meta.slot);
        slot_sources.read(sources, meta.slot);
        slot_weight.read(weight, meta.slot);
        slot_exponent.read(exponent, meta.slot);
        slot_lanes.read(lanes, meta.slot);
        slot_flags.read(flags, meta.slot);
        answer_tag.read(answered_tag, meta.slot);
        answer_head.read(head, meta.slot);
        answer_lanes.read(answer, meta.slot);

        bool answered = tag == answered_tag;
        bool late = tag < stored_tag;
        bool newer = tag > stored_tag && !answered;
        sources = newer ? 0 : sources;
        weight = newer ? 0 : weight;
        exponent = newer ? 0 : exponent;
        lanes = newer ? 0 : lanes;
        flags = newer ? 0 : flags;
        bool joins = !late && !answered && (sources & meta.source_bit) == 0;

        /* Lane-wise two's complement addition in one word: the sign bits are kept apart, so that no
         * carry crosses into the next lane. A lane overflowed if both addends have the sign that
         * the sum has not.
         */
        lanes_t addend = joins ? hdr.lanes.word : 0;
        lanes_t sum = ((lanes & ~LANE_SIGNS) + (addend & ~LANE_SIGNS))
                      ^ ((lanes ^ addend) & LANE_SIGNS);
        lanes_t overflowed = (lanes ^ sum) & (addend ^ sum) & LANE_SIGNS;
        flags = flags | (joins ? hdr.agg.flags & FLAG_OVERFLOW : 0)
                      | (overflowed != 0 ? FLAG_OVERFLOW : 0);
#if WORDS > 1
        ACCUMULATE_WORD(1)
#endif
#if WORDS > 2
        ACCUMULATE_WORD(2)
#endif
#if WORDS > 3
        ACCUMULATE_WORD(3)
#endif
        sources = joins ? sources | meta.source_bit : sources;
        weight = joins ? weight + hdr.agg.weight : weight;
        exponent = joins && hdr.agg.exponent > exponent ? hdr.agg.exponent : exponent;

        slot_tag.write(meta.slot, newer ? tag : stored_tag);
        slot_sources.write(meta.slot, sources);
        slot_weight.write(meta.slot, weight);
        slot_exponent.write(meta.slot, exponent);
        slot_lanes.write(meta.slot, sum);
        slot_flags.write(meta.slot, flags);

        bool full = sources == meta.all_sources;
        meta.verdict = full ? (joins ? verdict_t.COMPLETED : verdict_t.REPEATED)
                            : (joins ? verdict_t.ABSORBED : verdict_t.DUPLICATE);
        meta.verdict = late ? verdict_t.LATE : meta.verdict;
        meta.verdict = answered ? verdict_t.ANSWERED : meta.verdict;

        /* What leaves, if anything does: the answer, or a late message as it came, else the slot. */
        hdr.lanes.word = late ? hdr.lanes.word : sum;
        hdr.lanes.word = answered ? answer : hdr.lanes.word;
        hdr.agg.weight = late ? hdr.agg.weight : weight;
        hdr.agg.weight = answered ? head[ANSWER_WEIGHT] : hdr.agg.weight;
        hdr.agg.exponent = late ? hdr.agg.exponent : exponent;
        hdr.agg.exponent = answered ? head[ANSWER_EXPONENT] : hdr.agg.exponent;
        hdr.agg.source = late ? hdr.agg.source : meta.own_source;
        hdr.agg.source = answered ? head[ANSWER_SOURCE] : hdr.agg.source;
        hdr.agg.flags = late ? hdr.agg.flags | FLAG_LATE
                             : flags | (joins ? 0 : FLAG_RESENT);
        hdr.agg.flags = answered ? head[ANSWER_FLAGS] | FLAG_RESENT : hdr.agg.flags;
        hdr.agg.kind = answered ? head[ANSWER_KIND] : hdr.agg.kind;
        hdr.udp.checksum = 0;
    }

    /* An answer of this switch, to its job's group, out of the port that asked: all that is behind
     * the port may need it, and what is blue there stores it.
     */
    action turn_down() {
        hdr.ethernet.src_mac = hdr.ethernet.dst_mac;
        hdr.ethernet.dst_mac = GROUP_MAC ++ hdr.agg.job;
        hdr.ipv4.src_addr = hdr.ipv4.dst_addr;
        hdr.ipv4.dst_addr = GROUP_IPV4 ++ hdr.agg.job;
        hdr.ipv4.ttl = FIRST_TTL;
        hdr.udp.src_port = AGG_UDP_PORT;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        meta.outcome = outcome_t.ANSWERED;
    }

    /* An acknowledgement is shorter than the contribution that asked for it. */
    action cut_lanes() {
        hdr.lanes.setInvalid();
        hdr.ipv4.total_length = hdr.ipv4.total_length - LANES_BYTES;
        hdr.udp.length = hdr.udp.length - LANES_BYTES;
    }

    /* meta.outcome tells the ingress whether anything leaves. */
    apply {
        if (hdr.agg.flags & (FLAG_DIRECT | FLAG_LATE) != 0) {
            meta.outcome = outcome_t.FORWARDED_MARKED;
        } else if (!blue_sources.apply().hit) {
            meta.outcome = outcome_t.FORWARDED;
        } else if (hdr.agg.weight != meta.expected_weight) {
            meta.outcome = outcome_t.BAD_WEIGHT;
        } else if (meta.slot >= SLOTS) {
            meta.outcome = outcome_t.BAD_SLOT;
        } else {
            accumulate();
            if (meta.verdict == verdict_t.COMPLETED) {
                meta.outcome = outcome_t.EMITTED;
            } else if (meta.verdict == verdict_t.ABSORBED) {
                meta.outcome = outcome_t.ABSORBED;
            } else if (meta.verdict == verdict_t.REPEATED) {
                meta.outcome = outcome_t.REEMITTED;
            } else if (meta.verdict == verdict_t.DUPLICATE) {
                meta.outcome = outcome_t.DUPLICATE;
            } else if (meta.verdict == verdict_t.ANSWERED) {
                turn_down();
                if (hdr.agg.kind == kind_t.ACK) {
                    cut_lanes();
                }
            } else {
                meta.outcome = outcome_t.FORWARDED_LATE;
            }
        }
    }
}

#endif
