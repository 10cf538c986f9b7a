/* books.c - what the load was told against what the cloud says, and what the containers wrote against both. */
#include "base/when.h"
#include "kills.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { SETTLE_MS = 240000, STAMPS_MOST = 40000, EVENTS_MS = 60000 };

struct stamp { /* of one attempt, from its /outputs */
    char attempt[32], task[48], node[32];
    int starts, ends;
    int64_t first_us, last_us;
    bool known;
};

/* --- the end of the work */

static size_t live_jobs(struct cloud *c, struct arena *mem, struct json **first)
{
    struct json *doc = ask_json(c, "/v1/jobs?limit=1000", mem),
                *items = doc ? json_get(doc, "items") : NULL;
    size_t n = 0;
    if (!items)
        return 1;
    *first = items->first;
    for (struct json *i = items->first; i; i = i->next)
        n++;
    return n;
}

static void tell_stuck(struct cloud *c, const char *job)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str text = { 0 };
    struct json *doc = ask_json(c, arena_printf(mem, "/v1/jobs/%s/attempts", job), mem);
    if (doc)
        json_print(&text, json_get(doc, "items"));
    problem(c, "settled", "%s has not ended; attempts %.600s", job, text.at ? text.at : "?");
}

bool settle(struct cloud *c)
{
    for (int64_t until = now_ms() + SETTLE_MS;;) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct json *first = NULL;
        if (live_jobs(c, mem, &first) == 0)
            return true;
        if (now_ms() < until) {
            parts_run(c, 200);
            continue;
        }
        for (struct json *i = first; i; i = i->next)
            tell_stuck(c, json_text(i, "id"));
        return false;
    }
}

/* --- requests */

static bool attempts_check(struct cloud *c, const struct job_rec *j, struct stamp *stamps,
                           size_t count)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc
        = ask_json(c, arena_printf(mem, "/v1/jobs/%s/attempts?limit=1000", j->id), mem),
        *items = doc ? json_get(doc, "items") : NULL;
    if (!items)
        return false;
    for (struct json *a = items->first; a; a = a->next) {
        const char *id = json_text(a, "id"), *outcome = json_text(a, "outcome");
        struct stamp *s = NULL;
        int64_t ended = 0;
        for (size_t i = 0; i < count && !s; i++)
            if (text_is(stamps[i].attempt, id))
                s = &stamps[i];
        if (s)
            s->known = true;
        bool good = text_is(outcome, "succeeded") || text_is(outcome, "exited");
        if (good && (!s || s->starts != 1 || s->ends != 1))
            problem(c, "ran", "%s of %s is told as %s; its /outputs on %s %s", id, j->id, outcome,
                    json_text(a, "node"), s ? "say otherwise" : "are gone");
        if (good && s && when_parse(json_text(a, "ended"), &ended) && ended < s->last_us / 1000)
            problem(c, "usage", "%s ended at %lld and wrote at %lld", id, (long long)ended,
                    (long long)s->last_us / 1000);
    }
    return true;
}

static void job_check(struct cloud *c, const struct job_rec *j, struct stamp *stamps, size_t count)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc = ask_json(c, arena_printf(mem, "/v1/jobs/%s", j->id), mem);
    if (!doc || !text_is(json_text(doc, "name"), j->name)
        || json_int(doc, "count", 0) != j->count) {
        problem(c, "acknowledged", "%s (%s) was acknowledged and is not there as it was asked for",
                j->id, j->name);
        return;
    }
    const char *state = json_text(doc, "state"), *outcome = json_text(doc, "outcome");
    bool as_asked = j->kind == KIND_GOOD ? text_is(state, "done")
                                         : text_is(state, "failed") && text_is(outcome, "exited")
                                               && json_int(doc, "exit_code", 0) == 3;
    bool ended = as_asked || text_is(state, "failed") || text_is(state, "cancelled");
    if (!ended || (!as_asked && !(j->cancel_asked && text_is(state, "cancelled"))))
        problem(c, "acknowledged", "%s (%s)%s ended as %s, %s, exit code %lld: %.300s", j->id,
                j->name, j->cancel_asked ? ", cancelled," : "", state, outcome,
                (long long)json_int(doc, "exit_code", 0), json_text(doc, "detail"));
    if (!attempts_check(c, j, stamps, count))
        problem(c, "acknowledged", "the attempts of %s cannot be read", j->id);
}

/* Every job of the cloud is one that was asked for, once. */
static void names_check(struct cloud *c)
{
    int *seen = calloc(c->job_count + 1, sizeof *seen);
    char next[256] = "/v1/jobs?all=true&limit=1000";
    if (!seen)
        abort();
    while (*next) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct json *doc = ask_json(c, next, mem), *items = doc ? json_get(doc, "items") : NULL;
        if (!items) {
            problem(c, "acknowledged", "%s is not answered", next);
            break;
        }
        for (struct json *i = items->first; i; i = i->next) {
            size_t k = 0;
            while (k < c->job_count && !text_is(c->jobs[k].name, json_text(i, "name")))
                k++;
            if (k == c->job_count
                || (c->jobs[k].acked && !text_is(c->jobs[k].id, json_text(i, "id")))
                || ++seen[k] > 1)
                problem(c, "acknowledged", "%s (%s) is there and was not asked for",
                        json_text(i, "id"), json_text(i, "name"));
        }
        const char *cursor = json_text(doc, "next");
        snprintf(next, sizeof next, "%s%s", cursor ? "/v1/jobs?all=true&limit=1000&page=" : "",
                 cursor ? cursor : "");
    }
    free(seen);
}

static void keys_check(struct cloud *c)
{
    for (size_t i = 0; i < c->key_count; i++) {
        struct key_rec *k = &c->keys[i];
        struct reply r = { 0 };
        ask(c,
            &(struct ask){
                .method = "GET", .path = "/v1/whoami", .key = k->secret, .patience_ms = 20000 },
            &r);
        if ((k->off && r.status != 401) || (!k->off_asked && r.status != 200))
            problem(c, "acknowledged", "key %s, %s, is answered with %d", k->id,
                    k->off ? "disabled" : "good", r.status);
        str_done(&r.body);
    }
}

/* --- containers */

static void read_stamps(struct cloud *c, const char *node, const char *attempt, struct stamp *s)
{
    char path[PATH_MOST], line[160], id[32];
    long long us;
    FILE *f = fopen(path_of(path, c, "%s.data/outputs/%s/stamps", node, attempt), "re");
    text_copy(s->attempt, sizeof s->attempt, attempt);
    text_copy(s->node, sizeof s->node, node);
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "start %31s %47s %lld", id, s->task, &us) == 3) {
            s->starts++;
            s->first_us = s->starts == 1 ? us : s->first_us;
            if (!text_is(id, attempt))
                problem(c, "ran", "%s on %s wrote into the outputs of %s", id, node, attempt);
        } else if (sscanf(line, "end %lld", &us) == 1) {
            s->ends++;
        } else if (sscanf(line, "tick %lld", &us) != 1) {
            continue; /* cut off by a kill */
        }
        s->last_us = MAX(s->last_us, us);
    }
    if (f)
        fclose(f);
    if (s->starts > 1)
        problem(c, "ran", "%s was begun %d times on %s", attempt, s->starts, node);
}

static size_t all_stamps(struct cloud *c, struct stamp *list)
{
    size_t n = 0;
    for (int i = FIRST_AGENT; i < PARTS; i++) {
        char path[PATH_MOST];
        DIR *d = *c->parts[i].name ? opendir(path_of(path, c, "%s.data/outputs", c->parts[i].name))
                                   : NULL;
        for (struct dirent *e; d && n < STAMPS_MOST && (e = readdir(d));)
            if (text_starts(e->d_name, "att-"))
                read_stamps(c, c->parts[i].name, e->d_name, &list[n++]);
        if (d)
            closedir(d);
    }
    return n;
}

static int by_task(const void *a, const void *b)
{
    const struct stamp *x = a, *y = b;
    int d = strcmp(x->task, y->task);
    return d ? d : x->first_us < y->first_us ? -1 : x->first_us > y->first_us;
}

static void overlap_check(struct cloud *c, struct stamp *list, size_t n)
{
    qsort(list, n, sizeof *list, by_task);
    for (size_t i = 0; i + 1 < n; i++) {
        const struct stamp *a = &list[i], *b = &list[i + 1];
        if (a->starts && b->starts && text_is(a->task, b->task) && b->first_us <= a->last_us)
            problem(c, "overlap", "%s: %s on %s ran until %lld, %s on %s began at %lld", a->task,
                    a->attempt, a->node, (long long)a->last_us, b->attempt, b->node,
                    (long long)b->first_us);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n && text_is(list[i].task, list[k].task); k++)
            if (text_is(list[i].attempt, list[k].attempt) && list[i].starts)
                problem(c, "ran", "%s ran on %s and on %s", list[i].attempt, list[i].node,
                        list[k].node);
}

/* What a task that came to a good end printed can be read, whoever was killed meanwhile. */
static void logs_check(struct cloud *c, const struct job_rec *j)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct reply r = { 0 };
    struct json *doc
        = ask_json(c, arena_printf(mem, "/v1/jobs/%s/attempts?limit=1000", j->id), mem),
        *items = doc ? json_get(doc, "items") : NULL;
    const char *node = items && items->last ? json_text(items->last, "node") : NULL;
    if (!node || *node != 'n')
        return; /* of a node that left */
    ask(c,
        &(struct ask){ .method = "GET",
                       .path = arena_printf(mem, "/v1/jobs/%s/logs", j->id),
                       .patience_ms = 20000 },
        &r);
    if (r.status != 200 || !r.body.len
        || !strstr(r.body.at, arena_printf(mem, "hello %s", j->name)))
        problem(c, "logs", "what %s (%s) printed is not there: %d %.100s", j->id, j->name, r.status,
                r.body.at);
    str_done(&r.body);
}

/* A follower that was cut off again and again has all of them in the end. */
static void events_check(struct cloud *c)
{
    for (int64_t until = now_ms() + EVENTS_MS;;) {
        AUTO(arena_free) struct arena *mem = arena_new();
        long long had = c->last_event;
        struct json *doc
            = ask_json(c, arena_printf(mem, "/v1/events?limit=1&since=%lld", had), mem),
            *items = doc ? json_get(doc, "items") : NULL;
        if (items && !items->first)
            return;
        if (now_ms() >= until) {
            problem(c, "events", "the follower stopped at %lld, and there are more", had);
            return;
        }
        sleep_ms(100);
    }
}

void check_books(struct cloud *c)
{
    struct stamp *stamps = calloc(STAMPS_MOST, sizeof *stamps);
    if (!stamps)
        abort();
    size_t n = all_stamps(c, stamps), acked = 0, ran = 0, read = 0;
    overlap_check(c, stamps, n);
    for (size_t i = 0; i < c->job_count; i++)
        if (c->jobs[i].acked) {
            const struct job_rec *j = &c->jobs[i];
            acked++;
            job_check(c, j, stamps, n);
            if (j->kind == KIND_GOOD && j->count == 1 && !j->cancel_asked && read++ < 60)
                logs_check(c, j);
        }
    names_check(c);
    keys_check(c);
    events_check(c);
    for (size_t i = 0; i < n; i++)
        ran += stamps[i].starts > 0;
    printf("# %zu jobs acknowledged of %zu asked for, %zu attempts ran, %zu keys, %lld nodes "
           "joined, %lld execs, %lld requests of which %lld broke off, %lld events followed\n",
           acked, c->job_count, ran, c->key_count, (long long)c->joins, (long long)c->execs,
           (long long)c->requests, (long long)c->resets, (long long)c->last_event);
    free(stamps);
}
