/* bind.c - JSON and YAML documents through a table that has every type of field. */
#include "../unit/wire/sample.h"
#include "tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    if (fuzz_document(data, size, mem, &doc))
        fuzz_table(doc, &sample_fields, mem);
    for (size_t i = 0; i < sample_fields.count; i++) {      /* the same bytes as a flag of each field */
        struct sample s = { 0 };
        struct err err = { 0 };
        if (!bind_text(&sample_fields.rows[i], arena_bytes(mem, data, MIN(size, 200u)), mem, &s, &err))
            MUST(err.rc == RC_BAD_INPUT && err.field[0]);
    }
    return 0;
}
