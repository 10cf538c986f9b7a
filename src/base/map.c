/* map.c - a dense array of entries in order of insertion, and an index of slots into it. Removal leaves a hole that
 * the next growth squeezes out. */
#include "base/map.h"
#include "base/must.h"
#include <stdlib.h>

struct entry { uint64_t key; void *value; };    /* key: the number, or the hash of the text */
/* texts: of each entry; NULL while all keys are numbers, which are the large maps */
struct map { struct entry *at; const char **texts; uint32_t *slots; size_t used, room, live, mask; };
enum { EMPTY = 0, HOLE = UINT32_MAX };

static uint64_t mix(uint64_t x)
{
    x ^= x >> 33, x *= 0xff51afd7ed558ccdULL, x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ (x >> 33);
}

static uint64_t hash_text(const char *s)
{
    uint64_t h = 0xcbf29ce484222325ULL;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
    return mix(h);
}

struct map *map_new(void) { return must(calloc(1, sizeof(struct map))); }

void map_free(struct map *m)
{
    if (!m)
        return;
    free(m->at);
    free(m->texts);
    free(m->slots);
    free(m);
}

size_t map_count(const struct map *m) { return m->live; }

static const char *text_at(const struct map *m, size_t n) { return m->texts ? m->texts[n] : NULL; }

static bool same(const struct map *m, size_t n, uint64_t key, const char *text)
{
    const struct entry *e = &m->at[n];
    return e->value && e->key == key && (text ? text_is(text_at(m, n), text) : !text_at(m, n));
}

static size_t slot_of(const struct map *m, uint64_t key, const char *text)
{
    return (text ? key : mix(key)) & m->mask;
}

static struct entry *find(const struct map *m, uint64_t key, const char *text, size_t *slot)
{
    if (!m->slots)
        return NULL;
    for (size_t i = slot_of(m, key, text);; i = (i + 1) & m->mask) {
        if (m->slots[i] == EMPTY)
            return NULL;
        if (m->slots[i] != HOLE && same(m, m->slots[i] - 1, key, text))
            return *slot = i, &m->at[m->slots[i] - 1];
    }
}

static void index_entry(struct map *m, size_t n)
{
    size_t i = slot_of(m, m->at[n].key, text_at(m, n));
    while (m->slots[i] != EMPTY)
        i = (i + 1) & m->mask;
    m->slots[i] = (uint32_t)n + 1;
}

static void regrow(struct map *m)
{
    size_t room = 8;
    while (room < m->live * 2)
        room *= 2;
    struct entry *at = must(calloc(room, sizeof *at));
    const char **texts = m->texts ? must(calloc(room, sizeof *texts)) : NULL;
    size_t n = 0;
    for (size_t i = 0; i < m->used; i++) {
        if (!m->at[i].value)
            continue;
        if (texts)
            texts[n] = m->texts[i];
        at[n++] = m->at[i];
    }
    free(m->at);
    free(m->texts);
    free(m->slots);
    m->at = at;
    m->texts = texts;
    m->used = n;
    m->room = room;
    m->mask = room * 2 - 1;
    m->slots = must(calloc(room * 2, sizeof *m->slots));
    for (size_t i = 0; i < n; i++)
        index_entry(m, i);
}

static void put(struct map *m, uint64_t key, const char *text, void *value)
{
    size_t slot;
    struct entry *e = find(m, key, text, &slot);
    assert(value);
    if (e) {
        if (text)
            m->texts[e - m->at] = text;
        e->value = value;
        return;
    }
    if (m->used == m->room)
        regrow(m);
    if (text && !m->texts)
        m->texts = must(calloc(m->room, sizeof *m->texts));
    if (m->texts)
        m->texts[m->used] = text;
    m->at[m->used] = (struct entry){ key, value };
    index_entry(m, m->used++);
    m->live++;
}

static void *take(struct map *m, uint64_t key, const char *text)
{
    size_t slot;
    struct entry *e = find(m, key, text, &slot);
    if (!e)
        return NULL;
    void *value = e->value;
    m->slots[slot] = HOLE;
    e->value = NULL;
    m->live--;
    return value;
}

static void *get(const struct map *m, uint64_t key, const char *text)
{
    size_t slot;
    struct entry *e = find(m, key, text, &slot);
    return e ? e->value : NULL;
}

void *map_get(const struct map *m, int64_t key) { return get(m, (uint64_t)key, NULL); }
void map_put(struct map *m, int64_t key, void *value) { put(m, (uint64_t)key, NULL, value); }
void *map_take(struct map *m, int64_t key) { return take(m, (uint64_t)key, NULL); }
void *map_get_text(const struct map *m, const char *key) { return get(m, hash_text(key), key); }
void map_put_text(struct map *m, const char *key, void *value) { put(m, hash_text(key), key, value); }
void *map_take_text(struct map *m, const char *key) { return take(m, hash_text(key), key); }

void *map_next(const struct map *m, size_t *at)
{
    while (*at < m->used)
        if (m->at[(*at)++].value)
            return m->at[*at - 1].value;
    return NULL;
}
