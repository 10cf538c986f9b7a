/* bind_value.h - inside wire/bind*: one value in the spelling of a user into one member, by the type of its field. */
#pragma once
#include "wire/bind.h"

enum { ENTRY_MAX = 64 * 1024, LIST_MAX = 64, TEXT_MAX = 256 };

struct kind {
    const char *expects;        /* "a whole number": for the sentence that refuses */
    size_t size;                /* of the member; 0: the size of .sub */
    bool quoted;                /* a JSON text may spell it, not only a plain scalar */
    bool number;                /* a JSON number may */
    bool (*read)(const struct field *f, struct slice text, struct arena *mem, void *to, struct err *err);
};
extern const struct kind bind_kinds[FIELD_TYPE_COUNT];

/* These say why without the name of the field: whoever knows the path puts it before. */
bool value_text_ok(struct slice text, size_t most, const char *pattern, struct err *err);
bool value_in_limits(const struct field *f, int64_t n, struct err *err);
bool value_add_text(const struct field *f, struct slice text, struct arena *mem, struct texts *to, struct err *err);
bool value_add_pair(const struct field *f, struct slice key, struct slice value, struct arena *mem, struct pairs *to,
                    struct err *err);
bool value_add_assignment(const struct field *f, struct slice text, struct arena *mem, struct pairs *to, struct err *err);
size_t value_list_max(const struct field *f);
size_t value_size(const struct field *f);
const char *value_pattern(const char *class);       /* as a regular expression, for the schema */
bool value_is_zero(const struct field *f, const void *at);
void value_write(struct json_out *o, const struct field *f, const void *at);
