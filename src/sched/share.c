/* share.c - time that grows, in whole numbers: 2^f by the bits of f, each a factor of the table. */
#include "sched/share.h"

/* 2^(1/2), 2^(1/4), ... 2^(1/2^32), times 2^62. */
static const uint64_t roots[32] = {
    0x5a827999fcef3242, 0x4c1bf828c6dc54b7, 0x45cae0f1f545eb73, 0x42d561b3e6243d8a,
    0x4166c34c5615d0eb, 0x40b268f9de0183b9, 0x4058f6a7ecccd5b6, 0x402c6be96af2fb58,
    0x4016321b687027a8, 0x400b18178ba33b14, 0x40058bce410147e8, 0x4002c5d7bff71dae,
    0x400162e807ee7e5b, 0x4000b1730df6a524, 0x400058b9497b8151, 0x40002c5c955dd701,
    0x4000162e46d6f26b, 0x40000b1722757b1b, 0x4000058b90fd3e0c, 0x400002c5c86f3f26,
    0x40000162e433c79b, 0x400000b17218edcf, 0x40000058b90c3968, 0x4000002c5c860d54,
    0x400000162e4302d2, 0x4000000b17218073, 0x400000058b90bffc, 0x40000002c5c85fee,
    0x4000000162e42ff3, 0x40000000b17217f8, 0x4000000058b90bfc, 0x400000002c5c85fe,
};
static const int64_t ln2_q32 = 2977044471; /* ln 2, times 2^32 */
enum { KEY_BITS = 8, BACK_MS = 60 * 1000 };

/* (half / ln 2) * 2^((t - epoch) / half). Its slope at the epoch is 1. */
static int64_t grown(const struct share_clock *k, int64_t at_ms)
{
    int64_t halves = at_ms / k->half_ms - k->epoch, rest = at_ms % k->half_ms;
    if (halves < -40) /* so long ago that nothing is left of it */
        return 0;
    halves = MIN(halves, SHARE_EPOCH_HALVES + 1);
    uint64_t f = ((uint64_t)rest << 32) / (uint64_t)k->half_ms;
    unsigned __int128 y = (unsigned __int128)1 << 62;
    for (int bit = 0; bit < 32; bit++)
        if (f >> (31 - bit) & 1)
            y = y * roots[bit] >> 62;
    unsigned __int128 x = ((unsigned __int128)k->half_ms << 32) / (uint64_t)ln2_q32 * y;
    return (int64_t)(x >> (62 - halves));
}

static void work_out(struct share_clock *k)
{
    k->x = grown(k, k->now_ms);
    k->ahead = grown(k, k->now_ms + k->half_ms / 8) - k->x;
}

void share_start(struct share_clock *k, int64_t half_ms)
{
    *k = (struct share_clock){ .half_ms = half_ms };
    work_out(k);
}

bool share_time(struct share_clock *k, int64_t now_ms)
{
    if (now_ms <= k->now_ms && now_ms > k->now_ms - BACK_MS)
        return false;
    int64_t epoch = now_ms / k->half_ms / SHARE_EPOCH_HALVES * SHARE_EPOCH_HALVES;
    bool moved = epoch != k->epoch || now_ms < k->now_ms;
    k->now_ms = now_ms;
    k->epoch = epoch;
    work_out(k);
    return moved;
}

static void to_epoch(const struct share_clock *k, struct share *a)
{
    int64_t by = MIN(k->epoch - a->epoch, 100);
    if (!by)
        return;
    if (by < 0) { /* a clock that was ahead: what it made us forget stays forgotten */
        a->x = MIN(a->x, k->x);
        a->epoch = k->epoch;
        return;
    }
    for (int i = 0; i < SHARE_COUNT; i++)
        a->used[i] >>= by;
    a->x = by > 62 ? 0 : a->x >> by;
    a->epoch = k->epoch;
}

void share_settle(const struct share_clock *k, struct share *a, const int64_t held[SHARE_COUNT])
{
    to_epoch(k, a);
    for (int i = 0; i < SHARE_COUNT; i++)
        a->used[i] += (__int128)held[i] * MAX(k->x - a->x, 0);
    a->x = k->x;
}

void share_add(const struct share_clock *k, struct share *a, const int64_t held[SHARE_COUNT], int64_t from_ms, int64_t to_ms)
{
    from_ms = MAX(from_ms, 0);
    to_ms = MIN(to_ms, k->now_ms);
    if (from_ms >= to_ms)
        return;
    int64_t x = grown(k, to_ms) - grown(k, from_ms);
    to_epoch(k, a);
    for (int i = 0; i < SHARE_COUNT; i++)
        a->used[i] += (__int128)held[i] * x;
}

int64_t share_key(const struct share_clock *k, const struct share *a, const int64_t held[SHARE_COUNT], int64_t weight_milli)
{
    __int128 most = 0;
    for (int i = 0; i < SHARE_COUNT; i++) {
        __int128 had = a->used[i] + (__int128)held[i] * k->ahead;
        if (k->capacity[i] > 0)
            most = MAX(most, (had << KEY_BITS) / k->capacity[i]);
    }
    most = most * 1000 / MAX(weight_milli, 1);
    return most > INT64_MAX ? INT64_MAX : (int64_t)most;
}

int64_t share_ppm(const struct share_clock *k, const struct share *a)
{
    __int128 most = 0;
    int64_t by = MAX(MIN(k->epoch - a->epoch, 100), 0); /* it may not have been settled since */
    for (int i = 0; i < SHARE_COUNT; i++)
        if (k->capacity[i] > 0)
            most = MAX(most, (a->used[i] >> by) * 1000000 / k->capacity[i] / MAX(k->x, 1));
    return most > INT64_MAX ? INT64_MAX : (int64_t)most;
}
