/* memory.c - the server's memory as text, so that it can be compared with what its store gives when it is loaded again; and the
 * planner's picture against one made from scratch. What only memory can know (who was heard when) is not in it. */
#include "cloud.h"
#include "control/control_internal.h"
#include <stdlib.h>

#define LL(x) ((long long)(x))

struct lines {
    struct arena *mem;
    const char **at;
    size_t count, room;
};

static void add(struct lines *l, const char *text)
{
    if (l->count == l->room) {
        const char **more = ARENA_ARRAY(l->mem, const char *, l->room ? l->room * 2 : 64);
        if (l->count)
            memcpy(more, l->at, l->count * sizeof *more);
        l->room = l->room ? l->room * 2 : 64;
        l->at = more;
    }
    l->at[l->count++] = text;
}
#define ADD(l, ...) add((l), arena_printf((l)->mem, __VA_ARGS__))

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void jobs(struct lines *l, const struct state *s)
{
    struct job *j;
    struct task *t;
    for (size_t i = 0; (j = map_next(s->jobs, &i));) {
        ADD(l,
            "job %lld %s project %lld owner %lld state %d reason %d outcome %d priority %lld count "
            "%lld next %lld ends %lld/%lld/%lld exit %lld times %lld %lld %lld version %lld%s",
            LL(j->id), j->name, LL(j->project->id), LL(j->owner), j->state, j->reason, j->outcome,
            LL(j->priority), LL(j->count), LL(j->next_task), LL(j->done), LL(j->failed),
            LL(j->cancelled), LL(j->exit_code), LL(j->created_ms), LL(j->started_ms),
            LL(j->ended_ms), LL(j->version), j->blocked ? " blocked" : "");
        for (size_t k = 0; (t = map_next(j->tasks, &k));)
            ADD(l,
                "task %lld.%lld state %d outcome %d tries %lld faults %lld yields %lld not before %lld times "
                "%lld %lld exit %lld signal %lld attempt %lld",
                LL(j->id), LL(t->index), t->state, t->outcome, LL(t->tries), LL(t->faults), LL(t->evictions),
                LL(t->not_before_ms), LL(t->started_ms), LL(t->ended_ms), LL(t->exit_code),
                LL(t->signal), LL(t->attempt ? t->attempt->id : 0));
    }
}

static void attempts(struct lines *l, const struct state *s)
{
    struct attempt *a;
    for (size_t i = 0; (a = map_next(s->attempts, &i));) {
        ADD(l,
            "attempt %lld of %lld.%lld on %s state %d times %lld %lld run for %lld%s as %d %s cpu "
            "%lld mem %lld gpu %lld mib %lld x%d address %u",
            LL(a->id), LL(a->task->job->id), LL(a->task->index), a->node->name, a->state,
            LL(a->placed_ms), LL(a->started_ms), LL(a->run_for_s), a->stop ? " stop" : "",
            a->stop ? a->stop_as : 0, a->stop_why ? a->stop_why : "", LL(a->cpu_milli), LL(a->mem_mib), LL(a->gpu_milli),
            LL(a->gpu_mib), a->gpu_count, a->address);
        AUTO(str_done) struct str parts = { 0 };
        attempt_parts_put(a, &(struct json_out){ .to = &parts });
        ADD(l, "hold of %lld: %d n %lld since %lld parked %lld away %d own %lld %lld idle %d%s why %s %s", LL(a->id), a->hold, LL(a->hold_n), LL(a->hold_ms), LL(a->parked_mib),
            a->away, LL(a->own_cpu), LL(a->own_mem), a->idle_mib, a->returns ? " returns" : "", a->hold_why ? a->hold_why : "", parts.at);
        for (int g = 0; g < a->gpu_count + a->away; g++)
            ADD(l, "lease %lld gpu %lld %s milli %lld mem %lld", LL(a->id), LL(a->gpus[g].index),
                a->gpus[g].uuid, LL(a->gpus[g].milli), LL(a->gpus[g].mem_mib));
    }
}

static void tenancy(struct lines *l, const struct state *s)
{
    struct project *p;
    struct apikey *k;
    struct idem *d;
    struct node *n;
    for (size_t i = 0; (p = map_next(s->projects, &i));)
        ADD(l,
            "project %lld %s version %lld state %d holds gpu %lld cpu %lld mem %lld jobs %lld "
            "members %zu",
            LL(p->id), p->name, LL(p->version), p->state, LL(p->gpu_held), LL(p->cpu_held),
            LL(p->mem_held), LL(p->jobs_live), map_count(p->members));
    for (size_t i = 0; (k = map_next(s->keys, &i));)
        ADD(l, "key %lld owner %d %lld project %lld roles %u state %d %s %s", LL(k->id),
            k->owner_kind, LL(k->owner), LL(k->project), k->roles, k->state, k->hash, k->name);
    for (size_t i = 0; (d = map_next(s->idems, &i));)
        ADD(l, "idem %s verb %d job %lld body %s", d->key, d->verb, LL(d->job), d->body);
    for (size_t i = 0; (n = map_next(s->nodes, &i));)
        ADD(l, "node %lld %s state %d%s drain %d %lld lost %d kept %lld version %lld attempts %zu %s", LL(n->id), n->name,
            n->state, n->cordoned ? " cordoned" : "", n->drain, LL(n->drain_until_ms), n->lost, LL(n->kept), LL(n->version),
            map_count(n->attempts), n->info_text);
    for (size_t i = 0; i < s->evicted_count; i++)
        ADD(l, "evicted %lld at %lld of %lld", LL(s->evicted[i].attempt), LL(s->evicted[i].at_ms), LL(s->evicted[i].gpu_milli));
    struct reservation *v;
    for (size_t i = 0; (v = map_next(s->reservations, &i));)
        ADD(l, "reservation %lld %s of %lld: %lld of %s from %lld until %lld", LL(v->id), v->name, LL(v->project->id), LL(v->count), v->gpus, LL(v->from_ms), LL(v->until_ms));
    for (int r = 0; r < RULE_COUNT; r++)
        ADD(l, "rule %s %lld", rule_name((enum rule)r), LL(s->rules.at[r]));
    ADD(l, "last event %lld, persons %zu, secrets %zu, volumes %zu, images %zu", LL(s->last_event),
        map_count(s->persons), map_count(s->secrets), map_count(s->volumes), map_count(s->images));
}

static struct lines text_of(const struct state *s, struct arena *mem)
{
    struct lines l = { .mem = mem };
    jobs(&l, s);
    attempts(&l, s);
    tenancy(&l, s);
    qsort(l.at, l.count, sizeof *l.at, by_text);
    return l;
}

void books_memory(struct cloud *c)
{
    struct control *k = c->server ? server_control(c->server) : NULL;
    if (k)
        actor_settle(k->writer.commits);        /* what is decided is written */
    if (!k || k->writer.stale || k->writer.broken) /* it knows that it must be built again */
        return;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct state *fresh = NULL;
    struct err err = { 0 };
    if (!state_load(cloud_conn(c), os_wall_ms(k->os), os_boot_ms(k->os), 1, &fresh, &err)) {
        cloud_fail(c, "the store cannot be loaded: %s", err.text);
        return;
    }
    struct lines now = text_of(k->writer.state, mem), then = text_of(fresh, mem);
    for (size_t i = 0; i < MAX(now.count, then.count); i++) {
        const char *a = i < now.count ? now.at[i] : "nothing",
                   *b = i < then.count ? then.at[i] : "nothing";
        if (!text_is(a, b)) {
            cloud_fail(c, "memory and store differ:\n#   memory: %.150s\n#   store:  %.150s", a, b);
            break;
        }
    }
    state_free(fresh);
}

/* --- the planner */

void books_picture(struct cloud *c)
{
    AUTO(str_done) struct str have = { 0 };
    AUTO(str_done) struct str want = { 0 };
    struct control *k = server_control(c->server);
    AUTO(sched_free) struct sched *fresh = sched_new();
    struct batch b = { .mem = arena_new() };
    if (!planner_picture(k)) {
        cloud_fail(c, "the planner still wants something");
        return;
    }
    writer_snapshot(k, &b, NULL);
    for (size_t i = 0; i < b.news_count; i++)
        sched_apply(fresh, &b.news[i]);
    arena_free(b.mem);
    sched_print(fresh, &want);
    sched_print(planner_picture(k), &have);
    if (!text_is(have.at ? have.at : "", want.at ? want.at : ""))
        cloud_fail(c,
                   "the planner's picture is not the one made from scratch:\n%.1500s\n--- from "
                   "scratch:\n%.1500s",
                   have.at, want.at);
}
