
/* --- a packet, from end to end ------------------------------------------------------------------------ */

enum { MAX_PASSES = 256 };

/* What waits for another pass; its copies go where those of the first pass went. */
static void pass_again(Switch *S) {
    while (S->first_job && S->passes < MAX_PASSES) {
        S->passes++;
        Job *job = S->first_job;
        S->first_job = job->next;
        if (!job->next) S->last_job = NULL;
        if (job->egress) send_on(S, job->copy);
        else ingress(S, job->port, job->data, job->n, job->now, job->mode, &job->kept, NULL);
    }
    S->first_job = S->last_job = NULL;
    while (S->kept) {
        Block *next = S->kept->next;
        free(S->kept);
        S->kept = next;
    }
}

static void run(Switch *S, u64 port, const u8 *data, size_t n, u64 now) {
    K none;
    memset(&none, 0, sizeof none);
    S->now = now;
    S->passes = 0;
    ingress(S, port, data, (u32)n, now, 0, &none, NULL);
    if (S->first_job) pass_again(S);
}

/* --- making, filling, freeing ------------------------------------------------------------------------- */

EXPORT const char sw_key[] = PIPELINE_KEY;

EXPORT void sw_free(void *switch_) {
    Switch *S = switch_;
    for (int i = 0; i < TABLES; i++) {
        Table *t = &S->tables[i];
        map_free(&t->map);
        for (u32 j = 0; j < t->prefix_count; j++) {
            map_free(&t->prefixes[j].map);
            free(t->prefixes[j].mask);
        }
        for (u32 j = 0; j < t->row_count; j++) free(t->rows[j]);
        free(t->prefixes);
        free(t->rows);
        free(S->defaults[i]);
    }
    for (int i = 0; i < REGISTERS; i++) free(S->own[0][i]);
    for (int i = 0; i < COUNTERS; i++) {
        free(S->own[1][i]);
        free(S->own[2][i]);
    }
    for (int i = 0; i < 3; i++) free(S->own[i]);
    for (int i = 0; i < VALUE_SETS; i++) map_free(&S->value_sets[i]);
    Replicas *both[] = {&S->groups, &S->sessions};
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < 256; i++) {
            Copies **page = both[which]->pages[i];
            for (int j = 0; page && j < 256; j++) free(page[j]);
            free(page);
        }
    free(S->tables);
    free(S->defaults);
    free(S->registers);
    free(S->packets);
    free(S->bytes);
    free(S->value_sets);
    free(S->buffer);
    free(S->outs);
    free(S->scratch);
    free(S->events);
    free(S->held);
    free(S);
}

HELPER void *zeros(size_t count, size_t size) { return must(calloc(count ? count : 1, size)); }

EXPORT void *sw_new(u64 seed) {
    Switch *S = zeros(1, sizeof *S);
    S->seed = S->random = seed;
    S->queues = 1;
    S->tables = zeros(TABLES, sizeof(Table));
    S->defaults = zeros(TABLES, sizeof(Entry *));
    for (int i = 0; i < TABLES; i++) {
        S->tables[i].kind = TABLE[i].kind;
        S->tables[i].limbs = TABLE[i].limbs;
        S->tables[i].range_count = TABLE[i].range_count;
        S->tables[i].ranges = TABLE[i].ranges;
    }
    S->registers = zeros(REGISTERS, sizeof(u64 *));
    for (int i = 0; i < 3; i++) S->own[i] = zeros(i ? COUNTERS : REGISTERS, sizeof(u64 *));
    for (int i = 0; i < REGISTERS; i++)
        S->registers[i] = S->own[0][i] = zeros(REGISTER[i].size, 8 * REGISTER[i].limbs);
    S->packets = zeros(COUNTERS, sizeof(u64 *));
    S->bytes = zeros(COUNTERS, sizeof(u64 *));
    for (int i = 0; i < COUNTERS; i++) {
        S->packets[i] = S->own[1][i] = zeros(COUNTER[i], 8);
        S->bytes[i] = S->own[2][i] = zeros(COUNTER[i], 8);
    }
    S->value_sets = zeros(VALUE_SETS, sizeof(Map));
    return S;
}

EXPORT u64 *sw_register(Switch *S, u32 i) { return S->registers[i]; }
EXPORT u64 *sw_packets(Switch *S, u32 i) { return S->packets[i]; }
EXPORT u64 *sw_bytes(Switch *S, u32 i) { return S->bytes[i]; }
/* Use memory of another switch, which must outlive this one, for registers (kind 0), packets (1)
 * or bytes (2). */
EXPORT void sw_adopt(Switch *S, u32 kind, u32 i, u64 *cells) {
    u64 **all[] = {S->registers, S->packets, S->bytes};
    free(S->own[kind][i]);
    S->own[kind][i] = NULL;
    all[kind][i] = cells;
}
EXPORT u64 *sw_now(Switch *S) { return &S->now; }
EXPORT void sw_queues(Switch *S, u32 queues) { S->queues = queues; }

HELPER Entry *new_entry(const u64 *key, u32 key_limbs, i64 action, const u64 *params, u32 param_limbs,
                        Cell *cell) {
    Entry *e = must(malloc(sizeof(Entry) + 8 * (key_limbs + (size_t)param_limbs)));
    e->hash = 0;
    e->cell = cell;
    e->action = action;
    e->params = e->key + key_limbs;
    if (key_limbs) memcpy(e->key, key, 8 * (size_t)key_limbs);
    if (param_limbs) memcpy(e->params, params, 8 * (size_t)param_limbs);
    return e;
}

EXPORT void sw_put(Switch *S, u32 table, const u64 *key, const u64 *mask, u32 length, i64 action,
                   const u64 *params, u32 param_limbs, Cell *cell) {
    Table *t = &S->tables[table];
    Entry *e = new_entry(key, t->limbs, action, params, param_limbs, cell);
    e->hash = hash_of(S->seed, key, t->limbs);
    if (t->kind == EXACT) {
        map_put(&t->map, e, t->limbs);
        return;
    }
    u32 at = 0;
    while (at < t->prefix_count && t->prefixes[at].length > length) at++;
    while (at < t->prefix_count && t->prefixes[at].length == length &&
           !same_key(t->prefixes[at].mask, mask, t->limbs))
        at++;
    if (at == t->prefix_count || t->prefixes[at].length != length) {
        t->prefixes = grown(t->prefixes, (t->prefix_count + 1) * sizeof(Prefix));
        memmove(t->prefixes + at + 1, t->prefixes + at, (t->prefix_count - at) * sizeof(Prefix));
        t->prefix_count++;
        t->prefixes[at] = (Prefix){must(malloc(8 * (t->limbs + 1))), length, {NULL, 0, 0}};
        memcpy(t->prefixes[at].mask, mask, 8 * (size_t)t->limbs);
    }
    map_put(&t->prefixes[at].map, e, t->limbs);
}

EXPORT void sw_remove(Switch *S, u32 table, const u64 *key, const u64 *mask) {
    Table *t = &S->tables[table];
    u64 hash = hash_of(S->seed, key, t->limbs);
    if (t->kind == EXACT) {
        map_remove(&t->map, hash, key, t->limbs);
        return;
    }
    for (u32 at = 0; at < t->prefix_count; at++) {
        Prefix *prefix = &t->prefixes[at];
        if (!same_key(prefix->mask, mask, t->limbs)) continue;
        map_remove(&prefix->map, hash, key, t->limbs);
        if (!prefix->map.live) {
            map_free(&prefix->map);
            free(prefix->mask);
            t->prefix_count--;
            memmove(prefix, prefix + 1, (t->prefix_count - at) * sizeof(Prefix));
        }
        return;
    }
}

/* `key`: value, mask, low, high. */
EXPORT void sw_row_put(Switch *S, u32 table, u32 at, u32 replace, const u64 *key, i64 action,
                       const u64 *params, u32 param_limbs, Cell *cell) {
    Table *t = &S->tables[table];
    Entry *e = new_entry(key, 4 * t->limbs, action, params, param_limbs, cell);
    if (replace) {
        free(t->rows[at]);
        t->rows[at] = e;
        return;
    }
    if (t->row_count == t->row_room) {
        t->row_room = 2 * t->row_room + 8;
        t->rows = grown(t->rows, t->row_room * sizeof(Entry *));
    }
    memmove(t->rows + at + 1, t->rows + at, (t->row_count - at) * sizeof(Entry *));
    t->rows[at] = e;
    t->row_count++;
}

EXPORT void sw_row_remove(Switch *S, u32 table, u32 at) {
    Table *t = &S->tables[table];
    free(t->rows[at]);
    t->row_count--;
    memmove(t->rows + at, t->rows + at + 1, (t->row_count - at) * sizeof(Entry *));
}

EXPORT void sw_default(Switch *S, u32 table, i64 action, const u64 *params, u32 param_limbs,
                       Cell *cell) {
    free(S->defaults[table]);
    S->defaults[table] = new_entry(NULL, 0, action, params, param_limbs, cell);
}

EXPORT void sw_value_set(Switch *S, u32 set, const u64 *members, u32 count, u32 limbs) {
    Map *m = &S->value_sets[set];
    map_free(m);
    *m = (Map){NULL, 0, 0};
    for (u32 i = 0; i < count; i++) {
        Entry *e = new_entry(members + (size_t)i * limbs, limbs, 0, NULL, 0, NULL);
        e->hash = hash_of(S->seed, e->key, limbs);
        map_put(m, e, limbs);
    }
}

/* Copies of group (session 0) or session (1) `number`; `count` < 0: it is gone. */
EXPORT void sw_copies(Switch *S, u32 session, u32 number, const Copy *copies, i64 count, u32 length) {
    if (number >> 16) return;
    Replicas *r = session ? &S->sessions : &S->groups;
    Copies ***page = &r->pages[number >> 8];
    if (!*page) *page = zeros(256, sizeof(Copies *));
    free((*page)[number & 255]);
    (*page)[number & 255] = NULL;
    if (count < 0) return;
    Copies *new = must(malloc(sizeof(Copies) + (size_t)count * sizeof(Copy)));
    new->count = (u32)count;
    new->max_length = length;
    if (count) memcpy(new->copies, copies, (size_t)count * sizeof(Copy));
    (*page)[number & 255] = new;
}

EXPORT u64 *sw_events(Switch *S, u64 *count) {
    *count = S->event_count;
    return S->events;
}
/* How many words the events have by now. */
EXPORT u64 *sw_event_count(Switch *S) { return &S->event_count; }
EXPORT void sw_events_done(Switch *S) { S->event_count = 0; }

/* Runs one packet without Python: for tests of this code under sanitizers. The packets that leave
 * stay in `buffer` until the next call. */
EXPORT u32 sw_run(Switch *S, u64 port, const u8 *data, u64 n, u64 now) {
    S->used = S->out_count = 0;
    run(S, port, data, n, now);
    return S->out_count;
}
EXPORT const Out *sw_outs(Switch *S) { return S->outs; }
EXPORT const u8 *sw_buffer(Switch *S) { return S->buffer; }

/* --- frames from a ring of the kernel, and to sockets ------------------------------------------------- */

typedef struct {
    u8 *memory;
    u64 port, oversize;
    u32 slot, slots, at, limit;
    u32 taken, unusual;
} Ring;

typedef struct { i64 fd; u64 oversize, refused, error; } Link;

enum { LINKS = 512, BATCH = 64 };
enum { STATUS_USER = 1, STATUS_UNUSUAL = 1 << 3 | 1 << 4 };

/* Frames of the ring through the switch, up to one that needs Python's care (`unusual`). */
static void take(Switch *S, Ring *ring, u64 now) {
    u32 end = ring->slot * ring->slots;
    ring->taken = ring->unusual = 0;
    while (ring->taken < ring->limit) {
        u8 *head = ring->memory + ring->at;
        u32 status = __atomic_load_n((u32 *)head, __ATOMIC_ACQUIRE), length, here;
        u16 start;
        if (!(status & STATUS_USER)) break;
        if (status & STATUS_UNUSUAL) {
            ring->unusual = 1;
            break;
        }
        memcpy(&length, head + 4, 4);
        memcpy(&here, head + 8, 4);
        memcpy(&start, head + 12, 2);
        ring->taken++;
        if (length == here && here <= ring->slot && start <= ring->slot - here)
            run(S, ring->port, head + start, here, now);
        else ring->oversize++;
        __atomic_store_n((u32 *)head, 0, __ATOMIC_RELEASE);
        ring->at += ring->slot;
        if (ring->at == end) ring->at = 0;
    }
}

/* Count the frames that a failed call stands for, and return how many they are. */
static u32 failed_send(Link *link, int code, u32 left) {
    switch (code) {
        case EINTR: return 0;
        case EMSGSIZE: link->oversize++; return 1;
        case EAGAIN: case ENOBUFS: case EINVAL: link->refused++; return 1;
        case ENETDOWN: case ENXIO: case ENODEV: link->refused += left; return left;
    }
    link->error = (u64)code;
    link->refused += left;
    return left;
}

static void send_all(Link *link, struct mmsghdr *messages, u32 count) {
    for (u32 at = 0; at < count;) {
        int sent = sendmmsg((int)link->fd, messages + at, count - at, MSG_DONTWAIT);
        at += sent > 0 ? (u32)sent : failed_send(link, errno, count - at);
    }
}

/* Send what leaves by links that are there, port by port, each in order; the rest stays. */
static void send_out(Switch *S, Link *links) {
    struct mmsghdr messages[BATCH];
    struct iovec parts[BATCH];
    u32 rest = 0;
    memset(messages, 0, sizeof messages);
    for (u32 i = 0; i < S->out_count; i++) {
        u32 port = S->outs[i].port;
        if (S->outs[i].length == UINT32_MAX) continue;
        if (port >= LINKS || links[port].fd < 0) {
            S->outs[rest++] = S->outs[i];
            continue;
        }
        u32 count = 0;
        for (u32 j = i; j < S->out_count; j++) {
            Out *out = &S->outs[j];
            if (out->port != port || out->length == UINT32_MAX) continue;
            parts[count].iov_base = S->buffer + out->at;
            parts[count].iov_len = out->length;
            messages[count].msg_hdr.msg_iov = &parts[count];
            messages[count].msg_hdr.msg_iovlen = 1;
            out->length = UINT32_MAX;
            if (++count == BATCH) {
                send_all(&links[port], messages, count);
                count = 0;
            }
        }
        if (count) send_all(&links[port], messages, count);
    }
    S->out_count = rest;
}
