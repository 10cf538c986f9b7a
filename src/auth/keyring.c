/* keyring.c - the two master keys: one for the hashes of API keys, one that seals secrets. They
 * are files of their own, so that a copy of the store alone opens nothing. */
#include "auth/auth.h"

static bool key_file(struct os *os, const char *path, unsigned char key[static 32], struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice text;
    struct err why = { 0 };
    if (file_read(os, path, 256, mem, &text, &why)) {
        char hex[65] = { 0 };
        if (text.len < 64)
            return err_set(err, RC_INTERNAL,
                           "%s is damaged: it must hold 64 hex digits; restore it from its backup",
                           path);
        memcpy(hex, text.at, 64);
        return hex_parse(hex, key, 32)
               || err_set(err, RC_INTERNAL,
                          "%s is damaged: it must hold 64 hex digits; restore it from its backup",
                          path);
    }
    if (why.rc != RC_NOT_FOUND)
        return *err = why, false;
    char hex[66];
    os_random(os, key, 32);
    hex_text(key, 32, hex);
    hex[64] = '\n';
    return file_replace(os, path, (struct slice){ hex, 65 }, 0600, err);
}

bool keyring_open(struct os *os, const char *folder, struct keyring *out, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct keyring k;
    if (!dir_make(os, folder, 0700, err)
        || !key_file(os, arena_printf(mem, "%s/hash.key", folder), k.hash, err)
        || !key_file(os, arena_printf(mem, "%s/seal.key", folder), k.seal, err))
        return err_wrap(err, "master keys");
    return *out = k, true;
}
