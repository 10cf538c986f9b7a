/* watch.c - what must hold after every step, and not only in the end: at every commit, at every start of a supervisor, at every piece of
 * bytes that comes to a node and at every acknowledgement.
 *
 * The test remembers by itself what was given to whom, so a server that forgets, or one that wakes up late, is found out. */
#include "agent/spool.h"
#include "base/fault.h"
#include "cloud.h"
#include "control/control_internal.h"
#include "store/store_internal.h"
#include <ctype.h>
#include <stdio.h>

#define LL(x) ((long long)(x))

static struct given *given_of(struct cloud *c, int64_t attempt)
{
    for (size_t i = c->given_count; i--;)
        if (c->given[i].attempt == attempt)
            return &c->given[i];
    return NULL;
}

/* A machine that joined again has a longer name. */
static int host_of(const struct cloud *c, const char *node)
{
    for (int i = 0; i < c->node_count; i++) {
        size_t n = strlen(c->nodes[i].host);
        if (strncmp(node, c->nodes[i].host, n) == 0 && !isdigit((unsigned char)node[n]))
            return i;
    }
    return -1;
}

static struct wish *wish_of(struct cloud *c, const char *name)
{
    for (size_t i = 0; i < c->wish_count; i++)
        if (c->wishes[i].kind == WISH_SUBMIT && text_is(c->wishes[i].name, name))
            return &c->wishes[i];
    return NULL;
}

/* --- what was given */

static void note_given(struct cloud *c, const struct attempt *a)
{
    if (c->given_count == RUNS_MOST) {
        cloud_fail(c, "more attempts than a run may have");
        return;
    }
    struct given *g = &c->given[c->given_count++];
    const struct job *j = a->task->job;
    *g = (struct given){ .attempt = a->id,
                         .job = j->id,
                         .task = a->task->index,
                         .host = host_of(c, a->node->name),
                         .wish = wish_of(c, j->name) };
    for (int i = 0; i < a->gpu_count + a->away; i++)
        if (a->gpus[i].index < GPUS_MOST)
            g->milli[a->gpus[i].index] += a->gpus[i].milli;
    if (g->wish && g->wish->cancelled && !a->stop)
        cloud_fail(c, "%s was placed after its cancel was acknowledged", g->wish->name);
    for (size_t i = 0; i + 1 < c->given_count; i++) {
        const struct run *before = run_of(c, c->given[i].attempt);
        if (c->given[i].job == g->job && c->given[i].task == g->task && before && !before->to_ms)
            cloud_fail(c, "%s.%lld was given to %s while it ran on n%d", j->name, LL(g->task),
                       a->node->name, before->node + 1);
    }
}

/* Each its own, of its project's range, and as many are taken as are held. */
static void check_addresses(struct cloud *c, struct state *s)
{
    AUTO(map_free) struct map *seen = map_new();
    struct attempt *a;
    struct project *p;
    size_t taken = 0;
    for (size_t i = 0; (a = map_next(s->attempts, &i));) {
        if (a->address && (map_get(seen, a->address) || !net_has(a->task->job->project->net, a->address)))
            cloud_fail(c, "a task of %s has an address that is not its own", a->task->job->name);
        if (a->address)
            map_put(seen, a->address, a);
    }
    for (size_t i = 0; (p = map_next(s->projects, &i));)
        for (size_t k = 0; p->addresses && k < COUNT(p->addresses->used); k++)
            taken += (size_t)__builtin_popcountll(p->addresses->used[k]);
    if (taken != map_count(seen))
        cloud_fail(c, "%zu addresses are taken and %zu held", taken, map_count(seen));
}

static void check_attempts(struct cloud *c, struct state *s)
{
    check_addresses(c, s);
    struct attempt *a;
    for (size_t i = 0; (a = map_next(s->attempts, &i));) {
        if (a->task->attempt != a)
            cloud_fail(c, "a task of %s has two live attempts", a->task->job->name);
        if (!given_of(c, a->id))
            note_given(c, a);
    }
}

static void check_quotas(struct cloud *c, struct state *s)
{
    struct project *p;
    struct attempt *a;
    for (size_t i = 0; (p = map_next(s->projects, &i));) {
        int64_t gpu = 0, cpu = 0, mem = 0;
        const struct quota *q = &p->quota;
        for (size_t k = 0; (a = map_next(s->attempts, &k));)
            if (a->task->job->project == p)
                gpu += a->gpu_milli, cpu += a->cpu_milli, mem += a->mem_mib;
        if (gpu != p->gpu_held || cpu != p->cpu_held || mem != p->mem_held)
            cloud_fail(c, "project %s holds %lld/%lld/%lld and is counted as %lld/%lld/%lld",
                       p->name, LL(gpu), LL(cpu), LL(mem), LL(p->gpu_held), LL(p->cpu_held),
                       LL(p->mem_held));
        if ((q->gpu_milli >= 0 && gpu > q->gpu_milli) || (q->cpu_milli >= 0 && cpu > q->cpu_milli)
            || (q->mem_mib >= 0 && mem > q->mem_mib) || (q->jobs >= 0 && p->jobs_live > q->jobs))
            cloud_fail(c, "the quota of project %s is exceeded", p->name);
    }
}

static void check_gpus(struct cloud *c, const struct node *n)
{
    const struct gpu_info *gpus = n->info.gpus.at;
    struct attempt *a;
    for (size_t g = 0; g < n->info.gpus.count; g++) {
        int64_t milli = 0, mib = 0;
        for (size_t i = 0; (a = map_next(n->attempts, &i));)
            for (int k = 0; k < a->gpu_count; k++)
                if (a->gpus[k].index == gpus[g].index)
                    milli += a->gpus[k].milli, mib += a->gpus[k].mem_mib;
        if (milli > 1000 || mib > gpus[g].mem_mib)
            cloud_fail(c, "GPU %lld of %s is given twice: %lld thousandths, %lld MiB",
                       LL(gpus[g].index), n->name, LL(milli), LL(mib));
    }
}

static void check_nodes(struct cloud *c, struct state *s)
{
    struct node *n;
    struct attempt *a;
    for (size_t i = 0; (n = map_next(s->nodes, &i));) {
        int64_t cpu = 0, mem = 0;
        for (size_t k = 0; (a = map_next(n->attempts, &k));)
            cpu += a->cpu_milli, mem += a->mem_mib;
        if (cpu > n->info.cpu_milli || mem > n->info.mem_mib)
            cloud_fail(c, "%s is given twice: %lld of %lld CPU, %lld of %lld MiB", n->name, LL(cpu),
                       LL(n->info.cpu_milli), LL(mem), LL(n->info.mem_mib));
        check_gpus(c, n);
    }
}

/* --- what the store says */

#define LIVE_TWICE                                                                                 \
    "(SELECT COUNT(*) FROM (SELECT 1 FROM attempt WHERE state < 4 GROUP BY job, task"             \
    " HAVING COUNT(*) > 1))"
#define BAD_USAGE                                                                                  \
    "(SELECT COUNT(*) FROM attempt a LEFT JOIN usage u ON u.attempt = a.id"                       \
    " WHERE (a.state >= 4 AND a.started_ms > 0) <> (u.attempt IS NOT NULL)"                       \
    " OR u.ended_ms <> MAX(a.ended_ms, a.started_ms) OR (u.started_ms <> a.started_ms"             \
    " AND u.started_ms - a.started_ms <> (SELECT COALESCE(SUM(p.ended_ms - p.started_ms), 0) FROM usage p WHERE p.part_of = a.id)))"
#define EVENT_GAP "(SELECT COALESCE(MAX(seq) - COUNT(*), 0) FROM event)"

int64_t cloud_number(struct cloud *c, const char *sql)
{
    struct conn *conn = cloud_conn(c);
    int64_t n = -1;
    struct err err = { 0 };
    fault_hold(true);
    bool ok = conn->store->how->number(conn, sql, &n, &err);
    fault_hold(false);
    if (!ok)
        cloud_fail(c, "%s: %s", sql, err.text);
    return n;
}

static void check_store(struct cloud *c, const char *sql)
{
    int64_t wrong = cloud_ok(c) ? cloud_number(c, sql) : 0;
    if (wrong)
        cloud_fail(c, "%lld breaches in the store: live attempts %lld, usage %lld, event log %lld",
                   LL(wrong), LL(cloud_number(c, "SELECT " LIVE_TWICE)), LL(cloud_number(c, "SELECT " BAD_USAGE)),
                   LL(cloud_number(c, "SELECT " EVENT_GAP)));
}

static bool ends_attempts(const struct commit *k)
{
    for (size_t i = 0; i < k->event_count; i++)
        if (text_is(k->events[i].kind, "attempt.ended"))
            return true;
    return false;
}

/* While too much is silent at once nothing is taken from those that are. */
static void check_silence(struct cloud *c, const struct state *s, const struct commit *k)
{
    for (size_t i = 0; s->rules.at[RULE_SILENT_SINCE_MS] && i < k->event_count; i++)
        if (text_is(k->events[i].kind, "attempt.ended") && strstr(k->events[i].data, "silent for longer"))
            cloud_fail(c, "%s was taken from a silent node while many were silent", k->events[i].subject);
}

void watch_commit(struct cloud *c, int h, const struct commit *k)
{
    struct head_of *me = &c->servers[h];
    for (size_t i = 0; i < k->event_count; i++) {
        if (k->events[i].seq != me->told + 1)
            cloud_fail(c, "a follower in %s was told event %lld after %lld", c->heads[h].host,
                       LL(k->events[i].seq), LL(me->told));
        me->told = k->events[i].seq;
    }
    c->checks++;
    if (!c->server || c->server != me->server)
        return;                 /* it follows another, or does not know yet that another writes */
    struct state *s = server_control(c->server)->writer.state;
    check_attempts(c, s);
    check_quotas(c, s);
    check_nodes(c, s);
    check_silence(c, s, k);
    if (ends_attempts(k))
        check_store(c, "SELECT " LIVE_TWICE " + " BAD_USAGE);
}

void watch_server(struct cloud *c, int h)
{
    c->servers[h].told = control_last_event(server_control(c->servers[h].server));
    c->checks++;
    if (!c->server)
        return;
    check_attempts(c, server_control(c->server)->writer.state);
    check_store(c, "SELECT " LIVE_TWICE " + " BAD_USAGE " + " EVENT_GAP);
    for (size_t i = 0; cloud_ok(c) && i < c->wish_count; i++)
        if (c->wishes[i].kind == WISH_SUBMIT && c->wishes[i].job[0])
            watch_acknowledged(c, &c->wishes[i]);
}

void watch_acknowledged(struct cloud *c, struct wish *w)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct err err = { 0 };
    struct rows r = { 0 };
    int64_t id;
    head_pick(c);
    if (!c->server || !id_parse(w->job, "job", &id))
        return;                 /* the next server is asked when it starts */
    c->checks++;
    const struct project *p = state_project(server_control(c->server)->writer.state, c->tenants[w->tenant].name);
    struct value args[] = { V_INT(p ? p->id : 0), V_INT(id) };
    fault_hold(true);
    bool ok = store_query(cloud_conn(c), ST_JOB_GET, args, 2, mem, &r, &err);
    fault_hold(false);
    if (!ok || r.count != 1)
        cloud_fail(c, "%s (%s) was acknowledged and is not in the store%s", w->name, w->job, err.text);
}

/* --- what really runs */

void watch_begins(struct cloud *c, struct run *r)
{
    const struct given *g = given_of(c, r->attempt);
    c->checks++;
    head_pick(c);
    if (!g && c->server) {      /* by a server that died before anybody heard of it; its successor told the node */
        check_attempts(c, server_control(c->server)->writer.state);
        g = given_of(c, r->attempt);
    }
    if (!g)
        cloud_fail(c, "n%d began an attempt that nobody gave it", r->node + 1);
    else if (g->host != r->node)
        cloud_fail(c, "n%d began an attempt of n%d", r->node + 1, g->host + 1);
}

/* An order that lay in the socket of an agent that stood still may begin a supervisor; the lease ends that before its container. */
void watch_runs(struct cloud *c, struct run *r)
{
    const struct given *g = given_of(c, r->attempt), *o;
    int64_t held[GPUS_MOST] = { 0 };
    c->checks++;
    for (size_t i = 0; i < c->run_count; i++) {
        const struct run *x = &c->runs[i];
        if (x->to_ms || !x->container_ms || !(o = given_of(c, x->attempt)))
            continue;
        if (x != r && o->job == g->job && o->task == g->task)
            cloud_fail(c, "task %lld of %s runs on n%d and on n%d", LL(g->task),
                       g->wish ? g->wish->name : "?", x->node + 1, r->node + 1);
        for (int k = 0; x->node == r->node && !x->frozen && k < GPUS_MOST; k++)
            held[k] += o->milli[k];
    }
    for (int k = 0; k < GPUS_MOST; k++)
        if (held[k] > 1000)
            cloud_fail(c, "GPU %d of n%d really has %lld thousandths in use", k, r->node + 1,
                       LL(held[k]));
}

struct wish *watch_some(struct cloud *c, bool frozen)
{
    struct wish *found = NULL;
    uint64_t seen = 0;
    for (size_t i = 0; i < c->run_count; i++) {
        const struct run *r = &c->runs[i];
        const struct given *g = r->alive && r->container_ms && r->frozen == frozen ? given_of(c, r->attempt) : NULL;
        bool whole = false;
        for (int k = 0; g && k < GPUS_MOST; k++)
            whole |= g->milli[k] == 1000;
        if (whole && g->wish && rng_below(&c->rng, ++seen) == 0)
            found = g->wish;
    }
    return found;
}

void watch_lease(struct cloud *c, int node, int64_t contact_ms)
{
    c->checks++;
    if (contact_ms > c->heard_ms[node])
        cloud_fail(c, "n%d says that it heard the server at %lld ms, and that was at %lld ms",
                   node + 1, LL(contact_ms), LL(c->heard_ms[node]));
}

/* --- what comes to a node */

static bool has_secret_for(const struct cloud *c, int node, int tenant)
{
    for (size_t i = 0; i < c->given_count; i++) {
        const struct given *g = &c->given[i];
        if (g->host == node && g->wish && g->wish->tenant == tenant && g->wish->has_secret)
            return true;
    }
    return false;
}

static void check_secrets(struct cloud *c, int node, const char *at, size_t n)
{
    for (int t = 0; t < TENANTS; t++) {
        char want[64];
        int len = snprintf(want, sizeof want, "squeamish-%s-", c->tenants[t].name);
        if (!memmem(at, n, want, (size_t)len))
            continue;
        if (node < 0)
            cloud_fail(c, "a client was sent a secret");
        else if (!has_secret_for(c, node, t))
            cloud_fail(c, "n%d was sent a secret of project %s", node + 1, c->tenants[t].name);
    }
}

static void check_orders(struct cloud *c, int node, const char *at, size_t n)
{
    for (const char *end = at + n; (at = memmem(at, (size_t)(end - at), "att-", 4)); at += 4) {
        char id[ID_TEXT];
        int64_t attempt;
        snprintf(id, sizeof id, "%.*s", (int)MIN((size_t)(end - at), sizeof id - 1), at);
        id[4 + strspn(id + 4, "0123456789abcdefghijklmnopqrstuvwxyz")] = 0;
        const struct given *g = id_parse(id, "att", &attempt) ? given_of(c, attempt) : NULL;
        if (g && g->host != node)
            cloud_fail(c, "n%d was told of %s, which is on n%d", node + 1, id, g->host + 1);
    }
}

static void on_bytes(void *arg, const char *from, const char *to, const char *at, size_t n)
{
    struct cloud *c = arg;
    if (!text_starts(from, "head") || text_starts(to, "head"))
        return;
    int node = host_of(c, to);
    c->checks++;
    check_secrets(c, node, at, n);
    if (node < 0)
        return;
    c->heard_ms[node] = sim_now_ms(c->sim);
    check_orders(c, node, at, n);
}

void watch_open(struct cloud *c)
{
    sim_listen_in(c->sim, on_bytes, c);
}
