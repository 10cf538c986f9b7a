/* goods.c - numbers of images and work folders. See goods.h. */
#include "model/goods.h"
#include "base/str.h"
#include "wire/digest.h"
#include <stdio.h>

enum { KEY_HEX = 16 };

static bool key_read(const char *hex, int64_t *out)
{
    uint64_t n = 0;
    for (int i = 0; i < KEY_HEX; i++) {
        char c = hex[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        n = n << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *out = (int64_t)(n ? n : 1);    /* 0 is none */
    return true;
}

int64_t good_of_digest(const char *digest)
{
    int64_t key;
    return digest && text_starts(digest, "sha256:") && key_read(digest + 7, &key) ? key : 0;
}

int64_t good_of_reference(const char *reference)
{
    char hex[DIGEST_HEX];
    int64_t key = 0;
    digest_sha256(reference, strlen(reference), hex);
    return key_read(hex, &key) ? key : 0;
}

const char *good_text(char out[static GOOD_TEXT], const struct good *g)
{
    snprintf(out, GOOD_TEXT, "%016llx:%lld", (unsigned long long)g->key, (long long)g->mib);
    return out;
}

bool good_parse(const char *text, struct good *out)
{
    struct good g = { 0 };
    if (strlen(text) < KEY_HEX + 2 || strlen(text) > KEY_HEX + 10 || !key_read(text, &g.key) || text[KEY_HEX] != ':')
        return false;
    for (const char *p = text + KEY_HEX + 1; *p; p++) {
        if (*p < '0' || *p > '9')
            return false;
        g.mib = g.mib * 10 + (*p - '0');
    }
    return *out = g, true;
}
