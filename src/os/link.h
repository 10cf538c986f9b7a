/* link.h - a ring through its members. A link that is on no ring has a NULL next. */
#pragma once
#include "base/base.h"

struct link { struct link *prev, *next; };

static inline void link_init(struct link *ring) { ring->prev = ring->next = ring; }
static inline bool link_empty(const struct link *ring) { return ring->next == ring; }
static inline void link_cut(struct link *l)
{
    if (!l->next)
        return;
    l->prev->next = l->next;
    l->next->prev = l->prev;
    *l = (struct link){ 0 };
}
/* at the end, unless it is on one */
static inline void link_add(struct link *ring, struct link *l)
{
    if (l->next)
        return;
    *l = (struct link){ .prev = ring->prev, .next = ring };
    ring->prev->next = l;
    ring->prev = l;
}
/* all of from's; to is made anew */
static inline void link_move(struct link *from, struct link *to)
{
    link_init(to);
    if (link_empty(from))
        return;
    *to = *from;
    to->prev->next = to->next->prev = to;
    link_init(from);
}
/* Walks the ring; the one at hand may be cut. */
#define LINK_EACH(ring, l) \
    for (struct link *l = (ring)->next, *l##_next; l##_next = l->next, l != (ring); l = l##_next)
