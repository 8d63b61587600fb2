
/* --- copies that wait in a queue --------------------------------------------------------------------- */

typedef struct Held {
    P packet;
    u64 priority;
    u32 passes;
    u8 data[];
} Held;

static void egress(Switch *S, P *p);

/* A copy has left ingress. */
HELPER void send_on(Switch *S, P *p) {
    if (!S->hold) {
        egress(S, p);
        return;
    }
    u64 priority = PRIORITY(p);
    if (priority >= S->queues) {
        event(S, NO_QUEUE, 0, 1);
        event_limbs(S, &priority, 1);
        return;
    }
    Held *held = must(malloc(sizeof(Held) + p->n));
    held->packet = *p;
    held->priority = priority;
    held->passes = S->passes;
    if (p->n) memcpy(held->data, p->data, p->n);
    held->packet.data = held->data;
    if (S->held_count == S->held_room) {
        S->held_room = 2 * S->held_room + 16;
        S->held = grown(S->held, S->held_room * sizeof(Held *));
    }
    S->held[S->held_count++] = held;
}

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
