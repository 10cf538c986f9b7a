/* share.h - how much of the cloud a project has had lately: what it held, times how long, halved with every half-life that has passed.
 *
 * Everything decays alike, so nothing is decayed: time itself grows instead. X(t) is the integral of 2^(t/half-life), counted from an
 * epoch; a hold from t0 to t1 adds held * (X(t1) - X(t0)). Two accounts compare in these units at any time, and one that holds nothing
 * keeps its value. Every 16 half-lives the epoch moves and values lose 16 bits. Integers only, the same on every machine.
 *
 * A project's share is that of the resource it has most of (dominant), of all there is, by its weight. What it holds counts as held for
 * `ahead` more, so that the first of a pass does not take everything. */
#pragma once
#include "base/base.h"

enum share_of { SHARE_GPU, SHARE_CPU, SHARE_MEM, SHARE_COUNT };
enum { SHARE_HALF_LIFE_S = 86400, SHARE_EPOCH_HALVES = 16 };

struct share_clock {
    int64_t half_ms, now_ms;
    int64_t epoch;              /* in half-lives since 1970, a multiple of SHARE_EPOCH_HALVES */
    int64_t x, ahead;           /* X(now), and what a hold adds from now until `ahead` later */
    int64_t capacity[SHARE_COUNT];      /* of all nodes: thousandths, thousandths, MiB */
};
struct share { __int128 used[SHARE_COUNT]; int64_t x, epoch; };

void share_start(struct share_clock *k, int64_t half_ms);
bool share_time(struct share_clock *k, int64_t now_ms);     /* true: the epoch moved, and all keys are in other units. Times a little back are now */
void share_settle(const struct share_clock *k, struct share *a, const int64_t held[SHARE_COUNT]);   /* up to now: call it before held changes */
void share_add(const struct share_clock *k, struct share *a, const int64_t held[SHARE_COUNT], int64_t from_ms, int64_t to_ms);  /* was held then */
/* Smaller goes first. Grows with time as long as what is held stays the same; settled to now. */
int64_t share_key(const struct share_clock *k, const struct share *a, const int64_t held[SHARE_COUNT], int64_t weight_milli);
/* Millionths of what the whole cloud gives in a half-life, decayed: 1,000,000 is all of it, always. */
int64_t share_ppm(const struct share_clock *k, const struct share *a);
