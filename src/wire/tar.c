/* tar.c - writing and reading ustar streams. The writer uses pax records ('x') for what a ustar header cannot hold; the
 * reader takes pax and GNU's long names ('L', 'K') because that is what other programs send. Owners are dropped: who
 * unpacks decides whose files they become. Sizes are bounded by the events, which see every byte. */
#include "wire/tar.h"
#include <stdio.h>
#include <stdlib.h>

struct header {                 /* the POSIX block */
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6],
        version[2];
    char user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == TAR_BLOCK, "one block");
enum { PATH_MOST = 4096, EXTRA_MOST = 64 * 1024 };
static const int64_t octal_most = 077777777777;        /* eleven digits */

static unsigned block_sum(const struct header *h)
{
    const unsigned char *p = (const unsigned char *)h;
    unsigned sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i >= offsetof(struct header, sum) && i < offsetof(struct header, type) ? ' ' : p[i];
    return sum;
}

/* --- writing */

void tar_pad(struct str *out, int64_t size)
{
    static const char zeros[TAR_BLOCK];
    str_put(out, zeros, (size_t)(-(uint64_t)size % TAR_BLOCK));
}

void tar_end(struct str *out)
{
    static const char zeros[2 * TAR_BLOCK];
    str_put(out, zeros, sizeof zeros);
}

static void put_header(struct str *out, const char *name, char type, const char *target,
                       unsigned mode, int64_t size, int64_t mtime_s)
{
    struct header h = { .type = type, .magic = "ustar", .version = { '0', '0' } };
    memcpy(h.name, name, MIN(strlen(name), sizeof h.name));
    memcpy(h.link, target, MIN(strlen(target), sizeof h.link));
    snprintf(h.mode, sizeof h.mode, "%07o", mode & 07777);
    snprintf(h.uid, sizeof h.uid, "%07o", 0);
    snprintf(h.gid, sizeof h.gid, "%07o", 0);
    snprintf(h.size, sizeof h.size, "%011llo", (unsigned long long)MIN(MAX(size, 0), octal_most));
    snprintf(h.mtime, sizeof h.mtime, "%011llo",
             (unsigned long long)MIN(MAX(mtime_s, 0), octal_most));
    snprintf(h.sum, sizeof h.sum, "%06o", block_sum(&h));
    h.sum[7] = ' ';
    str_put(out, &h, sizeof h);
}

/* "LENGTH key=value\n", where LENGTH counts itself. */
static void put_record(struct str *out, const char *key, const char *value)
{
    size_t body = strlen(key) + strlen(value) + 3, n = body + 1;
    char digits[24];
    while ((size_t)snprintf(digits, sizeof digits, "%zu", n) + body != n)
        n++;
    str_printf(out, "%zu %s=%s\n", n, key, value);
}

void tar_header(struct str *out, const struct tar_entry *e)
{
    static const char types[]
        = { [TAR_FILE] = '0', [TAR_DIR] = '5', [TAR_SYMLINK] = '2', [TAR_HARDLINK] = '1' };
    AUTO(str_done) struct str extra = { 0 };
    const char *target = e->target ? e->target : "";
    int64_t size = e->type == TAR_FILE ? e->size : 0;
    char number[24];
    if (strlen(e->name) > sizeof(((struct header *)0)->name))
        put_record(&extra, "path", e->name);
    if (strlen(target) > sizeof(((struct header *)0)->link))
        put_record(&extra, "linkpath", target);
    if (size > octal_most) {
        snprintf(number, sizeof number, "%lld", (long long)size);
        put_record(&extra, "size", number);
    }
    if (extra.len) {
        put_header(out, "pax", 'x', "", 0644, (int64_t)extra.len, e->mtime_s);
        str_put(out, extra.at, extra.len);
        tar_pad(out, (int64_t)extra.len);
    }
    put_header(out, e->name, types[e->type], target, e->mode, size, e->mtime_s);
}

/* --- reading */

enum extra { EXTRA_NONE, EXTRA_PAX, EXTRA_SKIP, EXTRA_NAME, EXTRA_LINK };
struct tar_reader {
    struct tar_events events;
    void *arg;
    union { struct header header; char bytes[TAR_BLOCK]; } block;
    size_t filled;              /* of block */
    int64_t left, pad;          /* of the data behind a header; blanks behind the data */
    enum extra extra;           /* what the data is, if it is not a file's */
    struct str data;            /* of an extra */
    char *name, *target;        /* for the next entry, from extras; NULL: its own */
    int64_t size;               /* the same; -1 */
    int zero_blocks;
    bool open, broken;
};

struct tar_reader *tar_reader_new(const struct tar_events *events, void *arg)
{
    struct tar_reader *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    r->events = *events;
    r->arg = arg;
    r->size = -1;
    return r;
}

static void forget_extras(struct tar_reader *r)
{
    free(TAKE(r->name));
    free(TAKE(r->target));
    r->size = -1;
}

void tar_reader_free(struct tar_reader *r)
{
    if (!r)
        return;
    forget_extras(r);
    str_done(&r->data);
    free(r);
}

bool tar_complete(const struct tar_reader *r) { return r->zero_blocks >= 2 && !r->broken; }

static bool bad(struct err *err, const char *why)
{
    return err_set(err, RC_BAD_INPUT, "tar: %s", why);
}

/* Octal with blanks around it, or base 256 (GNU) for what does not fit. */
static bool number(const char *at, size_t n, int64_t *out)
{
    int64_t v = 0;
    size_t i = 0;
    if ((unsigned char)at[0] == 0x80) {
        for (i = 1; i < n; i++) {
            if (v >> 54)
                return false;
            v = v << 8 | (unsigned char)at[i];
        }
        return *out = v, true;
    }
    while (i < n && at[i] == ' ')
        i++;
    for (; i < n && at[i] >= '0' && at[i] <= '7'; i++) {
        if (v >> 59)
            return false;
        v = v << 3 | (at[i] - '0');
    }
    for (; i < n; i++)
        if (at[i] != ' ' && at[i] != 0)
            return false;
    return *out = v, true;
}

/* Relative, no "..", no empty part. Leading "./" and trailing slashes are only a manner of writing. */
static bool clean_name(char *name, bool folder, struct err *err)
{
    char *from = name, *to = name;
    size_t n = strlen(name);
    if (name[0] == '/')
        return bad(err, "an absolute name");
    if (n >= PATH_MOST)
        return bad(err, "a name is too long");
    while (n && name[n - 1] == '/')
        name[--n] = 0;
    while (from[0] == '.' && from[1] == '/')
        from += 2;
    memmove(to, from, strlen(from) + 1);
    if (folder && strcmp(name, ".") == 0)       /* the root of the tree itself */
        return true;
    for (const char *p = name;; p++) {
        size_t part = strcspn(p, "/");
        if (part == 0 || (part == 1 && p[0] == '.') || (part == 2 && p[0] == '.' && p[1] == '.'))
            return bad(err, "a name with an empty part, '.' or '..' in it");
        if (!p[part])
            return true;
        p += part;
    }
}

static char *fixed_text(const char *at, size_t n)
{
    char *s = strndup(at, n);
    if (!s)
        abort();
    return s;
}

static char *own_name(const struct header *h)
{
    char name[sizeof h->prefix + sizeof h->name + 2];
    bool prefixed = h->prefix[0] && memcmp(h->magic, "ustar", 6) == 0; /* GNU keeps times there */
    int n = snprintf(name, sizeof name, "%.*s%s%.*s", prefixed ? (int)sizeof h->prefix : 0,
                     h->prefix, prefixed ? "/" : "", (int)sizeof h->name, h->name);
    return fixed_text(name, (size_t)n);
}

static bool begin_extra(struct tar_reader *r, enum extra extra, int64_t size, struct err *err)
{
    if (size > EXTRA_MOST)
        return bad(err, "an extended header is too large");
    r->extra = extra;
    r->left = size;
    str_clear(&r->data);
    return true;
}

static bool begin_entry(struct tar_reader *r, const struct header *h, int64_t size, struct err *err)
{
    struct tar_entry e = { .size = r->size >= 0 ? r->size : size };
    int64_t mode;
    static const struct { char letter; enum tar_type type; } types[] = {
        { '0', TAR_FILE }, { 0, TAR_FILE }, { '7', TAR_FILE }, { '5', TAR_DIR }, { '2', TAR_SYMLINK }, { '1', TAR_HARDLINK },
    };
    size_t i = 0;
    while (i < COUNT(types) && types[i].letter != h->type)
        i++;
    if (i == COUNT(types))
        return bad(err, "an entry that is no file, folder or link");
    e.type = types[i].type;
    if (!number(h->mode, sizeof h->mode, &mode) || !number(h->mtime, sizeof h->mtime, &e.mtime_s))
        return bad(err, "a broken number in a header");
    if (!r->name)
        r->name = own_name(h);
    if (!r->target)
        r->target = fixed_text(h->link, sizeof h->link);
    size_t len = strlen(r->name);
    if (e.type == TAR_FILE && h->type != '7' && len && r->name[len - 1] == '/')
        e.type = TAR_DIR;       /* as the first tars wrote folders */
    bool link = e.type == TAR_SYMLINK || e.type == TAR_HARDLINK;
    if (!clean_name(r->name, e.type == TAR_DIR, err)
        || (e.type == TAR_HARDLINK && !clean_name(r->target, false, err)))
        return false;
    if (link && (!r->target[0] || strlen(r->target) >= PATH_MOST))
        return bad(err, "a link without a target, or with one that is too long");
    if (e.type != TAR_FILE)
        e.size = 0;             /* some writers tell a size that has no data behind it */
    e.mode = (unsigned)mode & 07777;
    e.name = r->name;
    e.target = link ? r->target : NULL;
    r->left = e.size;
    r->open = true;
    return r->events.on_entry(r->arg, &e, err);
}

static bool read_header(struct tar_reader *r, struct err *err)
{
    static const struct { char letter; enum extra extra; } extras[] = {
        { 'x', EXTRA_PAX }, { 'g', EXTRA_SKIP }, { 'L', EXTRA_NAME }, { 'K', EXTRA_LINK },
    };
    const struct header *h = &r->block.header;
    int64_t sum, size;
    if (!number(h->sum, sizeof h->sum, &sum) || sum != block_sum(h))
        return bad(err, "this is not a tar archive, or it is damaged (checksum)");
    if (!number(h->size, sizeof h->size, &size))
        return bad(err, "a broken size in a header");
    for (size_t i = 0; i < COUNT(extras); i++)
        if (extras[i].letter == h->type)
            return begin_extra(r, extras[i].extra, size, err);
    return begin_entry(r, h, size, err);
}

static bool whole_number(const char *text, int64_t *out)
{
    int64_t n = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || n > INT64_MAX / 16)
            return false;
        n = n * 10 + (*text - '0');
    }
    return *out = n, true;
}

static void replace(char **to, const char *text)
{
    free(*to);
    *to = fixed_text(text, strlen(text));
}

static bool pax_record(struct tar_reader *r, const char *key, const char *value, struct err *err)
{
    if (text_is(key, "path"))
        replace(&r->name, value);
    else if (text_is(key, "linkpath"))
        replace(&r->target, value);
    else if (text_is(key, "size") && !whole_number(value, &r->size))
        return bad(err, "a broken size in a pax record");
    else if (text_starts(key, "GNU.sparse."))
        return bad(err, "a sparse file");
    return true;
}

static bool pax_records(struct tar_reader *r, struct err *err)
{
    for (size_t at = 0; at < r->data.len;) {
        size_t n = 0, i = at;
        for (; i < r->data.len && r->data.at[i] >= '0' && r->data.at[i] <= '9' && n <= EXTRA_MOST;
             i++)
            n = n * 10 + (size_t)(r->data.at[i] - '0');
        char *end = r->data.at + at + n - 1, *key = r->data.at + i + 1;
        if (i == at || n > r->data.len - at || at + n < i + 3 || r->data.at[i] != ' '
            || *end != '\n')
            return bad(err, "a broken pax record");
        *end = 0;
        char *equals = memchr(key, '=', (size_t)(end - key));
        if (!equals || strlen(key) != (size_t)(end - key))
            return bad(err, "a broken pax record");
        *equals = 0;
        if (!pax_record(r, key, equals + 1, err))
            return false;
        at += n;
    }
    return true;
}

static bool end_extra(struct tar_reader *r, struct err *err)
{
    enum extra extra = r->extra;
    r->extra = EXTRA_NONE;
    if (extra == EXTRA_PAX)
        return pax_records(r, err);
    if (extra == EXTRA_SKIP)
        return true;
    size_t n = r->data.len;
    while (n && r->data.at[n - 1] == 0)
        n--;
    if (!n || memchr(r->data.at, 0, n))
        return bad(err, "a broken long name");
    replace(extra == EXTRA_NAME ? &r->name : &r->target, r->data.at);
    return true;
}

static bool end_data(struct tar_reader *r, struct err *err)
{
    if (r->extra != EXTRA_NONE)
        return end_extra(r, err);
    r->open = false;
    forget_extras(r);
    return r->events.on_entry_end(r->arg, err);
}

static bool take_block(struct tar_reader *r, struct err *err)
{
    static const char zeros[TAR_BLOCK];
    r->filled = 0;
    if (memcmp(r->block.bytes, zeros, TAR_BLOCK) == 0) {
        if (r->name || r->target || r->size >= 0)
            return bad(err, "an extended header with nothing behind it");
        r->zero_blocks++;
        return true;
    }
    if (r->zero_blocks)
        return bad(err, "an entry behind the end");
    if (!read_header(r, err))
        return false;
    r->pad = (int64_t)(-(uint64_t)r->left % TAR_BLOCK);
    return r->left || end_data(r, err);
}

static bool take_data(struct tar_reader *r, const char *at, size_t n, struct err *err)
{
    r->left -= (int64_t)n;
    if (r->extra != EXTRA_NONE)
        str_put(&r->data, at, n);
    else if (!r->events.on_data(r->arg, at, n, err))
        return false;
    return r->left || end_data(r, err);
}

bool tar_feed(struct tar_reader *r, const char *at, size_t n, struct err *err)
{
    bool good = !r->broken || bad(err, "it was refused before");
    while (good && n && r->zero_blocks < 2) {   /* what stands behind the end is not looked at */
        size_t take;
        if (r->left) {
            take = (size_t)MIN((uint64_t)r->left, n);
            good = take_data(r, at, take, err);
        } else if (r->pad) {
            take = (size_t)MIN((uint64_t)r->pad, n);
            r->pad -= (int64_t)take;
        } else {
            take = MIN(n, TAR_BLOCK - r->filled);
            memcpy(r->block.bytes + r->filled, at, take);
            r->filled += take;
            good = r->filled < TAR_BLOCK || take_block(r, err);
        }
        at += take;
        n -= take;
    }
    r->broken = !good;
    return good;
}
