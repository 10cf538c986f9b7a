/* api.c - the server's face to the network: opens it, hands each request to who serves its verb,
 * spreads each commit, and closes without dropping what is on its way.
 *
 * A verb without a row in `servers` is plain: through the door and back as JSON. */
#include "api/api_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ROOM_LEAST: a stream tells only then that it has drained. */
enum { RECHECK_MS = 30 * 1000, ROOM_MOST = 256 * 1024, ROOM_LEAST = 64 * 1024, PLENTY = 64 * 1024 * 1024, BATCH_BYTES = 8 << 20 };
enum { DOCUMENT_USUAL = 4 * 1024 };

/* --- requests */

static void plain_begin(struct visit *v) { visit_ask(v, v->verb_id, v->body, reply_answer); }

static void (*const servers[VERB_COUNT])(struct visit *v) = {
    [VERB_EVENT_LIST] = events_begin,
    [VERB_NODE_LINK] = link_begin,
    [VERB_NODE_TOKEN] = token_begin,
    [VERB_NODE_STREAM] = stream_answer_begin,
    [VERB_JOB_LOGS] = logs_begin,
    [VERB_JOB_EXEC] = splice_begin,
    [VERB_JOB_DIAL] = splice_begin,
    [VERB_JOB_SSH] = splice_begin,
    [VERB_JOB_FILES] = splice_begin,
    [VERB_VOLUME_FILES] = splice_begin,
    [VERB_BLOB_GET] = blob_get_begin,
    [VERB_BACKUP] = backup_begin,
};

static bool route(struct api *a, struct http_request *rq, struct match *m)
{
    char allow[64];
    enum found found = router_find(a->router, http_method(rq), http_path(rq), m, allow);
    if (found == FOUND)
        return true;
    struct visit *v = visit_new(a, rq, NULL);
    snprintf(v->from.address, sizeof v->from.address, "%s", v->peer);
    if (found == FOUND_OTHER_METHODS)
        reply_not_allowed(v, allow);
    else
        reply_error(v, RC_NOT_FOUND, "there is no such address; /openapi.json lists all of them");
    return false;
}

/* False: answered already. */
static bool welcome(struct api *a, struct http_request *rq)
{
    struct err why;
    bool passed;
    if (limits_address(a->limits, pass_address(a, rq, http_mem(rq), &passed), &why))
        return true;
    struct visit *v = visit_new(a, rq, NULL);
    snprintf(v->from.address, sizeof v->from.address, "%s", v->peer);
    v->refused = true;
    reply_problem(v, &why);
    return false;
}

static void on_head(void *arg, struct http_request *rq)
{
    struct api *a = arg;
    struct match m;
    if (text_is(http_path(rq), verbs[VERB_JOB_BATCH].path))
        http_limit_body(rq, BATCH_BYTES);
    if (!text_is(http_method(rq), "PUT") || !text_starts(http_path(rq), "/v1/blobs/")
        || !welcome(a, rq) || !route(a, rq, &m))
        return;
    if (m.verb != VERB_BLOB_PUT)
        return;
    struct visit *v = visit_new(a, rq, &m);
    if (pass_wanted(v)) {
        pass_begin_stream(v, (size_t)BLOB_MOST_GIB << 30);
        return;
    }
    request_read(v, &m);
    blob_put_head(v);
}

static void serve(struct visit *v, const struct match *m)
{
    request_read(v, m);
    if (v->bad.rc != RC_OK)
        request_refuse(v);
    else if (servers[m->verb])
        servers[m->verb](v);
    else
        plain_begin(v);
}

static void read_and_serve(struct visit *v)
{
    struct match m;
    char allow[64];
    (void)router_find(v->api->router, http_method(v->rq), http_path(v->rq), &m, allow);
    serve(v, &m);
}

void visit_serve(struct visit *v)
{
    if (!request_defer(v, read_and_serve))
        read_and_serve(v);
}

static void on_request(void *arg, struct http_request *rq)
{
    struct api *a = arg;
    struct match m;
    struct visit *begun = http_data(rq);
    if (begun) {
        if (begun->passing)
            pass_whole(begun);
        else
            blob_put_whole(begun);
        return;
    }
    if (system_serve(a, rq) || !welcome(a, rq) || !route(a, rq, &m))
        return;
    struct visit *v = visit_new(a, rq, &m);
    if (pass_wanted(v))
        pass_begin(v);
    else if (!request_defer(v, read_and_serve))
        serve(v, &m);
}

static void on_gone(void *arg, struct http_request *rq)
{
    (void)arg;
    if (http_data(rq))
        visit_gone(http_data(rq));
}

static void on_drain(void *arg, struct http_request *rq)
{
    struct visit *v = http_data(rq);
    (void)arg;
    if (v && v->drained)
        v->drained(v);
}

static void on_bad(void *arg, const char *peer, const struct err *why, struct str *content_type, struct str *body)
{
    struct api *a = arg;
    char id[REQUEST_ID];
    if (http_bad_status(why) == 503)
        limits_refused(a->limits, REFUSED_ROOM, peer);
    request_id(a, id);
    log_line(LOG_DEBUG, "api", "%s refused: %s", id, why->text);
    str_text(content_type, "application/problem+json");
    problem_print(body, http_bad_status(why), why, id);
}

/* --- commits */

/* Events that may take a right away from somebody who is in the middle of something. */
static bool takes_rights(const char *kind)
{
    static const char *const kinds[]
        = { "key.disabled", "user.disabled",  "user.updated", "account.disabled",
            "member.set",   "member.removed", "node.removed" };
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (text_is(kind, kinds[i]))
            return true;
    return false;
}

static void on_commit(void *arg, const struct commit *k)
{
    struct api *a = arg;
    bool check = false;
    links_commit(a, k);
    events_commit(a, k);
    logs_commit(a, k);
    blobs_commit(a, k);
    for (size_t i = 0; i < k->event_count && !check; i++)
        check = takes_rights(k->events[i].kind);
    if (check)
        visits_recheck(a);
}

/* --- opening and closing */

static void api_free(struct api *a)
{
    void (*closed)(void *arg) = a->on_closed;
    void *arg = a->arg;
    blobs_close(a->blobs);
    backups_close(a->backups);
    pass_free_all(a);
    router_free(a->router);
    map_free(a->links);
    map_free(a->awaited);
    map_free(a->crowds);
    turns_free(a->turns);
    limits_free(a->limits);
    str_done(&a->openapi);
    while (a->spares)
        arena_free(a->spare[--a->spares]);
    arena_free(a->scratch);
    arena_free(a->settled_mem);
    free(a);
    if (closed)
        closed(arg);
}

void api_hold(struct api *a) { a->users++; }

size_t api_room(const struct api *a) { return os_waiting(a->os) < PLENTY ? ROOM_MOST : ROOM_LEAST; }

void api_release(struct api *a)
{
    a->users--;
    if (a->http_gone && a->users == 0)
        api_free(a);
}

static void on_closed(void *arg)
{
    struct api *a = arg;
    a->http = NULL;
    a->http_gone = true;
    if (a->users == 0)
        api_free(a);
}

static const struct http_handler handler = {
    .on_head = on_head,
    .on_request = on_request,
    .on_gone = on_gone,
    .on_drain = on_drain,
    .on_bad = on_bad,
    .on_closed = on_closed,
};

static bool may_be_plain(struct os *os, const char *address)
{
    static const char *const near[] = { "127.", "[::1]:", "localhost:", "unix:" };
    for (size_t i = 0; i < COUNT(near); i++)
        if (text_starts(address, near[i]))
            return true;
    return os_is_simulated(os);
}

bool api_open(struct os *os, struct control *control, const struct api_config *config,
              struct api **out, struct err *err)
{
    if (!config->tls && !may_be_plain(os, config->address))
        return err_set(err, RC_BAD_INPUT,
                       "%s is not loopback: it is served with a certificate or not at all",
                       config->address);
    struct api *a = calloc(1, sizeof *a);
    if (!a)
        abort();
    a->os = os;
    a->control = control;
    a->router = router_new();
    a->links = map_new();
    a->awaited = map_new();
    a->crowds = map_new();
    a->turns = turns_new(os);
    a->limits = limits_new(os, config->rates);
    a->scratch = arena_new_for(DOCUMENT_USUAL);
    a->settled_mem = arena_new();
    a->simulated = config->simulated;
    snprintf(a->version, sizeof a->version, "%s", config->version);
    os_random(os, &a->ids.s, sizeof a->ids.s);
    openapi_print(&a->openapi, a->version, a->simulated);
    if (!blobs_open(a, config->data, config->store, &a->blobs, err)
        || !backups_open(a, config->data, config->store, &a->backups, err)
        || !http_listen(os, config->address, config->tls, config->limits, &handler, a, &a->http,
                        err)) {
        api_free(a);
        return false;
    }
    a->on_closed = config->on_closed;
    a->arg = config->arg;
    control_follow(control, on_commit, a);
    pass_open(a, config->peer_ca);
    visits_watch(a, RECHECK_MS);
    *out = a;
    return true;
}

void api_wind_down(struct api *a) { http_server_wind_down(a->http); }

void api_close(struct api *a, int64_t grace_ms)
{
    if (!a || a->closing)
        return;
    a->closing = true;
    timer_cancel(TAKE(a->watch));
    control_unfollow(a->control, a);
    pass_close(a);
    token_close(a);
    events_close(a);
    logs_close(a);
    links_close(a);
    http_server_close(a->http, grace_ms);
}

const char *api_address(const struct api *a) { return http_address(a->http); }
