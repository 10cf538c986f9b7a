/* client.c - people and programs: they submit, cancel and read over HTTP, lose replies, try again with the same
 * Idempotency-Key, and remember what they were told. */
#include "cloud.h"
#include "model/job.h"
#include "model/prefix.h"
#include "net/http.h"
#include "wire/json.h"
#include <stdio.h>
#include <stdlib.h>

enum { PATIENCE_MS = 4000, VOLUMES = 2 };

static void settle(struct wish *w, int status, struct slice body)
{
    struct err err = { 0 };
    struct json *doc = NULL;
    struct cloud *c = w->cloud;
    AUTO(arena_free) struct arena *mem = arena_new();
    if (body.len && w->kind != WISH_LOGS && !json_parse(body, mem, &doc, &err))
        cloud_fail(c, "%s %s: an answer that is no JSON: %s", w->name, w->path, err.text);
    const char *id = doc ? json_text(doc, "id") : NULL,
               *detail = doc ? json_text(doc, "detail") : NULL,
               *key = doc ? json_text(doc, "key") : NULL;
    if (w->keep && key)
        snprintf(w->keep, sizeof w->spare->secret, "%s", key);
    if (w->spare)
        spare_answer(w, status, id, key);
    if (w->kind == WISH_SUBMIT && status / 100 == 2) {
        if (!id)
            cloud_fail(c, "%s: an answer without an id", w->name);
        else if (w->job[0] && !text_is(w->job, id))
            cloud_fail(c, "%s became two jobs: %s and %s", w->name, w->job, id);
        else
            snprintf(w->job, sizeof w->job, "%s", id);
        watch_acknowledged(c, w);
    }
    if (w->done && w->kind == WISH_SUBMIT && status / 100 != w->status / 100)
        cloud_fail(c, "%s was answered with %d and then with %d: %s", w->name, w->status, status,
                   detail ? detail : "");
    if (w->target && w->kind != WISH_LOGS && status == 404)
        cloud_fail(c, "%s was acknowledged and is not there", w->target->job);
    if (!w->done)
        w->status = status;
    cloud_say(c, "%s %s is answered with %d %s %s", w->name, w->path, status, id ? id : "",
              detail ? detail : "");
    snprintf(w->why, sizeof w->why, "%s", detail ? detail : "");
    w->done = true;
    if (w->kind == WISH_CANCEL && status / 100 == 2)
        *(w->partly ? &w->target->partly : &w->target->cancelled) = true;
}

static void on_end(void *arg, int status, struct slice body, const struct err *why)
{
    struct wish *w = arg;
    w->calls--;
    bool later = why || status >= 500 || status == 429 || status == 408;
    if (w->kind == WISH_LOGS) {     /* whoever reads logs looks again some other day */
        w->done = true;
        return;
    }
    if (status >= 500 && status != 503)
        cloud_fail(w->cloud, "%s %s was answered with %d: %.*s", w->name, w->path, status,
                   (int)MIN(body.len, 200), body.at);
    if (!later)
        settle(w, status, body);
    else if (!w->done && !w->again_ms)
        w->again_ms = sim_now_ms(w->cloud->sim) + chance(w->cloud, 100, 2000);
}

static void call(struct wish *w)
{
    static const struct http_call_events events = { .on_end = on_end };
    struct http_header headers[]
        = { { "Content-Type", "application/json" }, { "Idempotency-Key", w->idem } };
    bool reads = text_is(w->method, "GET");
    struct cloud *c = w->cloud;
    w->calls++;
    w->off_before = w->spare && w->spare->off;
    struct http_call *h = http_call(
        (w->kind == WISH_KEY_TRY ? w->spare->http : c->tenants[w->tenant].http)[some_head(c)], reads ? "GET" : w->method, w->path, headers, reads ? 0 : COUNT(headers),
        (struct slice){ w->body.at, w->body.len }, (int64_t)w->body.len, &events, w);
    http_call_timeout(h, PATIENCE_MS);
}

void wish_send(struct wish *w)
{
    w->again_ms = 0;
    call(w);
    if (w->twice)
        call(w);
}

void client_tick(struct cloud *c)
{
    for (size_t i = 0; i < c->wish_count; i++) {
        struct wish *w = &c->wishes[i];
        if (c->tenants[w->tenant].http[0] && !w->done && !w->calls && (!w->again_ms || sim_now_ms(c->sim) >= w->again_ms))
            wish_send(w);
    }
    for (int i = 0; i < TENANTS; i++)
        if (c->tenants[i].http[0])
            client_follow(&c->followers[i]);
}

bool wishes_done(struct cloud *c)
{
    for (size_t i = 0; i < c->wish_count; i++)
        if (!c->wishes[i].done || c->wishes[i].calls)
            return false;
    return true;
}

struct wish *wish_new(struct cloud *c, enum wish_kind kind, int tenant)
{
    if (c->wish_count == WISHES_MOST)
        return NULL;
    struct wish *w = &c->wishes[c->wish_count++];
    *w = (struct wish){ .cloud = c, .kind = kind, .tenant = tenant, .method = "POST" };
    snprintf(w->name, sizeof w->name, "w%zu", c->wish_count);
    snprintf(w->idem, sizeof w->idem, "%s-%zu", c->furnished ? "key" : "set", c->wish_count);
    return w;
}

struct wish *some_job(struct cloud *c)
{
    struct wish *found = NULL;
    uint64_t seen = 0;
    for (size_t i = 0; i < c->wish_count; i++)
        if (c->wishes[i].kind == WISH_SUBMIT && c->wishes[i].job[0]
            && rng_below(&c->rng, ++seen) == 0)
            found = &c->wishes[i];
    return found;
}

/* Its first user settles which node a volume is on, so it must fit on each. */
static void ask_for_volume(struct wish *w)
{
    str_printf(&w->body, ",\"volumes\":[\"vol%lld:/data\"]",
               (long long)chance(w->cloud, 0, VOLUMES - 1));
}

static void ask_for_gpus(struct wish *w)
{
    static const char *const asks[] = { "1", "0.5", "0.25", "2", "0.3", "1" };
    struct cloud *c = w->cloud;
    if (chance(c, 0, 2) == 0)
        return;
    const char *ask = asks[rng_below(&c->rng, w->tenant ? 3 : COUNT(asks))];     /* what its quota can ever give */
    w->impossible = !w->tenant && chance(c, 0, 30) == 0;
    str_printf(&w->body, ",\"gpus\":\"%s\"", w->impossible ? "5" : ask);
}

static void come_after(struct wish *w)
{
    static const char *const words[]
        = { [AFTER_OK] = "ok", [AFTER_ANY] = "any", [AFTER_FAIL] = "fail" };
    struct cloud *c = w->cloud;
    if (chance(c, 0, 4) || !(w->after = some_job(c)))
        return;
    if (w->after->tenant != w->tenant) {
        w->after = NULL;
        return;
    }
    w->when = (int)rng_below(&c->rng, COUNT(words));
    str_printf(&w->body, ",\"dependency\":[\"%s:%s\"]", words[w->when], w->after->job);
}

struct wish *wish_work(struct cloud *c, int64_t run_ms, int64_t exit_code, int64_t retries,
                       const char *more)
{
    struct wish *w = wish_new(c, WISH_SUBMIT, 0);
    snprintf(w->path, sizeof w->path, "/v1/jobs");
    w->run_ms = run_ms;
    w->exit_code = exit_code;
    w->retries = retries;
    w->count = 1;
    str_printf(&w->body,
               "{\"name\":\"%s\",\"command\":[\"work\",\"%lld\",\"%lld\",\"obeys\"],\"retries\":%"
               "lld,\"retry_delay\":\"1s\"%s}",
               w->name, (long long)run_ms, (long long)exit_code, (long long)retries, more);
    wish_send(w);
    return w;
}

struct wish *wish_submit(struct cloud *c)
{
    struct wish *w = wish_new(c, WISH_SUBMIT, chance(c, 0, 3) == 0);
    if (!w)
        return NULL;
    snprintf(w->path, sizeof w->path, "/v1/jobs");
    w->run_ms = chance(c, 0, 2) ? chance(c, 1, 3000) : chance(c, 3000, 60000);
    w->exit_code = chance(c, 0, 3) ? 0 : chance(c, 1, 255);
    w->count = chance(c, 0, 3) ? 1 : chance(c, 2, chance(c, 0, 3) ? 6 : 20);
    if (w->count > 6)           /* many, but over in time */
        w->run_ms = chance(c, 1, 3000);
    w->retries = chance(c, 0, 2) ? 0 : chance(c, 1, 2);
    w->max_duration_s = chance(c, 0, 4) ? 0 : chance(c, 1, 20);
    w->waits = chance(c, 0, 5) == 0;
    w->twice = chance(c, 0, 4) == 0;
    str_printf(&w->body,
               "{\"name\":\"%s\",\"command\":[\"work\",\"%lld\",\"%lld\",\"%s\"],\"count\":%lld,"
               "\"cpus\":%lld,\"memory\":\"%lldGB\",\"priority\":%lld",
               w->name, (long long)w->run_ms, (long long)w->exit_code,
               chance(c, 0, 3) ? "obeys" : "stubborn", (long long)w->count,
               (long long)chance(c, 1, 4), (long long)chance(c, 1, 12),
               (long long)chance(c, 0, 100));
    str_printf(&w->body, ",\"retries\":%lld,\"retry_delay\":\"%llds\",\"grace\":\"%llds\"",
               (long long)w->retries, (long long)chance(c, 0, 5), (long long)chance(c, 0, 8));
    if (w->max_duration_s)
        str_printf(&w->body, ",\"max_duration\":\"%llds\"", (long long)w->max_duration_s);
    if (w->waits)
        str_text(&w->body, ",\"on_lost\":\"wait\"");
    (chance(c, 0, 5) || w->tenant ? ask_for_gpus : ask_for_volume)(w);
    if ((w->has_secret = chance(c, 0, 2) == 0))
        str_text(&w->body, ",\"secrets\":[\"TOKEN\"]");
    come_after(w);
    str_char(&w->body, '}');
    wish_send(w);
    return w;
}

void wish_cancel(struct cloud *c)
{
    struct wish *target = some_job(c), *w = target ? wish_new(c, WISH_CANCEL, target->tenant) : NULL;
    if (!w)
        return;
    w->target = target;
    snprintf(w->path, sizeof w->path, "/v1/jobs/%s/cancel", target->job);
    w->partly = target->count > 1 && chance(c, 0, 1);
    if (w->partly)
        str_printf(&w->body, "{\"task\":%lld}", (long long)chance(c, 0, target->count - 1));
    else
        str_text(&w->body, chance(c, 0, 1) ? "{}" : "{\"grace\":\"1s\"}");
    wish_send(w);
}

static void node_state(struct cloud *c, int node, const char *state)
{
    struct wish *w = wish_new(c, WISH_CHANGE, 0);
    if (!w)
        return;
    w->method = "PATCH";
    snprintf(w->path, sizeof w->path, "/v1/nodes/%s", c->nodes[node].host);
    str_printf(&w->body, "{\"state\":\"%s\"}", state);
    wish_send(w);
}

void wish_uncordon(struct cloud *c, int node)
{
    node_state(c, node, "ready");
}

void wish_change(struct cloud *c)
{
    struct wish *target = some_job(c), *w;
    if (chance(c, 0, 2) == 0) {
        node_state(c, (int)chance(c, 0, c->node_count - 1), chance(c, 0, 2) ? "ready" : "cordoned");
    } else if (target && (w = wish_new(c, WISH_CHANGE, target->tenant))) {
        w->method = "PATCH";
        w->target = target;
        snprintf(w->path, sizeof w->path, "/v1/jobs/%s", target->job);
        str_printf(&w->body, "{\"priority\":%lld}", (long long)chance(c, 0, 100));
        wish_send(w);
    }
}

void wish_read(struct cloud *c)
{
    struct wish *target = some_job(c), *w = target ? wish_new(c, WISH_READ, target->tenant) : NULL;
    if (!w)
        return;
    w->target = target;
    w->method = "GET";
    snprintf(w->path, sizeof w->path, "/v1/jobs/%s", target->job);
    wish_send(w);
}

void client_open(struct cloud *c, int tenant)
{
    struct tenant *t = &c->tenants[tenant];
    c->followers[tenant] = (struct listener_of){ .c = c, .tenant = tenant, .all = tenant == 0 };
    clients_of(c, t->key, t->http);
}

void clients_of(struct cloud *c, const char *key, struct http_client *out[static HEADS_MOST])
{
    struct err err = { 0 };
    char url[32];
    for (int h = 0; h < c->head_count; h++) {
        snprintf(url, sizeof url, "http://%s:6640", c->heads[h].host);
        if (!http_client_new(c->client.os, url, NULL, NULL, key, &out[h], &err))
            cloud_fail(c, "%s", err.text);
    }
}
