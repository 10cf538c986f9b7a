/* backup.c - any bytes as the file of a backup: what is taken for whole is a tar of files with its head first and a checksum that fits,
 * cuts change nothing, and a head is read or refused in words. */
#include "fuzz.h"
#include "wire/backup.h"
#include "wire/digest.h"

struct seen { struct str log; int64_t left; size_t entries; bool open; };

static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct seen *s = arg;
    (void)err;
    MUST(!s->open && e->type == TAR_FILE && e->size >= 0);
    MUST(s->entries++ > 0 || text_is(e->name, BACKUP_HEAD));
    s->open = true;
    s->left = e->size;
    str_printf(&s->log, "%s %lld:", e->name, (long long)e->size);
    return true;
}

static bool on_data(void *arg, const char *at, size_t n, struct err *err)
{
    struct seen *s = arg;
    (void)err;
    MUST(s->open && n > 0 && (int64_t)n <= s->left);
    s->left -= (int64_t)n;
    str_put(&s->log, at, n);
    return true;
}

static bool on_entry_end(void *arg, struct err *err)
{
    struct seen *s = arg;
    (void)err;
    MUST(s->open && s->left == 0);
    s->open = false;
    return true;
}

static bool read_all(struct seen *s, const char *at, size_t n, bool cut)
{
    static const struct tar_events events = { on_entry, on_data, on_entry_end };
    AUTO(backup_reader_free) struct backup_reader *r = backup_reader_new(&events, s);
    struct err err = { 0 };
    bool good = true;
    for (size_t done = 0; good && done < n;) {
        size_t piece = cut ? MIN(n - done, 1u + (unsigned char)at[done] * 3u) : n;
        good = backup_feed(r, at + done, piece, &err);
        done += piece;
    }
    good = good && backup_whole(r, &err);
    MUST(good || (err.rc == RC_BAD_INPUT && err.text[0]));
    return good;
}

static void try_head(const char *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct backup_head h;
    struct err err = { 0 };
    if (backup_head_read((struct slice){ data, size }, mem, &h, &err))
        MUST(h.format >= 1 && h.format <= BACKUP_FORMAT && h.steps >= 1 && h.arcus && h.store);
    else
        MUST(err.rc == RC_BAD_INPUT && err.text[0]);
}

static void try_file(const char *data, size_t size)
{
    struct seen whole = { 0 }, pieces = { 0 };
    bool good = read_all(&whole, data, size, false);
    MUST(good == read_all(&pieces, data, size, true));
    MUST(!good || (fuzz_same(&whole.log, &pieces.log) && whole.entries && !whole.open && size % TAR_BLOCK == 0));
    str_done(&whole.log);
    str_done(&pieces.log);
}

/* A fuzzer guesses neither a tar's sums nor a SHA-256: both are put right, so that what lies behind them is tried too. */
static void mend(char *data, size_t size)
{
    for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
        char *block = data + at;
        unsigned sum = 0;
        if (memcmp(block + 257, "ustar", 5) != 0)
            continue;
        memset(block + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
            sum += (unsigned char)block[i];
        snprintf(block + 148, 8, "%06o", sum);
        if (at + 2 * TAR_BLOCK <= size && strncmp(block, BACKUP_SUM, sizeof BACKUP_SUM) == 0) {
            char hex[DIGEST_HEX];
            digest_sha256(data, at, hex);
            memcpy(block + TAR_BLOCK, hex, DIGEST_HEX - 1);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char *copy = arena_bytes(mem, data, size);
    if (!digest_start())
        return 0;
    try_head(copy, MIN(size, (size_t)4096));
    try_file(copy, size);
    mend(copy, size);
    try_file(copy, size);
    return 0;
}
