/* The books: random lives of a cloud in virtual time, with agents of straw, crashes at any step,
 * clocks that jump, disks that fail. */
#include "door.h"
#include <stdio.h>
#include <stdlib.h>

enum { STRAWS = 3, HELD_MOST = 256, JOBS_MOST = 400, FLIGHTS_MOST = 64 };

/* What an agent remembers of one attempt. */
struct held {
    int64_t attempt, job, task, run_for_s, started_ms, ready_ms;
    bool running, stop, ended;
};
struct straw {
    struct life *life;
    int number;
    char name[16], key[SECRET_TEXT];
    bool linked, cut, greeting;
    char *pushed[64]; /* came during a hello */
    size_t pushed_count;
    int64_t next, id, contact_ms; /* contact: when what was answered last was sent */
    struct held held[HELD_MOST];
    size_t held_count;
    struct report_item spool[HELD_MOST];
    size_t spooled;
};
struct life {
    struct door *d;
    struct rng rng;
    struct straw nodes[STRAWS];
    const char *users[2]; /* keys of developers of two projects; the second has a quota */
    int64_t capped;
    char acked[JOBS_MOST][ID_TEXT];
    int owner[JOBS_MOST];
    size_t acked_count;
    struct flying *flights[FLIGHTS_MOST];
    int flight_owner[FLIGHTS_MOST];
    size_t flight_count;
    int names, crashes, faults, starts, wipes;
    bool broken;
};

static uint64_t chance(struct life *l, uint64_t n)
{
    return rng_below(&l->rng, n);
}
static int64_t boot(struct life *l)
{
    return sim_now_ms(l->d->sim);
}

static void must(struct life *l, bool ok, const char *what)
{
    CHECK(ok);
    if (!ok && !l->broken)
        printf("# %s, at %lld ms after %d crashes\n", what, (long long)boot(l), l->crashes);
    l->broken |= !ok;
}

/* --- agents */
static struct held *held_of(struct straw *n, int64_t attempt)
{
    for (size_t i = 0; i < n->held_count; i++)
        if (n->held[i].attempt == attempt)
            return &n->held[i];
    return NULL;
}

static bool runs_elsewhere(struct life *l, const struct held *h)
{
    for (int n = 0; n < STRAWS; n++)
        for (size_t i = 0; i < l->nodes[n].held_count; i++) {
            const struct held *o = &l->nodes[n].held[i];
            if (o != h && o->running && o->job == h->job && o->task == h->task)
                return true;
        }
    return false;
}

static void spool(struct straw *n, struct held *h, enum task_news news, enum outcome outcome,
                  int64_t code)
{
    must(n->life, n->spooled < HELD_MOST, "a spool is full");
    n->spool[n->spooled] = (struct report_item){
        .n = n->next++, .attempt = h->attempt, .news = news, .at_ms = os_wall_ms(n->life->d->os)
    };
    if (news == TASK_ENDED) {
        n->spool[n->spooled].outcome = outcome;
        n->spool[n->spooled].exit_code = code;
        n->spool[n->spooled].started_ms = h->started_ms;
        h->running = false;
        h->ended = true;
    }
    n->spooled++;
}

static void take_order(struct straw *n, struct json *o)
{
    int64_t attempt = 0, job = 0;
    (void)!id_parse(json_text(o, "attempt"), PREFIX_ATTEMPT, &attempt);
    (void)!id_parse(json_text(o, "job"), PREFIX_JOB, &job);
    struct held *h = held_of(n, attempt);
    struct json *stop = json_get(o, "stop");
    if (!h) {
        must(n->life, n->held_count < HELD_MOST, "an agent holds too much");
        h = &n->held[n->held_count++];
        *h = (struct held){ .attempt = attempt,
                            .job = job,
                            .task = json_int(o, "task", 0),
                            .run_for_s = json_int(o, "run_for_s", 0) };
    }
    h->stop = stop && stop->flag;
}

static void forget(struct straw *n, int64_t attempt)
{
    struct held *h = held_of(n, attempt);
    if (h)
        *h = n->held[--n->held_count];
}

static void take_desired(struct straw *n, const char *text, size_t len)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err err = { 0 };
    struct desired bound = { 0 };
    bool good = json_parse((struct slice){ text, len }, mem, &doc, &err)
                && bind_read(doc, &desired_fields, mem, &bound, NULL, &err);
    must(n->life, good, "a desired that no node can read");
    if (!good)
        return;
    struct json *orders = json_get(doc, "orders"), *gone = json_get(doc, "gone");
    if (bound.full)
        for (size_t i = n->held_count;
             i-- > 0;) { /* what the server has settled without us is over, whatever it was */
            bool there = false;
            char id[ID_TEXT];
            id_text(id, PREFIX_ATTEMPT, n->held[i].attempt);
            for (struct json *o = orders ? orders->first : NULL; o && !there; o = o->next)
                there = text_is(json_text(o, "attempt"), id);
            if (!there && !n->held[i].ended)
                forget(n, n->held[i].attempt);
        }
    for (struct json *o = orders ? orders->first : NULL; o; o = o->next)
        take_order(n, o);
    for (struct json *g = gone ? gone->first : NULL; g; g = g->next) {
        int64_t id;
        if (id_parse(g->text, PREFIX_ATTEMPT, &id))
            forget(n, id);
    }
    size_t drop = 0;
    while (drop < n->spooled && n->spool[drop].n <= bound.kept)
        drop++;
    memmove(n->spool, n->spool + drop, (n->spooled - drop) * sizeof *n->spool);
    n->spooled -= drop;
}

static int64_t generation_of(const char *text)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct json *doc;
    struct err err;
    return json_parse(SLICE(text), mem, &doc, &err) ? json_int(doc, "generation", 0) : 0;
}

static void take_push(struct straw *n, struct slice json)
{
    if (n->greeting && n->pushed_count < COUNT(n->pushed))
        n->pushed[n->pushed_count++] = arena_bytes(n->life->d->mem, json.at, json.len);
    else if (n->linked)
        take_desired(n, json.at, json.len);
}

static void on_commit(void *arg, const struct commit *k)
{
    struct life *l = arg;
    for (size_t i = 0; i < k->push_count; i++)
        for (int n = 0; n < STRAWS; n++)
            if (l->nodes[n].id == k->pushes[i].node && !l->nodes[n].cut)
                take_push(&l->nodes[n], k->pushes[i].json);
}

static void greet(struct straw *n)
{
    struct life *l = n->life;
    const char **running = ARENA_ARRAY(l->d->mem, const char *, n->held_count);
    size_t count = 0;
    for (size_t i = 0; i < n->held_count; i++)
        if (!n->held[i].ended)
            running[count++]
                = id_text(arena_take(l->d->mem, ID_TEXT, 1), PREFIX_ATTEMPT, n->held[i].attempt);
    int64_t sent = boot(l);
    n->greeting = true;
    n->pushed_count = 0;
    struct answer a
        = door_hello(l->d, n->key, n->name, 2 + n->number, n->spooled ? n->spool[0].n : n->next,
                     (struct texts){ running, count });
    n->greeting = false;
    if (!a.ok)
        return;
    n->linked = true;
    n->contact_ms = sent;
    take_desired(n, a.text, strlen(a.text));
    for (size_t i = 0; i < n->pushed_count; i++)
        if (generation_of(n->pushed[i]) > generation_of(a.text))
            take_desired(n, n->pushed[i], strlen(n->pushed[i]));
}

static void send_report(struct straw *n)
{
    struct life *l = n->life;
    struct report *r = ARENA_NEW(l->d->mem, struct report);
    size_t count = n->spooled, from = count && chance(l, 10) == 0
                                          ? chance(l, count)
                                          : 0; /* sometimes with a gap before it */
    struct report_item *items = ARENA_ARRAY(l->d->mem, struct report_item, count + 1);
    if (count)
        memcpy(items, n->spool + from, (count - from) * sizeof *items);
    count -= from;
    *r = (struct report){ .kind = "report", .beat = 1, .items = { items, count } };
    int64_t sent = boot(l);
    struct answer a = door_ask_bound(l->d, n->key, NULL, VERB_NODE_REPORT, r);
    if (!a.ok) {
        n->linked = false;
        return;
    }
    n->contact_ms = sent;
    take_desired(n, a.text, strlen(a.text));
}

/* What happens inside a node while time passes. */
static void agent_step(struct straw *n)
{
    struct life *l = n->life;
    for (size_t i = 0; i < n->held_count; i++) {
        struct held *h = &n->held[i];
        if (h->ended)
            continue;
        if (h->running && h->run_for_s && boot(l) - n->contact_ms > h->run_for_s * 1000) {
            spool(n, h, TASK_ENDED, OUTCOME_NODE_LOST,
                  0); /* its time is over, agent alive or not */
        } else if (h->stop) {
            spool(n, h, TASK_ENDED, OUTCOME_CANCELLED, 0);
        } else if (!h->running && chance(l, 3) && boot(l) - n->contact_ms < 60000) {
            must(l, !runs_elsewhere(l, h), "a task runs twice");
            h->running = true;
            h->started_ms = os_wall_ms(l->d->os);
            l->starts++;
            if (chance(l, 8)) /* the start of some is never told */
                spool(n, h, TASK_STARTED, 0, 0);
        } else if (h->running && chance(l, 3) == 0) {
            static const enum outcome ends[]
                = { OUTCOME_SUCCEEDED, OUTCOME_SUCCEEDED,     OUTCOME_SUCCEEDED,
                    OUTCOME_EXITED,    OUTCOME_OUT_OF_MEMORY, OUTCOME_NODE_FAULT };
            enum outcome how = ends[chance(l, COUNT(ends))];
            spool(n, h, TASK_ENDED, how, how == OUTCOME_EXITED ? 3 : 0);
        }
    }
    if (n->cut)
        return;
    if (!n->linked)
        greet(n);
    else
        send_report(n);
}

/* --- people */
static const char *random_job(struct life *l, int who)
{
    static const char *const gpus[] = {
        "", "", ",\"gpus\":\"1\"", ",\"gpus\":\"2\"", ",\"gpus\":\"0.5\"", ",\"gpus\":\"0.25\""
    };
    static const char *const lost[] = { "", "", "", ",\"on_lost\":\"wait\"" };
    static const char *const retry[] = { "", ",\"retries\":2,\"retry_delay\":\"5s\"",
                                         ",\"retry\":{\"limit\":1,\"on\":[\"out_of_memory\"]}" };
    static const char *const when[] = { "ok", "any", "fail" };
    const char *after = "", *volume = chance(l, 8) ? ""
                                      : chance(l, 2)
                                          ? ",\"volumes\":[\"data:/data\"]"
                                          : ",\"volumes\":[\"more:/more\",\"data:/data\"]";
    if (l->acked_count && chance(l, 4) == 0) {
        size_t at = chance(l, l->acked_count);
        if (l->owner[at] == who)
            after = FMT(l->d, ",\"after\":[{\"job\":\"%s\",\"when\":\"%s\"}]", l->acked[at],
                        when[chance(l, 3)]);
    }
    return FMT(l->d,
               "{\"name\":\"j%d\",\"command\":[\"true\"],\"count\":%d,\"cpus\":%d,\"memory\":"
               "\"2GB\",\"priority\":%d%s%s%s%s%s}",
               (int)chance(l, 5), chance(l, 4) ? 1 : 1 + (int)chance(l, 6), 1 + (int)chance(l, 8),
               (int)chance(l, 101), gpus[chance(l, COUNT(gpus))], lost[chance(l, COUNT(lost))],
               retry[chance(l, COUNT(retry))], volume, after);
}

static void land(struct life *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->flight_count; i++) {
        struct flying *f = l->flights[i];
        if (!f->done) {
            l->flight_owner[kept] = l->flight_owner[i];
            l->flights[kept++] = f;
            continue;
        }
        struct answer a = door_landed(l->d, f);
        if (a.ok && f->r.verb == VERB_JOB_SUBMIT && l->acked_count < JOBS_MOST) {
            l->owner[l->acked_count] = l->flight_owner[i];
            snprintf(l->acked[l->acked_count++], ID_TEXT, "%s", get(&a, "id"));
        }
    }
    l->flight_count = kept;
}

static void fly(struct life *l, int who, enum verb_id verb, const char *body)
{
    if (l->flight_count == FLIGHTS_MOST)
        door_run(l->d, 100), land(l);
    l->flight_owner[l->flight_count] = who;
    l->flights[l->flight_count++] = door_send(l->d, l->users[who], NULL, verb, body,
                                              chance(l, 3) ? NULL : FMT(l->d, "w%d", l->names++));
}

static void people_step(struct life *l)
{
    int who = (int)chance(l, 2);
    size_t at = l->acked_count ? chance(l, l->acked_count) : 0;
    const char *job = l->acked_count ? l->acked[at] : "none";
    switch (chance(l, 8)) {
    case 0:
        fly(l, l->owner[at], VERB_JOB_CANCEL,
            FMT(l->d, "{\"job\":\"%s\",\"grace\":\"%ds\"}", job, (int)chance(l, 30)));
        break;
    case 1:
        fly(l, l->owner[at], VERB_JOB_CANCEL,
            FMT(l->d, "{\"job\":\"%s\",\"task\":%d}", job, (int)chance(l, 3)));
        break;
    case 2:
        fly(l, l->owner[at], VERB_JOB_UPDATE,
            FMT(l->d, "{\"job\":\"%s\",\"priority\":%d}", job, (int)chance(l, 101)));
        break;
    case 3:
        fly(l, who, VERB_SECRET_SET,
            FMT(l->d, "{\"name\":\"s%d\",\"value\":\"v%d\"}", (int)chance(l, 3),
                (int)chance(l, 1000)));
        break;
    default:
        for (uint64_t n = chance(l, 4); n-- > 0;)
            fly(l, who, VERB_JOB_SUBMIT, random_job(l, who));
    }
}

/* --- the world */
static void crash(struct life *l)
{
    for (uint64_t n = chance(l, 40); n-- > 0;)
        sim_step(l->d->sim);
    land(l);
    for (size_t i = 0; i < l->flight_count; i++)
        str_done(&l->flights[i]->r.reply);
    l->flight_count = 0; /* nobody will ever hear of these */
    l->crashes++;
    must(l, door_crash(l->d), "the server does not come back");
    control_follow(l->d->control, on_commit, l);
    for (int n = 0; n < STRAWS; n++)
        l->nodes[n].linked = false;
}

static void world_step(struct life *l)
{
    struct straw *n = &l->nodes[chance(l, STRAWS)];
    switch (chance(l, 14)) {
    case 0:
        crash(l);
        break;
    case 1:
        sim_wall_jump(l->d->sim, chance(l, 2) ? 3600 * 1000 : -3600 * 1000);
        break;
    case 2:
        n->cut = !n->cut;
        n->linked = n->linked && !n->cut;
        break;
    case 3:
        door_run(l->d, 30000);
        break;
    case 4:
        if (chance(l, 4) == 0)
            for (int i = 0; i < 40; i++) { /* longer than a lease */
                door_run(l->d, 10000);
                for (int k = 0; k < STRAWS; k++)
                    agent_step(&l->nodes[k]);
            }
        break;
    case 5: { /* the agent's machine is made anew */
        if (n->cut || chance(l, 3))
            break;
        n->held_count = n->spooled = 0;
        n->next = 1;
        n->linked = false;
        l->wipes++;
        greet(n);
        break;
    }
    case 6:
        door_ask(l->d, l->d->admin, VERB_NODE_UPDATE,
                 FMT(l->d, "{\"node\":\"%s\",\"state\":\"%s\"}", n->name,
                     chance(l, 2) ? "ready" : "cordoned"));
        break;
    case 7:
        l->faults++;
        fault_arm(1 + (int)chance(l, 60));
        people_step(l);
        door_run(l->d, 50);
        land(l);
        fault_arm(0);
        break;
    default:
        door_run(l->d, (int64_t)chance(l, 5000));
    }
}

static void check_quota(struct life *l)
{
    const struct project *p = map_get(memory_of(l->d)->projects, l->capped);
    must(l,
         p && p->gpu_held <= p->quota.gpu_milli && p->cpu_held <= p->quota.cpu_milli
             && p->mem_held <= p->quota.mem_mib && p->jobs_live <= p->quota.jobs,
         "a quota is exceeded");
}

static void begin(struct life *l, uint64_t seed)
{
    struct door *d = l->d = door_seed(true, seed);
    l->rng.s = seed * 77;
    control_follow(d->control, on_commit, l);
    CHECK(door_ask(d, d->admin, VERB_PROJECT_CREATE,
                   "{\"name\":\"capped\",\"gpus\":2,\"cpus\":20,\"memory_mib\":16384,\"jobs\":25}")
              .ok);
    CHECK(door_ask(d, d->admin, VERB_ACCOUNT_CREATE, "{\"name\":\"bot\"}").ok);
    CHECK(
        door_ask_full(d, d->admin, "capped", VERB_ACCOUNT_CREATE, "{\"name\":\"thrifty\"}", NULL, 0)
            .ok);
    l->users[0] = door_grant(d, PRINCIPAL_ACCOUNT, "bot", "default", ROLE_DEVELOPER, 0);
    l->users[1] = door_grant(d, PRINCIPAL_ACCOUNT, "thrifty", "capped", ROLE_DEVELOPER, 0);
    l->capped = state_project(memory_of(d), "capped")->id;
    for (int who = 0; who < 2; who++)
        CHECK(door_ask(d, l->users[who], VERB_VOLUME_CREATE, "{\"name\":\"data\"}").ok
              && door_ask(d, l->users[who], VERB_VOLUME_CREATE, "{\"name\":\"more\"}").ok);
    for (int n = 0; n < STRAWS; n++) {
        struct straw *s = &l->nodes[n];
        *s = (struct straw){ .life = l, .number = n, .next = 1, .linked = true };
        snprintf(s->name, sizeof s->name, "n%d", n);
        door_node(d, s->name, 2 + n, s->key);
        s->id = state_node(memory_of(d), s->name)->id;
        s->contact_ms = boot(l);
    }
}

/* Everybody is there again and nothing new comes: all that was taken must come to its end. */
static void finish(struct life *l)
{
    fault_arm(0);
    door_run(l->d, 200);
    land(l);
    for (int n = 0; n < STRAWS; n++) {
        l->nodes[n].cut = false;
        door_ask(l->d, l->d->admin, VERB_NODE_UPDATE,
                 FMT(l->d, "{\"node\":\"%s\",\"state\":\"ready\"}", l->nodes[n].name));
    }
    for (int i = 0; i < 2000 && map_count(memory_of(l->d)->jobs); i++) {
        for (int n = 0; n < STRAWS; n++)
            agent_step(&l->nodes[n]);
        door_run(l->d, 4000);
    }
    struct job *j;
    for (size_t i = 0; (j = map_next(memory_of(l->d)->jobs, &i));) {
        bool by_volume;
        must(l, job_home(memory_of(l->d), j, &by_volume) == -1,
             "a job never ends"); /* but one whose volumes came to be on two nodes */
        if (l->broken) {
            printf("# job %lld state %d reason %d next %lld of %lld waiting %lld blocked %lld "
                   "tasks %zu\n",
                   (long long)j->id, j->state, j->reason, (long long)j->next_task,
                   (long long)j->count, (long long)j->waiting, (long long)j->blocked,
                   map_count(j->tasks));
            printf("# %s", memory_text(l->d, memory_of(l->d), j->project->id));
            break;
        }
    }
}

/* Each ended attempt that was ready has one usage row, and no other has any; no two attempts of
 * a task are open at once. */
static void check_usage(struct life *l)
{
    struct door *d = l->d;
    AUTO(map_free) struct map *used = map_new();
    struct rows r;
    struct err err;
    int64_t after = -1, after_ms = 0, rows = 0;
    do {
        CHECK(store_query(d->conn, ST_USAGE_EDGE,
                          (struct value[]){ V_INT(after_ms), V_INT(after), V_INT(INT64_MAX), V_INT(0), V_INT(INT64_MAX) },
                          5, d->mem, &r, &err));
        for (size_t i = 0; i < r.count; i++) {
            after = row_int(&r, i, 0), after_ms = row_int(&r, i, 10);
            must(l, !map_get(used, after), "an attempt is metered twice");
            must(l, row_int(&r, i, 10) >= row_int(&r, i, 9), "an interval ends before it begins");
            map_put(used, after, d);
            rows++;
        }
    } while (r.count);
    int64_t expected = 0;
    for (size_t i = 0; i < l->acked_count; i++) {
        struct answer job = door_ask(d, l->users[l->owner[i]], VERB_JOB_GET,
                                     FMT(d, "{\"job\":\"%s\"}", l->acked[i]));
        must(l, job.ok, "an acknowledged job is not there");
        struct answer list = door_ask(d, l->users[l->owner[i]], VERB_JOB_ATTEMPTS,
                                      FMT(d, "{\"job\":\"%s\",\"limit\":1000}", l->acked[i]));
        for (struct json *a
             = json_get(list.json, "items") ? json_get(list.json, "items")->first : NULL;
             a; a = a->next) {
            int64_t id = 0;
            (void)!id_parse(json_text(a, "id"), PREFIX_ATTEMPT, &id);
            const char *ended = json_text(a, "ended"), *started = json_text(a, "started");
            bool ready = text_given(started), over = text_given(ended);
            must(l, (map_get(used, id) != NULL) == (ready && over),
                 "usage is not as the attempt was");
            expected += ready && over;
        }
    }
    must(l, rows >= expected, "usage is missing");
}

static void live(uint64_t seed, int steps)
{
    struct life *l = calloc(1, sizeof *l);
    begin(l, seed);
    for (int i = 0; i < steps && !l->broken; i++) {
        if (chance(l, 3))
            people_step(l);
        for (int n = 0; n < STRAWS; n++)
            agent_step(&l->nodes[n]);
        world_step(l);
        land(l);
        check_quota(l);
        if (i % 10 == 0) {
            door_run(l->d, 5);
            check_books(l->d, "on the way");
            check_picture(l->d, "on the way");
        }
    }
    if (!l->broken)
        finish(l);
    check_usage(l);
    check_books(l->d, "at the end");
    check_picture(l->d, "at the end");
    if (l->broken)
        printf("# seed %llu: %zu jobs, %d starts, %d crashes, %d faults, %d wipes\n",
               (unsigned long long)seed, l->acked_count, l->starts, l->crashes, l->faults,
               l->wipes);
    door_free(l->d);
    free(l);
}

TEST(the_books_balance_after_any_life)
{
    const char *text = getenv("ARCUS_SEEDS"), *first = getenv("ARCUS_SEED");
    uint64_t from = first ? strtoull(first, NULL, 10) : 1,
             count = text ? strtoull(text, NULL, 10) : 4;
    for (uint64_t seed = from; seed < from + count; seed++)
        live(seed, 120);
}
