/* tables.h - a document through a field table and back: what is taken must be printed, taken again and printed the same. */
#pragma once
#include "fuzz.h"
#include "wire/bind.h"
#include "wire/yaml.h"

static inline void fuzz_table(const struct json *doc, const struct fields *fields, struct arena *mem)
{
    AUTO(str_done) struct str once = { 0 }, twice = { 0 };
    struct err err = { 0 };
    struct json *back;
    void *out = arena_take(mem, 1, fields->size), *again = arena_take(mem, 1, fields->size), *zero = arena_take(mem, 1, fields->size);
    uint64_t given = 0;
    if (!bind_read(doc, fields, mem, out, &given, &err)) {
        MUST(err.rc == RC_BAD_INPUT && err.text[0] && memcmp(out, zero, fields->size) == 0);
        return;
    }
    bind_write(&(struct json_out){ .to = &once }, fields, out);
    MUST(json_parse(fuzz_slice(&once), mem, &back, &err));
    if (!bind_read(back, fields, mem, again, NULL, &err)) {
        MUST(strstr(err.text, "required"));     /* a secret that is required is not printed */
        return;
    }
    bind_write(&(struct json_out){ .to = &twice }, fields, again);
    MUST(fuzz_same(&once, &twice));
}

static inline bool fuzz_document(const uint8_t *data, size_t size, struct arena *mem, struct json **doc)
{
    struct err err = { 0 };
    struct slice text = { (const char *)data, size };
    return size && data[0] == '{' ? json_parse(text, mem, doc, &err) : yaml_parse(text, mem, doc, &err);
}
