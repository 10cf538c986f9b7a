/* yaml.c - any bytes as YAML; what is taken is printed as YAML and read again as the same value. */
#include "fuzz.h"
#include "wire/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str before = { 0 }, yaml = { 0 }, after = { 0 };
    struct json *v = NULL, *back = NULL;
    struct err err = { 0 };
    if (!yaml_parse((struct slice){ (const char *)data, size }, mem, &v, &err)) {
        MUST(err.rc == RC_BAD_INPUT && err.text[0] && !v);
        return 0;
    }
    json_print(&before, v);
    MUST(json_parse(fuzz_slice(&before), mem, &back, &err));
    yaml_print(&yaml, v);
    MUST(yaml_parse(fuzz_slice(&yaml), mem, &back, &err));
    json_print(&after, back);
    MUST(fuzz_same(&before, &after));
    return 0;
}
