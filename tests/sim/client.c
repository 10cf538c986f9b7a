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
        w->again_ms = sim_now_ms(w->cloud->sim) + luck(w->cloud, 100, 2000);
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
        (w->kind == WISH_KEY_TRY ? w->spare->http : c->tenants[w->tenant].http)[luck(c, 0, c->head_count - 1)], reads ? "GET" : w->method, w->path, headers, reads ? 0 : COUNT(headers),
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
static void ask_for_volume(struct cloud *c, struct str *body)
{
    str_printf(body, ",\"volumes\":[\"vol%lld:/data\"]", (long long)chance(c, 0, VOLUMES - 1));
}

static bool ask_for_gpus(struct cloud *c, int tenant, struct str *body) /* true: more than any node has */
{
    static const char *const asks[] = { "1", "0.5", "0.25", "2", "0.3", "1" };
    if (chance(c, 0, 2) == 0)
        return false;
    const char *ask = asks[rng_below(&c->rng, tenant ? 3 : COUNT(asks))];     /* what its quota can ever give */
    bool impossible = !tenant && chance(c, 0, 30) == 0;
    str_printf(body, ",\"gpus\":\"%s\"", impossible ? "5" : ask);
    return impossible;
}

static const char *const after_words[]
    = { [AFTER_OK] = "ok", [AFTER_ANY] = "any", [AFTER_FAIL] = "fail" };

void wish_after(struct wish *w)
{
    if (w->after && w->after->tenant == w->tenant && w->when >= 0 && w->when < (int)COUNT(after_words))
        str_printf(&w->body, ",\"dependency\":[\"%s:%s\"]", after_words[w->when], w->after->job);
    else
        w->after = NULL;
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

void wish_submit(struct cloud *c)
{
    AUTO(str_done) struct str body = { 0 };
    int tenant = chance(c, 0, 3) == 0;
    int64_t run_ms = chance(c, 0, 2) ? chance(c, 1, 3000) : chance(c, 3000, 60000),
            exit_code = chance(c, 0, 3) ? 0 : chance(c, 1, 255),
            count = chance(c, 0, 3) ? 1 : chance(c, 2, chance(c, 0, 3) ? 6 : 20);
    if (count > 6)              /* many, but over in time */
        run_ms = chance(c, 1, 3000);
    int64_t retries = chance(c, 0, 2) ? 0 : chance(c, 1, 2),
            max_duration_s = chance(c, 0, 4) ? 0 : chance(c, 1, 20);
    bool waits = chance(c, 0, 5) == 0, twice = chance(c, 0, 4) == 0;
    str_printf(&body, "\"command\":[\"work\",\"%lld\",\"%lld\",\"%s\"],\"count\":%lld,\"cpus\":%lld,\"memory\":\"%lldGB\",\"priority\":%lld",
               (long long)run_ms, (long long)exit_code, chance(c, 0, 3) ? "obeys" : "stubborn", (long long)count,
               (long long)chance(c, 1, 4), (long long)chance(c, 1, 12), (long long)chance(c, 0, 100));
    str_printf(&body, ",\"retries\":%lld,\"retry_delay\":\"%llds\",\"grace\":\"%llds\"", (long long)retries,
               (long long)chance(c, 0, 5), (long long)chance(c, 0, 8));
    if (max_duration_s)
        str_printf(&body, ",\"max_duration\":\"%llds\"", (long long)max_duration_s);
    if (waits)
        str_text(&body, ",\"on_lost\":\"wait\"");
    bool impossible = false;
    if (chance(c, 0, 5) || tenant)
        impossible = ask_for_gpus(c, tenant, &body);
    else
        ask_for_volume(c, &body);
    bool secret = chance(c, 0, 2) == 0;
    if (secret)
        str_text(&body, ",\"secrets\":[\"TOKEN\"]");
    struct wish *after = chance(c, 0, 4) ? NULL : some_job(c);
    act(c, "submit w%zu %d %d %lld %lld %lld %lld %lld %d %d %d %s %d %s", c->wish_count + 1, tenant, twice,
        (long long)run_ms, (long long)exit_code, (long long)count, (long long)retries, (long long)max_duration_s,
        waits, impossible, secret, after ? after->name : "-", (int)rng_below(&c->rng, COUNT(after_words)), body.at);
}

void wish_cancel(struct cloud *c)
{
    struct wish *target = some_job(c);
    bool partly = target && target->count > 1 && chance(c, 0, 1);
    if (target)
        act(c, "cancel %s %lld %lld", target->name, partly ? (long long)chance(c, 0, target->count - 1) : -1,
            (long long)chance(c, 0, 1));
}

/* Mostly one that has a GPU to give back, or has given it back. */
void wish_hold(struct cloud *c)
{
    bool on = chance(c, 0, 2);
    struct wish *target = chance(c, 0, 5) ? watch_some(c, !on) : some_job(c);
    if (target)
        act(c, "%s %s %lld", on ? "suspend" : "resume", target->name, chance(c, 0, 1) ? -1LL : (long long)chance(c, 0, target->count - 1));
}

void wish_uncordon(struct cloud *c, int node)
{
    act(c, "node %s ready", c->nodes[node].host);
}

void wish_change(struct cloud *c)
{
    struct wish *target = some_job(c);
    if (chance(c, 0, 2) == 0)
        act(c, "node %s %s", c->nodes[chance(c, 0, c->node_count - 1)].host, chance(c, 0, 2) ? "ready" : "cordoned");
    else if (target)
        act(c, "priority %s %lld", target->name, (long long)chance(c, 0, 100));
}

void wish_drain(struct cloud *c)
{
    static const char *const how[] = { "{\"requeue\":true}", "{\"wait\":true}", "{\"deadline\":\"5s\"}", "{\"deadline\":\"40s\"}" };
    act(c, "drain %s %s", c->nodes[chance(c, 0, c->node_count - 1)].host, how[rng_below(&c->rng, COUNT(how))]);
}

/* Short ones, some of which begin later: when they are over whoever waits for their place must come to run. */
enum { RESERVATIONS = 4 };

void wish_reserve(struct cloud *c)
{
    int64_t which = chance(c, 0, RESERVATIONS - 1);
    if (chance(c, 0, 3) == 0)
        act(c, "unreserve r%lld", (long long)which);
    else
        act(c, "reserve %s r%lld %s %lld %lld", chance(c, 0, 1) ? "beta" : "default", (long long)which, chance(c, 0, 1) ? "1" : "0.5",
            (long long)chance(c, 0, 20), (long long)chance(c, 60, 90));
}

/* They last until a time of the day: a clock that was set back an hour makes them an hour longer. */
void wish_unreserve_all(struct cloud *c)
{
    for (int i = 0; i < RESERVATIONS; i++)
        act(c, "unreserve r%d", i);
}

void wish_read(struct cloud *c)
{
    struct wish *target = some_job(c);
    if (target)
        act(c, "read %s", target->name);
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
