/* Admission: may this port speak for this source of this job?
 *
 * Sources are numbered so that those below one switch are an interval, so one entry admits a whole
 * subtree and a worker's port admits exactly that worker. What is not admitted touches no state.
 */
#ifndef BLUETREE_ADMISSION_P4
#define BLUETREE_ADMISSION_P4

control Admission(in headers_t hdr,
                  inout metadata_t meta,
                  in standard_metadata_t standard_metadata) {
    /* Both bounds belong to the interval. */
    action admit(source_t lowest, source_t highest) {
        meta.lowest_source = lowest;
        meta.highest_source = highest;
    }

    /* An empty interval: no source is in it. */
    action refuse() {
        meta.lowest_source = 1;
        meta.highest_source = 0;
    }

    table registered_sources {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
            hdr.agg.job: exact @name("job");
        }
        actions = { admit; @defaultonly refuse; }
        const default_action = refuse();
        size = REGISTERED_SOURCES_SIZE;
    }

    apply {
        registered_sources.apply();
    }
}

#endif
