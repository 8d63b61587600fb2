
/* --- further passes of a packet ---------------------------------------------------------------------- */

typedef struct Job {
    struct Job *next;
    int egress;
    P *copy;
    u64 port, now;
    const u8 *data;
    u32 n, mode;
    K kept;
} Job;

HELPER void add_job(Switch *S, Job *job) {
    job->next = NULL;
    if (S->last_job) S->last_job->next = job;
    else S->first_job = job;
    S->last_job = job;
}
/* A copy of `p` to go through egress, which the caller may still change. */
HELPER P *later_egress(Switch *S, const P *p) {
    Job *job = keep(S, sizeof(Job));
    job->egress = 1;
    job->copy = keep(S, sizeof(P));
    *job->copy = *p;
    add_job(S, job);
    return job->copy;
}
HELPER void later_ingress(Switch *S, const P *p, const u8 *data, size_t n, u32 mode, const K *kept) {
    Job *job = keep(S, sizeof(Job));
    job->egress = 0;
    job->port = p->port;
    job->now = p->now;
    job->data = data;
    job->n = (u32)n;
    job->mode = mode;
    job->kept = *kept;
    add_job(S, job);
}

static void ingress(Switch *S, u64 port, const u8 *data, u32 n, u64 now, u32 mode, const K *kept,
                    const Copies *targets);
static void egress(Switch *S, P *p);
