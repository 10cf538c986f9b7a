/* spool.c - one file, appended to; rewritten whole when most of it is of no use any more, or when an append failed and the
 * end of the file is in doubt.
 *
 * A line is "CHECKSUM LETTER REST": n NEXT KEPT | t ATTEMPT STARTED_N ENDED_N | f ATTEMPT | i {report item}. Losing an f
 * or an old n does no harm, so only items are ever waited for. A number from LOOSE on is none yet: the next spool_align gives one. */
#include "agent/spool.h"
#include "base/map.h"
#include "wire/bind.h"
#include "wire/utf8.h"
#include "base/must.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILE_LIMIT = 64 << 20, GARBAGE_LINES = 512, DETAIL_LIMIT = 1000 };
static const int64_t LOOSE = INT64_C(1) << 40;

struct spool {
    struct os *os;
    char *path;
    struct disk_file *file; /* NULL: only while in doubt */
    int64_t size;           /* of its good lines */
    struct report_item *items; /* all above kept, in order; details are malloc'd */
    size_t count, room;
    size_t unsynced; /* as many at the end were not synced; may be more than are left */
    int64_t next, kept, sent;
    bool met;        /* the server has told what it has: numbers are given from then on */
    int64_t loose;   /* items without one */
    struct map *told; /* attempt -> struct spool_told */
    size_t lines;     /* in the file */
    size_t damaged;
    bool doubt; /* an append failed: the file may end in half a line */
};

static uint32_t checksum(const char *at, size_t n) /* CRC-32 */
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < n; i++) {
        c ^= (unsigned char)at[i];
        for (int bit = 0; bit < 8; bit++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

/* --- memory */

static struct spool_told *told_of(struct spool *s, int64_t attempt)
{
    struct spool_told *t = map_get(s->told, attempt);
    if (!t) {
        t = must(calloc(1, sizeof *t));
        t->attempt = attempt;
        map_put(s->told, attempt, t);
    }
    return t;
}

static void remember(struct spool *s, const struct report_item *item)
{
    struct spool_told *t = told_of(s, item->attempt);
    *(item->news == TASK_STARTED ? &t->started_n : &t->ended_n) = item->n;
}

static void keep_item(struct spool *s, const struct report_item *item)
{
    if (s->count == s->room) {
        s->room = s->room ? s->room * 2 : 16;
        s->items = must(realloc(s->items, s->room * sizeof *s->items));
    }
    s->items[s->count] = *item;
    s->items[s->count++].detail = item->detail ? must(strdup(item->detail)) : NULL;
    remember(s, item);
    s->unsynced++;
    if (item->n >= LOOSE)
        s->loose = item->n - LOOSE + 1;
    else
        s->next = MAX(s->next, item->n + 1);
}

static void drop_items(struct spool *s, int64_t upto)
{
    size_t n = 0;
    while (n < s->count && s->items[n].n <= upto)
        free((char *)s->items[n++].detail);
    if (n)
        memmove(s->items, s->items + n, (s->count - n) * sizeof *s->items);
    s->count -= n;
}

/* --- lines out */

static void line_end(struct str *out, size_t start)
{
    char sum[10];
    snprintf(sum, sizeof sum, "%08" PRIx32, checksum(out->at + start + 9, out->len - start - 9));
    memcpy(out->at + start, sum, 8);
    str_char(out, '\n');
}

static size_t line_start(struct str *out, char letter)
{
    size_t start = out->len;
    str_printf(out, "00000000 %c ", letter);
    return start;
}

static void line_item(struct str *out, const struct report_item *item)
{
    size_t start = line_start(out, 'i');
    bind_write(&(struct json_out){ .to = out }, &report_item_fields, item);
    line_end(out, start);
}

static void line_numbers(struct str *out, char letter, int64_t a, int64_t b, int64_t c)
{
    size_t start = line_start(out, letter);
    str_printf(out, "%" PRId64 " %" PRId64 " %" PRId64, a, b, c);
    line_end(out, start);
}

static bool rewrite(struct spool *s, struct err *err)
{
    AUTO(str_done) struct str out = { 0 };
    const struct spool_told *t;
    line_numbers(&out, 'n', s->next, s->kept, 0);
    for (size_t at = 0; (t = map_next(s->told, &at));)
        line_numbers(&out, 't', t->attempt, t->started_n, t->ended_n);
    for (size_t i = 0; i < s->count; i++) {
        line_item(&out, &s->items[i]);
        if (!map_get(s->told, s->items[i].attempt)) /* forgotten already: the item alone would bring it back */
            line_numbers(&out, 'f', s->items[i].attempt, 0, 0);
    }
    s->doubt = true;
    if (s->file)
        disk_close(TAKE(s->file));
    if (!file_replace(s->os, s->path, (struct slice){ out.at, out.len }, 0600, err)
        || !(s->file = disk_open(s->os, s->path, false, err)))
        return false;
    s->doubt = false;
    s->size = (int64_t)out.len;
    s->lines = 1 + map_count(s->told) + s->count;
    s->unsynced = 0;
    return true;
}

static bool append(struct spool *s, const struct str *line, struct err *err)
{
    if (!disk_write(s->file, s->size, line->at, line->len)) {
        s->doubt = true;
        return err_set(err, RC_UNAVAILABLE, "cannot write %s", s->path);
    }
    s->size += (int64_t)line->len;
    s->lines++;
    return true;
}

/* --- lines in */

static bool read_item(struct spool *s, struct slice rest)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct json *doc;
    struct report_item item = { 0 };
    if (!json_parse(rest, mem, &doc, &err)
        || !bind_read_ours(doc, &report_item_fields, mem, &item, NULL, &err))
        return false;
    if (s->count && item.n <= s->items[s->count - 1].n)
        return false;
    return keep_item(s, &item), true;
}

static bool read_numbers(struct spool *s, char letter, const char *rest)
{
    int64_t a = 0, b = 0, c = 0;
    if (sscanf(rest, "%" SCNd64 " %" SCNd64 " %" SCNd64, &a, &b, &c) != 3)
        return false;
    if (letter == 'n')
        s->next = MAX(s->next, a), s->kept = MAX(s->kept, b);
    else if (letter == 't')
        *told_of(s, a) = (struct spool_told){ a, b, c };
    else
        free(map_take(s->told, a));
    return true;
}

static bool read_line(struct spool *s, const char *at, size_t n)
{
    char sum[9] = "", copy[128];
    if (n < 12 || at[8] != ' ' || at[10] != ' ')
        return false;
    snprintf(sum, sizeof sum, "%08" PRIx32, checksum(at + 9, n - 9));
    if (memcmp(sum, at, 8) != 0)
        return false;
    if (at[9] == 'i')
        return read_item(s, (struct slice){ at + 11, n - 11 });
    if (!strchr("ntf", at[9]) || n - 11 >= sizeof copy)
        return false;
    memcpy(copy, at + 11, n - 11);
    copy[n - 11] = 0;
    return read_numbers(s, at[9], copy);
}

/* True: every line was good and the last one whole. */
static bool read_all(struct spool *s, struct slice file)
{
    const char *at = file.at, *end = file.at + file.len, *nl;
    size_t bad = 0;
    for (; at < end && (nl = memchr(at, '\n', (size_t)(end - at))); at = nl + 1, s->lines++)
        if (!read_line(s, at, (size_t)(nl - at)))
            bad++;
        else if (bad)
            s->damaged += bad, bad = 0; /* something good behind it: this was no torn end */
    drop_items(s, s->kept);
    return at == end && !bad && !s->damaged;
}

bool spool_open(struct os *os, const char *path, struct spool **out, struct err *err)
{
    AUTO(spool_free) struct spool *s = must(calloc(1, sizeof *s));
    AUTO(arena_free) struct arena *mem = arena_new();
    struct slice file = { 0 };
    *s = (struct spool){ .os = os, .path = must(strdup(path)), .next = 1, .told = map_new() };
    bool there = disk_exists(os, path);
    if (there && !file_read(os, path, FILE_LIMIT, mem, &file, err))
        return err_wrap(err, "the spool of reports");
    bool whole = there && read_all(s, file);
    s->size = (int64_t)file.len;
    s->sent = s->next - 1; /* whoever wrote them may have sent them */
    bool good = whole && s->lines <= GARBAGE_LINES ? (s->file = disk_open(os, path, false, err)) != NULL : rewrite(s, err);
    if (!good)
        return err_wrap(err, "the spool of reports");
    *out = TAKE(s);
    return true;
}

void spool_free(struct spool *s)
{
    if (!s)
        return;
    struct spool_told *t;
    for (size_t at = 0; (t = map_next(s->told, &at));)
        free(t);
    drop_items(s, INT64_MAX);
    if (s->file)
        disk_close(s->file);
    map_free(s->told);
    free(s->items);
    free(s->path);
    free(s);
}

/* --- what the agent does */

/* A detail may quote what a container wrote. It must come back from the file as it went in. */
static void clean_detail(char out[static DETAIL_LIMIT + 1], const char *text)
{
    size_t n = 0, left = strlen(text);
    while (left) {
        size_t m = utf8_len(text, left);
        if (n + MAX(m, 1) > DETAIL_LIMIT)
            break;
        if (m > 1)
            memcpy(out + n, text, m);
        else
            out[n] = m == 0 ? '?' : (unsigned char)*text < 32 || *text == 127 ? ' ' : *text;
        m = MAX(m, 1);
        n += m, text += m, left -= m;
    }
    out[n] = 0;
}

/* A spool that begins again at 1 tells the server that the whole disk was lost: that must not come of a power cut. */
static bool first_synced(struct spool *s, struct err *err)
{
    return disk_sync(s->file) || (s->doubt = true, err_set(err, RC_UNAVAILABLE, "cannot sync %s", s->path));
}

bool spool_add(struct spool *s, const struct report_item *item, struct err *err)
{
    const struct spool_told *t = map_get(s->told, item->attempt);
    if (t && (t->ended_n || (item->news == TASK_STARTED && t->started_n)))
        return true;
    char detail[DETAIL_LIMIT + 1];
    struct report_item one = *item;
    if (item->detail) {
        clean_detail(detail, item->detail);
        one.detail = detail;
    }
    one.n = s->met ? s->next : LOOSE + s->loose;
    one.exit_code = MIN(MAX(one.exit_code, 0), 255);
    one.signal = MIN(MAX(one.signal, 0), 128);
    one.at_ms = MAX(one.at_ms, 0);
    one.started_ms = MAX(one.started_ms, 0);
    if (s->doubt && !rewrite(s, err))
        return err_wrap(err, "the spool of reports");
    AUTO(str_done) struct str line = { 0 };
    line_item(&line, &one);
    if (!append(s, &line, err) || (one.n == 1 && !first_synced(s, err)))
        return err_wrap(err, "the spool of reports");
    keep_item(s, &one);
    return true;
}

struct objects spool_items(struct spool *s, int64_t after, size_t limit)
{
    size_t i = 0;
    while (i < s->count && s->items[i].n <= after)
        i++;
    size_t n = MIN(s->count - i, limit);
    if (n)
        s->sent = MAX(s->sent, s->items[i + n - 1].n);
    return n ? (struct objects){ s->items + i, n } : (struct objects){ 0 };
}

bool spool_kept(struct spool *s, int64_t n, struct err *err)
{
    if (n <= s->kept)
        return true;
    s->kept = MIN(
        n, s->sent); /* more than was sent cannot be meant for us; the next hello settles it */
    drop_items(s, s->kept);
    size_t useful = 1 + map_count(s->told) + s->count;
    return s->lines < useful + GARBAGE_LINES || rewrite(s, err);
}

bool spool_align(struct spool *s, int64_t n, struct err *err)
{
    drop_items(s, MIN(n, s->sent));
    int64_t first = s->count ? s->items[0].n : n + 1;
    s->met = true;
    if (!s->loose && first == n + 1 && s->next == first + (int64_t)s->count)
        return spool_kept(s, n, err);
    s->kept = s->sent = n;
    s->next = n + 1;
    s->loose = 0;
    for (size_t i = 0; i < s->count; i++) {
        s->items[i].n = s->next++;
        if (map_get(s->told, s->items[i].attempt)) /* else it was forgotten, and stays so */
            remember(s, &s->items[i]);
    }
    return rewrite(s, err);
}

bool spool_unsynced(const struct spool *s) { return MIN(s->unsynced, s->count) > 0; }

bool spool_sync(struct spool *s, struct err *err)
{
    if (!spool_unsynced(s))
        return true;
    if (!s->doubt && disk_sync(s->file))
        return s->unsynced = 0, true;
    return rewrite(s, err); /* what a sync failed on is not tried a second time: all of it is written anew */
}

void spool_forget(struct spool *s, int64_t attempt)
{
    struct err err = { 0 };
    AUTO(str_done) struct str line = { 0 };
    if (!map_get(s->told, attempt))
        return;
    free(map_take(s->told, attempt));
    line_numbers(&line, 'f', attempt, 0, 0);
    if (!s->doubt && !append(s, &line, &err))
        return; /* the line before the next item is a rewrite, which leaves it out too */
}

size_t spool_damaged(const struct spool *s)
{
    return s->damaged;
}
int64_t spool_last_kept(const struct spool *s)
{
    return s->kept;
}
int64_t spool_next(const struct spool *s)
{
    return s->next;
}
size_t spool_waiting(const struct spool *s)
{
    return s->count;
}
const struct spool_told *spool_told(const struct spool *s, int64_t attempt)
{
    return map_get(s->told, attempt);
}
const struct spool_told *spool_each(const struct spool *s, size_t *at)
{
    return map_next(s->told, at);
}
