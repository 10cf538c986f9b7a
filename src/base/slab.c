/* slab.c - a slab is SLAB_BYTES at a multiple of SLAB_BYTES, so that a piece finds its slab; a map of all slabs tells whose a piece is.
 *
 * Pieces are cut off one by one, so that pages which were never needed are never touched. A slab that is empty goes back, except the
 * last one of its size. */
#include "base/slab.h"
#include "base/map.h"
#include "base/must.h"
#include <stdlib.h>

enum { STEP = 16, SIZES = SLAB_PIECE / STEP + 1 };

struct free_piece { struct free_piece *next; };
struct slab {                       /* at its beginning */
    struct slab *next, *prev;       /* of those of its size with room */
    struct free_piece *free;
    uint32_t size, cut, live;       /* cut: up to where pieces were cut off */
    bool listed;
};
struct slabs { struct map *all; size_t taken; struct slab *open[SIZES]; bool plain; };

/* The C library puts its own head before a block, so that those which are a little smaller lie side by side. */
enum { HEAD = (sizeof(struct slab) + STEP - 1) / STEP * STEP, USABLE = SLAB_BYTES - STEP };

#if defined(__SANITIZE_ADDRESS__)
static const bool watched = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
static const bool watched = true;
#else
static const bool watched = false;
#endif
#else
static const bool watched = false;
#endif

struct slabs *slabs_new_plain(bool plain)
{
    struct slabs *s = must(calloc(1, sizeof *s));
    s->all = map_new();
    s->plain = plain;
    return s;
}

struct slabs *slabs_new(void) { return slabs_new_plain(watched); }

void slabs_free(struct slabs *s)
{
    if (!s)
        return;
    struct slab *b;
    for (size_t i = 0; (b = map_next(s->all, &i));)
        free(b);
    map_free(s->all);
    free(s);
}

static int64_t number_of(const void *p) { return (int64_t)((uintptr_t)p / SLAB_BYTES); }
static struct slab *slab_of(const struct slabs *s, const void *p) { return map_count(s->all) ? map_get(s->all, number_of(p)) : NULL; }

static void list(struct slabs *s, struct slab *b)
{
    struct slab **first = &s->open[b->size / STEP];
    b->prev = NULL;
    b->next = *first;
    if (*first)
        (*first)->prev = b;
    *first = b;
    b->listed = true;
}

static void unlist(struct slabs *s, struct slab *b)
{
    *(b->prev ? &b->prev->next : &s->open[b->size / STEP]) = b->next;
    if (b->next)
        b->next->prev = b->prev;
    b->listed = false;
}

static struct slab *slab_new(struct slabs *s, uint32_t size)
{
    void *at;
    if (posix_memalign(&at, SLAB_BYTES, USABLE) != 0)
        return NULL;
    struct slab *b = at;
    *b = (struct slab){ .size = size, .cut = HEAD };
    map_put(s->all, number_of(b), b);
    list(s, b);
    return b;
}

void *slabs_take(struct slabs *s, size_t n)
{
    if (s->plain || n > SLAB_PIECE)
        return malloc(n);
    uint32_t size = (uint32_t)(MAX(n, (size_t)1) + STEP - 1) / STEP * STEP;
    struct slab *b = s->open[size / STEP];
    if (!b && !(b = slab_new(s, size)))
        return NULL;
    void *p = b->free;
    if (p)
        b->free = b->free->next;
    else
        p = (char *)b + b->cut, b->cut += size;
    b->live++;
    s->taken += size;
    if (!b->free && b->cut + size > USABLE)
        unlist(s, b);
    return p;
}

void *slabs_zeroed(struct slabs *s, size_t n) { return memset(must(slabs_take(s, n)), 0, n); }

void slabs_give(struct slabs *s, void *p)
{
    struct slab *b = p ? slab_of(s, p) : NULL;
    if (!b) {
        free(p);
        return;
    }
    struct free_piece *f = p;
    f->next = b->free;
    b->free = f;
    b->live--;
    s->taken -= b->size;
    if (!b->listed)
        list(s, b);
    if (b->live || (!b->next && !b->prev))
        return;
    unlist(s, b);
    map_take(s->all, number_of(b));
    free(b);
}

size_t slabs_room(const struct slabs *s, const void *p)
{
    const struct slab *b = slab_of(s, p);
    return b ? b->size : 0;
}

size_t slabs_idle(const struct slabs *s) { return map_count(s->all) * SLAB_BYTES - s->taken; }
