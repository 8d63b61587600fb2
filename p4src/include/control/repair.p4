/* Repair: what a blue switch does with messages on their way down, so that a loss is made good by
 * the nearest switch that can, and by the fewest messages.
 *
 * An answer (RESULT or ACK) is stored on its way. Aggregation returns it to whoever repeats a
 * contribution to that chunk.
 *
 * A REQUEST asks for what a chunk lacks. The first word of its lanes is a set: bit i is the i-th
 * source of the blue switch, or destination, that it comes from.
 *
 *   the slot is full            turned round: the sum goes up once more, and nothing down
 *   the slot waits for others   goes on down for these others
 *   the slot is older           goes on down for all sources: nothing of the chunk has come yet
 *   the slot is newer           STALE: the chunk was complete before; dropped
 *   marked direct               goes on down as it came: its answers will pass all switches
 */
#ifndef BLUETREE_REPAIR_P4
#define BLUETREE_REPAIR_P4

/* What `remember` and `inspect` do with the first word, for another one. A set has no second word. */
#define REMEMBER_WORD(number)                                                                 \
        lanes_t lanes_##number;                                                               \
        answer_lanes_##number.read(lanes_##number, meta.slot);                                \
        answer_lanes_##number.write(meta.slot, newer ? hdr.lanes.word_##number                \
                                                     : lanes_##number);

#define INSPECT_WORD(number)                                                                  \
        lanes_t lanes_##number;                                                               \
        slot_lanes_##number.read(lanes_##number, meta.slot);                                  \
        hdr.lanes.word_##number = meta.is_whole ? lanes_##number : 0;

control Repair(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    /* The parameters mean what they mean in blue_sources. */
    action serve(source_set_t all_sources, slot_t slot_base, slot_t slot_mask,
                 source_t own_source) {
        meta.all_sources = all_sources;
        meta.slot = slot_base |+| (hdr.agg.chunk & slot_mask);
        meta.own_source = own_source;
    }

    table blue_jobs {
        key = {
            hdr.agg.job: exact @name("job");
            hdr.agg.epoch: exact @name("epoch");
        }
        actions = { serve; @defaultonly NoAction; }
        const default_action = NoAction();
        size = BLUE_JOBS_SIZE;
    }

    action remember() {
        tag_t         tag = hdr.agg.epoch ++ hdr.agg.chunk;
        tag_t         stored_tag;
        answer_head_t head;
        lanes_t       lanes;

        answer_tag.read(stored_tag, meta.slot);
        answer_head.read(head, meta.slot);
        answer_lanes.read(lanes, meta.slot);

        bool newer = tag > stored_tag;
        answer_tag.write(meta.slot, newer ? tag : stored_tag);
        answer_head_t new_head = hdr.agg.kind ++ hdr.agg.flags ++ hdr.agg.source ++ hdr.agg.weight
                                 ++ hdr.agg.exponent;
        answer_head.write(meta.slot, newer ? new_head : head);
        answer_lanes.write(meta.slot, newer ? hdr.lanes.word : lanes);
#if WORDS > 1
        REMEMBER_WORD(1)
#endif
#if WORDS > 2
        REMEMBER_WORD(2)
#endif
#if WORDS > 3
        REMEMBER_WORD(3)
#endif
    }

    /* Leaves in the lanes what the slot lacks, or the sum if it lacks nothing. */
    action inspect() {
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

        sources = tag == stored_tag ? sources : 0;
        meta.is_stale = tag < stored_tag;
        meta.is_whole = sources == meta.all_sources;
        hdr.lanes.word = meta.is_whole ? lanes : (lanes_t)(meta.all_sources & ~sources);
#if WORDS > 1
        INSPECT_WORD(1)
#endif
#if WORDS > 2
        INSPECT_WORD(2)
#endif
#if WORDS > 3
        INSPECT_WORD(3)
#endif
        hdr.agg.weight = meta.is_whole ? weight : hdr.agg.weight;
        hdr.agg.exponent = meta.is_whole ? exponent : hdr.agg.exponent;
        hdr.agg.source = meta.is_whole ? meta.own_source : hdr.agg.source;
        hdr.agg.flags = meta.is_whole ? flags | FLAG_RESENT : hdr.agg.flags;
        hdr.udp.checksum = 0;
    }

    /* The request becomes the sum that it asks for: a message of this switch, to whom it came from.
     * A switch has no address; the job's group stands for it.
     */
    action turn_up() {
        ipv4_t group = hdr.ipv4.dst_addr;
        hdr.agg.kind = kind_t.CONTRIBUTE;
        hdr.ipv4.dst_addr = hdr.ipv4.src_addr;
        hdr.ipv4.src_addr = group;
        hdr.ipv4.ttl = FIRST_TTL;
        standard_metadata.mcast_grp = 0;
        meta.outcome = outcome_t.REEMITTED;
    }

    action refuse() {
        standard_metadata.mcast_grp = 0;
        meta.outcome = outcome_t.STALE;
    }

    apply {
        if (hdr.agg.flags & FLAG_DIRECT == 0 && blue_jobs.apply().hit && meta.slot < SLOTS) {
            if (hdr.agg.kind != kind_t.REQUEST) {
                remember();
            } else {
                inspect();
                if (meta.is_stale) {
                    refuse();
                } else if (meta.is_whole) {
                    turn_up();
                }
            }
        }
    }
}

#endif
