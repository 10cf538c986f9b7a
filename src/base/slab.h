/* slab.h - memory for very many small things that stay: each size has slabs of its own, without a head before each piece.
 *
 * What stays and what comes and goes are mixed in the C library's heap, and the holes between are no whole pages: a fleet's
 * connections took a sixth more than they need. Belongs to one thread. Where an address sanitizer watches, every piece is
 * the C library's after all, so that it sees leaks and pieces that are used too late. */
#pragma once
#include "base/base.h"

enum { SLAB_BYTES = 128 * 1024, SLAB_PIECE = 8 * 1024 };     /* what is larger than a SLAB_PIECE is the C library's */

struct slabs;
struct slabs *slabs_new(void);
struct slabs *slabs_new_plain(bool plain);                      /* plain: all is the C library's */
void slabs_free(struct slabs *s);                               /* with all slabs, but not what was too large for them; NULL is fine */
AUTO_FN(struct slabs *, slabs_free)

void *slabs_take(struct slabs *s, size_t n);                    /* aligned for anything, not zeroed; NULL: no memory */
void *slabs_zeroed(struct slabs *s, size_t n);                  /* does not fail */
void slabs_give(struct slabs *s, void *p);                      /* what any of the two gave; NULL is fine */
size_t slabs_room(const struct slabs *s, const void *p);        /* of a piece in a slab; 0: it is the C library's */
size_t slabs_idle(const struct slabs *s);                       /* bytes of slabs that are in no piece */
