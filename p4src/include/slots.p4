/* The state of a blue switch: one cell of each register for every slot. Two controls use it:
 * Aggregation on the way up, Repair on the way down. Both run in the ingress, each in one action.
 */
#ifndef BLUETREE_SLOTS_P4
#define BLUETREE_SLOTS_P4

/* A chunk while its sum grows, and until a newer chunk takes the slot over. */
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

/* The newest answer that came down, of the same chunk or an older one: it stays when the slot is
 * taken over. A chunk that is one window newer is answered only after every worker has this one.
 */
register<tag_t>(SLOTS)         answer_tag;
register<answer_head_t>(SLOTS) answer_head;
register<lanes_t>(SLOTS)       answer_lanes;
#if WORDS > 1
register<lanes_t>(SLOTS)      answer_lanes_1;
#endif
#if WORDS > 2
register<lanes_t>(SLOTS)      answer_lanes_2;
#endif
#if WORDS > 3
register<lanes_t>(SLOTS)      answer_lanes_3;
#endif

#endif
