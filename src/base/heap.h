/* heap.h - a binary heap of pointers whose items know their place in it, so that any of them can be moved or taken out.
 *
 * An item carries one size_t for each heap it may be in, 0 while it is not; `pos` is that member's offset. before() must be a total
 * order, or equal items come out as the heap likes. The heap owns its array, never the items. */
#pragma once
#include "base/base.h"

struct heap { void **at; size_t count, room, pos; bool (*before)(const void *a, const void *b); };
#define HEAP(T, member, before_) ((struct heap){ .pos = offsetof(T, member), .before = (before_) })

static inline void *heap_top(const struct heap *h) { return h->count ? h->at[0] : NULL; }
bool heap_has(const struct heap *h, const void *item);
void heap_add(struct heap *h, void *item);
void heap_fix(struct heap *h, void *item);      /* its order has changed; nothing happens if it is not in it */
void heap_drop(struct heap *h, void *item);     /* nothing happens if it is not in it */
void heap_all(struct heap *h);                  /* the order of many has changed */
void heap_done(struct heap *h);
