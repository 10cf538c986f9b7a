/* goods.c - a look into DATA/images and DATA/blobs every half minute, on a workshop's thread: the things that were used last, if they are
 * large enough for a download to matter. What an image weighs is in a file beside its tree, since walking over it takes long.
 *
 * Nothing here is exact: an image that is gone since the last look costs its task a download. */
#include "agent/goods.h"
#include "agent/tree.h"
#include "agent/workshop.h"
#include "model/goods.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { LOOK_MS = 30 * 1000, HEX = 64, NUMBER = 32 };

struct found { struct good good; int64_t used_s; };
struct shelf { struct os *os; struct arena *mem; struct found *at; size_t count, room; };

static void put(struct shelf *s, const char *hex, int64_t bytes, int64_t used_s)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct good g = { good_of_digest(arena_printf(mem, "sha256:%s", hex)), bytes >> 20 };
    if (!g.key || g.mib < GOODS_LEAST_MIB)
        return;
    if (s->count == s->room) {
        struct found *more = ARENA_ARRAY(s->mem, struct found, s->room = s->room ? s->room * 2 : 64);
        if (s->count)
            memcpy(more, s->at, s->count * sizeof *more);
        s->at = more;
    }
    s->at[s->count++] = (struct found){ g, used_s };
}

static const char *weight_path(const char *folder, struct arena *mem) { return arena_printf(mem, "%s/bytes", folder); }

void image_weigh(struct os *os, const char *folder)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err ignored = { 0 };     /* it is weighed again at the next look */
    const char *text = arena_printf(mem, "%lld\n", (long long)tree_bytes(folder, INT64_MAX));
    if (!file_replace(os, weight_path(folder, mem), (struct slice){ text, strlen(text) }, 0600, &ignored))
        return;
}

static int64_t weight_of(struct shelf *s, const char *folder)
{
    for (int tries = 0; tries < 2; tries++) {
        struct slice text = { 0 };
        struct err ignored = { 0 };
        if (file_read(s->os, weight_path(folder, s->mem), NUMBER, s->mem, &text, &ignored))
            return strtoll(arena_bytes(s->mem, text.at, text.len), NULL, 10);
        if (!tries)
            image_weigh(s->os, folder);     /* of a version that did not */
    }
    return 0;
}

static void put_image(struct shelf *s, const char *key_hex, const char *folder)
{
    struct stat st;
    if (stat(folder, &st) == 0 && S_ISDIR(st.st_mode))
        put(s, key_hex, weight_of(s, folder), st.st_mtim.tv_sec);
}

static struct texts names_in(struct shelf *s, const char *folder)
{
    struct texts names = { 0 };
    struct err ignored = { 0 };
    return dir_list(s->os, folder, s->mem, &names, &ignored) ? names : (struct texts){ 0 };
}

static void look_at_images(struct shelf *s, const char *data)
{
    const char *images = arena_printf(s->mem, "%s/images", data), *refs = arena_printf(s->mem, "%s/refs", images);
    struct texts names = names_in(s, refs);
    for (size_t i = 0; i < names.count; i++) {
        struct slice digest = { 0 };
        struct err ignored = { 0 };
        if (strlen(names.at[i]) == HEX && file_read(s->os, arena_printf(s->mem, "%s/%s", refs, names.at[i]), 2 * HEX, s->mem, &digest, &ignored)
            && digest.len == 7 + HEX && !memchr(digest.at, '/', digest.len))
            put_image(s, names.at[i], arena_printf(s->mem, "%s/%.*s", images, HEX, digest.at + 7));
    }
    names = names_in(s, images);
    for (size_t i = 0; i < names.count; i++)
        if (text_starts(names.at[i], "archive-") && strlen(names.at[i]) == 8 + HEX)
            put_image(s, names.at[i] + 8, arena_printf(s->mem, "%s/%s", images, names.at[i]));
}

static void look_at_blobs(struct shelf *s, const char *data)
{
    const char *blobs = arena_printf(s->mem, "%s/blobs", data);
    struct texts names = names_in(s, blobs);
    struct stat st;
    for (size_t i = 0; i < names.count; i++)
        if (strlen(names.at[i]) == HEX && stat(arena_printf(s->mem, "%s/%s", blobs, names.at[i]), &st) == 0)
            put(s, names.at[i], st.st_size, st.st_mtim.tv_sec);
}

static int by_use(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return x->used_s != y->used_s ? (x->used_s > y->used_s ? -1 : 1) : x->good.key < y->good.key ? -1 : x->good.key > y->good.key;
}

static int by_key(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return x->good.key < y->good.key ? -1 : x->good.key > y->good.key;
}

struct texts goods_look(struct os *os, const char *data, struct arena *mem)
{
    struct shelf s = { .os = os, .mem = mem };
    look_at_images(&s, data);
    look_at_blobs(&s, data);
    if (s.count > 1)
        qsort(s.at, s.count, sizeof *s.at, by_use);
    s.count = MIN(s.count, (size_t)GOODS_MOST);
    if (s.count > 1)
        qsort(s.at, s.count, sizeof *s.at, by_key);     /* who was used last does not make another list of the same things */
    struct texts out = { ARENA_ARRAY(mem, const char *, s.count + 1), s.count };
    for (size_t i = 0; i < s.count; i++)
        out.at[i] = good_text(ARENA_ARRAY(mem, char, GOOD_TEXT), &s.at[i].good);
    return out;
}

/* --- on the loop */

struct goods {
    struct os *os;
    struct workshop *shop;
    struct timer *again;
    char *data;
    struct arena *mem;          /* of what was found last */
    struct texts found;
};
struct look {
    struct work work;
    struct goods *g;
    struct os *os;
    char *data;
    struct arena *mem;
    struct texts found;
};

static void look_run(struct work *w)
{
    struct look *l = CONTAINER(w, struct look, work);
    l->found = goods_look(l->os, l->data, l->mem);
}

static void look_drop(struct work *w)
{
    struct look *l = CONTAINER(w, struct look, work);
    arena_free(l->mem);
    free(l->data);
    free(l);
}

static void on_again(void *arg);

static void look_done(struct work *w)
{
    struct look *l = CONTAINER(w, struct look, work);
    struct goods *g = l->g;
    arena_free(g->mem);
    g->mem = TAKE(l->mem);
    g->found = l->found;
    g->again = timer_start(g->os, LOOK_MS, on_again, g);
    look_drop(w);
}

static void on_again(void *arg)
{
    struct goods *g = arg;
    struct look *l = calloc(1, sizeof *l);
    if (!l)
        abort();
    g->again = NULL;
    *l = (struct look){ .work = { .run = look_run, .done = look_done, .drop = look_drop },
                        .g = g, .os = g->os, .data = strdup(g->data), .mem = arena_new() };
    workshop_do(g->shop, &l->work);
}

struct goods *goods_new(struct os *os, const char *data)
{
    struct goods *g = calloc(1, sizeof *g);
    if (!g)
        abort();
    *g = (struct goods){ .os = os, .shop = workshop_new(os, "goods"), .data = strdup(data) };
    on_again(g);
    return g;
}

void goods_free(struct goods *g)
{
    if (!g)
        return;
    timer_cancel(g->again);
    workshop_close(g->shop);
    arena_free(g->mem);
    free(g->data);
    free(g);
}

struct texts goods_told(const struct goods *g) { return g ? g->found : (struct texts){ 0 }; }
