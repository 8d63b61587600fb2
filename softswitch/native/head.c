/* What every native pipeline shares, part one: memory, numbers, bits, hashes.
 *
 * A number of the program is held modulo 2^(64 n) in n limbs, the lowest first; what lies in the
 * limbs above its bounds is known when the code is made (see values.py). Memory that a packet may
 * change is the switch's (`Switch`); everything here runs under Python's interpreter lock, so that
 * a packet sees each write of the control plane whole.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

#define INLINE static inline __attribute__((always_inline, unused))
#define HELPER static __attribute__((unused))
#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* --- memory ------------------------------------------------------------------------------- */

HELPER void *must(void *found) {
    if (!found) {
        fputs("softswitch: out of memory\n", stderr);
        abort();
    }
    return found;
}

HELPER void *grown(void *old, size_t bytes) { return must(realloc(old, bytes ? bytes : 1)); }

/* --- numbers of many limbs ------------------------------------------------------------------ */

/* r := a, of `na` limbs, in n limbs; the sign goes on where `s`. */
INLINE void w_fit(u64 *r, int n, const u64 *a, int na, int s) {
    u64 more = s && (i64)a[na - 1] < 0 ? ~0ull : 0;
    for (int i = 0; i < n; i++) r[i] = i < na ? a[i] : more;
}
INLINE void w_set(u64 *r, int n, u64 a, int s) {
    u64 more = s && (i64)a < 0 ? ~0ull : 0;
    r[0] = a;
    for (int i = 1; i < n; i++) r[i] = more;
}
INLINE void w_add(u64 *r, const u64 *a, const u64 *b, int n) {
    unsigned __int128 c = 0;
    for (int i = 0; i < n; i++) {
        c += (unsigned __int128)a[i] + b[i];
        r[i] = (u64)c;
        c >>= 64;
    }
}
INLINE void w_sub(u64 *r, const u64 *a, const u64 *b, int n) {
    u64 borrow = 0;
    for (int i = 0; i < n; i++) {
        unsigned __int128 d = (unsigned __int128)a[i] - b[i] - borrow;
        r[i] = (u64)d;
        borrow = (u64)(d >> 64) & 1;
    }
}
HELPER void w_mul(u64 *r, const u64 *a, const u64 *b, int n) {
    memset(r, 0, 8 * (size_t)n);
    for (int i = 0; i < n; i++) {
        unsigned __int128 c = 0;
        for (int j = 0; i + j < n; j++) {
            c += (unsigned __int128)a[i] * b[j] + r[i + j];
            r[i + j] = (u64)c;
            c >>= 64;
        }
    }
}
INLINE void w_and(u64 *r, const u64 *a, const u64 *b, int n) {
    for (int i = 0; i < n; i++) r[i] = a[i] & b[i];
}
INLINE void w_or(u64 *r, const u64 *a, const u64 *b, int n) {
    for (int i = 0; i < n; i++) r[i] = a[i] | b[i];
}
INLINE void w_xor(u64 *r, const u64 *a, const u64 *b, int n) {
    for (int i = 0; i < n; i++) r[i] = a[i] ^ b[i];
}
INLINE void w_not(u64 *r, const u64 *a, int n) {
    for (int i = 0; i < n; i++) r[i] = ~a[i];
}
HELPER void w_shl(u64 *r, const u64 *a, u64 by, int n) {
    u64 limbs = by / 64, bits = by % 64;
    for (int i = n - 1; i >= 0; i--) {
        u64 v = 0;
        if ((u64)i >= limbs) {
            v = a[i - (i64)limbs] << bits;
            if (bits && (u64)i > limbs) v |= a[i - (i64)limbs - 1] >> (64 - bits);
        }
        r[i] = v;
    }
}
HELPER void w_shr(u64 *r, const u64 *a, u64 by, int n, int s) {
    u64 limbs = by / 64, bits = by % 64, more = s && (i64)a[n - 1] < 0 ? ~0ull : 0;
    for (int i = 0; i < n; i++) {
        u64 low = (u64)i + limbs < (u64)n ? a[i + (i64)limbs] : more;
        u64 high = (u64)i + limbs + 1 < (u64)n ? a[i + (i64)limbs + 1] : more;
        r[i] = bits ? low >> bits | high << (64 - bits) : low;
    }
}
INLINE int w_nz(const u64 *a, int n) {
    u64 all = 0;
    for (int i = 0; i < n; i++) all |= a[i];
    return all != 0;
}
INLINE int w_eq(const u64 *a, const u64 *b, int n) {
    u64 all = 0;
    for (int i = 0; i < n; i++) all |= a[i] ^ b[i];
    return all == 0;
}
HELPER int w_cmp(const u64 *a, const u64 *b, int n, int s) {
    if (s && a[n - 1] != b[n - 1]) return (i64)a[n - 1] < (i64)b[n - 1] ? -1 : 1;
    for (int i = n - 1; i >= 0; i--)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}
/* r := the low `width` bits of a; where `s`, bit width - 1 is the sign. */
INLINE void w_cut(u64 *r, const u64 *a, int n, unsigned width, int s) {
    for (int i = 0; i < n; i++) r[i] = a[i];
    unsigned top = width % 64;
    if (top) {
        u64 mask = (1ull << top) - 1;
        r[n - 1] &= mask;
        if (s && r[n - 1] >> (top - 1)) r[n - 1] |= ~mask;
    }
}
INLINE u64 u_shl(u64 a, u64 by) { return by < 64 ? a << by : 0; }
INLINE u64 u_shr(u64 a, u64 by) { return by < 64 ? a >> by : 0; }
INLINE u64 s_shr(u64 a, u64 by) { return (u64)((i64)a >> (by < 64 ? by : 63)); }
INLINE u64 s_cut(u64 a, unsigned width) { return (u64)((i64)(a << (64 - width)) >> (64 - width)); }

/* --- bits of bytes, in the order of the network ------------------------------------------------ */

INLINE u64 be16(const u8 *p) { u16 v; memcpy(&v, p, 2); return __builtin_bswap16(v); }
INLINE u64 be32(const u8 *p) { u32 v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
INLINE u64 be64(const u8 *p) { u64 v; memcpy(&v, p, 8); return __builtin_bswap64(v); }
INLINE void put16(u8 *p, u64 a) { u16 v = __builtin_bswap16((u16)a); memcpy(p, &v, 2); }
INLINE void put32(u8 *p, u64 a) { u32 v = __builtin_bswap32((u32)a); memcpy(p, &v, 4); }
INLINE void put64(u8 *p, u64 a) { u64 v = __builtin_bswap64(a); memcpy(p, &v, 8); }

/* `width` <= 64 bits from bit `at`; reads no byte beyond the last bit. */
INLINE u64 rd(const u8 *p, size_t at, unsigned width) {
    p += at / 8;
    unsigned skip = at % 8;
    if (skip + width <= 64) {
        unsigned bytes = (skip + width + 7) / 8;
        u64 v = 0;
        switch (bytes) {
            case 1: v = p[0]; break;
            case 2: v = be16(p); break;
            case 3: v = be16(p) << 8 | p[2]; break;
            case 4: v = be32(p); break;
            case 5: v = be32(p) << 8 | p[4]; break;
            case 6: v = be32(p) << 16 | be16(p + 4); break;
            case 7: v = be32(p) << 24 | be16(p + 4) << 8 | p[6]; break;
            case 8: v = be64(p); break;
        }
        v >>= 8 * bytes - skip - width;
        return width < 64 ? v & ((1ull << width) - 1) : v;
    }
    u64 v = be64(p) << skip >> skip;
    unsigned more = skip + width - 64;
    v = v << more | p[8] >> (8 - more);
    return width < 64 ? v & ((1ull << width) - 1) : v;
}
INLINE void wr(u8 *p, size_t at, unsigned width, u64 v) {
    if (at % 8 == 0 && width % 8 == 0) {
        p += at / 8;
        switch (width) {
            case 8: p[0] = (u8)v; return;
            case 16: put16(p, v); return;
            case 32: put32(p, v); return;
            case 48: put32(p, v >> 16); put16(p + 4, v); return;
            case 64: put64(p, v); return;
        }
        for (unsigned i = 0; i < width / 8; i++) p[i] = (u8)(v >> (width - 8 - 8 * i));
        return;
    }
    while (width) {
        unsigned skip = at % 8, room = 8 - skip, take = width < room ? width : room;
        u8 part = (u8)(v >> (width - take) & ((1u << take) - 1));
        u8 mask = (u8)(((1u << take) - 1) << (room - take));
        p[at / 8] = (u8)((p[at / 8] & ~mask) | (part << (room - take)));
        at += take;
        width -= take;
    }
}
INLINE void rd_w(u64 *r, int n, const u8 *p, size_t at, unsigned width) {
    for (int i = 0; i < n; i++) {
        unsigned done = 64 * (unsigned)i, take = width - done < 64 ? width - done : 64;
        r[i] = rd(p, at + width - done - take, take);
    }
}
INLINE void wr_w(u8 *p, size_t at, unsigned width, const u64 *a) {
    int n = (int)((width + 63) / 64);
    for (int i = 0; i < n; i++) {
        unsigned done = 64 * (unsigned)i, take = width - done < 64 ? width - done : 64;
        wr(p, at + width - done - take, take, a[i]);
    }
}

/* Bits put one after the other; bytes from the write position on are 0. */
typedef struct { u8 *p; size_t at; } Bits;

INLINE void bits_u(Bits *b, u64 v, unsigned width) {
    if (b->at % 8 == 0 && (width + 7) / 8) memset(b->p + b->at / 8, 0, (width + 7) / 8);
    else memset(b->p + b->at / 8 + 1, 0, (width + 7) / 8);
    wr(b->p, b->at, width, v);
    b->at += width;
}
HELPER void bits_w(Bits *b, const u64 *a, unsigned width) {
    for (unsigned left = width; left;) {
        unsigned take = left % 64 ? left % 64 : 64;
        left -= take;
        bits_u(b, a[left / 64], take);
    }
}
/* `count` bits from bit `from` of `src`. */
HELPER void bits_bytes(Bits *b, const u8 *src, size_t from, size_t count) {
    if (b->at % 8 == 0 && from % 8 == 0) {
        memcpy(b->p + b->at / 8, src + from / 8, count / 8);
        b->at += count / 8 * 8;
        from += count / 8 * 8;
        count %= 8;
    }
    while (count) {
        unsigned take = count < 56 ? (unsigned)count : 56;
        bits_u(b, rd(src, from, take), take);
        from += take;
        count -= take;
    }
}
/* The number of bytes, the last one filled up with 0 bits. */
INLINE size_t bits_end(Bits *b) { return (b->at + 7) / 8; }

/* --- hashes of v1model -------------------------------------------------------------------------- */

HELPER u64 csum16(const u8 *p, size_t n) {
    u64 sum = 0;
    for (; n >= 4; p += 4, n -= 4) sum += be32(p);
    if (n >= 2) { sum += be16(p); p += 2; n -= 2; }
    if (n) sum += (u64)p[0] << 8;
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}
HELPER u64 crc_reflected(const u8 *p, size_t n, u32 polynomial, u32 v) {
    static u32 rows[2][256];
    static u32 made[2];
    u32 *row = rows[polynomial == 0xA001];
    if (!made[polynomial == 0xA001]) {
        for (u32 i = 0; i < 256; i++) {
            u32 x = i;
            for (int b = 0; b < 8; b++) x = x & 1 ? x >> 1 ^ polynomial : x >> 1;
            row[i] = x;
        }
        made[polynomial == 0xA001] = 1;
    }
    for (size_t i = 0; i < n; i++) v = v >> 8 ^ row[(v ^ p[i]) & 0xff];
    return v;
}
HELPER u64 crc16(const u8 *p, size_t n) { return crc_reflected(p, n, 0xA001, 0); }
HELPER u64 crc32(const u8 *p, size_t n) {
    return (u32)~crc_reflected(p, n, 0xEDB88320u, 0xFFFFFFFFu);
}
HELPER u64 crc_ccitt(const u8 *p, size_t n) {
    u32 v = 0xFFFF;
    for (size_t i = 0; i < n; i++) {
        v ^= (u32)p[i] << 8;
        for (int b = 0; b < 8; b++) v = (v & 0x8000 ? v << 1 ^ 0x1021 : v << 1) & 0xffff;
    }
    return v;
}
HELPER u64 identity(const u8 *p, size_t n) {
    u64 v = 0;
    for (size_t i = 0; i < n && i < 8; i++) v = v << 8 | p[i];
    return v;
}
HELPER u64 fold(const u8 *p, size_t n, size_t size) {
    u64 v = 0;
    for (size_t i = 0; i < n; i++) v ^= (u64)p[i] << 8 * (size - 1 - i % size);
    return v;
}
HELPER u64 xor16(const u8 *p, size_t n) { return fold(p, n, 2); }
HELPER u64 xor32(const u8 *p, size_t n) { return fold(p, n, 4); }
