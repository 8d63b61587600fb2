/* Pruning (egress): keeps a request off the branches where nobody is asked for.
 *
 * The table holds, for a port, the bits of the sources behind it, as numbered by the nearest blue
 * switch above (this one, if it is blue), or else by the destination. A set that the lanes cannot
 * hold is not entered: those branches are always asked.
 */
#ifndef BLUETREE_PRUNING_P4
#define BLUETREE_PRUNING_P4

control Pruning(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action lead_to(lanes_t sources) {
        meta.is_pruned = hdr.lanes.word & sources == 0;
    }

    table branches {
        key = {
            standard_metadata.egress_port: exact @name("egress_port");
            hdr.agg.job: exact @name("job");
            hdr.agg.epoch: exact @name("epoch");
        }
        actions = { lead_to; @defaultonly NoAction; }
        const default_action = NoAction();
        size = BRANCHES_SIZE;
    }

    apply {
        branches.apply();
        if (meta.is_pruned) {
            mark_to_drop(standard_metadata);
        }
    }
}

#endif
