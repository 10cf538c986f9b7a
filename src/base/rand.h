/* rand.h - a small seeded generator for simulation, jitter and ids. Never for keys: those come from libsodium. */
#pragma once
#include "base/base.h"

struct rng { uint64_t s; };
static inline uint64_t rng_next(struct rng *r)      /* splitmix64 */
{
    uint64_t z = (r->s += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}
static inline uint64_t rng_below(struct rng *r, uint64_t n) { return n ? rng_next(r) % n : 0; }
