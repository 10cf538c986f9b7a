/* read_trace.c - what ran and when, in pages, oldest first: out of the archive, out of the table of usage, and what runs now. Each entry is
 * an attempt that held something; its columns are those of sim/trace.h.
 *
 * What was asked for is known as long as the job is kept. After that the model that it had stands for the one it asked for, and its start
 * for its creation. */
#include "control/retain.h"
#include <stdio.h>
#include <stdlib.h>

/* Where a page begins: in the archive behind a line of a segment, in the table behind an attempt, among the live ones behind one. */
enum part { PART_ARCHIVE, PART_ENDED, PART_LIVE, PART_COUNT };
static const char letters[PART_COUNT + 1] = "aul";
struct mark { enum part part; int64_t at, behind; };

struct walk { struct call *c; const struct trace_ask *ask; int64_t project, to_ms, left; struct mark mark; struct list *out; };

static bool mark_read(const char *text, int64_t from_ms, struct mark *out, struct err *err)
{
    *out = (struct mark){ PART_ARCHIVE, 0, 0 };
    if (!text_given(text))
        return true;
    const char *letter = strchr(letters, text[0]);
    char *end;
    out->part = letter ? (enum part)(letter - letters) : PART_ARCHIVE;
    out->at = strtoll(text + 1, &end, 10);
    if (!letter || *end != '.')
        return err_field(err, "page", "this is not the `next` of a page before");
    out->behind = strtoll(end + 1, &end, 10);
    if (*end || out->at < 0 || out->behind < -1 || (out->part == PART_ENDED && out->at < from_ms))
        return err_field(err, "page", "this is not the `next` of a page before");
    return true;
}

static void put(struct walk *w, struct trace_view *v, int64_t gpu_milli)
{
    v->gpus = (gpu_milli + 999) / 1000;
    v->gpu_milli = gpu_milli >= 1000 ? 1000 : gpu_milli;
    list_add(w->out, &trace_view_fields, v);
    w->left--;
}

/* Of what its job asked for; "" any. */
static const char *spec_model(struct call *c, const char *spec_text)
{
    struct json *doc;
    struct err ignored;
    struct gpu_ask gpu;
    if (!text_given(spec_text) || !json_parse(SLICE(spec_text), c->mem, &doc, &ignored))
        return NULL;
    const char *gpus = json_text(doc, "gpus");
    return gpus && gpu_ask_parse(gpus, &gpu, &ignored) ? arena_text(c->mem, gpu.model) : "";
}

static const char *flavor_model(struct call *c, const char *flavor)
{
    struct shape shape;
    struct err ignored;
    return flavor_parse(flavor, &shape, &ignored) ? arena_text(c->mem, shape.gpu.model) : "";
}

/* A row of TRACE_ENDED or TRACE_LIVE. */
static void put_row(struct walk *w, const struct rows *r, size_t i, bool live)
{
    struct call *c = w->c;
    const char *model = spec_model(c, row_text(r, i, 11));
    int64_t created = row_int(r, i, 10), placed = row_int(r, i, 6), milli = row_int(r, i, 3);
    bool again = row_int(r, i, 13) || !created;
    struct trace_view v = { .id = row_int(r, i, 0),
                            .name = w->ask->names ? row_text(r, i, 8) : id_of(c, PREFIX_ATTEMPT, row_int(r, i, 0)),
                            .state = live ? "running" : "ended",
                            .project = w->ask->names ? row_text(r, i, 12) : id_of(c, PREFIX_PROJECT, row_int(r, i, 1)),
                            .priority = row_int(r, i, 9),
                            .cpu_milli = row_int(r, i, 4),
                            .mem_mib = row_int(r, i, 5),
                            .gpu_spec = model ? model : flavor_model(c, row_text(r, i, 2)),
                            .created_s = (again ? placed : created) / 1000,
                            .scheduled_s = placed / 1000,
                            .deleted_s = (live ? c->now_ms : row_int(r, i, 7)) / 1000 };
    struct json *lease, *gpus;
    struct err ignored;
    if (live && json_parse(SLICE(row_text(r, i, 2)), c->mem, &lease, &ignored)) {
        v.cpu_milli = json_int(lease, "cpu", 0);
        v.mem_mib = json_int(lease, "mem", 0);
        gpus = json_get(lease, "gpus");
        for (struct json *g = gpus ? gpus->first : NULL; g; g = g->next)
            milli += json_int(g, "milli", 0);
    }
    v.gpu_spec = milli ? v.gpu_spec : "";
    put(w, &v, milli);
}

/* --- the three parts: each goes on until the page is full or it has no more */

static bool put_line(struct walk *w, const char *line, size_t n, struct err *err)
{
    struct interval it;
    if (!usage_line_read(w->c, line, n, &it, err))
        return false;
    if ((w->project && it.project != w->project) || it.ended_ms < w->ask->from_ms || it.ended_ms >= w->to_ms)
        return true;
    struct trace_view v = { .id = it.attempt,
                            .name = id_of(w->c, PREFIX_ATTEMPT, it.attempt),
                            .state = "ended",
                            .project = w->ask->names ? it.project_name : id_of(w->c, PREFIX_PROJECT, it.project),
                            .priority = 50,
                            .cpu_milli = it.cpu_milli,
                            .mem_mib = it.mem_mib,
                            .gpu_spec = it.gpu_milli ? flavor_model(w->c, it.flavor) : "",
                            .created_s = it.started_ms / 1000,
                            .scheduled_s = it.started_ms / 1000,
                            .deleted_s = it.ended_ms / 1000 };
    put(w, &v, it.gpu_milli);
    return true;
}

/* at: the segment that is done; behind: lines of the next one that are. One segment a page: that is what is read at once. */
static bool from_archive(struct walk *w, struct err *err)
{
    struct rows r;
    int64_t line = 0;
    if (!ROWS(w->c, ARCHIVE_OVERLAP, &r, err, V_TEXT(ARCHIVE_USAGE), V_INT(w->mark.at), V_INT(w->ask->from_ms), V_INT(w->to_ms)))
        return false;
    if (!r.count) {
        w->mark = (struct mark){ PART_ENDED, w->ask->from_ms, -1 };
        return true;
    }
    const char *p = row_text(&r, 0, 1);
    for (; *p && w->left; line++) {
        size_t n = strcspn(p, "\n");
        if (line >= w->mark.behind && !put_line(w, p, n, err))
            return false;
        p += n + (p[n] == '\n');
    }
    w->mark.behind = *p ? line : 0;
    w->mark.at = *p ? w->mark.at : row_int(&r, 0, 0);
    w->left = 0;
    return true;
}

static bool from_table(struct walk *w, struct err *err)
{
    struct rows r;
    struct value args[] = { V_INT(w->mark.at), V_INT(w->mark.behind), V_INT(w->to_ms), V_INT(w->project), V_INT(w->left) };
    if (!rows_of(w->c, w->project ? ST_TRACE_ENDED_OF : ST_TRACE_ENDED, args, COUNT(args), &r, err))
        return false;
    for (size_t i = 0; i < r.count; i++) {
        put_row(w, &r, i, false);
        w->mark.at = row_int(&r, i, 7);
        w->mark.behind = row_int(&r, i, 0);
    }
    if (w->left)
        w->mark = w->to_ms > w->c->now_ms ? (struct mark){ PART_LIVE, 0, 0 } : (struct mark){ PART_COUNT, 0, 0 };
    return true;
}

static bool from_live(struct walk *w, struct err *err)
{
    struct rows r;
    if (!ROWS(w->c, TRACE_LIVE, &r, err, V_INT(w->mark.behind), V_INT(w->project), V_INT(w->left)))
        return false;
    for (size_t i = 0; i < r.count; i++) {
        put_row(w, &r, i, true);
        w->mark.behind = row_int(&r, i, 0);
    }
    if (w->left)
        w->mark.part = PART_COUNT;
    return true;
}

bool trace_list(struct call *c, const void *body, struct err *err)
{
    static bool (*const parts[PART_COUNT])(struct walk *, struct err *) = { from_archive, from_table, from_live };
    const struct trace_ask *ask = body;
    struct walk w = { .c = c,
                      .ask = ask,
                      .project = c->who->roles & PLATFORM_ROLES ? 0 : c->who->project,
                      .to_ms = ask->to_ms ? ask->to_ms : INT64_MAX,
                      .left = ask->limit };
    if (!mark_read(ask->page, ask->from_ms, &w.mark, err))
        return false;
    struct list out = list_open(c);
    w.out = &out;
    while (w.left > 0 && w.mark.part < PART_COUNT)
        if (!parts[w.mark.part](&w, err))
            return false;
    list_close(&out, w.mark.part == PART_COUNT ? NULL
                                               : arena_printf(c->mem, "%c%lld.%lld", letters[w.mark.part], (long long)w.mark.at, (long long)w.mark.behind));
    return true;
}
