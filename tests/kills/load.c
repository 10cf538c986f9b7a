/* load.c - clients that submit, cancel, read, exec and change keys, and write down what they were told; nodes that come and go.
 *
 * A decision never depends on an answer, only on the seed and on how many answers there were: so a seed asks the same things again. */
#include "kills.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    PATIENCE_MS = 60000,
    PACE_MIN_MS = 40,
    PACE_MORE_MS = 160,
    GUEST_STAYS_MS = 6000,
    GUEST_ENDS_MS = 8000,
    EXEC_WAIT_MS = 3000
};

/* Stamps with ticks: when a container that was killed has ended is known to a twentieth of a second. The pipe only makes `read` wait. */
static const char script[]
    = "exec 3<> <(:); s=/outputs/stamps; echo \\\"start $ARCUS_ATTEMPT_ID $ARCUS_TASK_ID "
      "${EPOCHREALTIME/./}\\\" >>$s; echo hello $ARCUS_JOB_NAME;"
      " n=$1; while [ $n -gt 0 ]; do read -t 0.05 -u 3; echo tick ${EPOCHREALTIME/./} >>$s; "
      "n=$((n-1)); done;"
      " echo end ${EPOCHREALTIME/./} >>$s; exit $2";

static struct job_rec *job_new(struct client *l, bool keyed)
{
    struct cloud *c = l->c;
    pthread_mutex_lock(&c->lock);
    struct job_rec *j = c->job_count < JOBS_MOST ? &c->jobs[c->job_count++] : NULL;
    pthread_mutex_unlock(&c->lock);
    if (!j)
        return NULL;
    j->client = l->number;
    j->keyed = keyed;
    snprintf(j->name, sizeof j->name, "k%d-%d", l->number, ++l->made);
    return j;
}

/* One that this client was told of; NULL: none yet. */
static struct job_rec *job_of(struct client *l, uint64_t which, bool young)
{
    struct cloud *c = l->c;
    size_t n = 0;
    struct job_rec *mine[64];
    pthread_mutex_lock(&c->lock);
    for (size_t i = c->job_count; i-- && n < (young ? 8 : COUNT(mine));)
        if (c->jobs[i].client == l->number && c->jobs[i].acked)
            mine[n++] = &c->jobs[i];
    pthread_mutex_unlock(&c->lock);
    return n ? mine[which % n] : NULL;
}

static const char *id_in(const struct reply *r, const char *name, struct arena *mem)
{
    struct json *doc = NULL;
    struct err err = { 0 };
    return r->body.len && json_parse((struct slice){ r->body.at, r->body.len }, mem, &doc, &err)
               ? json_text(doc, name)
               : NULL;
}

static void told(struct client *l, struct job_rec *j, const struct reply *r)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    const char *id = r->status / 100 == 2 ? id_in(r, "id", mem) : NULL;
    if (r->status / 100 == 4)
        problem(l->c, "load", "submit of %s was refused: %d %.300s", j->name, r->status,
                r->body.at);
    if (!id)
        return;
    if (j->acked && !text_is(j->id, id))
        problem(l->c, "acknowledged", "the Idempotency-Key of %s made %s and then %s", j->name,
                j->id, id);
    pthread_mutex_lock(&l->c->lock);
    text_copy(j->id, sizeof j->id, id);
    j->acked = true;
    pthread_mutex_unlock(&l->c->lock);
}

static char *submit_body(struct arena *mem, const struct job_rec *j, uint64_t draw)
{
    int ticks = (int)(draw % 8 == 0 ? 60 + draw / 8 % 60 : 1 + draw / 8 % 16),
        gpus = (int)(draw / 1024 % 3);
    return arena_printf(
        mem,
        "{\"name\":\"%s\",\"command\":[\"bash\",\"-c\",\"%s\",\"x\",\"%d\",\"%d\"],\"cpus\":%s,"
        "\"memory\":\"64MB\","
        "\"gpus\":\"%d\",\"count\":%d,\"grace\":\"1s\",\"labels\":{\"seed\":\"d%llu\"}}",
        j->name, script, ticks, j->kind == KIND_BAD ? 3 : 0, j->visited ? "0.5" : "0.1", gpus,
        j->count, (unsigned long long)draw);
}

static void submit(struct client *l, struct job_rec *j, uint64_t draw, bool again)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct reply r = { 0 };
    struct ask a = { .method = "POST",
                     .path = "/v1/jobs",
                     .idem = j->keyed ? j->name : NULL,
                     .body = submit_body(mem, j, draw),
                     .patience_ms = j->keyed ? PATIENCE_MS : 0 };
    for (int i = 0; i < 1 + again; i++) {
        ask(l->c, &a, &r);
        told(l, j, &r);
    }
    str_done(&r.body);
}

static void op_submit(struct client *l, uint64_t draw)
{
    struct job_rec *j = job_new(l, true);
    if (!j)
        return;
    j->count = 1;
    j->kind = draw % 7 == 0 ? KIND_BAD : KIND_GOOD;
    submit(l, j, draw / 7, draw % 5 == 0);
}

static void op_keyless(struct client *l, uint64_t draw)
{
    struct job_rec *j = job_new(l, false);
    if (!j)
        return;
    j->count = 1;
    submit(l, j, draw, false);
}

static void op_array(struct client *l, uint64_t draw)
{
    struct job_rec *j = job_new(l, true);
    if (!j)
        return;
    j->count = 2 + (int)(draw % 5);
    submit(l, j, draw / 5, false);
}

static void op_cancel(struct client *l, uint64_t draw)
{
    char path[96];
    struct reply r = { 0 };
    struct job_rec *j = job_of(l, draw, true);
    if (!j)
        return;
    j->cancel_asked = true;
    snprintf(path, sizeof path, "/v1/jobs/%s/cancel", j->id);
    ask(l->c,
        &(struct ask){ .method = "POST",
                       .path = path,
                       .body = draw % 2 ? "{}" : "{\"grace\":\"0s\"}",
                       .patience_ms = PATIENCE_MS },
        &r);
    if (r.status == 200)
        j->cancelled = true;
    else if (r.status && r.status != 409 && !l->c->all_stops)
        problem(l->c, "load", "cancel of %s was answered with %d %.200s", j->id, r.status,
                r.body.at);
    str_done(&r.body);
}

static void op_logs(struct client *l, uint64_t draw)
{
    char path[96];
    struct reply r = { 0 };
    struct job_rec *j = job_of(l, draw, false);
    if (!j)
        return;
    snprintf(path, sizeof path, "/v1/jobs/%s/logs%s", j->id, draw % 3 == 0 ? "?follow=true" : "");
    ask(l->c, &(struct ask){ .method = "GET", .path = path }, &r);
    str_done(&r.body);
}

/* In a task of its own that runs for some seconds; whether the command comes to its end is up to the kills. */
static void op_exec(struct client *l, uint64_t draw)
{
    struct job_rec *j = job_new(l, true);
    if (!j)
        return;
    j->count = 1;
    j->visited = true;
    submit(l, j, draw / 8 * 8, false);
    for (int64_t until = now_ms() + EXEC_WAIT_MS;
         j->acked && now_ms() < until && !l->c->load_stops;) {
        l->c->execs += exec_in(l->c, j->id, &(struct rng){ draw });
        sleep_ms(PACE_MORE_MS);
    }
}

static void op_read(struct client *l, uint64_t draw)
{
    char path[96];
    struct reply r = { 0 };
    struct job_rec *j = job_of(l, draw, false);
    if (!j)
        return;
    snprintf(path, sizeof path, "/v1/jobs/%s", j->id);
    ask(l->c, &(struct ask){ .method = "GET", .path = path, .patience_ms = PATIENCE_MS }, &r);
    if (r.status == 404)
        problem(l->c, "acknowledged",
                "%s (%s) was acknowledged and is not there while the load runs", j->id, j->name);
    str_done(&r.body);
}

static void op_key(struct client *l, uint64_t draw)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct cloud *c = l->c;
    struct reply r = { 0 };
    char idem[48], *body = arena_printf(mem, "{\"name\":\"key%d-%d\"}", l->number, ++l->made);
    snprintf(idem, sizeof idem, "key-%d-%d", l->number, l->made);
    (void)draw;
    ask(c,
        &(struct ask){ .method = "POST",
                       .path = "/v1/keys",
                       .body = body,
                       .idem = idem,
                       .patience_ms = PATIENCE_MS },
        &r);
    const char *id = r.status == 201 ? id_in(&r, "id", mem) : NULL,
               *secret = id ? id_in(&r, "key", mem) : NULL;
    pthread_mutex_lock(&c->lock);
    if (secret && c->key_count < KEYS_MOST) { /* a repeated answer does not show it again */
        struct key_rec *k = &c->keys[c->key_count++];
        text_copy(k->id, sizeof k->id, id);
        text_copy(k->secret, sizeof k->secret, secret);
    }
    pthread_mutex_unlock(&c->lock);
    if (r.status / 100 == 4
        && r.status != 409) /* 409: it was made, and a kill swallowed the answer with its secret */
        problem(c, "load", "a new key was refused: %d %.200s", r.status, r.body.at);
    str_done(&r.body);
}

static void op_key_off(struct client *l, uint64_t draw)
{
    struct cloud *c = l->c;
    struct reply r = { 0 };
    char path[64];
    pthread_mutex_lock(&c->lock);
    struct key_rec *k = c->key_count ? &c->keys[draw % c->key_count] : NULL;
    bool mine = k && !k->off_asked;
    if (mine)
        k->off_asked = true;
    pthread_mutex_unlock(&c->lock);
    if (!mine)
        return;
    snprintf(path, sizeof path, "/v1/keys/%s", k->id);
    ask(c, &(struct ask){ .method = "DELETE", .path = path, .patience_ms = PATIENCE_MS }, &r);
    k->off = r.status == 200;
    str_done(&r.body);
}

static const struct {
    unsigned weight;
    void (*run)(struct client *l, uint64_t draw);
} ops[] = {
    { 40, op_submit }, { 8, op_keyless }, { 10, op_array }, { 14, op_cancel }, { 8, op_logs },
    { 3, op_exec },    { 6, op_read },    { 5, op_key },    { 3, op_key_off },
};

void *client_run(void *arg)
{
    struct client *l = arg;
    unsigned all = 0;
    for (size_t i = 0; i < COUNT(ops); i++)
        all += ops[i].weight;
    while (!l->c->load_stops) {
        uint64_t what = rng_below(&l->rng, all), draw = rng_next(&l->rng);
        sleep_ms(PACE_MIN_MS + (int64_t)rng_below(&l->rng, PACE_MORE_MS));
        size_t i = 0;
        for (unsigned sum = ops[0].weight; what >= sum; sum += ops[i].weight)
            i++;
        ops[i].run(l, draw);
    }
    return NULL;
}

/* --- nodes */

static void wait_ms(struct cloud *c, int64_t ms)
{
    for (int64_t until = now_ms() + ms; now_ms() < until && !c->load_stops;)
        sleep_ms(50);
}

static void node_drop(struct cloud *c, const char *name)
{
    char path[64];
    struct reply r = { 0 };
    snprintf(path, sizeof path, "/v1/nodes/%s", name);
    ask(c, &(struct ask){ .method = "DELETE", .path = path, .patience_ms = PATIENCE_MS }, &r);
    if (r.status != 200 && r.status != 404)
        problem(c, "load", "node %s cannot be removed: %d %.200s", name, r.status, r.body.at);
    str_done(&r.body);
}

/* Its tasks end by themselves a lease after it was removed, and only then its machine is switched off. */
void *guests_run(void *arg)
{
    struct client *l = arg;
    struct cloud *c = l->c;
    for (int i = FIRST_GUEST; i < PARTS && !c->load_stops; i++) {
        struct part *p = &c->parts[i];
        char token[128];
        if (!node_token(c, token))
            break;
        pthread_mutex_lock(&c->lock);
        snprintf(p->name, sizeof p->name, "g%d", i - FIRST_GUEST + 1);
        text_copy(p->token, sizeof p->token, token);
        p->wanted = true;
        pthread_mutex_unlock(&c->lock);
        for (int64_t until = now_ms() + PATIENCE_MS;
             now_ms() < until && !p->refused && !node_is(c, p->name, "ready");)
            sleep_ms(100);
        c->joins += !p->refused;
        wait_ms(c, GUEST_STAYS_MS / 2 + (int64_t)rng_below(&l->rng, GUEST_STAYS_MS));
        node_drop(c, p->name);
        sleep_ms(GUEST_ENDS_MS);
        pthread_mutex_lock(&c->lock);
        p->wanted = false;
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}
