/* read_log.c - looking at what happened and what was used, and the checks before bytes flow
 * (blobs, volumes, the agents' links). */
#include "base/when.h"
#include "control/call.h"
#include "control/retain.h"
#include <stdio.h>

enum { SUM_TRIES = 10, SNAPSHOT_MOST = 1000 };

/* Operators and auditors see all; everybody else what belongs to their project. */
static int64_t scope(const struct call *c)
{
    return c->who->roles & PLATFORM_ROLES ? 0 : c->who->project;
}

/* The list that a verb gives to this caller, as it stands now. */
static bool put_list(struct call *c, struct str *out, const char *name, enum verb_id verb, const void *body,
                     struct err *err)
{
    if (!handlers[verb].run(c, body, err))
        return false;
    str_printf(out, ",\"%s\":%s", name, c->r->reply.at);
    return true;
}

/* Who asks for what is no longer kept gets what is there instead, and the number from which to go on. The number is taken first: what
 * happens meanwhile is told again, and again means the same. */
static bool gone(struct call *c, int64_t since, int64_t first, struct err *err)
{
    AUTO(str_done) struct str out = { 0 };
    struct rows r;
    struct job_list_ask jobs = { .limit = SNAPSHOT_MOST };
    struct page_ask nodes = { .limit = SNAPSHOT_MOST };
    if (!rows_of(c, ST_LAST_EVENT, NULL, 0, &r, err))
        return false;
    str_printf(&out, "{\"number\":%lld,\"oldest\":%lld", (long long)row_int(&r, 0, 0), (long long)first);
    if ((c->who->project && (c->who->roles & VIEWERS) && !put_list(c, &out, "jobs", VERB_JOB_LIST, &jobs, err))
        || ((c->who->roles & WATCHERS) && !put_list(c, &out, "nodes", VERB_NODE_LIST, &nodes, err)))
        return false;
    str_char(&out, '}');
    str_clear(&c->r->reply);
    str_text(&c->r->reply, out.at);
    return err_set(err, RC_GONE,
                   "events before %lld are no longer kept, and you asked for those after %lld: take the snapshot, "
                   "then go on after its number", (long long)first, (long long)since);
}

bool event_list(struct call *c, const void *body, struct err *err)
{
    const struct event_ask *ask = body;
    struct rows r;
    bool all = scope(c) == 0;
    if (ask->since) { /* 0: from the first that is kept */
        if (!rows_of(c, ST_EVENT_FIRST, NULL, 0, &r, err))
            return false;
        if (ask->since + 1 < row_int(&r, 0, 0))
            return gone(c, ask->since, row_int(&r, 0, 0), err);
    }
    if (all ? !ROWS(c, EVENT_LIST_ALL, &r, err, V_INT(ask->since), V_INT(ask->limit))
            : !ROWS(c, EVENT_LIST, &r, err, V_INT(scope(c)), V_INT(ask->since), V_INT(ask->limit)))
        return false;
    struct list l = list_open(c);
    for (size_t i = 0; i < r.count; i++) {
        int64_t project = row_int(&r, i, 2);
        struct event_view v = { .id = row_int(&r, i, 0),
                                .at_ms = row_int(&r, i, 1),
                                .name = row_text(&r, i, 3),
                                .state = "kept",
                                .project = project ? id_of(c, PREFIX_PROJECT, project) : "",
                                .subject = row_text(&r, i, 4),
                                .actor = row_text(&r, i, 5),
                                .data = row_text(&r, i, 6) };
        list_add(&l, &event_view_fields, &v);
    }
    bool more = r.count == (size_t)ask->limit;
    list_close(&l,
               more ? arena_printf(c->mem, "%lld", (long long)row_int(&r, r.count - 1, 0)) : NULL);
    return true;
}

static const char *day_text(struct call *c, int64_t ms)
{
    char *text = arena_take(c->mem, WHEN_TEXT, 1);
    when_text(text, ms);
    text[10] = 0;
    return text;
}

bool usage_sum(struct call *c, const void *body, struct err *err)
{
    const struct usage_ask *ask = body;
    unsigned by;
    int64_t to = ask->to_ms ? ask->to_ms : INT64_MAX;
    if (!meter_by(text_given(ask->by) ? ask->by : "project", &by, err))
        return false;
    struct usage_sum *sum = NULL;
    bool moved = true;
    for (int i = 0; moved && i < SUM_TRIES; i++) {
        sum = usage_sum_new(c->mem, by, ask->from_ms, to);
        if (!usage_read(c, scope(c), ask->from_ms, to, sum, &moved, err))
            return false;
    }
    if (moved)
        return err_set(err, RC_UNAVAILABLE, "old usage is being moved to the archive; try again in a moment");
    struct usage_line *lines;
    size_t n = usage_sum_lines(sum, &lines);
    struct list l = list_open(c);
    for (size_t i = 0; i < n; i++) {
        struct usage_view v = { .state = "closed",
                                .project = lines[i].project,
                                .user = lines[i].user,
                                .flavor = lines[i].flavor,
                                .day = lines[i].day_ms ? day_text(c, lines[i].day_ms) : "",
                                .tasks = lines[i].attempts,
                                .seconds = lines[i].ms / 1000,
                                .gpu_milli_s = lines[i].gpu_milli_ms / 1000,
                                .gpu_mib_s = lines[i].gpu_mib_ms / 1000,
                                .cpu_milli_s = lines[i].cpu_milli_ms / 1000,
                                .mem_mib_s = lines[i].mem_mib_ms / 1000,
                                .simulated = lines[i].simulated };
        v.id = v.name = arena_printf(c->mem, "%s/%s/%s/%s", v.project, v.user, v.flavor, v.day);
        list_add(&l, &usage_view_fields, &v);
    }
    list_close(&l, NULL);
    return true;
}

bool volume_files(struct call *c, const void *body, struct err *err)
{
    const struct files_ask *ask = body;
    int64_t id = 0;
    struct rows r;
    (void)id_parse(ask->volume, PREFIX_VOLUME, &id);
    if (!ROWS(c, VOLUME_FIND, &r, err, V_INT(c->who->project), V_TEXT(ask->volume), V_INT(id)))
        return false;
    if (r.count == 0)
        return err_set(err, RC_NOT_FOUND, "there is no volume '%s' in this project", ask->volume);
    if (!row_int(&r, 0, 1))
        return err_set(err, RC_CONFLICT,
                       "volume %s has no node yet: it gets one when a job first uses it",
                       ask->volume);
    str_printf(&c->r->reply,
               "{\"volume\":\"%s\",\"node\":\"%s\",\"project\":\"%s\",\"attempt\":null,\"state\":"
               "\"active\"}",
               id_of(c, PREFIX_VOLUME, row_int(&r, 0, 0)), id_of(c, PREFIX_NODE, row_int(&r, 0, 1)),
               id_of(c, PREFIX_PROJECT, c->who->project));
    return true;
}

static bool blob_there(struct call *c, int64_t project, const char *digest, struct err *err)
{
    struct rows r;
    if (!ROWS(c, BLOB_GET, &r, err, V_INT(project), V_TEXT(digest)))
        return false;
    if (r.count == 0)
        return err_set(err, RC_NOT_FOUND, "there is no blob %s in this project", digest);
    str_clear(&c->r->reply);
    str_printf(
        &c->r->reply,
        "{\"id\":\"%s\",\"name\":\"%s\",\"state\":\"active\",\"size\":%lld,\"project\":\"%s\"}",
        digest, digest, (long long)row_int(&r, 0, 0), id_of(c, PREFIX_PROJECT, project));
    return true;
}

bool blob_head(struct call *c, const void *body, struct err *err)
{
    const struct blob_ask *ask = body;
    return blob_there(c, c->who->project, ask->digest, err);
}

/* A node gets only what a live task on it names: as its work folder, or as its image. */
bool blob_get(struct call *c, const void *body, struct err *err)
{
    const struct blob_ask *ask = body;
    struct rows r;
    if (c->who->kind != PRINCIPAL_NODE)
        return blob_there(c, c->who->project, ask->digest, err);
    if (!ROWS(c, BLOB_ON_NODE, &r, err, V_INT(c->who->id),
              V_TEXT(arena_printf(c->mem, "%%\"%s\"%%", ask->digest)), V_TEXT(ask->digest)))
        return false;
    if (r.count == 0)
        return err_set(err, RC_NOT_FOUND, "no task on this node names blob %s", ask->digest);
    return blob_there(c, row_int(&r, 0, 0), ask->digest, err);
}

/* These three ask only whether the caller may: the check has been made; api/ needs to know who
 * it is. */
static bool who_reply(struct call *c)
{
    str_printf(&c->r->reply, "{\"project\":\"%s\"}", id_of(c, PREFIX_PROJECT, c->who->project));
    return true;
}
bool blob_put(struct call *c, const void *body, struct err *err)
{
    return (void)body, (void)err, who_reply(c);
}
bool node_link(struct call *c, const void *body, struct err *err)
{
    return (void)body, (void)err, who_reply(c);
}
bool node_stream(struct call *c, const void *body, struct err *err)
{
    return (void)body, (void)err, who_reply(c);
}
bool backup(struct call *c, const void *body, struct err *err)
{
    return (void)body, (void)err, who_reply(c);
}
