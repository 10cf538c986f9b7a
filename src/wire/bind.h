/* bind.h - field tables at work: a document becomes a struct, a struct becomes a document.
 *
 * Whatever is wrong is told as one sentence that names the field by its path ("retry.limit") and, for an unknown
 * field, the nearest known one. On failure *out is untouched as far as a caller may look at it.
 *
 * A bare number is GB for an F_MIB, in JSON too, so bind_write prints "512MB" with the unit. null is the same as absent.
 * An in_path member that is already set may be repeated, not changed. */
#pragma once
#include "wire/json.h"

/* `given` (may be NULL) gets a bit for each row that the document held, for updates of a part. */
MUST_CHECK bool bind_read(const struct json *doc, const struct fields *fields, struct arena *mem, void *out,
                          uint64_t *given, struct err *err);
/* The same, often: what stands for missing members is copied from a struct that bind_settled made, and what that points to is shared. */
MUST_CHECK bool bind_read_over(const struct json *doc, const struct fields *fields, const void *settled, struct arena *mem, void *out,
                               uint64_t *given, struct err *err);
MUST_CHECK bool bind_settled(const struct fields *fields, struct arena *mem, const void **out, struct err *err);
/* The same for what a part of Arcus wrote: another process, the store, a file of ours. It may be of a newer version, so members that no row knows
 * are left out; all else is as strict. What people write goes through bind_read. */
MUST_CHECK bool bind_read_ours(const struct json *doc, const struct fields *fields, struct arena *mem, void *out,
                               uint64_t *given, struct err *err);
/* One value in a user's spelling (a flag, a query value, a default) into one member of the struct at `out`. Lists append,
 * pairs take K=V, objects take JSON. */
MUST_CHECK bool bind_text(const struct field *f, const char *text, struct arena *mem, void *out, struct err *err);
void bind_write(struct json_out *o, const struct fields *fields, const void *from);  /* an object */
void bind_copy(const struct fields *fields, const void *from, struct arena *mem, void *to);   /* all it points to is in mem then */
const struct field *bind_find(const struct fields *fields, const char *name);        /* by name or alias, inline groups last */
void bind_schema(struct json_out *o, const struct fields *fields);                   /* JSON Schema, for OpenAPI 3.1 */
