/* Part two: tables, copies and the switch that holds them. It follows head.c in the same file. */

/* --- tables ----------------------------------------------------------------------------------- */

typedef struct { u64 packets, bytes, since; } Cell;

/* One entry. `key` has the value, in ordered tables also mask, low and high. */
typedef struct {
    u64 hash;
    Cell *cell;
    u64 *params;
    i64 action;
    u64 key[];
} Entry;

typedef struct { u64 hash; Entry *entry; } Slot;
typedef struct { Slot *slots; u64 mask, live; } Map;
typedef struct { u64 *mask; u32 length; Map map; } Prefix;
typedef struct { u16 at, limbs; } Part;

enum { EXACT, LPM, ORDERED };

typedef struct {
    u32 kind, limbs, range_count;
    const Part *ranges;
    Map map;
    Prefix *prefixes;
    u32 prefix_count;
    Entry **rows;
    u32 row_count, row_room;
} Table;

INLINE u64 hash_of(u64 seed, const u64 *key, u32 limbs) {
    u64 h = seed;
    for (u32 i = 0; i < limbs; i++) {
        h = (h ^ key[i]) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 29;
    }
    return h * 0xBF58476D1CE4E5B9ull ^ h >> 32;
}
INLINE int same_key(const u64 *a, const u64 *b, u32 limbs) {
    for (u32 i = 0; i < limbs; i++)
        if (a[i] != b[i]) return 0;
    return 1;
}
INLINE Entry *map_find(const Map *m, u64 hash, const u64 *key, u32 limbs) {
    if (!m->live) return NULL;
    for (u64 at = hash & m->mask;; at = (at + 1) & m->mask) {
        const Slot *slot = &m->slots[at];
        if (!slot->entry) return NULL;
        if (slot->hash == hash && same_key(slot->entry->key, key, limbs)) return slot->entry;
    }
}
HELPER void map_place(Map *m, Entry *entry) {
    u64 at = entry->hash & m->mask;
    while (m->slots[at].entry) at = (at + 1) & m->mask;
    m->slots[at] = (Slot){entry->hash, entry};
}
HELPER void map_put(Map *m, Entry *entry, u32 limbs) {
    Entry *old = map_find(m, entry->hash, entry->key, limbs);
    if (old) {
        for (u64 at = old->hash & m->mask;; at = (at + 1) & m->mask)
            if (m->slots[at].entry == old) {
                m->slots[at].entry = entry;
                break;
            }
        free(old);
        return;
    }
    u64 room = m->slots ? m->mask + 1 : 0;
    if (2 * (m->live + 1) > room) {
        Slot *before = m->slots;
        u64 bigger = room ? 2 * room : 8;
        m->slots = must(calloc(bigger, sizeof(Slot)));
        m->mask = bigger - 1;
        for (u64 i = 0; i < room; i++)
            if (before[i].entry) map_place(m, before[i].entry);
        free(before);
    }
    map_place(m, entry);
    m->live++;
}
HELPER void map_remove(Map *m, u64 hash, const u64 *key, u32 limbs) {
    Entry *old = map_find(m, hash, key, limbs);
    if (!old) return;
    u64 hole = hash & m->mask;
    while (m->slots[hole].entry != old) hole = (hole + 1) & m->mask;
    /* what follows moves up, unless it would stand before its own place */
    for (u64 at = (hole + 1) & m->mask; m->slots[at].entry; at = (at + 1) & m->mask) {
        u64 home = m->slots[at].hash & m->mask;
        if (((at - home) & m->mask) >= ((at - hole) & m->mask)) {
            m->slots[hole] = m->slots[at];
            hole = at;
        }
    }
    m->slots[hole] = (Slot){0, NULL};
    m->live--;
    free(old);
}
HELPER void map_free(Map *m) {
    for (u64 i = 0; m->slots && i <= m->mask; i++) free(m->slots[i].entry);
    free(m->slots);
}

INLINE Entry *t_exact(const Table *t, u64 seed, const u64 *key, u32 limbs) {
    return map_find(&t->map, hash_of(seed, key, limbs), key, limbs);
}
INLINE Entry *t_lpm(const Table *t, u64 seed, const u64 *key, u32 limbs) {
    u64 part[limbs];
    for (u32 i = 0; i < t->prefix_count; i++) {
        const Prefix *prefix = &t->prefixes[i];
        for (u32 j = 0; j < limbs; j++) part[j] = key[j] & prefix->mask[j];
        Entry *found = map_find(&prefix->map, hash_of(seed, part, limbs), part, limbs);
        if (found) return found;
    }
    return NULL;
}
HELPER int in_ranges(const Table *t, const Entry *e, const u64 *key) {
    const u64 *low = e->key + 2 * t->limbs, *high = low + t->limbs;
    for (u32 i = 0; i < t->range_count; i++) {
        int at = t->ranges[i].at, limbs = t->ranges[i].limbs;
        if (w_cmp(key + at, low + at, limbs, 0) < 0) return 0;
        if (w_cmp(key + at, high + at, limbs, 0) > 0) return 0;
    }
    return 1;
}
INLINE Entry *t_ordered(const Table *t, u64 seed, const u64 *key, u32 limbs) {
    (void)seed;
    for (u32 i = 0; i < t->row_count; i++) {
        Entry *e = t->rows[i];
        const u64 *mask = e->key + limbs;
        u64 off = 0;
        for (u32 j = 0; j < limbs; j++) off |= (key[j] & mask[j]) ^ e->key[j];
        if (!off && (!t->range_count || in_ranges(t, e, key))) return e;
    }
    return NULL;
}

/* --- copies ------------------------------------------------------------------------------------- */

typedef struct { u32 port, instance; } Copy;
typedef struct { u32 count, max_length; Copy copies[]; } Copies;
/* Groups or sessions by number below 65536, two levels. */
typedef struct { Copies **pages[256]; } Replicas;

INLINE const Copies *copies_of(const Replicas *r, u64 number) {
    if (number >> 16) return NULL;
    Copies **page = r->pages[number >> 8];
    return page ? page[number & 255] : NULL;
}

/* --- the switch ----------------------------------------------------------------------------------- */

typedef struct { u64 at; u32 port, length; } Out;
typedef struct Block { struct Block *next; } Block;
struct Job;

typedef struct {
    u64 seed, now, random;
    u32 queues;
    Table *tables;
    Entry **defaults;
    /* registers, packets and bytes, in use; and those that are this switch's own */
    u64 **registers, **packets, **bytes;
    u64 **own[3];
    Map *value_sets;
    Replicas groups, sessions;
    /* packets that leave, one after the other */
    u8 *buffer;
    size_t used, room;
    Out *outs;
    u32 out_count, out_room;
    /* what must live as long as the packet in work */
    Block *kept;
    struct Job *first_job, *last_job;
    u32 passes;
    /* packets in two steps: copies are held for queues instead of going through egress; what egress
     * is told of the one that has waited */
    u32 hold, waited;
    u64 since, enq_qdepth, deq_qdepth;
    struct Held **held;
    u32 held_count, held_room;
    u8 *scratch;
    size_t scratch_room;
    /* for the control plane: kind, number, limbs, then so many limbs */
    u64 *events;
    u64 event_count;
    size_t event_room;
} Switch;

INLINE u8 *room_for(Switch *S, size_t bytes) {
    if (S->used + bytes > S->room) {
        S->room = 2 * (S->used + bytes) + 4096;
        S->buffer = grown(S->buffer, S->room);
    }
    return S->buffer + S->used;
}
INLINE u8 *scratch_for(Switch *S, size_t bytes) {
    if (bytes > S->scratch_room) {
        S->scratch_room = 2 * bytes + 4096;
        S->scratch = grown(S->scratch, S->scratch_room);
    }
    return S->scratch;
}
INLINE void leaves(Switch *S, u32 port, size_t length) {
    if (S->out_count == S->out_room) {
        S->out_room = 2 * S->out_room + 16;
        S->outs = grown(S->outs, S->out_room * sizeof(Out));
    }
    S->outs[S->out_count++] = (Out){S->used, port, (u32)length};
    S->used += length;
}
HELPER void *keep(Switch *S, size_t bytes) {
    Block *block = must(malloc(sizeof(Block) + bytes));
    block->next = S->kept;
    S->kept = block;
    return block + 1;
}
HELPER void event(Switch *S, u64 kind, u64 number, u64 limbs) {
    if (S->event_count + 3 + limbs > S->event_room) {
        S->event_room = 2 * (S->event_room + limbs) + 64;
        S->events = grown(S->events, 8 * S->event_room);
    }
    u64 *at = S->events + S->event_count;
    at[0] = kind;
    at[1] = number;
    at[2] = limbs;
    S->event_count += 3;
}
HELPER void event_limbs(Switch *S, const u64 *a, u64 limbs) {
    memcpy(S->events + S->event_count, a, 8 * limbs);
    S->event_count += limbs;
}
HELPER u64 any64(Switch *S) {
    /* splitmix64 */
    u64 z = S->random += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}
INLINE u64 any_of(Switch *S, u64 low, u64 high) {
    u64 span = high - low + 1;
    return span ? low + any64(S) % span : any64(S);
}
