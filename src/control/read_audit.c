/* read_audit.c - looking at the audit chain, and checking it. Both go over numbers, live rows and archive segments alike, and do
 * a bounded amount of work each time: a page may come back short with a `next`.
 *
 * Each row is checked against the hash that the row before it has, so one bad row does not hide the rest. */
#include "control/audit.h"
#include "control/archive.h"
#include <stdio.h>
#include <stdlib.h>

enum { STEP = 500, STEPS = 20, CHECK_STEP = 2000, PROBLEMS_MOST = 100 };

/* --- rows by number */

struct span { struct audit_row *at; size_t count; };

static bool add_segment(struct call *c, int64_t from, int64_t to, const char *lines,
                        struct span *out, struct err *err)
{
    for (const char *p = lines; *p;) {
        size_t n = strcspn(p, "\n");
        int64_t number = p[0] == '[' ? strtoll(p + 1, NULL, 10) : 0;
        if (number >= from && number <= to) {
            if (!audit_line_read((struct slice){ p, n }, c->mem, &out->at[out->count], err))
                out->at[out->count] = (struct audit_row){ .number = number }; /* verify tells */
            out->count++;
        }
        p += n + (p[n] == '\n');
    }
    return true;
}

/* All rows with numbers from `from` to `to`, which are less than a segment apart. A segment moves in one transaction: what is not
 * among the live rows when they are read is in the archive when that is read after them. */
static bool read_span(struct call *c, int64_t from, int64_t to, struct span *out, struct err *err)
{
    struct rows live, seg;
    if (!ROWS(c, AUDIT_RANGE, &live, err, V_INT(from), V_INT(to)))
        return false;
    *out = (struct span){ .count = 0 };
    int64_t first = live.count ? row_int(&live, 0, 0) : to + 1;
    size_t room = live.count;
    struct span old = { 0 };
    for (int64_t at = from; at < first;) {
        if (!ROWS(c, ARCHIVE_AT, &seg, err, V_TEXT(ARCHIVE_AUDIT), V_INT(at)))
            return false;
        if (!seg.count || row_int(&seg, 0, 1) > to)
            break;
        size_t most = (size_t)MIN(row_int(&seg, 0, 5), ARCHIVE_ROWS_MOST);
        for (const char *p = row_text(&seg, 0, 7); *p; p++)
            most += *p == '\n';         /* what is there counts, not what the row says */
        struct audit_row *more = ARENA_ARRAY(c->mem, struct audit_row, old.count + most);
        if (old.count)
            memcpy(more, old.at, old.count * sizeof *more);
        old.at = more;
        if (!add_segment(c, at, MIN(to, first - 1), row_text(&seg, 0, 7), &old, err))
            return false;
        at = MAX(row_int(&seg, 0, 2), at) + 1;
    }
    out->at = ARENA_ARRAY(c->mem, struct audit_row, old.count + room);
    if (old.count)
        memcpy(out->at, old.at, old.count * sizeof *out->at);
    out->count = old.count;
    for (size_t i = 0; i < live.count; i++)
        audit_row_read(&live, i, &out->at[out->count++]);
    return true;
}

static bool last_number(struct call *c, int64_t *out, struct err *err)
{
    struct rows r;
    if (!ROWS(c, AUDIT_HEAD, &r, err, V_INT(HEAD_AUDIT)))
        return false;
    *out = r.count ? row_int(&r, 0, 0) : 0;
    return true;
}

/* --- the list */

static bool fits(const struct call *c, const struct audit_ask *ask, const struct audit_row *r)
{
    return r->verb && (c->who->roles & PLATFORM_ROLES || r->project == c->who->project)
           && (!text_given(ask->verb) || text_is(r->verb, ask->verb))
           && (!text_given(ask->actor) || (r->actor && text_is(r->actor, ask->actor)))
           && (!text_given(ask->result) || (r->result && text_is(r->result, ask->result)))
           && (!ask->from_ms || r->at_ms >= ask->from_ms) && (!ask->to_ms || r->at_ms < ask->to_ms);
}

static void show(struct call *c, struct list *l, const struct audit_row *r)
{
    struct audit_view v = { .id = r->number,
                            .at_ms = r->at_ms,
                            .name = r->verb,
                            .state = r->result,
                            .times = r->times,
                            .actor = r->actor,
                            .key = r->key ? id_of(c, PREFIX_KEY, r->key) : "",
                            .address = r->address,
                            .project = r->project ? id_of(c, PREFIX_PROJECT, r->project) : "",
                            .subject = r->subject,
                            .kind = r->kind,
                            .event = r->seq,
                            .request = r->request,
                            .data = text_given(r->data) ? r->data : "{}",
                            .chain = r->chain };
    list_add(l, &audit_view_fields, &v);
}

/* One step of the walk: rows in walking order, and the number to go on from. done: there is nothing beyond. */
struct walk { bool up; int64_t at, last; bool done; struct span rows; };

/* A project's own rows have an index of their own; older ones are in the archive of all. */
static bool walk_project(struct call *c, struct walk *w, struct err *err)
{
    struct rows r, seq;
    int64_t beyond = w->up ? w->at : w->at - 1;
    if (!ROWS(c, AUDIT_SEQ, &seq, err, V_INT(beyond + 1)))
        return false;
    struct value args[] = { V_INT(c->who->project), V_INT(row_int(&seq, 0, 0)),
                            V_INT(w->up ? beyond : w->at), V_INT(STEP) };
    if (!rows_of(c, w->up ? ST_AUDIT_UP : ST_AUDIT_DOWN, args, COUNT(args), &r, err))
        return false;
    w->rows = (struct span){ ARENA_ARRAY(c->mem, struct audit_row, r.count), r.count };
    for (size_t i = 0; i < r.count; i++)
        audit_row_read(&r, i, &w->rows.at[i]);
    if (r.count)
        w->at = w->rows.at[r.count - 1].number;
    w->done = r.count < STEP;
    return true;
}

static bool walk_all(struct call *c, struct walk *w, struct err *err)
{
    int64_t from = w->up ? w->at + 1 : MAX(w->at - STEP, 1), to = w->up ? w->at + STEP : w->at - 1;
    w->done = w->up ? to >= w->last : from <= 1;
    if (to < from)
        return w->rows.count = 0, true;
    if (!read_span(c, from, to, &w->rows, err))
        return false;
    for (size_t i = 0, k = w->rows.count; !w->up && i + 1 < k; i++, k--) {
        struct audit_row swap = w->rows.at[i];
        w->rows.at[i] = w->rows.at[k - 1], w->rows.at[k - 1] = swap;
    }
    w->at = w->up ? to : from;
    return true;
}

/* A project's admin reads live rows by index; where those begin, the archive of all is walked. */
static bool walk(struct call *c, struct walk *w, struct err *err)
{
    struct rows r;
    if (c->who->roles & PLATFORM_ROLES)
        return walk_all(c, w, err);
    if (!ROWS(c, ARCHIVE_LAST, &r, err, V_TEXT(ARCHIVE_AUDIT)))
        return false;
    int64_t archived = r.count ? row_int(&r, 0, 1) : 0;
    if (w->up ? w->at < archived : w->at <= archived + 1)
        return walk_all(c, w, err);
    if (!walk_project(c, w, err))
        return false;
    if (w->done && !w->up && archived) {
        w->done = false;
        w->at = archived + 1;
    }
    return true;
}

bool audit_list(struct call *c, const void *body, struct err *err)
{
    const struct audit_ask *ask = body;
    struct walk w = { .up = was_given(c, "since"), .at = ask->since };
    if (!last_number(c, &w.last, err))
        return false;
    if (!w.up)
        w.at = w.last + 1;
    if (text_given(ask->page)) {
        char *end;
        w.up = ask->page[0] == '>';
        w.at = strtoll(ask->page + 1, &end, 10);
        if (!strchr("<>", ask->page[0]) || *end || w.at < 0)
            return err_field(err, "page", "this is not the `next` of a page before");
    }
    struct list l = list_open(c);
    int64_t got = 0, next = w.at;
    for (int step = 0; step < STEPS && got < ask->limit && !w.done; step++) {
        if (!walk(c, &w, err))
            return false;
        next = w.at;
        size_t i = 0;
        for (; i < w.rows.count && got < ask->limit; i++) {
            if (!fits(c, ask, &w.rows.at[i]))
                continue;
            show(c, &l, &w.rows.at[i]);
            got++;
        }
        if (i < w.rows.count) {
            w.done = false;
            next = w.up ? w.rows.at[i].number - 1 : w.rows.at[i].number + 1;
        }
    }
    bool over = w.done || (!w.up && ask->from_ms && w.rows.count && w.rows.at[w.rows.count - 1].at_ms < ask->from_ms);
    list_close(&l, over ? NULL : arena_printf(c->mem, "%c%lld", w.up ? '>' : '<', (long long)next));
    return true;
}

/* --- the proof */

struct proof { struct call *c; struct audit_proof view; struct json_out problems; size_t found; };

static void problem(struct proof *p, int64_t number, const char *what)
{
    p->view.state = "broken";
    if (++p->found > PROBLEMS_MOST)
        return;
    json_open(&p->problems, '{');
    json_key(&p->problems, "number"), json_put_int(&p->problems, number);
    json_key(&p->problems, "problem"), json_put_text(&p->problems, what);
    json_close(&p->problems, '}');
}

/* rows: from..to, and before them the row that they hang on, if there is one. */
static void check_rows(struct proof *p, int64_t from, int64_t to, const struct span *rows)
{
    int64_t expected = from;
    const char *before = from == 1 ? "" : NULL;
    for (size_t i = 0; i < rows->count; i++) {
        const struct audit_row *r = &rows->at[i];
        char chain[MAC_HEX];
        if (r->number < from) {
            before = r->chain;
            continue;
        }
        if (r->number < expected) {
            problem(p, r->number, "there are several rows with this number");
            continue;
        }
        for (; expected < r->number; expected++, before = NULL)
            problem(p, expected, "this row is missing");
        expected = r->number + 1;
        if (!r->chain) {
            problem(p, r->number, "this row cannot be read");
        } else if (before) {
            audit_hash(p->c->control, before, r, chain);
            if (!text_is(chain, r->chain))
                problem(p, r->number, "this row is not as it was written, or not in its place");
        }
        before = r->chain;
        p->view.chain = r->chain;
        p->view.checked++;
    }
    for (; expected <= to; expected++)
        problem(p, expected, "this row is missing");
}

/* Rows beyond the end of the chain: the end is looked up before and after them, for it moves. */
static bool check_end(struct proof *p, int64_t last, struct err *err)
{
    struct rows r;
    int64_t now;
    if (!rows_of(p->c, ST_AUDIT_LAST, NULL, 0, &r, err) || !last_number(p->c, &now, err))
        return false;
    if (row_int(&r, 0, 0) > MAX(now, last))
        problem(p, MAX(now, last) + 1, "there are rows behind the end of the chain");
    return true;
}

static bool check_audit(struct proof *p, int64_t from, struct err *err)
{
    struct call *c = p->c;
    struct rows head;
    struct span rows;
    char mac[MAC_HEX];
    if (!ROWS(c, AUDIT_HEAD, &head, err, V_INT(HEAD_AUDIT)))
        return false;
    int64_t last = head.count ? row_int(&head, 0, 0) : 0, to = MIN(from + CHECK_STEP - 1, last);
    if (to >= from && !read_span(c, MAX(from - 1, 1), to, &rows, err))
        return false;
    if (to >= from)
        check_rows(p, from, to, &rows);
    p->view.last = to;
    if (to < last) {
        p->view.next = arena_printf(c->mem, "%lld", (long long)to + 1);
        return true;
    }
    if (head.count)
        audit_head_mac(c->control, HEAD_AUDIT, last, row_text(&head, 0, 1), mac);
    if (head.count && !text_is(mac, row_text(&head, 0, 2)))
        problem(p, last, "the end of the chain is not as it was written");
    else if (head.count && p->view.chain && !text_is(p->view.chain, row_text(&head, 0, 1)))
        problem(p, last, "the end of the chain is not its last row");
    p->view.next = ARCHIVE_AUDIT ":1";
    return check_end(p, last, err);
}

/* Numbers first, then the segments of each archive. */
static bool check_segment(struct proof *p, const char *kind, struct err *err)
{
    const char *what;
    int64_t next;
    p->view.name = kind;
    p->view.last = p->view.id;
    if (!archive_check(p->c, kind, p->view.id, &p->view.checked, &p->view.chain, &what, &next, err))
        return false;
    if (what)
        problem(p, p->view.id, what);
    if (next)
        p->view.next = arena_printf(p->c->mem, "%s:%lld", kind, (long long)next);
    else
        p->view.next = text_is(kind, ARCHIVE_AUDIT) ? ARCHIVE_USAGE ":1" : "";
    return true;
}

bool audit_verify(struct call *c, const void *body, struct err *err)
{
    const struct audit_verify_ask *ask = body;
    AUTO(str_done) struct str problems = { 0 };
    struct proof p = { .c = c,
                       .view = { .name = "chain", .state = "whole" },
                       .problems = { .to = &problems } };
    const char *page = text_given(ask->page) ? ask->page : "1", *colon = strchr(page, ':'),
               *kind = text_starts(page, ARCHIVE_AUDIT ":")   ? ARCHIVE_AUDIT
                       : text_starts(page, ARCHIVE_USAGE ":") ? ARCHIVE_USAGE
                                                              : NULL;
    char *end;
    p.view.id = strtoll(kind ? colon + 1 : page, &end, 10);
    if (*end || p.view.id < 1)
        return err_field(err, "page", "this is not the `next` of a page before");
    json_open(&p.problems, '[');
    if (kind ? !check_segment(&p, kind, err) : !check_audit(&p, p.view.id, err))
        return false;
    json_close(&p.problems, ']');
    p.view.problems = problems.at;
    reply_view(c, &audit_proof_fields, &p.view);
    return true;
}
