/* door_digest.c - what is true, as text: the writer's memory, the counted rows of the store, the
 * planner's picture. */
#include "door.h"
#include "sched/sched.h"
#include <stdio.h>
#include <stdlib.h>

#define LL(x) ((long long)(x))
struct lines {
    struct str *at;
    size_t count, room;
};

static struct str *line(struct lines *l)
{
    if (l->count == l->room) {
        l->room = l->room ? l->room * 2 : 64;
        l->at = realloc(l->at, l->room * sizeof *l->at);
    }
    l->at[l->count] = (struct str){ 0 };
    return &l->at[l->count++];
}
static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct str *)a)->at, ((const struct str *)b)->at);
}

static void tenants(struct lines *l, const struct state *s)
{
    struct org *o;
    struct project *p;
    struct person *u;
    struct member *m;
    struct apikey *k;
    for (size_t i = 0; (o = map_next(s->orgs, &i));)
        str_printf(line(l), "org %lld %s %lld", LL(o->id), o->name, LL(o->created_ms));
    for (size_t i = 0; (u = map_next(s->persons, &i));)
        str_printf(line(l), "person %lld %s %s roles %u state %d v%lld", LL(u->id), u->name,
                   u->password, u->roles, u->state, LL(u->version));
    for (size_t i = 0; (k = map_next(s->keys, &i));)
        str_printf(line(l),
                   "key %lld owner %d/%lld project %lld roles %u state %d %s %s until %lld",
                   LL(k->id), k->owner_kind, LL(k->owner), LL(k->project), k->roles, k->state,
                   k->hash, k->name, LL(k->expires_ms));
    for (size_t i = 0; (p = map_next(s->projects, &i));)
        if (p->residency)
            str_printf(line(l), "residency of %lld %s", LL(p->id), p->residency);
    for (size_t i = 0; (p = map_next(s->projects, &i));)
        for (size_t n = 0; (m = map_next(p->members, &n));)
            str_printf(line(l), "member %lld/%lld %u", LL(p->id), LL(m->person), m->roles);
}

static void nodes(struct lines *l, const struct state *s)
{
    struct node *n;
    struct token *t;
    for (size_t i = 0; (n = map_next(s->nodes, &i));)
        str_printf(line(l), "node %lld %s state %d%s drain %d until %lld lost %d kept %lld v%lld attempts %zu orders %zu keys %lld %lld rotate %lld info %s",
                   LL(n->id), n->name, n->state, n->cordoned ? " cordoned" : "", n->drain, LL(n->drain_until_ms), n->lost, LL(n->kept),
                   LL(n->version), map_count(n->attempts), n->order_bytes, LL(n->key ? n->key->id : 0),
                   LL(n->next_key ? n->next_key->id : 0), LL(n->rotate_ms), n->info_text);
    struct reservation *v;
    for (size_t i = 0; (v = map_next(s->reservations, &i));)
        str_printf(line(l), "reservation %lld %s of %s %lld x %s from %lld until %lld%s", LL(v->id), v->name, v->project->name, LL(v->count), v->gpus,
                   LL(v->from_ms), LL(v->until_ms), v->begun ? " begun" : "");
    for (size_t i = 0; i < s->evicted_count; i++)
        str_printf(line(l), "evicted %lld at %lld of %lld", LL(s->evicted[i].attempt), LL(s->evicted[i].at_ms), LL(s->evicted[i].gpu_milli));
    for (int r = 0; r < RULE_COUNT; r++)
        str_printf(line(l), "rule %s %lld", rule_name((enum rule)r), LL(s->rules.at[r]));
    for (size_t i = 0; (n = map_next(s->nodes, &i));)
        str_printf(line(l), "node %lld settings %s house '%s'", LL(n->id), n->settings_text, n->house ? n->house : "");
    for (size_t i = 0; (t = map_next(s->tokens, &i));)
        str_printf(line(l), "token %lld %s until %lld", LL(t->id), t->hash, LL(t->expires_ms));
}

static void network(struct str *out, const struct project *p)
{
    int held = 0;
    for (size_t i = 0; p->addresses && i < COUNT(p->addresses->used); i++)
        held += __builtin_popcountll(p->addresses->used[i]);
    str_printf(out, " net %lld to %s %lld Mbit/s, %d addresses", LL(p->net), p->egress, LL(p->mbit), held);
}

static void things(struct lines *l, const struct state *s, int64_t only)
{
    struct project *p;
    struct account *a;
    struct secret *x;
    struct volume *v;
    struct image *m;
    for (size_t i = 0; (p = map_next(s->projects, &i));)
        if (!only || p->id == only) {
            struct str *at = line(l);
            str_printf(at,
                       "project %lld %s of %lld state %d quota %lld/%lld/%lld/%lld v%lld holds "
                       "%lld/%lld/%lld jobs %lld",
                       LL(p->id), p->name, LL(p->org), p->state, LL(p->quota.gpu_milli),
                       LL(p->quota.cpu_milli), LL(p->quota.mem_mib), LL(p->quota.jobs),
                       LL(p->version), LL(p->gpu_held), LL(p->cpu_held), LL(p->mem_held),
                       LL(p->jobs_live));
            network(at, p);
        }
    for (size_t i = 0; (a = map_next(s->accounts, &i));)
        if (!only || a->project == only)
            str_printf(line(l), "account %lld/%lld %s roles %u state %d", LL(a->project), LL(a->id),
                       a->name, a->roles, a->state);
    for (size_t i = 0; (x = map_next(s->secrets, &i));)
        if (!only || x->project == only)
            str_printf(line(l), "secret %lld/%lld %s %s at %lld v%lld", LL(x->project), LL(x->id),
                       x->name, x->sealed, LL(x->updated_ms), LL(x->version));
    for (size_t i = 0; (v = map_next(s->volumes, &i));)
        if (!only || v->project == only)
            str_printf(line(l), "volume %lld/%lld %s on %lld of %lld users %lld", LL(v->project), LL(v->id),
                       v->name, LL(v->node), LL(v->job), LL(v->users));
    for (size_t i = 0; (m = map_next(s->images, &i));)
        if (!only || m->project == only)
            str_printf(line(l), "image %lld/%lld %s %s %s %lld", LL(m->project), LL(m->id), m->name,
                       m->digest, m->format, LL(m->size));
}

static void work(struct lines *l, const struct state *s, int64_t only)
{
    struct job *j;
    struct task *t;
    struct attempt *a;
    for (size_t i = 0; (j = map_next(s->jobs, &i));) {
        if (only && j->project->id != only)
            continue;
        str_printf(line(l),
                   "job %lld/%lld %s owner %d/%lld state %d reason %d outcome %d priority %lld "
                   "next %lld/%lld ended %lld+%lld+%lld code %lld at %lld %lld %lld %lld v%lld"
                   " blocked %lld waiting %lld tasks %zu flavor %s spec %s",
                   LL(j->project->id), LL(j->id), j->name, j->owner_kind, LL(j->owner), j->state,
                   j->reason, j->outcome, LL(j->priority), LL(j->next_task), LL(j->count),
                   LL(j->done), LL(j->failed), LL(j->cancelled), LL(j->exit_code),
                   LL(j->created_ms), LL(j->ready_ms), LL(j->started_ms), LL(j->ended_ms), LL(j->version),
                   LL(j->blocked), LL(j->waiting), map_count(j->tasks), j->flavor, j->spec_text);
        for (size_t k = 0; k < j->follower_count; k++)
            if (map_get(s->jobs, j->followers[k].job))
                str_printf(line(l), "follower %lld of %lld when %d", LL(j->followers[k].job),
                           LL(j->id), j->followers[k].when);
        void *skipped;
        for (size_t k = 0;
             j->skipped && j->state != JOB_STOPPING && (skipped = map_next(j->skipped, &k));)
            str_printf(line(l), "skipped %lld.%lld", LL(j->id), LL((intptr_t)skipped - 1));
        for (size_t k = 0; (t = map_next(j->tasks, &k));)
            str_printf(line(l),
                       "task %lld.%lld state %d outcome %d tries %lld faults %lld yields %lld suspected %lld code %lld/%lld "
                       "not before %lld started %lld attempt %lld",
                       LL(j->id), LL(t->index), t->state, t->outcome, LL(t->tries), LL(t->faults), LL(t->evictions), LL(t->suspicions),
                       LL(t->exit_code), LL(t->signal), LL(t->not_before_ms), LL(t->started_ms),
                       LL(t->attempt ? t->attempt->id : 0));
    }
    for (size_t i = 0; (a = map_next(s->attempts, &i));) {
        if (only && a->task->job->project->id != only)
            continue;
        struct str *to = line(l);
        str_printf(to,
                   "attempt %lld of %lld.%lld on %lld state %d%s as %d at %lld for '%s' placed %lld started %lld "
                   "runs %lld grace %lld holds %lld/%lld/%lld/%lld%s",
                   LL(a->id), LL(a->task->job->id), LL(a->task->index), LL(a->node->id), a->state,
                   a->stop ? " stop" : "", a->stop ? (int)a->stop_as : 0, LL(a->stop_ms), a->stop_why ? a->stop_why : "", LL(a->placed_ms),
                   LL(a->started_ms), LL(a->run_for_s), LL(a->grace_s), LL(a->cpu_milli),
                   LL(a->mem_mib), LL(a->gpu_milli), LL(a->gpu_mib),
                   a->simulated ? " simulated" : "");
        str_printf(to, " address %u hold %d n %lld since %lld parked %lld away %d own %lld %lld idle %d returns %d why %s", a->address, a->hold, LL(a->hold_n), LL(a->hold_ms), LL(a->parked_mib), a->away, LL(a->own_cpu), LL(a->own_mem), a->idle_mib, a->returns, a->hold_why ? a->hold_why : "");
        if (a->parts)
            attempt_parts_put(a, &(struct json_out){ .to = to });
        for (int g = 0; g < a->gpu_count + a->away; g++)
            str_printf(to, " gpu %lld %s %lld %lld %s@%lld+%lld", LL(a->gpus[g].index), a->gpus[g].uuid,
                       LL(a->gpus[g].milli), LL(a->gpus[g].mem_mib), a->gpus[g].mig ? a->gpus[g].mig : "", LL(a->gpus[g].slot), LL(a->gpus[g].size));
    }
}

static void idems(struct lines *l, const struct state *s)
{
    struct idem *x;
    for (size_t i = 0; (x = map_next(s->idems, &i));)
        str_printf(line(l), "idem %s %s %s job %lld %s", x->key, verbs[x->verb].name, x->body,
                   LL(x->job), handlers[x->verb].once || !x->reply ? "" : x->reply);
}

const char *memory_text(struct door *d, const struct state *s, int64_t only)
{
    struct lines l = { 0 };
    AUTO(str_done) struct str all = { 0 };
    if (!only) {
        tenants(&l, s);
        nodes(&l, s);
        idems(&l, s);
        str_printf(line(&l), "last event %lld", LL(s->last_event));
    }
    things(&l, s, only);
    work(&l, s, only);
    qsort(l.at, l.count, sizeof *l.at, by_text);
    for (size_t i = 0; i < l.count; i++) {
        str_printf(&all, "%s\n", l.at[i].at);
        str_done(&l.at[i]);
    }
    free(l.at);
    return arena_text(d->mem, all.at ? all.at : "");
}

const char *store_text(struct door *d)
{
    static const char *const tables[]
        = { "org",    "project", "person",    "member", "account", "apikey", "ssh_key",
            "secret", "node",    "jointoken", "job",    "task",    "attempt",
            "usage",  "volume",  "image",     "blob",   "event" };
    AUTO(str_done) struct str all = { 0 };
    for (size_t i = 0; i < COUNT(tables); i++)
        str_printf(&all, "%s %lld\n", tables[i], LL(rows_in(d, tables[i])));
    return arena_text(d->mem, all.at);
}

static void show_difference(const char *where, const char *a, const char *b)
{
    while (*a && *b) {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if (n != m || memcmp(a, b, n) != 0)
            break;
        a += n + !!a[n], b += m + !!b[m];
    }
    printf("# %s: memory  %.*s\n# %s: rebuilt %.*s\n", where, (int)strcspn(a, "\n"), a, where,
           (int)strcspn(b, "\n"), b);
}

void check_books(struct door *d, const char *where)
{
    struct state *fresh = NULL;
    struct err err = { 0 };
    struct rows r;
    bool loaded = state_load(d->conn, os_wall_ms(d->os), os_boot_ms(d->os), 1, &fresh, &err);
    CHECK(loaded);
    if (!loaded) {
        printf("# %s: %s\n", where, err.text);
        return;
    }
    const char *live = memory_text(d, memory_of(d), 0), *rebuilt = memory_text(d, fresh, 0);
    CHECK(text_is(live, rebuilt));
    if (!text_is(live, rebuilt))
        show_difference(where, live, rebuilt);
    int64_t last = store_query(d->conn, ST_LAST_EVENT, NULL, 0, d->mem, &r, &err) ? row_int(&r, 0, 0) : -1,
            first = store_query(d->conn, ST_EVENT_FIRST, NULL, 0, d->mem, &r, &err) ? row_int(&r, 0, 0) : -1;
    CHECK(last > 0 && last - first + 1 == rows_in(d, "event"));
    CHECK(map_count(memory_of(d)->ended) == 0 && !d->control->writer.stale);
    state_free(fresh);
}

static bool quiet(void *arg)
{
    struct door *d = arg;
    return planner_picture(d->control) != NULL;
}

void check_picture(struct door *d, const char *where)
{
    AUTO(sched_free) struct sched *fresh = sched_new();
    AUTO(str_done) struct str live = { 0 }, rebuilt = { 0 };
    struct batch b = { .mem = arena_new() };
    do
        door_run(d, 3);
    while (!quiet(d));
    writer_snapshot(d->control, &b, NULL);
    for (size_t i = 0; i < b.news_count; i++)
        sched_apply(fresh, &b.news[i]);
    arena_free(b.mem);
    sched_print(planner_picture(d->control), &live);
    sched_print(fresh, &rebuilt);
    CHECK(text_is(live.at, rebuilt.at));
    if (!text_is(live.at, rebuilt.at))
        show_difference(where, live.at, rebuilt.at);
}
