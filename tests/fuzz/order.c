/* order.c - what a server may send to an agent: a desired set, or an order to open a stream. Whatever is taken must be
 * printable and must come back the same. */
#include "model/order.h"
#include "wire/bind.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n);

static void try_as(const struct fields *fields, const struct json *doc, struct arena *mem)
{
    struct err err = { 0 };
    void *first = arena_take(mem, 1, fields->size), *second = arena_take(mem, 1, fields->size);
    AUTO(str_done) struct str once = { 0 }, twice = { 0 };
    struct json *again;
    if (!bind_read(doc, fields, mem, first, NULL, &err)) {
        if (!err.text[0])
            abort();
        return;
    }
    bind_write(&(struct json_out){ .to = &once }, fields, first);
    if (!json_parse((struct slice){ once.at, once.len }, mem, &again, &err) || !bind_read(again, fields, mem, second, NULL, &err))
        abort();
    bind_write(&(struct json_out){ .to = &twice }, fields, second);
    if (!text_is(once.at, twice.at))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t n)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct json *doc;
    if (!json_parse((struct slice){ (const char *)at, n }, mem, &doc, &err))
        return 0;
    try_as(&desired_fields, doc, mem);
    try_as(&open_stream_fields, doc, mem);
    return 0;
}
