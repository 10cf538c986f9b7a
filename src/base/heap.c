/* heap.c - sifting up and down, with every move written into the item. */
#include "base/heap.h"
#include <stdlib.h>

static size_t *pos_of(const struct heap *h, const void *item)
{
    return (size_t *)((char *)item + h->pos);
}

static void put(struct heap *h, size_t at, void *item)
{
    h->at[at] = item;
    *pos_of(h, item) = at + 1;
}

static size_t up(struct heap *h, size_t at)
{
    void *item = h->at[at];
    for (; at && h->before(item, h->at[(at - 1) / 2]); at = (at - 1) / 2)
        put(h, at, h->at[(at - 1) / 2]);
    put(h, at, item);
    return at;
}

static void down(struct heap *h, size_t at)
{
    void *item = h->at[at];
    for (size_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && h->before(h->at[child + 1], h->at[child]))
            child++;
        if (!h->before(h->at[child], item))
            break;
        put(h, at, h->at[child]);
    }
    put(h, at, item);
}

bool heap_has(const struct heap *h, const void *item)
{
    return *pos_of(h, item) != 0;
}

void heap_add(struct heap *h, void *item)
{
    if (h->count == h->room) {
        h->room = h->room ? h->room * 2 : 4;
        h->at = reallocarray(h->at, h->room, sizeof *h->at);
        if (!h->at)
            abort();
    }
    h->at[h->count++] = item;
    up(h, h->count - 1);
}

void heap_fix(struct heap *h, void *item)
{
    if (heap_has(h, item))
        down(h, up(h, *pos_of(h, item) - 1));
}

void heap_drop(struct heap *h, void *item)
{
    size_t at = *pos_of(h, item);
    if (!at)
        return;
    *pos_of(h, item) = 0;
    void *last = h->at[--h->count];
    if (last == item)
        return;
    put(h, at - 1, last);
    heap_fix(h, last);
}

void heap_all(struct heap *h)
{
    for (size_t i = h->count / 2; i-- > 0;)
        down(h, i);
}

void heap_done(struct heap *h)
{
    free(h->at);
    h->at = NULL;
    h->count = h->room = 0;
}
