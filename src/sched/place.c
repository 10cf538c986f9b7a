/* place.c - where nodes are: each part of a topology address once, counted, so that what no node is in any more is gone. */
#include "sched/fleet.h"
#include <stdlib.h>

static int64_t place_hash(const struct place *up, const char *name, size_t len, int level)
{
    uint64_t h = ((uint64_t)(up ? up->id : 0) << 8 | (uint64_t)level) * 0x9e3779b97f4a7c15ULL;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 0x100000001b3ULL;
    return (int64_t)(h ^ h >> 31);
}

static struct place *place_in(struct fleet *f, struct place *up, const char *name, size_t len, int level)
{
    int64_t hash = place_hash(up, name, len, level);
    len = MIN(len, (size_t)PLACE_NAME - 1);
    f->places = f->places ? f->places : map_new();
    struct place *first = map_get(f->places, hash), *p = first;
    while (p && (p->up != up || p->level != level || strlen(p->name) != len || memcmp(p->name, name, len) != 0))
        p = p->next;
    if (p)
        return p;
    p = must(calloc(1, sizeof *p));
    *p = (struct place){ .up = up, .next = first, .id = ++f->place_ids, .level = (uint8_t)level };
    memcpy(p->name, name, len);
    if (up)
        up->users++;
    map_put(f->places, hash, p);
    return p;
}

/* Of an address; parts that are not known are left out, but the region never is: an unnamed one is one too. */
struct place *place_enter(struct fleet *f, const char *address)
{
    if (!f->anywhere) {
        f->anywhere = place_in(f, NULL, "", 0, PLACE_ANY);
        f->anywhere->users++; /* it stays */
    }
    struct place *p = f->anywhere;
    const char *at = address ? address : "";
    for (int level = PLACE_REGION; at && level < PLACE_LEVELS; level++) {
        size_t n = strcspn(at, "/");
        if (n || level == PLACE_REGION)
            p = place_in(f, p, at, n, level);
        at = at[n] ? at + n + 1 : NULL;
    }
    p->users++;
    return p;
}

void place_leave(struct fleet *f, struct place *p)
{
    for (struct place *up; p && --p->users == 0; p = up) {
        int64_t hash = place_hash(p->up, p->name, strlen(p->name), p->level);
        struct place *first = map_take(f->places, hash), **at = &first;
        while (*at != p)
            at = &(*at)->next;
        *at = p->next;
        if (first)
            map_put(f->places, hash, first);
        up = p->up;
        free(p);
    }
}

bool place_is(const struct place *p, const char *region, const char *zone)
{
    bool in_zone = !zone[0], in_region = !region[0];
    for (; p && p->level; p = p->up) {
        in_zone = in_zone || (p->level == PLACE_ZONE && strcmp(p->name, zone) == 0);
        in_region = in_region || (p->level == PLACE_REGION && strcmp(p->name, region) == 0);
    }
    return in_zone && in_region;
}

const struct place *place_site(const struct place *p)
{
    while (p->level > PLACE_ZONE)
        p = p->up;
    return p;
}
