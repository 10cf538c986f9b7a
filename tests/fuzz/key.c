/* key.c - a public key of SSH: what is taken is one clean line that is taken again as the same; what is not changes nothing. */
#include "fuzz.h"
#include "model/ssh_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    const char *once = NULL, *twice = NULL;
    if (!ssh_key_parse(arena_bytes(mem, data, size), mem, &once, &err)) {
        MUST(err.text[0] && !once);
        return 0;
    }
    MUST(text_starts(once, "ssh-") || text_starts(once, "ecdsa-") || text_starts(once, "sk-"));
    for (const char *p = once; *p; p++)
        MUST(*p >= ' ' && *p < 0x7f);
    MUST(ssh_key_parse(once, mem, &twice, &err) && text_is(once, twice));
    return 0;
}
