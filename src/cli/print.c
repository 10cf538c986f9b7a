/* print.c - replies as people or programs want them: a table, one thing line by line, JSON or
 * YAML; and errors with a hint.
 *
 * What came from the cloud is shown with control characters taken out, so that a job's name cannot
 * drive a terminal. */
#include "cli/cli.h"
#include "base/when.h"
#include "wire/utf8.h"
#include "wire/yaml.h"
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

bool out_write(const void *at, size_t n)
{
    const char *p = at;
    fflush(stdout);
    while (n) {
        ssize_t m = write(STDOUT_FILENO, p, n);
        if (m < 0 && errno == EINTR)
            continue;
        if (m <= 0)
            return false;
        p += m;
        n -= (size_t)m;
    }
    return true;
}

/* C0, DEL and C1 (of which 9b begins an escape), and what turns the direction of a line around */
static bool commands(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e)
           || (c >= 0x2066 && c <= 0x2069);
}

void clean_text(struct str *out, const char *text)
{
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        n = utf8_len(text, left);
        uint32_t c = n ? (unsigned char)text[0] : 0;
        if (n > 1)
            c &= 0xffu >> (n + 1);
        for (size_t i = 1; i < n; i++)
            c = c << 6 | ((unsigned char)text[i] & 63);
        n = n ? n : 1;
        if (c && strchr("\n\r\t", (int)MIN(c, 0x7fu)))
            str_char(out, ' ');
        else if (commands(c))
            str_char(out, '?');
        else
            str_put(out, text, n);
    }
}

void say(struct cli *c, const char *fmt, ...)
{
    AUTO(str_done) struct str clean = { 0 };
    char text[4096];
    va_list ap;
    if (c->quiet)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    clean_text(&clean, text);
    fprintf(stderr, "%s\n", clean.at ? clean.at : "");
}

/* --- JSON and YAML */

static void indent(struct str *out, int depth)
{
    str_char(out, '\n');
    for (int i = 0; i < depth * 2; i++)
        str_char(out, ' ');
}

void json_pretty(struct str *out, const struct json *v, int depth)
{
    bool object = v->type == JSON_OBJECT;
    if ((!object && v->type != JSON_LIST) || !v->first) {
        json_print(out, v);
        return;
    }
    str_char(out, object ? '{' : '[');
    for (const struct json *m = v->first; m; m = m->next) {
        indent(out, depth + 1);
        if (object) {
            json_put_text(&(struct json_out){ .to = out }, m->name);
            str_text(out, ": ");
        }
        json_pretty(out, m, depth + 1);
        if (m->next)
            str_char(out, ',');
    }
    indent(out, depth);
    str_char(out, object ? '}' : ']');
}

void print_data(struct cli *c, const struct json *value)
{
    AUTO(str_done) struct str text = { 0 };
    if (c->output == OUT_YAML)
        yaml_print(&text, value);
    else
        json_pretty(&text, value, 0);
    if (text.len && text.at[text.len - 1] != '\n')
        str_char(&text, '\n');
    out_write(text.at, text.len);
}

/* --- one thing */

static bool empty(const struct json *v)
{
    return v->type == JSON_NULL || (v->type == JSON_TEXT && !v->len)
           || ((v->type == JSON_LIST || v->type == JSON_OBJECT) && !v->first);
}

static void put_value(struct cli *c, struct str *out, const struct json *v)
{
    int64_t ms;
    if (v->type != JSON_TEXT) {
        json_print(out, v);
        return;
    }
    clean_text(out, v->text);
    if (v->len > 19 && v->text[10] == 'T' && when_parse(v->text, &ms)) {
        str_text(out, " (");
        age_text(out, os_wall_ms(c->os), ms);
        str_char(out, ')');
    }
}

void print_described(struct cli *c, const struct json *thing)
{
    AUTO(str_done) struct str out = { 0 };
    size_t wide = 0;
    for (const struct json *m = thing->first; m; m = m->next)
        wide = !empty(m) && m->type != JSON_OBJECT && m->type != JSON_LIST
                   ? MAX(wide, strlen(m->name))
                   : wide;
    for (const struct json *m = thing->first; m; m = m->next) {
        AUTO(str_done) struct str block = { 0 };
        if (empty(m))
            continue;
        clean_text(&out, m->name);
        str_char(&out, ':');
        if (m->type != JSON_OBJECT && m->type != JSON_LIST) {
            str_printf(&out, "%*s", (int)(wide - strlen(m->name) + 1), "");
            put_value(c, &out, m);
            str_char(&out, '\n');
            continue;
        }
        yaml_print(&block, m);
        for (const char *line = block.at; *line;) {
            size_t n = strcspn(line, "\n");
            str_printf(&out, "\n  %.*s", (int)n, line);
            line += n + (line[n] == '\n');
        }
        str_char(&out, '\n');
    }
    out_write(out.at, out.len);
}

/* Not a unit is left out, unlike span_text: it is what was asked for. */
static void put_span(struct str *out, int64_t s)
{
    static const struct {
        int64_t s;
        char unit;
    } units[] = {
        { 86400, 'd' },
        { 3600, 'h' },
        { 60, 'm' },
        { 1, 's' },
    };
    if (s == 0)
        str_text(out, "0s");
    for (size_t i = 0; i < COUNT(units); s %= units[i++].s)
        if (s >= units[i].s)
            str_printf(out, "%lld%c", (long long)(s / units[i].s), units[i].unit);
}

static bool reads_otherwise(struct str *out, const struct json *v, const struct field *f)
{
    if (!f || v->type != JSON_NUMBER || !v->is_int)
        return false;
    if (f->type == F_DURATION && v->number >= 0)
        return put_span(out, v->number), true;
    /* the rows of a quota are those that may be less than nothing */
    return f->min < 0 && v->number == -1 && (str_text(out, "no limit"), true);
}

struct json *for_people(struct cli *c, const struct json *value, const struct fields *fields)
{
    struct json *copy = json_new(c->mem, value->type);
    *copy = *value;
    copy->next = copy->first = copy->last = NULL;
    for (const struct json *m = value->first; m; m = m->next) {
        AUTO(str_done) struct str text = { 0 };
        const struct field *f
            = fields && value->type == JSON_OBJECT ? bind_find(fields, m->name) : NULL;
        struct json *spelled = for_people(c, m, f ? f->sub : NULL);
        /* still a number, so that nothing quotes it */
        if (reads_otherwise(&text, m, f))
            spelled->text = arena_text(c->mem, text.at), spelled->len = text.len;
        json_add(copy, m->name, spelled);
    }
    return copy;
}

void print_reply(struct cli *c, const struct word *w, const struct json *reply)
{
    const struct json *items = json_get(reply, "items");
    if (c->output == OUT_JSON || c->output == OUT_YAML)
        print_data(c, reply);
    else if (items && items->type == JSON_LIST)
        print_table(c, w->columns, w->column_count, items);
    else
        print_described(c, for_people(c, reply, w->verb < 0 ? NULL : verbs[w->verb].gives));
}

/* --- errors */

static const char *hint(struct cli *c, const struct err *err)
{
    const char *server = c->context.server ? c->context.server : "";
    if (err->rc == RC_UNAUTHENTICATED && !c->context.key)
        return "there is no key for this cloud; arcus login gets one, or set ARCUS_KEY";
    if (err->rc == RC_UNAUTHENTICATED && *c->context.key)
        return "the key was not taken; arcus login gets a new one, arcus config list shows which "
               "cloud this is";
    if (err->rc == RC_UNAVAILABLE && strstr(err->text, "refused"))
        return arena_printf(c->mem,
                            "is the cloud running? ./dev up (or arcus up) starts one here; arcus "
                            "config list shows others than %s",
                            server);
    if (strstr(err->text, "TLS handshake") && strstr(err->text, "certificate"))
        return "if it is the right server: --pin SHA256 of arcus login and arcus config set (the "
               "server logs it at its start; its DATA/tls/pin has it), or --ca FILE";
    if (err->rc == RC_DENIED)
        return "arcus whoami shows your roles";
    return NULL;
}

int print_error(struct cli *c, const struct err *err)
{
    AUTO(str_done) struct str text = { 0 };
    const char *more = hint(c, err);
    fflush(stdout);
    clean_text(&text, err->text);
    fprintf(stderr, "arcus: %s\n", text.at ? text.at : "");
    if (more && !c->quiet)
        fprintf(stderr, "hint: %s\n", more);
    return rc_exit(err->rc) ? rc_exit(err->rc) : 1;
}
