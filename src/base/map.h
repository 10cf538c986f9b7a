/* map.h - a hash table from a 64-bit number, or from a text, to a pointer.
 *
 * Open addressing. Text keys are borrowed: they must live as long as the entry (usually they are a member of the
 * value). Walking order is the order of insertion as long as nothing was removed, so a run can be replayed. */
#pragma once
#include "base/base.h"

struct map;
struct map *map_new(void);
void map_free(struct map *m);                                   /* not the values; NULL is fine */
AUTO_FN(struct map *, map_free)
size_t map_count(const struct map *m);

void *map_get(const struct map *m, int64_t key);
void map_put(struct map *m, int64_t key, void *value);          /* replaces */
void *map_take(struct map *m, int64_t key);                     /* removes; NULL if it was not there */

void *map_get_text(const struct map *m, const char *key);
void map_put_text(struct map *m, const char *key, void *value);
void *map_take_text(struct map *m, const char *key);

/* for (size_t i = 0; (v = map_next(m, &i)); ) ... ; removing the value just given is allowed. */
void *map_next(const struct map *m, size_t *at);
