/* table.c - lists for people: columns that line up, times as ages, sizes in units, states in
 * colour.
 *
 * A column names a member, with its kind before a colon: "age:created". A column of marks that
 * marks nothing is left out. */
#include "cli/cli.h"
#include "base/when.h"
#include "wire/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

enum { GAP = 2 };

/* --- cells */

/* East Asian wide and emoji, roughly: enough for names of people and jobs */
static bool wide_char(uint32_t c)
{
    return (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf)
           || (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff)
           || (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60)
           || (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd);
}

static bool no_width(uint32_t c)
{
    return (c >= 0x300 && c <= 0x36f) || (c >= 0x200b && c <= 0x200f)
           || (c >= 0xfe00 && c <= 0xfe0f);
}

size_t text_width(const char *text)
{
    size_t left = strlen(text), width = 0;
    while (left) {
        size_t n = utf8_len(text, left);
        uint32_t c = (unsigned char)text[0];
        if (n > 1)
            c &= 0xffu >> (n + 1);
        for (size_t i = 1; i < n; i++)
            c = c << 6 | ((unsigned char)text[i] & 63);
        n = n ? n : 1;
        width += no_width(c) ? 0 : wide_char(c) ? 2 : 1;
        text += n;
        left -= n;
    }
    return width;
}

void age_text(struct str *out, int64_t now_ms, int64_t then_ms)
{
    static const struct {
        int64_t s;
        const char *unit;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
    int64_t s = (now_ms - then_ms) / 1000, far = s < 0 ? -s : s;
    for (size_t i = 0; i < COUNT(units); i++)
        if (far >= units[i].s) {
            str_printf(out, s < 0 ? "in %lld%s" : "%lld%s ago", (long long)(far / units[i].s),
                       units[i].unit);
            return;
        }
    str_text(out, "now");
}

void bytes_text(struct str *out, int64_t bytes)
{
    static const char *const units[] = { "B", "KB", "MB", "GB", "TB", "PB" };
    int64_t whole = bytes, tenth = 0;
    size_t u = 0;
    while (whole >= 1024 && u + 1 < COUNT(units)) {
        tenth = whole % 1024 * 10 / 1024;
        whole /= 1024;
        u++;
    }
    if (u && whole < 10)
        str_printf(out, "%lld.%lld %s", (long long)whole, (long long)tenth, units[u]);
    else
        str_printf(out, "%lld %s", (long long)whole, units[u]);
}

struct item { const struct json *all, *value; int64_t now_ms; };

static void put_text(struct str *out, const struct item *i)
{
    if (!i->value || i->value->type == JSON_NULL)
        return;
    if (i->value->type != JSON_TEXT) {
        json_print(out, i->value);
        return;
    }
    clean_text(out, i->value->text);
}

static void put_age(struct str *out, const struct item *i)
{
    int64_t ms;
    if (i->value && i->value->type == JSON_TEXT && when_parse(i->value->text, &ms))
        age_text(out, i->now_ms, ms);
}

static void put_mib(struct str *out, const struct item *i)
{
    if (i->value && i->value->type == JSON_NUMBER && i->value->number < 0)
        str_text(out, "no limit");
    else if (i->value && i->value->type == JSON_NUMBER)
        bytes_text(out, i->value->number * 1024 * 1024);
}

static void put_bytes(struct str *out, const struct item *i)
{
    if (i->value && i->value->type == JSON_NUMBER)
        bytes_text(out, i->value->number);
}

static void put_limit(struct str *out, const struct item *i)
{
    if (i->value && i->value->is_int && i->value->number < 0)
        str_text(out, "no limit");
    else
        put_text(out, i);
}

/* Two decimals, and below one four: a first job of seconds has used something too. */
static void put_fraction(struct str *out, int64_t ten_thousandths)
{
    int64_t hundredths = (ten_thousandths + 50) / 100;
    if (ten_thousandths > 0 && ten_thousandths < 10000)
        str_printf(out, "0.%04lld", (long long)ten_thousandths);
    else
        str_printf(out, "%lld.%02lld", (long long)(hundredths / 100),
                   (long long)(hundredths % 100));
}

/* Seconds, with decimals of thousandths, as hours. */
static void put_hours(struct str *out, const struct item *i)
{
    int64_t milli;
    if (!i->value || i->value->type != JSON_NUMBER)
        return;
    if (i->value->is_int)
        milli = i->value->number > INT64_MAX / 1000 ? INT64_MAX / 1000 * 1000
                                                    : i->value->number * 1000;
    else if (!milli_parse(i->value->text, &milli))
        return;
    put_fraction(out, milli / 360);
}

/* GiB-hours of something held in MiB for seconds. */
static void put_gib_hours(struct str *out, const struct item *i)
{
    if (!i->value || i->value->type != JSON_NUMBER || !i->value->is_int)
        return;
    enum { GIB_HOUR = 1024 * 3600 };
    int64_t n = i->value->number;
    put_fraction(out, n / GIB_HOUR * 10000 + n % GIB_HOUR * 10000 / GIB_HOUR);
}

/* A figure that may not be known: below zero. */
static void put_figure(struct str *out, const struct item *i)
{
    if (!i->value || i->value->type != JSON_NUMBER || i->value->number >= 0)
        put_text(out, i);
}

static void put_some_mib(struct str *out, const struct item *i)
{
    if (i->value && i->value->number >= 0)
        put_mib(out, i);
}

static void put_watts(struct str *out, const struct item *i)
{
    if (i->value && i->value->type == JSON_NUMBER && i->value->number >= 0)
        str_printf(out, "%lld W", (long long)(i->value->number + 500) / 1000);
}

static void put_kilo(struct str *out, const struct item *i)
{
    if (i->value && i->value->type == JSON_NUMBER && i->value->number >= 0)
        str_printf(out, "%lld", (long long)(i->value->number / 1000000));
}

static void put_mark(struct str *out, const struct item *i)
{
    if (i->value && i->value->type == JSON_BOOL && i->value->flag)
        str_text(out, i->value->name);
}

/* Whatever counts GPUs says when they are made up. A stopped instance has none, and of one that waits nobody knows which it will have. */
static void put_gpus(struct str *out, const struct item *i)
{
    const struct json *simulated = json_get(i->all, "simulated");
    const char *state = json_text(i->all, "state");
    size_t before = out->len;
    if (state && text_is(state, "stopped"))
        return;
    put_text(out, i);
    if (out->len > before && simulated && simulated->flag && !(state && text_is(state, "queued")))
        str_text(out, " (simulated)");
}

static const struct {
    const char *kind;
    void (*put)(struct str *out, const struct item *i);
    bool optional;
} kinds[] = {
    { "age", put_age, false },
    { "mib", put_mib, false },
    { "bytes", put_bytes, false },
    { "hours", put_hours, false },
    { "gib_hours", put_gib_hours, false },
    { "mark", put_mark, true },
    { "gpus", put_gpus, false },
    { "limit", put_limit, false },
    { "figure", put_figure, false },
    { "some_mib", put_some_mib, false },
    { "watts", put_watts, false },
    { "kilo", put_kilo, false },
    { "state", put_text, false },
    { "some", put_text, true },
};

static size_t kind_of(const char *member, const char **path)
{
    const char *colon = strchr(member, ':');
    *path = colon ? colon + 1 : member;
    for (size_t k = 0; colon && k < COUNT(kinds); k++)
        if (strlen(kinds[k].kind) == (size_t)(colon - member)
            && strncmp(kinds[k].kind, member, (size_t)(colon - member)) == 0)
            return k;
    return COUNT(kinds);
}

static const struct json *member_at(const struct json *item, const char *path)
{
    char name[64];
    while (item && *path) {
        size_t n = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        item = json_get(item, name);
        path += n + (path[n] == '.');
    }
    return item;
}

/* --- colours of states */

static const struct { const char *state, *on;
} colours[] = {
    { "running", "\033[32m" },  { "ready", "\033[32m" },    { "done", "\033[32m" },
    { "active", "\033[32m" },   { "free", "\033[32m" },     { "queued", "\033[33m" },
    { "placed", "\033[33m" },   { "stopping", "\033[33m" }, { "cordoned", "\033[33m" },
    { "suspended", "\033[33m" }, { "suspending", "\033[33m" }, { "resuming", "\033[33m" },
    { "draining", "\033[33m" }, { "drained", "\033[33m" },
    { "current", "\033[32m" },  { "failed", "\033[31m" },   { "lost", "\033[31m" },
    { "disabled", "\033[31m" }, { "expired", "\033[31m" },  { "cancelled", "\033[35m" },
};

static const char *colour_of(const char *text)
{
    for (size_t i = 0; i < COUNT(colours); i++)
        if (text_is(colours[i].state, text))
            return colours[i].on;
    return NULL;
}

/* --- the table */

struct table { size_t columns, rows; char **cells; size_t *width; bool *drop; struct arena *mem; };

static char *cell(struct arena *mem, const struct column *col, const struct json *item,
                  int64_t now_ms)
{
    AUTO(str_done) struct str text = { 0 };
    const char *path;
    size_t k = kind_of(col->member, &path);
    struct item i = { item, member_at(item, path), now_ms };
    (k < COUNT(kinds) ? kinds[k].put : put_text)(&text, &i);
    return arena_bytes(mem, text.at ? text.at : "", text.len);
}

static void fill(struct table *t, const struct column *columns, const struct json *items, bool wide,
                 int64_t now_ms)
{
    for (size_t c = 0; c < t->columns; c++) {
        const char *path;
        size_t k = kind_of(columns[c].member, &path), r = 0;
        bool some = false;
        t->width[c] = text_width(columns[c].title);
        for (const struct json *m = items->first; m; m = m->next, r++) {
            char *text = t->cells[r * t->columns + c] = cell(t->mem, &columns[c], m, now_ms);
            some |= *text != 0;
            if (!*text)
                t->cells[r * t->columns + c] = k < COUNT(kinds) && kinds[k].optional ? "" : "-";
            t->width[c] = MAX(t->width[c], text_width(t->cells[r * t->columns + c]));
        }
        t->drop[c] = (columns[c].wide && !wide) || (k < COUNT(kinds) && kinds[k].optional && !some);
    }
}

static void put_cell(struct str *out, const char *text, size_t width, bool right, bool last,
                     const char *colour)
{
    int gap = (int)(width - text_width(text));
    if (right)
        str_printf(out, "%*s", gap, "");
    str_printf(out, "%s%s%s", colour ? colour : "", text, colour ? "\033[0m" : "");
    if (!last)
        str_printf(out, "%*s", (right ? 0 : gap) + GAP, "");
}

static void put_row(struct str *out, const struct table *t, const struct column *columns,
                    char **cells, bool colour)
{
    size_t last = t->columns;
    for (size_t c = 0; c < t->columns; c++)
        last = t->drop[c] ? last : c;
    for (size_t c = 0; c < t->columns; c++) {
        const char *text = cells ? cells[c] : columns[c].title, *path;
        size_t k = kind_of(columns[c].member, &path);
        bool state = k < COUNT(kinds) && text_is(kinds[k].kind, "state");
        if (!t->drop[c])
            put_cell(out, text, t->width[c], columns[c].right, c == last,
                     !colour  ? NULL
                     : !cells ? "\033[1m"
                     : state  ? colour_of(text)
                              : NULL);
    }
    while (out->len && out->at[out->len - 1] == ' ')
        out->at[--out->len] = 0;
    str_char(out, '\n');
}

void table_text(struct str *out, const struct column *columns, size_t count,
                const struct json *items, bool wide, bool colour, int64_t now_ms)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct table t = { .columns = count, .mem = mem };
    for (const struct json *m = items->first; m; m = m->next)
        t.rows++;
    t.cells = ARENA_ARRAY(mem, char *, t.rows * count + 1);
    t.width = ARENA_ARRAY(mem, size_t, count);
    t.drop = ARENA_ARRAY(mem, bool, count);
    fill(&t, columns, items, wide, now_ms);
    put_row(out, &t, columns, NULL, colour);
    for (size_t r = 0; r < t.rows; r++)
        put_row(out, &t, columns, t.cells + r * count, colour);
}

void print_table(struct cli *c, const struct column *columns, size_t count,
                 const struct json *items)
{
    AUTO(str_done) struct str out = { 0 };
    if (!items->first) {
        say(c, "none");
        return;
    }
    table_text(&out, columns, count, items, c->output == OUT_WIDE, c->colour, os_wall_ms(c->os));
    out_write(out.at, out.len);
}
