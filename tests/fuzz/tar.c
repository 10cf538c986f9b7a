/* tar.c - any bytes as an archive: names stay inside, data has the size that was told, cuts change nothing, and what was read
 * can be packed and read again as the same. */
#include "fuzz.h"
#include "wire/tar.h"

struct seen { struct str log, packed; int64_t left; bool open; };

static void check_name(const char *name)
{
    MUST(name[0] && name[0] != '/' && !strstr(name, "//"));
    for (const char *p = name; p; p = strchr(p, '/')) {
        p += *p == '/';
        MUST(strcmp(p, "..") != 0 && strncmp(p, "../", 3) != 0);
    }
}

static bool on_entry(void *arg, const struct tar_entry *e, struct err *err)
{
    struct seen *s = arg;
    (void)err;
    MUST(!s->open && e->size >= 0 && (e->type == TAR_FILE || e->size == 0));
    MUST((e->target != NULL) == (e->type == TAR_SYMLINK || e->type == TAR_HARDLINK) && e->mode <= 07777);
    check_name(e->name);
    if (e->type == TAR_HARDLINK)
        check_name(e->target);
    s->open = true;
    s->left = e->size;
    str_printf(&s->log, "%d %s %s %o %lld %lld:", e->type, e->name, e->target ? e->target : "", e->mode, (long long)e->size, (long long)MIN(e->mtime_s, 077777777777));
    tar_header(&s->packed, e);
    return true;
}

static bool on_data(void *arg, const char *at, size_t n, struct err *err)
{
    struct seen *s = arg;
    (void)err;
    MUST(s->open && n > 0 && (int64_t)n <= s->left);
    s->left -= (int64_t)n;
    str_put(&s->log, at, n);
    str_put(&s->packed, at, n);
    return true;
}

static bool on_entry_end(void *arg, struct err *err)
{
    struct seen *s = arg;
    (void)err;
    MUST(s->open && s->left == 0);
    s->open = false;
    tar_pad(&s->packed, (int64_t)s->packed.len);
    str_char(&s->log, '\n');
    return true;
}

static bool read_all(struct seen *s, const char *at, size_t n, bool cut, bool *complete)
{
    static const struct tar_events events = { on_entry, on_data, on_entry_end };
    AUTO(tar_reader_free) struct tar_reader *r = tar_reader_new(&events, s);
    struct err err = { 0 };
    bool good = true;
    for (size_t done = 0; good && done < n;) {
        size_t piece = cut ? MIN(n - done, 1u + (unsigned char)at[done]) : n;
        good = tar_feed(r, at + done, piece, &err);
        done += piece;
    }
    MUST(good || (err.rc == RC_BAD_INPUT && err.text[0]));
    *complete = tar_complete(r);
    return good;
}

static void seen_done(struct seen *s)
{
    str_done(&s->log);
    str_done(&s->packed);
}

static void try_archive(const char *data, size_t size)
{
    struct seen whole = { 0 }, pieces = { 0 }, again = { 0 };
    bool complete, complete_too;
    bool good = read_all(&whole, data, size, false, &complete);
    MUST(good == read_all(&pieces, data, size, true, &complete_too) && complete == complete_too);
    MUST(fuzz_same(&whole.log, &pieces.log));
    if (complete) {
        tar_end(&whole.packed);
        MUST(read_all(&again, whole.packed.at, whole.packed.len, false, &complete) && complete);
        MUST(fuzz_same(&whole.log, &again.log));
    }
    seen_done(&whole);
    seen_done(&pieces);
    seen_done(&again);
}

/* A fuzzer does not guess checksums: mend those of the blocks that look like headers. */
static void mend_sums(char *data, size_t size)
{
    for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
        char *block = data + at;
        if (memcmp(block + 257, "ustar", 5) != 0)
            continue;
        unsigned sum = 0;
        memset(block + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
            sum += (unsigned char)block[i];
        snprintf(block + 148, 8, "%06o", sum);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    char *copy = arena_bytes(mem, data, size);
    try_archive(copy, size);
    mend_sums(copy, size);
    try_archive(copy, size);
    return 0;
}
