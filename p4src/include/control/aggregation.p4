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
        hdr.lanes.word_##number = late ? hdr.lanes.word_##number : sum_##number;

control Aggregation(inout headers_t hdr,
                    inout metadata_t meta,
                    in standard_metadata_t standard_metadata) {
    register<tag_t>(SLOTS)        slot_tag;
    register<source_set_t>(SLOTS) slot_sources;
    register<weight_t>(SLOTS)     slot_weight;
    register<exponent_t>(SLOTS)   slot_exponent;
    register<lanes_t>(SLOTS)      slot_lanes;
#if WORDS > 1
    register<lanes_t>(SLOTS)      slot_lanes_1;
#endif
#if WORDS > 2
    register<lanes_t>(SLOTS)      slot_lanes_2;
#endif
#if WORDS > 3
    register<lanes_t>(SLOTS)      slot_lanes_3;
#endif
    register<bit<8>>(SLOTS)       slot_flags;

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

        slot_tag.read(stored_tag, meta.slot);
        slot_sources.read(sources, meta.slot);
        slot_weight.read(weight, meta.slot);
        slot_exponent.read(exponent, meta.slot);
        slot_lanes.read(lanes, meta.slot);
        slot_flags.read(flags, meta.slot);

        bool late = tag < stored_tag;
        bool newer = tag > stored_tag;
        sources = newer ? 0 : sources;
        weight = newer ? 0 : weight;
        exponent = newer ? 0 : exponent;
        lanes = newer ? 0 : lanes;
        flags = newer ? 0 : flags;
        bool joins = !late && (sources & meta.source_bit) == 0;

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

        /* What leaves, if anything does: a late message as it came, else the slot. */
        hdr.lanes.word = late ? hdr.lanes.word : sum;
        hdr.agg.weight = late ? hdr.agg.weight : weight;
        hdr.agg.exponent = late ? hdr.agg.exponent : exponent;
        hdr.agg.source = late ? hdr.agg.source : meta.own_source;
        hdr.agg.flags = late ? hdr.agg.flags | FLAG_LATE
                             : flags | (joins ? 0 : FLAG_RESENT);
        hdr.udp.checksum = 0;
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
            } else {
                meta.outcome = outcome_t.FORWARDED_LATE;
            }
        }
    }
}

#endif
