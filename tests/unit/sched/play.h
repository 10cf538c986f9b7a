/* play.h - a small cloud around the planner, told in virtual time: jobs of one task, and gangs, come, run, end, are told to yield and leave. It keeps its own
 * books in the plainest way, and `ok` is false as soon as something was given twice or somebody was evicted who must not be. */
#pragma once
#include "kit.h"
#include "sched/sched_internal.h"

enum { PLAY_JOBS = 64, PLAY_NODES = 6, PLAY_GANG = 4, PLAY_NOTICE = 5000 };
enum play_fate { PLAY_NONE, PLAY_WAITS, PLAY_RUNS, PLAY_YIELDS, PLAY_OVER };
struct play_job {
    enum play_fate fate;
    struct sched_event e;
    int64_t node, since_ms, held_ms, for_job;   /* held_ms: the earliest start that was held for it; 0: none */
    int gpus, evicted, started, why;
    struct sched_held gpu[SCHED_GPUS];
    int tasks, there;                   /* of a gang: how many, and how many of them hold something; else 0 */
    int64_t at_node[PLAY_GANG];
    int64_t at_gpu[PLAY_GANG][SCHED_GPUS];
};
struct play {
    struct sched *s;
    struct arena *mem;
    struct sched_event nodes[PLAY_NODES];
    struct play_job jobs[PLAY_JOBS];    /* job i has number i + 1 */
    int node_count, job_count, evictions;
    int64_t now, evicted_milli;
    struct sched_plan plan;
    bool ok, late;                      /* late: somebody started later than it was held for it */
};

static inline struct play play_new(void)
{
    return (struct play){ .s = sched_new(), .mem = arena_new(), .now = 1000, .ok = true };
}
static inline void play_free_auto(struct play *p)
{
    sched_free(p->s);
    arena_free(p->mem);
}
#define PLAY AUTO(play_free) struct play p = play_new()

static inline void play_rules(struct play *p)
{
    struct sched_rules rules = SCHED_RULES_USUAL;
    rules.brake_permille = 1000000;
    rules.notice_ms = PLAY_NOTICE;
    sched_apply(p->s, &(struct sched_event){ .kind = SCHED_RULES, .rules = rules });
}

static inline void play_node(struct play *p, int gpus, int64_t cpus)
{
    struct sched_event *e = &p->nodes[p->node_count++];
    *e = kit_node_event(&(struct kit_node){ p->node_count, "H200", gpus, 1000, cpus, 100000, false, false });
    sched_apply(p->s, e);
}

static inline struct play_job *play_job(struct play *p, int64_t id) { return &p->jobs[id - 1]; }

static inline int64_t play_submit(struct play *p, int64_t project, int64_t priority, const char *gpus, int64_t cpus, int64_t bound_ms)
{
    struct play_job *j = &p->jobs[p->job_count++];
    *j = (struct play_job){ .fate = PLAY_WAITS, .e = kit_job_event(p->job_count, project, priority, gpus, cpus, 100, 1) };
    j->e.created_ms = p->now;
    j->e.bound_ms = bound_ms;
    sched_apply(p->s, &j->e);
    return p->job_count;
}

static inline int64_t play_gang(struct play *p, int64_t project, int64_t priority, int64_t nodes, const char *gpus, int64_t bound_ms)
{
    struct play_job *j = &p->jobs[p->job_count++];
    *j = (struct play_job){ .fate = PLAY_WAITS, .tasks = (int)nodes, .e = kit_job_event(p->job_count, project, priority, gpus, 1, 100, nodes) };
    j->e.created_ms = p->now;
    j->e.bound_ms = bound_ms;
    j->e.gang = nodes;
    j->e.within = j->e.prefer = PLACE_REGION;
    sched_apply(p->s, &j->e);
    return p->job_count;
}

static inline void play_held(struct play *p, struct play_job *j, int64_t task)
{
    struct sched_event e = { .kind = SCHED_TASK_HELD, .job = j->e.job, .task = task, .project = j->e.project, .node = j->node, .at_ms = j->since_ms,
                             .priority = j->e.priority, .bound_ms = j->e.bound_ms, .cpu_held = j->e.shape.cpu_milli, .mem_held = 100,
                             .held_count = j->gpus, .held = j->gpu, .yielding = j->fate == PLAY_YIELDS, .yields_ms = p->now + PLAY_NOTICE };
    sched_apply(p->s, &e);
}

static inline void play_sums(struct play *p)
{
    int64_t cpu[PLAY_NODES] = { 0 }, milli[PLAY_NODES][SCHED_GPUS] = { 0 };
    for (int i = 0; i < p->job_count; i++) {
        const struct play_job *j = &p->jobs[i];
        if (j->fate != PLAY_RUNS && j->fate != PLAY_YIELDS)
            continue;
        p->ok = p->ok && j->there == j->tasks;  /* a gang is never split */
        for (int t = 0; t < j->there; t++) {
            cpu[j->at_node[t] - 1] += j->e.shape.cpu_milli;
            for (int k = 0; k < j->gpus; k++)
                milli[j->at_node[t] - 1][j->at_gpu[t][k]] += j->gpu[k].milli;
            for (int u = 0; u < t; u++)
                p->ok = p->ok && j->at_node[t] != j->at_node[u];
        }
        if (j->tasks)
            continue;
        cpu[j->node - 1] += j->e.shape.cpu_milli;
        for (int k = 0; k < j->gpus; k++)
            milli[j->node - 1][j->gpu[k].index] += j->gpu[k].milli;
    }
    for (int n = 0; n < p->node_count; n++) {
        p->ok = p->ok && cpu[n] <= p->nodes[n].cpu_milli;
        for (int g = 0; g < SCHED_GPUS; g++)
            p->ok = p->ok && milli[n][g] <= (g < p->nodes[n].gpu_count ? 1000 : 0);
    }
}

static inline void play_start(struct play *p, const struct placement *at)
{
    struct play_job *j = play_job(p, at->job);
    const struct order_gpu *g = at->gpus.at;
    p->ok = p->ok && (j->fate == PLAY_WAITS || (j->there && j->there < j->tasks && j->since_ms == p->now));
    j->fate = PLAY_RUNS;
    j->node = at->node;
    j->since_ms = p->now;
    j->started++;
    for (size_t i = 0; j->tasks && i < at->gpus.count; i++)
        j->at_gpu[at->task][i] = g[i].index;
    if (j->tasks)
        j->at_node[at->task] = at->node, j->there++;
    j->gpus = (int)at->gpus.count;
    for (int i = 0; i < j->gpus; i++)
        j->gpu[i] = (struct sched_held){ g[i].index, g[i].milli, g[i].mem_mib };
    p->late = p->late || (j->held_ms && p->now > j->held_ms);
    j->held_ms = 0;
    play_held(p, j, at->task);
}

static inline void play_evict(struct play *p, const struct eviction *e)
{
    struct play_job *j = play_job(p, e->job), *by = play_job(p, e->for_job);
    p->ok = p->ok && j->fate == PLAY_RUNS && (j->tasks ? j->at_node[e->task] : j->node) == e->node && by->fate == PLAY_WAITS && priority_of(j->e.priority) == CLASS_SPOT;
    j->fate = PLAY_YIELDS;
    j->for_job = e->for_job;
    j->why = e->why;
    j->evicted++;
    p->evictions++;
    p->evicted_milli += j->e.shape.gpu.milli * MAX(j->tasks, 1);
    for (int t = 0; t < j->tasks; t++) {        /* the door ends the rest of a gang */
        j->node = j->at_node[t];
        for (int k = 0; k < j->gpus; k++)
            j->gpu[k].index = j->at_gpu[t][k];
        play_held(p, j, t);
    }
    if (!j->tasks)
        play_held(p, j, 0);
}

/* One pass, with all that follows from it. True: something happened. */
static inline bool play_plan(struct play *p)
{
    bool any = false;
    for (bool again = true; again;) {
        p->plan = sched_plan(p->s, p->now, 1000, p->mem);
        for (size_t i = 0; i < p->plan.count; i++)
            play_start(p, &p->plan.placements[i]);
        for (size_t i = 0; i < p->plan.eviction_count; i++)
            play_evict(p, &p->plan.evictions[i]);
        play_sums(p);
        any = any || p->plan.count || p->plan.eviction_count;
        again = p->plan.next_ms <= p->now || p->plan.eviction_count;   /* the door's answer is news, and after news there is a pass */
    }
    for (size_t i = 0; i < p->s->claims.count; i++) {
        const struct claim *cl = p->s->claims.at[i];
        struct play_job *j = cl->kind == CLAIM_HEAD ? play_job(p, cl->job) : NULL;
        if (j && cl->start_ms < INT64_MAX)
            j->held_ms = j->held_ms ? MIN(j->held_ms, cl->start_ms) : cl->start_ms;
    }
    return any;
}

/* It has ended; or, told to yield, left, and waits again. */
static inline void play_end(struct play *p, int64_t id)
{
    struct play_job *j = play_job(p, id);
    for (int i = 0; i < MAX(j->tasks, 1); i++)
        sched_apply(p->s, &(struct sched_event){ .kind = SCHED_TASK_FREED, .job = id, .task = i, .at_ms = p->now });
    j->there = 0;
    bool again = j->fate == PLAY_YIELDS;
    j->fate = again ? PLAY_WAITS : PLAY_OVER;
    for (int i = 0; i < (again ? MAX(j->tasks, 1) : 1); i++)
        sched_apply(p->s, &(struct sched_event){ .kind = again ? SCHED_TASK_QUEUED : SCHED_JOB_GONE, .job = id, .task = i });
}

static inline bool play_is(struct play *p, int64_t id, enum play_fate fate, int64_t node)
{
    struct play_job *j = play_job(p, id);
    if (j->fate != fate || (node && j->node != node))
        printf("# job %lld is %d on node %lld\n", (long long)id, j->fate, (long long)j->node);
    return j->fate == fate && (!node || j->node == node);
}

static inline struct claim *play_claim(struct play *p, int64_t id) { return claims_of(p->s, id); }

/* When the next of those that run or yield goes by itself; INT64_MAX: never. */
static inline int64_t play_next(const struct play *p, int64_t *who)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < p->job_count; i++) {
        const struct play_job *j = &p->jobs[i];
        int64_t at = j->fate == PLAY_YIELDS ? p->now : j->fate == PLAY_RUNS && j->e.bound_ms ? j->since_ms + j->e.bound_ms : INT64_MAX;
        if (at < best) {
            best = at;
            *who = i + 1;
        }
    }
    return best;
}
