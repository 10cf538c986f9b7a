/* Random fleets, queues and lives of tasks, with the truth kept beside in the plainest way: nothing is ever given twice, no filter is broken, no quota
 * exceeded, nobody waits for what is free, and a picture that followed every event equals one that was told only the facts. */
#include "base/rand.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"
#include <stdlib.h>

enum { NODES_MAX = 5, JOBS_MAX = 30, TASKS_MAX = 8, PROJECTS = 3, STEPS = 80 };
enum fate { NONE, WAITS, ASKED, HELD, OVER };

struct truth_task { enum fate fate; int64_t not_before, at_ms, yields_ms, cpu, mem; struct placement at; struct order_gpu gpus[SCHED_GPUS]; };
struct truth_job { bool live; struct sched_event e; int64_t tasks, refused_ms; struct truth_task task[TASKS_MAX]; };
struct truth {
    struct rng rng;
    struct sched *a, *b;        /* two that are told the same */
    struct sched_event nodes[NODES_MAX], goods[NODES_MAX], projects[PROJECTS], reserves[2], rules;
    int64_t weight[TERM_COUNT];
    bool node_there[NODES_MAX];
    struct truth_job jobs[JOBS_MAX];
    int job_count;
    int64_t now;
    bool ok;
};

static size_t evicted_in_all, free_in_all, kept_in_all;
enum { CLOSED = -1000000 };         /* thousandths of a GPU that is kept for somebody else */
static uint64_t seeds(void) { return getenv("ARCUS_SOAK") ? 20000 : 400; }

static void tell(struct truth *t, const struct sched_event *e)
{
    sched_apply(t->a, e);
    sched_apply(t->b, e);
}

static bool chance(struct truth *t, int percent) { return (int)rng_below(&t->rng, 100) < percent; }

static void change_node(struct truth *t)
{
    static const char *const models[] = { "NVIDIA H200", "NVIDIA A100-SXM4-40GB", "NVIDIA L4" };
    int i = (int)rng_below(&t->rng, NODES_MAX);
    int64_t id = i + 1;
    if (t->node_there[i] && chance(t, 20)) {
        t->node_there[i] = false;
        t->goods[i] = (struct sched_event){ 0 };
        tell(t, &(struct sched_event){ .kind = SCHED_NODE_GONE, .node = id });
        return;
    }
    if (!t->nodes[i].node || chance(t, 10)) {   /* else it comes back, or changes, as it was: what it holds is still there */
        bool idle = true;
        for (int j = 0; j < t->job_count; j++)
            for (int k = 0; k < TASKS_MAX; k++)
                idle = idle && !((t->jobs[j].task[k].fate == HELD || t->jobs[j].task[k].fate == ASKED) && t->jobs[j].task[k].at.node == id);
        if (idle)
            t->nodes[i] = kit_node_event(&(struct kit_node){ id, models[rng_below(&t->rng, 3)], (int)rng_below(&t->rng, 5),
                                                             chance(t, 30) ? 143771 : 20000 * (1 + (int64_t)rng_below(&t->rng, 4)), 1 + (int64_t)rng_below(&t->rng, 16),
                                                             1000 * (1 + (int64_t)rng_below(&t->rng, 16)), false, chance(t, 50) });
        for (int g = 0; idle && g < t->nodes[i].gpu_count; g++)
            kit_gpu_mode(&t->nodes[i].gpus[g], rng_below(&t->rng, 9));
    }
    if (!t->nodes[i].node)
        return;
    static const char *const places[] = { NULL, "eu", "eu/a", "eu/b/s1/r1", "us/a/s1/r1/n1" };
    if (chance(t, 30))
        t->nodes[i].where = (char *)places[rng_below(&t->rng, COUNT(places))];
    t->nodes[i].usable = chance(t, 80);
    if (chance(t, 50)) /* whoever is there already stays */
        t->nodes[i].house = kit_houses[rng_below(&t->rng, COUNT(kit_houses))];
    for (int g = 0; g < t->nodes[i].gpu_count; g++)
        if (chance(t, 10) && !t->nodes[i].gpus[g].mig.on)
            kit_gpu_mode(&t->nodes[i].gpus[g], rng_below(&t->rng, 5));
    for (int g = 0; g < t->nodes[i].gpu_count; g++) /* whoever is on it then stays */
        t->nodes[i].gpus[g].healthy = chance(t, 85);
    t->node_there[i] = true;
    tell(t, &t->nodes[i]);
}

static void change_goods(struct truth *t)
{
    int i = (int)rng_below(&t->rng, NODES_MAX);
    if (!t->node_there[i])
        return;
    t->goods[i] = (struct sched_event){ .kind = SCHED_NODE_HAS, .node = i + 1, .good_count = rng_below(&t->rng, 4), .goods = kit_keep(4, sizeof(struct good)) };
    for (size_t k = 0; k < t->goods[i].good_count; k++)
        t->goods[i].goods[k] = (struct good){ 1 + (int64_t)rng_below(&t->rng, 5), 1 + (int64_t)rng_below(&t->rng, 50000) };
    tell(t, &t->goods[i]);
}

static void change_project(struct truth *t)
{
    int i = (int)rng_below(&t->rng, PROJECTS);
    struct quota q = { chance(t, 50) ? -1000 : (int64_t)rng_below(&t->rng, 5000), chance(t, 50) ? -1000 : (int64_t)rng_below(&t->rng, 20000),
                       chance(t, 50) ? -1 : (int64_t)rng_below(&t->rng, 20000), -1 };
    t->projects[i] = (struct sched_event){ .kind = SCHED_PROJECT, .project = i + 1, .quota = q, .house = kit_residencies[rng_below(&t->rng, COUNT(kit_residencies))] };
    tell(t, &t->projects[i]);
}

static void change_rules(struct truth *t)
{
    t->rules = (struct sched_event){ .kind = SCHED_RULES, .rules = SCHED_RULES_USUAL };
    t->rules.rules.brake_permille = 1 + (int64_t)rng_below(&t->rng, 1000);
    t->rules.rules.brake_window_ms = 1000;
    t->rules.rules.preempt[CLASS_URGENT] = (uint8_t)rng_below(&t->rng, 16);
    if (chance(t, 50)) {
        memcpy(t->weight, weights_usual, sizeof t->weight);
        t->weight[rng_below(&t->rng, TERM_COUNT)] = (int64_t)rng_below(&t->rng, 10000);
    }
    t->rules.rules.weight = t->weight[TERM_SLIVER] ? t->weight : NULL;
    tell(t, &t->rules);
}

static void change_reserve(struct truth *t)
{
    static const char *const asks[] = { "0", "1", "2", "0.5", "H200:1" };
    int i = (int)rng_below(&t->rng, 2);
    if (t->reserves[i].reserve) {
        t->reserves[i] = (struct sched_event){ 0 };
        tell(t, &(struct sched_event){ .kind = SCHED_RESERVE_GONE, .reserve = i + 1 });
        return;
    }
    t->reserves[i] = kit_job_event(0, 1 + (int64_t)rng_below(&t->rng, PROJECTS), 0, asks[rng_below(&t->rng, COUNT(asks))], 0, 0, 1);
    t->reserves[i].kind = SCHED_RESERVE;
    t->reserves[i].reserve = i + 1;
    t->reserves[i].count = 1 + (int64_t)rng_below(&t->rng, 3);
    t->reserves[i].from_ms = t->now + (int64_t)rng_below(&t->rng, 1500);
    t->reserves[i].until_ms = t->reserves[i].from_ms + (int64_t)rng_below(&t->rng, 3000);
    tell(t, &t->reserves[i]);
}

static void new_job(struct truth *t)
{
    static const char *const asks[] = { "0", "0", "1", "2", "4", "0.5", "0.25", "0.1", "H200:1", "A100:0.5", "24GB..60GB:1", "L4:2", "1g.18gb", "1g.18gb+me", "3g.71gb", "2g.35gb", "1g.10gb" };
    if (t->job_count == JOBS_MAX)
        return;
    struct truth_job *j = &t->jobs[t->job_count++];
    j->tasks = 1 + (int64_t)rng_below(&t->rng, TASKS_MAX);
    j->e = kit_job_event(100 + t->job_count, 1 + (int64_t)rng_below(&t->rng, PROJECTS), (int64_t)rng_below(&t->rng, 4) * 25,
                         asks[rng_below(&t->rng, COUNT(asks))], (int64_t)rng_below(&t->rng, 4), 100 * (int64_t)rng_below(&t->rng, 40), j->tasks);
    j->e.created_ms = (int64_t)rng_below(&t->rng, 3);
    j->e.blocked = chance(t, 10);
    for (int k = 0; chance(t, 50) && k < SCHED_NEEDS; k++)
        j->e.needs[k] = (int64_t)rng_below(&t->rng, 5);
    j->e.spread = chance(t, 30) ? (enum spread)rng_below(&t->rng, SPREAD_COUNT) : SPREAD_NONE;
    j->e.house = kit_tolerations[rng_below(&t->rng, COUNT(kit_tolerations))];
    j->e.wants_host_image = chance(t, 20);
    if (chance(t, 15))
        snprintf(j->e.region, sizeof j->e.region, "%s", chance(t, 50) ? "eu" : "us");
    if (chance(t, 15))
        snprintf(j->e.zone, sizeof j->e.zone, "%s", chance(t, 50) ? "a" : "b");
    j->e.only_node = chance(t, 15) ? 1 + (int64_t)rng_below(&t->rng, NODES_MAX) : 0;
    j->e.by_volume = j->e.only_node && chance(t, 50);
    if (j->e.shape.gpu.milli > 0 && j->e.shape.gpu.milli < 1000 && !j->e.shape.gpu.mig[0] && chance(t, 30))
        j->e.shape.gpu.share_mib = 5000;
    j->e.bound_ms = chance(t, 50) ? 1 + (int64_t)rng_below(&t->rng, 4000) : 0;
    j->live = true;
    for (int k = 0; k < j->tasks; k++)
        j->task[k].fate = WAITS;
    tell(t, &j->e);
}

static bool job_over(const struct truth_job *j)
{
    for (int k = 0; k < j->tasks; k++)
        if (j->task[k].fate != OVER)
            return false;
    return true;
}

static void end_if_over(struct truth *t, struct truth_job *j)
{
    if (j->live && job_over(j)) {
        j->live = false;
        tell(t, &(struct sched_event){ .kind = SCHED_JOB_GONE, .job = j->e.job });
    }
}

static void live_on(struct truth *t)
{
    if (!t->job_count)
        return;
    struct truth_job *j = &t->jobs[rng_below(&t->rng, (uint64_t)t->job_count)];
    int64_t k = (int64_t)rng_below(&t->rng, (uint64_t)j->tasks);
    struct truth_task *task = &j->task[k];
    struct sched_event e = { .job = j->e.job, .task = k, .node = task->at.node, .project = j->e.project };
    if (!j->live)
        return;
    if (task->fate == HELD) {
        e.kind = SCHED_TASK_FREED;
        tell(t, &e);
        task->fate = OVER;
        if (chance(t, 40)) {
            e.kind = SCHED_TASK_QUEUED;
            e.not_before_ms = task->not_before = chance(t, 50) ? t->now + (int64_t)rng_below(&t->rng, 2000) : 0;
            tell(t, &e);
            task->fate = WAITS;
        }
    } else if (task->fate == WAITS && chance(t, 20)) {
        e.kind = SCHED_TASK_GONE;
        tell(t, &e);
        task->fate = OVER;
    } else if (chance(t, 30)) {
        j->e.priority = (int64_t)rng_below(&t->rng, 4) * 25;
        j->e.blocked = j->e.blocked && chance(t, 50);
        tell(t, &j->e);
    }
    end_if_over(t, j);
}

static struct truth_job *job_of(struct truth *t, int64_t id) { return &t->jobs[id - 101]; }

static bool may_be_at(const struct sched_event *n, const struct sched_event *j)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct topology w;
    struct err err;
    return where_parse(n->where ? n->where : "", mem, &w, &err) && where_fits(&w, j->region, j->zone);
}

/* A healthy one of a model that it takes, and who is on it already may be beside this task: asked when it comes, for the rules may have changed
 * since the others did. */
static bool may_join(const struct truth *t, const struct truth_job *j, int64_t node, const struct order_gpu *gpu)
{
    const struct sched_gpu *g = &t->nodes[node - 1].gpus[gpu->index];
    bool slice = j->e.shape.gpu.mig[0], share = !slice && gpu->milli < 1000;
    uint16_t slots = slice ? mig_slots((int)gpu->slot, (int)gpu->size, strstr(j->e.shape.gpu.mig, "+me")) : 0;
    bool ok = g->healthy && gpu_ask_fits(&j->e.shape.gpu, g->model, g->mem_mib) && g->mig.on == slice && !slots == !slice
              && !(share && g->whole_only) && !(share && g->equal && 1000 % gpu->milli);
    if (slice) {
        const struct mig_part *part = mig_part_of(g->model, g->mem_mib);
        int p = mig_find(part, j->e.shape.gpu.mig);
        ok = ok && p >= 0 && (g->mig.starts[p] >> gpu->slot & 1) && part->profiles[p].size == gpu->size;
    }
    for (int i = 0; i < t->job_count; i++)
        for (int k = 0; k < t->jobs[i].tasks; k++) {
            const struct truth_task *other = &t->jobs[i].task[k];
            for (size_t o = 0; o < other->at.gpus.count; o++) {
                const struct order_gpu *x = &other->gpus[o];
                if ((other->fate != HELD && other->fate != ASKED) || other->at.node != node || x->index != gpu->index)
                    continue;
                uint16_t taken = x->size ? mig_slots((int)x->slot, (int)x->size, strstr(x->mig, "+me")) : 0;
                ok = ok && !(taken & slots) && (slice || share) && (slice || g->mixes || t->jobs[i].e.project == j->e.project)
                     && (!share || !g->equal || x->milli == gpu->milli) && !(slice && !taken);
            }
        }
    return ok;
}

static bool may_come(const struct truth *t, const struct truth_job *j, int64_t node)
{
    const struct sched_event *n = &t->nodes[node - 1];
    return t->node_there[node - 1] && n->usable && (!j->e.wants_host_image || n->host_image) && (!j->e.only_node || j->e.only_node == node)
           && may_be_at(n, &j->e) && kit_admits(n->house, j->e.house, t->projects[j->e.project - 1].house, j->e.project);
}

/* What a task holds: where it names no CPUs or memory they come with its GPUs. */
static void holds(const struct truth *t, const struct truth_job *j, int64_t node, int64_t *cpu, int64_t *mem)
{
    const struct sched_event *n = &t->nodes[node - 1];
    shape_on(&j->e.shape, n->cpu_milli, n->mem_mib, 0, n->gpu_count, cpu, mem);
}

static void take_plan(struct truth *t, const struct sched_plan *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct placement *at = &p->placements[i];
        struct truth_job *j = job_of(t, at->job);
        struct truth_task *task = &j->task[at->task];
        t->ok = t->ok && j->live && !j->e.blocked && task->fate == WAITS && task->not_before <= t->now;
        t->ok = t->ok && may_come(t, j, at->node) && at->gpus.count <= SCHED_GPUS;
        for (size_t k = 0; k < at->gpus.count; k++)
            t->ok = t->ok && may_join(t, j, at->node, (const struct order_gpu *)at->gpus.at + k);
        task->fate = ASKED;
        task->at = *at;
        holds(t, j, at->node, &task->cpu, &task->mem);
        memcpy(task->gpus, at->gpus.at, at->gpus.count * sizeof task->gpus[0]);
        for (size_t k = 0; k < at->gpus.count; k++)
            task->gpus[k].mig = j->e.shape.gpu.mig; /* the plan's own does not last */
        task->at.gpus.at = task->gpus;
        int64_t milli = 0;
        for (size_t k = 0; k < at->gpus.count; k++)
            milli += task->gpus[k].milli;
        t->ok = t->ok && milli == j->e.shape.gpu.milli;
    }
}

static struct sched_event held_event(const struct truth_job *j, int64_t k)
{
    const struct truth_task *task = &j->task[k];
    struct sched_event e = kit_held_event(&task->at, &j->e);
    e.cpu_held = task->cpu;
    e.mem_held = task->mem;
    e.at_ms = task->at_ms;
    e.yielding = task->yields_ms > 0;
    e.yields_ms = task->yields_ms;
    return e;
}

/* Who is evicted holds something, is of a class that the rules name (or was lent it), and is asked once. */
static void take_evictions(struct truth *t, const struct sched_plan *p)
{
    for (size_t i = 0; i < p->eviction_count; i++) {
        const struct eviction *v = &p->evictions[i];
        struct truth_job *j = job_of(t, v->job), *by = job_of(t, v->for_job);
        struct truth_task *task = &j->task[v->task];
        int rank = (int)priority_of(j->e.priority), mask = t->rules.rules.preempt[priority_of(by->e.priority)];
        t->ok = t->ok && task->fate == HELD && !task->yields_ms && task->at.node == v->node && by->live
             && (v->why == EVICT_RESERVATION ? rank == CLASS_SPOT : (mask >> rank & 1) && (v->why == EVICT_SPOT) == (rank == CLASS_SPOT));
        if (chance(t, 80)) {
            task->yields_ms = t->now + 1 + (int64_t)rng_below(&t->rng, 500);
            struct sched_event e = held_event(j, v->task);
            tell(t, &e);
        } else {
            tell(t, &(struct sched_event){ .kind = SCHED_TASK_KEPT, .job = v->job, .task = v->task });
        }
        evicted_in_all++;
    }
}

/* Nothing is given twice: sums over all that is held or asked for, from nothing but the truth. */
static void check_sums(struct truth *t)
{
    int64_t cpu[NODES_MAX] = { 0 }, mem[NODES_MAX] = { 0 }, milli[NODES_MAX][SCHED_GPUS] = { 0 }, mib[NODES_MAX][SCHED_GPUS] = { 0 };
    for (int i = 0; i < t->job_count; i++)
        for (int k = 0; k < t->jobs[i].tasks; k++) {
            const struct truth_task *task = &t->jobs[i].task[k];
            int64_t n = task->at.node - 1;
            if (task->fate != HELD && task->fate != ASKED)
                continue;
            cpu[n] += task->cpu;
            mem[n] += task->mem;
            for (size_t g = 0; g < task->at.gpus.count; g++) {
                int64_t x = task->gpus[g].index;
                milli[n][x] += task->gpus[g].milli;
                mib[n][x] += task->gpus[g].mem_mib;
            }
        }
    for (int n = 0; n < NODES_MAX; n++) {
        t->ok = t->ok && cpu[n] <= t->nodes[n].cpu_milli && mem[n] <= t->nodes[n].mem_mib;
        for (int g = 0; g < SCHED_GPUS; g++)
            t->ok = t->ok && milli[n][g] <= 1000 && mib[n][g] <= (g < t->nodes[n].gpu_count ? t->nodes[n].gpus[g].mem_mib : 0);
    }
}

static void held_by(const struct truth *t, int64_t project, int64_t *gpu, int64_t *cpu, int64_t *mem)
{
    *gpu = *cpu = *mem = 0;
    for (int i = 0; i < t->job_count; i++)
        for (int k = 0; t->jobs[i].e.project == project && k < t->jobs[i].tasks; k++)
            if (t->jobs[i].task[k].fate == HELD || t->jobs[i].task[k].fate == ASKED) {
                *gpu += t->jobs[i].e.shape.gpu.milli;
                *cpu += t->jobs[i].task[k].cpu;
                *mem += t->jobs[i].task[k].mem;
            }
}

static void settle_asked(struct truth *t)
{
    for (int i = 0; i < t->job_count; i++) {
        struct truth_job *j = &t->jobs[i];
        for (int k = 0; k < j->tasks; k++) {
            struct truth_task *task = &j->task[k];
            if (task->fate != ASKED)
                continue;
            if (chance(t, 80)) {
                task->at_ms = t->now;
                task->yields_ms = 0;
                struct sched_event held = held_event(j, k);
                tell(t, &held);
                task->fate = HELD;
            } else {
                tell(t, &(struct sched_event){ .kind = SCHED_TASK_REFUSED, .job = j->e.job, .task = k });
                j->refused_ms = t->now + 1; /* 0 is never */
                task->fate = WAITS;
            }
        }
    }
}

/* A server that starts: facts only, in the order of their ids. */
static struct sched *from_scratch(const struct truth *t)
{
    struct sched *s = sched_new();
    for (int i = 0; i < PROJECTS; i++)
        if (t->projects[i].project)
            sched_apply(s, &t->projects[i]);
    for (int i = 0; i < NODES_MAX; i++)
        if (t->node_there[i]) {
            sched_apply(s, &t->nodes[i]);
            if (t->goods[i].node)
                sched_apply(s, &t->goods[i]);
        }
    for (size_t i = 0; i < COUNT(t->reserves); i++)
        if (t->reserves[i].reserve)
            sched_apply(s, &t->reserves[i]);
    if (t->rules.kind == SCHED_RULES)
        sched_apply(s, &t->rules);
    for (int i = 0; i < t->job_count; i++) {
        const struct truth_job *j = &t->jobs[i];
        struct sched_event e = j->e;
        int64_t fresh = j->tasks;
        while (fresh > 0 && j->task[fresh - 1].fate == WAITS && !j->task[fresh - 1].not_before)
            fresh--;
        e.first_task = fresh;
        e.last_task = j->tasks - 1;
        if (j->live)
            sched_apply(s, &e);
        for (int64_t k = 0; j->live && k < j->tasks; k++)
            if (j->task[k].fate == HELD) {
                struct sched_event held = held_event(j, k);
                sched_apply(s, &held);
            } else if (j->task[k].fate == WAITS && k < fresh) {
                kit_task(s, SCHED_TASK_QUEUED, j->e.job, k, j->task[k].not_before);
            }
    }
    return s;
}

static bool same_picture(const struct sched *a, const struct sched *b)
{
    AUTO(str_done) struct str x = { 0 }, y = { 0 };
    sched_print(a, &x);
    sched_print(b, &y);
    str_text(&x, "");
    str_text(&y, "");
    if (!text_is(x.at, y.at))
        printf("# --- one\n%s# --- other\n%s", x.at, y.at);
    return text_is(x.at, y.at);
}

static bool same_plan(const struct sched_plan *a, const struct sched_plan *b)
{
    bool same = a->count == b->count && a->wait_count == b->wait_count && a->next_ms == b->next_ms;
    for (size_t i = 0; same && i < a->count; i++) {
        const struct placement *x = &a->placements[i], *y = &b->placements[i];
        const struct order_gpu *g = x->gpus.at, *h = y->gpus.at;
        same = x->job == y->job && x->task == y->task && x->node == y->node && x->gpus.count == y->gpus.count;
        for (size_t k = 0; same && k < x->gpus.count; k++)
            same = g[k].index == h[k].index && g[k].milli == h[k].milli && g[k].mem_mib == h[k].mem_mib && g[k].slot == h[k].slot && g[k].size == h[k].size;
    }
    same = same && a->eviction_count == b->eviction_count && a->start_count == b->start_count;
    for (size_t i = 0; same && i < a->eviction_count; i++)
        same = memcmp(&a->evictions[i], &b->evictions[i], offsetof(struct eviction, why)) == 0;
    for (size_t i = 0; same && i < a->start_count; i++)
        same = memcmp(&a->starts[i], &b->starts[i], sizeof a->starts[i]) == 0;
    for (size_t i = 0; same && i < a->wait_count; i++)
        same = a->waits[i].job == b->waits[i].job && a->waits[i].reason == b->waits[i].reason;
    return same;
}

static void check_quota(struct truth *t, const int64_t before[PROJECTS][3])
{
    for (int i = 0; i < PROJECTS; i++) {
        int64_t now[3];
        held_by(t, i + 1, &now[0], &now[1], &now[2]);
        const struct quota *q = &t->projects[i].quota;
        const int64_t limit[3] = { q->gpu_milli, q->cpu_milli, q->mem_mib };
        for (int k = 0; k < 3; k++)     /* a quota may be lowered below what is held: then nothing is added */
            t->ok = t->ok && (!t->projects[i].project || limit[k] < 0 || now[k] <= limit[k] || now[k] == before[i][k]);
    }
}

/* --- nobody waits while a place is free */

static void free_on(const struct truth *t, int64_t node, int64_t *cpu, int64_t *mem, int64_t milli[SCHED_GPUS], int64_t mib[SCHED_GPUS])
{
    const struct sched_event *n = &t->nodes[node - 1];
    *cpu = n->cpu_milli;
    *mem = n->mem_mib;
    for (int g = 0; g < n->gpu_count; g++)
        milli[g] = 1000, mib[g] = n->gpus[g].mem_mib;
    for (int i = 0; i < t->job_count; i++)
        for (int k = 0; k < t->jobs[i].tasks; k++) {
            const struct truth_task *task = &t->jobs[i].task[k];
            if ((task->fate != HELD && task->fate != ASKED) || task->at.node != node)
                continue;
            *cpu -= task->cpu;
            *mem -= task->mem;
            for (size_t g = 0; g < task->at.gpus.count; g++) {
                milli[task->gpus[g].index] -= task->gpus[g].milli;
                mib[task->gpus[g].index] -= task->gpus[g].mem_mib;
            }
        }
}

/* So many GPUs of that node it could have, one part of it on each. */
static int gpus_for(const struct truth *t, const struct truth_job *j, int64_t node, const int64_t milli[SCHED_GPUS], const int64_t mib[SCHED_GPUS])
{
    const struct sched_event *n = &t->nodes[node - 1];
    const struct gpu_ask *ask = &j->e.shape.gpu;
    int count = 0;
    for (int g = 0; g < n->gpu_count; g++) {
        const struct mig_part *part = mig_part_of(n->gpus[g].model, n->gpus[g].mem_mib);
        int profile = ask->mig[0] && part ? mig_find(part, ask->mig) : -1;
        bool may = false;
        for (int slot = 0; profile >= 0 && milli[g] > CLOSED / 2 && slot < part->slots; slot++)
            may = may || may_join(t, j, node, &(struct order_gpu){ .index = g, .milli = ask->milli, .slot = slot, .size = part->profiles[profile].size });
        if (!ask->mig[0])
            may = milli[g] >= MIN(ask->milli, 1000) && mib[g] >= gpu_ask_mib(ask, n->gpus[g].mem_mib) && mib[g] > 0
                  && may_join(t, j, node, &(struct order_gpu){ .index = g, .milli = MIN(ask->milli, 1000) });
        count += may;
    }
    return count;
}

/* What is kept for somebody is not there, unless it is kept for this one, or it is over by then, or it is spot work and the place is reserved. Of CPUs
 * and memory planners may give out a part of that, too, where others end before: here nothing. */
static void keep_back(const struct truth *t, const struct truth_job *j, int64_t node, int64_t *cpu, int64_t *mem, int64_t milli[SCHED_GPUS])
{
    for (size_t i = 0; i < t->a->claims.count; i++) {
        const struct claim *cl = t->a->claims.at[i];
        const struct reserve *r = cl->reserve;
        bool own = r ? r->class->project->id == j->e.project && r->from_ms <= t->now && t->now < r->until_ms : cl->job == j->e.job;
        bool over = j->e.bound_ms && cl->start_ms < INT64_MAX && t->now + j->e.bound_ms <= cl->start_ms;
        bool lent = cl->kind != CLAIM_EVICT && (over || (r && priority_of(j->e.priority) == CLASS_SPOT));
        if (cl->node != node || own || lent)
            continue;
        *cpu -= cl->cpu_milli;
        *mem -= cl->mem_mib;
        for (int g = 0; g < cl->count; g++)
            milli[cl->gpus[g].index] = CLOSED;
        kept_in_all++;
    }
}

static bool could_start(const struct truth *t, const struct truth_job *j, int64_t node)
{
    int64_t cpu, mem, needs_cpu, needs_mem, had[3], milli[SCHED_GPUS], mib[SCHED_GPUS];
    const struct quota *q = &t->projects[j->e.project - 1].quota;
    bool limited = t->projects[j->e.project - 1].project;
    if (!t->nodes[node - 1].node || !may_come(t, j, node))
        return false;
    free_on(t, node, &cpu, &mem, milli, mib);
    keep_back(t, j, node, &cpu, &mem, milli);
    holds(t, j, node, &needs_cpu, &needs_mem);
    held_by(t, j->e.project, &had[0], &had[1], &had[2]);
    bool within = !limited || ((q->gpu_milli < 0 || had[0] + j->e.shape.gpu.milli <= q->gpu_milli) && (q->cpu_milli < 0 || had[1] + needs_cpu <= q->cpu_milli)
                               && (q->mem_mib < 0 || had[2] + needs_mem <= q->mem_mib));
    return within && cpu >= needs_cpu && mem >= needs_mem && gpus_for(t, j, node, milli, mib) >= (j->e.shape.gpu.milli + 999) / 1000;
}

static void check_waiting(struct truth *t)
{
    for (int i = 0; i < t->job_count; i++) {
        const struct truth_job *j = &t->jobs[i];
        bool waits = false;
        for (int k = 0; k < j->tasks; k++)
            waits = waits || (j->task[k].fate == WAITS && j->task[k].not_before <= t->now);
        if (!j->live || j->e.blocked || !waits || (j->refused_ms && t->now < j->refused_ms - 1 + REFUSED_PAUSE_MS))
            continue;
        for (int64_t n = 1; n <= NODES_MAX; n++) {
            if (could_start(t, j, n))
                printf("# job %lld waits, and node %lld has room\n", (long long)j->e.job, (long long)n), t->ok = false;
            free_in_all++;
        }
    }
}

static void step(struct truth *t)
{
    static void (*const acts[])(struct truth *) = { change_node, change_project, new_job, new_job, live_on, live_on, live_on, live_on,
                                                    new_job, live_on, live_on, change_rules, change_reserve, change_goods };
    int64_t before[PROJECTS][3];
    AUTO(arena_free) struct arena *mem = arena_new();
    t->now += (int64_t)rng_below(&t->rng, 400);
    acts[rng_below(&t->rng, COUNT(acts))](t);
    if (chance(t, 30))
        return;
    for (int i = 0; i < PROJECTS; i++)
        held_by(t, i + 1, &before[i][0], &before[i][1], &before[i][2]);
    size_t most = chance(t, 20) ? 1 + rng_below(&t->rng, 3) : 1000;
    struct sched_plan p = sched_plan(t->a, t->now, most, mem), q = sched_plan(t->b, t->now, most, mem);
    t->ok = t->ok && same_plan(&p, &q) && p.count <= most;
    take_plan(t, &p);
    check_sums(t);
    check_quota(t, before);
    if (p.count < most && p.next_ms > t->now + 1)       /* else it says itself that it was not through: who is kept a place for has changed in this pass */
        check_waiting(t);
    take_evictions(t, &p);
    settle_asked(t);
    AUTO(sched_free) struct sched *fresh = from_scratch(t);
    t->ok = t->ok && same_picture(t->a, fresh);
}

static size_t placed_in_all;

TEST(random_lives_never_overgive_and_the_picture_equals_one_from_scratch)
{
    for (uint64_t seed = 1; seed <= seeds(); seed++) {
        struct truth t = { .rng = { seed }, .ok = true };
        AUTO(sched_free) struct sched *a = sched_new(), *b = sched_new();
        t.a = a;
        t.b = b;
        for (int i = 0; i < STEPS && t.ok; i++)
            step(&t);
        if (!t.ok)
            printf("# seed %llu\n", (unsigned long long)seed);
        CHECK(t.ok);
        placed_in_all += map_count(a->holds);
    }
    CHECK(evicted_in_all > seeds() / 4 && free_in_all > 1000 * seeds() / 400 && kept_in_all > seeds());
    CHECK(placed_in_all > seeds());       /* the worlds are not so empty that nothing could go wrong */
}

TEST(what_was_placed_and_freed_leaves_the_picture_as_it_was)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct truth t = { .rng = { seed * 7919 }, .ok = true };
        AUTO(sched_free) struct sched *a = sched_new(), *b = sched_new();
        AUTO(str_done) struct str before = { 0 }, after = { 0 };
        AUTO(arena_free) struct arena *mem = arena_new();
        t.a = a;
        t.b = b;
        for (int i = 0; i < 6; i++)
            change_node(&t);
        for (int i = 0; i < 10; i++)
            new_job(&t);
        sched_print(a, &before);
        struct sched_plan p = sched_plan(a, 0, 1000, mem);
        for (size_t i = 0; i < p.count; i++) {
            struct sched_event held = kit_held_event(&p.placements[i], &job_of(&t, p.placements[i].job)->e);
            sched_apply(a, &held);
            kit_task(a, SCHED_TASK_FREED, p.placements[i].job, p.placements[i].task, 0);
            kit_task(a, SCHED_TASK_QUEUED, p.placements[i].job, p.placements[i].task, 0);
        }
        sched_print(a, &after);
        CHECK(text_is(before.at, after.at));
    }
}

TEST(a_node_that_comes_back_finds_what_it_held)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(str_done) struct str before = { 0 }, after = { 0 };
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_event n = kit_node_event(&(struct kit_node){ 1, "H200", 2, 1000, 8, 8000, false, false });
    struct sched_event j = kit_job_event(10, 7, 50, "1", 1, 100, 3);
    sched_apply(s, &n);
    sched_apply(s, &j);
    struct sched_plan p = sched_plan(s, 0, 10, mem);
    for (size_t i = 0; i < p.count; i++) {
        struct sched_event held = kit_held_event(&p.placements[i], &j);
        sched_apply(s, &held);
    }
    sched_print(s, &before);
    sched_apply(s, &(struct sched_event){ .kind = SCHED_NODE_GONE, .node = 1 });
    CHECK(!fleet_node(&s->fleet, 1) && sched_plan(s, 1, 10, mem).count == 0);
    sched_apply(s, &n);
    sched_print(s, &after);
    CHECK(p.count == 2 && text_is(before.at, after.at) && sched_plan(s, 2, 10, mem).count == 0);
}

TEST(news_about_what_is_not_known_changes_nothing)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(str_done) struct str out = { 0 };
    for (enum sched_kind k = SCHED_NODE_GONE; k < SCHED_KIND_COUNT; k++)
        if (k != SCHED_PROJECT && k != SCHED_JOB && k != SCHED_TASK_HELD && k != SCHED_RESERVE)
            kit_task(s, k, 5, 0, 0);
    sched_print(s, &out);
    CHECK(out.len == 0);
}

TEST(a_task_that_is_held_does_not_wait_whatever_was_told_before)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_event n = kit_node_event(&(struct kit_node){ 1, "", 0, 0, 8, 8000, false, false });
    struct sched_event j = kit_job_event(10, 7, 50, "0", 1, 100, 3);
    sched_apply(s, &j);
    struct sched_event held = kit_held_event(&(struct placement){ 10, 1, 1, { 0 } }, &j);
    sched_apply(s, &held);
    sched_apply(s, &n);
    struct sched_plan p = sched_plan(s, 0, 10, mem);
    CHECK(p.count == 2 && p.placements[0].task == 0 && p.placements[1].task == 2);
}
