/* people.c - what tenants do besides running jobs: a second project with a quota, secrets that change, keys that are made, used and
 * disabled, logs that are read. A key that was acknowledged works, and one whose end was acknowledged never does again. */
#include "cloud.h"
#include "net/http.h"
#include <stdio.h>

enum { VOLUMES = 2 };

static struct wish *change(struct cloud *c, int tenant, const char *method, const char *path)
{
    struct wish *w = wish_new(c, WISH_CHANGE, tenant);
    if (!w)
        return NULL;
    w->method = method;
    snprintf(w->path, sizeof w->path, "%s", path);
    return w;
}

static void now(struct cloud *c, int tenant, const char *method, const char *path, const char *body,
                char *keep)
{
    struct wish *w = change(c, tenant, method, path);
    w->keep = keep;
    str_text(&w->body, body);
    wish_send(w);
    if (!cloud_wait(c, 5000, wishes_done) || w->status / 100 != 2)
        cloud_fail(c, "%s %s was answered with %d: %s", method, path, w->status, w->why);
}

void people_furnish(struct cloud *c)
{
    char path[64];
    for (int i = 0; i < VOLUMES; i++) {
        snprintf(path, sizeof path, "{\"name\":\"vol%d\"}", i);
        now(c, 0, "POST", "/v1/volumes", path, NULL);
    }
    now(c, 0, "PUT", "/v1/secrets/TOKEN", "{\"value\":\"squeamish-default-0\"}", NULL);
    now(c, 0, "POST", "/v1/projects",
        "{\"name\":\"beta\",\"gpus\":1,\"cpus\":12,\"memory_mib\":32768,\"jobs\":24}", NULL);
    now(c, 0, "POST", "/v1/accounts?project=beta", "{\"name\":\"bot\",\"roles\":\"admin\"}", NULL);
    now(c, 0, "POST", "/v1/keys?project=beta", "{\"name\":\"bot\",\"account\":\"bot\"}",
        c->tenants[1].key);
    client_open(c, 1);
    now(c, 1, "PUT", "/v1/secrets/TOKEN", "{\"value\":\"squeamish-beta-0\"}", NULL);
}

void secret_change(struct cloud *c, int tenant)
{
    struct wish *w = change(c, tenant, "PUT", "/v1/secrets/TOKEN");
    if (!w)
        return;
    str_printf(&w->body, "{\"value\":\"squeamish-%s-%zu\"}", c->tenants[tenant].name,
               c->wish_count);
    wish_send(w);
}

void wish_secret(struct cloud *c)
{
    act(c, "secret %lld", (long long)chance(c, 0, TENANTS - 1));
}

/* It only grows, one step after the other, so that nothing that was given can come to be too much. */
void quota_grow(struct cloud *c)
{
    if (c->quota_wish && !c->quota_wish->done)
        return;
    struct wish *w = change(c, 0, "PATCH", "/v1/projects/beta");
    if (!w)
        return;
    c->quota_wish = w;
    c->quota_gpus++;
    str_printf(&w->body, "{\"gpus\":%d}", c->quota_gpus);
    wish_send(w);
}

void wish_quota(struct cloud *c)
{
    act(c, "quota");
}

void wish_logs(struct cloud *c)
{
    struct wish *target = some_job(c);
    if (target)
        act(c, "logs %s %lld", target->name, (long long)chance(c, 0, 1));
}

/* --- keys */

void spare_answer(struct wish *w, int status, const char *id, const char *key)
{
    struct spare *s = w->spare;
    struct cloud *c = w->cloud;
    if (w->kind == WISH_KEY_TRY && status == 401 && !s->asked_off)
        cloud_fail(c, "key %s was acknowledged and does not work", s->id);
    if (w->kind == WISH_KEY_TRY && status == 200 && w->off_before)
        cloud_fail(c, "key %s works although it is known to be disabled", s->id);
    if (w->kind == WISH_KEY_OFF && status / 100 == 2)
        s->off = true;
    if (w->kind != WISH_KEY || s->made || s->lost)
        return;
    s->lost = status == 409;    /* the answer that had the secret got lost */
    if (status / 100 != 2 || !id || !key)
        return;
    snprintf(s->id, sizeof s->id, "%s", id);
    snprintf(s->secret, sizeof s->secret, "%s", key);
    clients_of(c, key, s->http);
    s->made = true;
}

void spare_make(struct cloud *c)
{
    struct wish *w = c->spare_count < SPARES_MOST ? wish_new(c, WISH_KEY, 1) : NULL;
    if (!w)
        return;
    w->spare = &c->spares[c->spare_count++];
    snprintf(w->path, sizeof w->path, "/v1/keys");
    str_printf(&w->body, "{\"name\":\"spare%zu\"}", c->spare_count);
    wish_send(w);
}

void spare_use(struct cloud *c, int64_t which, bool off)
{
    struct spare *s = which >= 0 && which < (int64_t)c->spare_count ? &c->spares[which] : NULL;
    struct wish *w = s && s->made ? wish_new(c, off ? WISH_KEY_OFF : WISH_KEY_TRY, 1) : NULL;
    if (!w)
        return;
    w->spare = s;
    w->method = off ? "DELETE" : "GET";
    s->asked_off |= off;
    if (off)
        snprintf(w->path, sizeof w->path, "/v1/keys/%s", s->id);
    else
        snprintf(w->path, sizeof w->path, "/v1/whoami");
    wish_send(w);
}

void wish_key(struct cloud *c)
{
    int64_t which = c->spare_count ? chance(c, 0, (int64_t)c->spare_count - 1) : -1,
            what = chance(c, 0, 4);
    if (which < 0 || !c->spares[which].made || what == 0)
        act(c, "key");
    else
        act(c, what == 1 ? "key-off %lld" : "key-try %lld", (long long)which);
}
