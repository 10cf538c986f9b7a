/* archive.c - making segments and checking them. Where the segments of usage end is kept like the end of the audit chain, so that
 * a last one that was removed shows; those of the audit have numbers that go on in the live rows. */
#include "control/archive.h"
#include <stdio.h>

void archive_mac(const struct control *c, const char *before, const struct segment *s,
                 char out[static MAC_HEX])
{
    AUTO(str_done) struct str text = { 0 };
    const int64_t ints[] = { s->segment, s->first, s->last, s->from_ms, s->to_ms, s->entries };
    const char *const texts[] = { before, s->kind, s->lines };
    str_text(&text, "segment");
    for (size_t i = 0; i < COUNT(ints); i++)
        audit_put_int(&text, ints[i]);
    for (size_t i = 0; i < COUNT(texts); i++)
        audit_put_text(&text, texts[i]);
    digest_mac(c->audit_key, text.at, text.len, out);
}

bool archive_next(struct call *c, struct segment *s, struct err *err)
{
    struct rows r;
    if (!ROWS(c, ARCHIVE_LAST, &r, err, V_TEXT(s->kind)))
        return false;
    s->segment = r.count ? row_int(&r, 0, 0) + 1 : 1;
    char *chain = arena_take(c->mem, MAC_HEX, 1);
    archive_mac(c->control, r.count ? row_text(&r, 0, 2) : "", s, chain);
    s->chain = chain;
    return true;
}

void archive_add(struct call *c, const struct segment *s)
{
    EMIT(c, ARCHIVE_ADD, V_TEXT(s->kind), V_INT(s->segment), V_INT(s->first), V_INT(s->last),
         V_INT(s->from_ms), V_INT(s->to_ms), V_INT(s->entries), V_TEXT(s->chain), V_TEXT(s->lines));
    if (text_is(s->kind, ARCHIVE_USAGE))
        audit_head_set(c, HEAD_USAGE, s->segment, s->chain);
}

/* What the end of usage's segments says; nothing is wrong where there is none yet. */
static bool check_head(struct call *c, int64_t last, const char *chain, const char **what,
                       struct err *err)
{
    struct rows r;
    char mac[MAC_HEX];
    if (!ROWS(c, AUDIT_HEAD, &r, err, V_INT(HEAD_USAGE)))
        return false;
    if (!r.count) {
        *what = last ? "the end of the archive is missing" : NULL;
        return true;
    }
    audit_head_mac(c->control, HEAD_USAGE, row_int(&r, 0, 0), row_text(&r, 0, 1), mac);
    if (!text_is(mac, row_text(&r, 0, 2)))
        *what = "the end of the archive is not as it was written";
    else if (row_int(&r, 0, 0) > last)
        *what = "segments at the end of the archive are missing";
    else if (row_int(&r, 0, 0) == last && chain && !text_is(chain, row_text(&r, 0, 1)))
        *what = "the last segment is not as it was written";
    return true;
}

bool archive_check(struct call *c, const char *kind, int64_t segment, int64_t *rows,
                   const char **chain, const char **what, int64_t *next, struct err *err)
{
    struct rows last, r, before;
    *what = NULL;
    *next = 0;
    if (!ROWS(c, ARCHIVE_LAST, &last, err, V_TEXT(kind))
        || !ROWS(c, ARCHIVE_GET, &r, err, V_TEXT(kind), V_INT(segment))
        || !ROWS(c, ARCHIVE_GET, &before, err, V_TEXT(kind), V_INT(segment - 1)))
        return false;
    int64_t end = last.count ? row_int(&last, 0, 0) : 0;
    if (segment < end)
        *next = segment + 1;
    if (r.count) {
        struct segment s = { .kind = kind,
                             .segment = segment,
                             .first = row_int(&r, 0, 1),
                             .last = row_int(&r, 0, 2),
                             .from_ms = row_int(&r, 0, 3),
                             .to_ms = row_int(&r, 0, 4),
                             .entries = row_int(&r, 0, 5),
                             .lines = row_text(&r, 0, 7) };
        char mac[MAC_HEX];
        *rows = s.entries;
        *chain = row_text(&r, 0, 6);
        if (before.count || segment == 1) {
            archive_mac(c->control, before.count ? row_text(&before, 0, 6) : "", &s, mac);
            if (!text_is(mac, *chain))
                *what = "this segment of the archive is not as it was written, or not in its place";
        }
    } else if (segment <= end) {
        *what = "this segment of the archive is missing";
    }
    if (!*what && !*next && text_is(kind, ARCHIVE_USAGE))
        return check_head(c, end, r.count ? *chain : NULL, what, err);
    return true;
}
