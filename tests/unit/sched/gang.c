/* Gangs in small worlds, with the truth kept beside in the plainest way. Two ways through the same acts: every sequence of them up to a
 * length in a tiny fleet, and long random lives in larger ones. An act is a row of a table, so that more kinds of them are rows too. */
#include "base/rand.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"
#include <stdlib.h>

enum { NODES = 8, JOBS = 8, RANKS = 4, GPUS = 2 };
enum fate { NONE, WAITS, ASKED, HELD, OVER };

struct truth_job {
    struct sched_event e;
    int tasks;
    bool live;
    enum fate fate[RANKS];
    struct placement at[RANKS];
    struct order_gpu gpus[RANKS][GPUS];
};
struct world {
    struct sched *s;
    struct sched_event nodes[NODES];
    struct topology where[NODES];
    int node_count, job_count;
    struct truth_job jobs[JOBS];
    int64_t now, quota;         /* of project 7, in GPUs; below 0: none */
    struct rng rng;             /* of random lives */
    bool ok;
};

static bool is_gang(const struct truth_job *j) { return j->e.gang > 1; }

static int count(const struct truth_job *j, enum fate f)
{
    int n = 0;
    for (int k = 0; k < j->tasks; k++)
        n += j->fate[k] == f;
    return n;
}

static void wrong(struct world *w, const char *what, const struct truth_job *j)
{
    if (w->ok)
        printf("# %s: job %lld\n", what, (long long)j->e.job);
    w->ok = false;
}

/* --- the truth */

static int64_t gpus_of(const struct truth_job *j) { return j->e.shape.gpu.milli / 1000; }

static int64_t taken(const struct world *w, int node)
{
    int64_t n = 0;
    for (int i = 0; i < w->job_count; i++)
        for (int k = 0; k < w->jobs[i].tasks; k++)
            if ((w->jobs[i].fate[k] == ASKED || w->jobs[i].fate[k] == HELD) && w->jobs[i].at[k].node == node + 1)
                n += gpus_of(&w->jobs[i]);
    return n;
}

static int64_t taken_in_all(const struct world *w)
{
    int64_t n = 0;
    for (int i = 0; i < w->node_count; i++)
        n += taken(w, i);
    return n;
}

static bool has_room(const struct world *w, int node, const struct truth_job *j)
{
    return w->nodes[node].usable && w->nodes[node].gpu_count - taken(w, node) >= gpus_of(j)
           && where_fits(&w->where[node], j->e.region, j->e.zone) && kit_admits(w->nodes[node].house, j->e.house, NULL, 7);
}

/* How many nodes with room are in the place of that level that a node is in, itself included; 0: it has none there. */
static int seats_around(const struct world *w, int node, const struct truth_job *j, int level)
{
    int n = 0;
    for (int i = 0; i < w->node_count; i++)
        n += has_room(w, i, j) && (!level || where_same(&w->where[node], &w->where[i], (enum place_level)level));
    return n;
}

static int smallest_at(const struct world *w, const struct truth_job *j, int level)
{
    int best = 0;
    for (int i = 0; i < w->node_count; i++) {
        int n = has_room(w, i, j) ? seats_around(w, i, j, level) : 0;
        if (n >= j->tasks && (!best || n < best))
            best = n;
    }
    return best;
}

static bool could_start(const struct world *w, const struct truth_job *j)
{
    int tasks = is_gang(j) ? j->tasks : 1;
    if (!j->live || (is_gang(j) ? count(j, WAITS) != j->tasks : !count(j, WAITS))
        || (w->quota >= 0 && taken_in_all(w) + tasks * gpus_of(j) > w->quota))
        return false;
    if (is_gang(j))
        return smallest_at(w, j, j->e.within) > 0;
    for (int i = 0; i < w->node_count; i++)
        if (has_room(w, i, j))
            return true;
    return false;
}

/* --- what is told, and what is answered */

static void tell(struct world *w, enum sched_kind kind, const struct truth_job *j, int task)
{
    sched_apply(w->s, &(struct sched_event){ .kind = kind, .job = j->e.job, .task = task, .project = 7, .node = j->at[task].node });
}

/* The nearest level whose place has room, and then the smallest of them: seen with nothing of this gang in place. */
static void check_close(struct world *w, struct truth_job *j)
{
    for (int k = 0; k < j->tasks; k++)
        j->fate[k] = WAITS;
    int level = MAX(j->e.prefer, j->e.within);
    while (level > j->e.within && !smallest_at(w, j, level))
        level--;
    int best = smallest_at(w, j, level);
    for (int k = 0; k < j->tasks; k++)
        if (level && !where_same(&w->where[j->at[0].node - 1], &w->where[j->at[k].node - 1], (enum place_level)level))
            wrong(w, "it could be closer together", j);
    if (seats_around(w, (int)j->at[0].node - 1, j, level) != best)
        wrong(w, "a smaller place had room", j);
    for (int k = 0; k < j->tasks; k++)
        j->fate[k] = ASKED;
}

static void take_gang(struct world *w, struct truth_job *j, const struct placement *list, size_t left)
{
    if (!j->live || count(j, WAITS) != j->tasks || left < (size_t)j->tasks) {
        wrong(w, "a gang that does not wait as a whole is placed", j);
        return;
    }
    for (int k = 0; k < j->tasks; k++) {
        if (list[k].job != j->e.job || list[k].task != k) {
            wrong(w, "a gang is split", j);
            return;
        }
        for (int i = 0; i < k; i++)
            if (list[i].node == list[k].node)
                wrong(w, "two of a gang on one node", j);
        if (!has_room(w, (int)list[k].node - 1, j))
            wrong(w, "no room for one of a gang", j);
        if (j->e.within && !where_same(&w->where[list[0].node - 1], &w->where[list[k].node - 1], (enum place_level)j->e.within))
            wrong(w, "a gang leaves what it must be within", j);
    }
}

static void keep(struct truth_job *j, const struct placement *p)
{
    j->fate[p->task] = ASKED;
    j->at[p->task] = *p;
    memcpy(j->gpus[p->task], p->gpus.at, MIN(p->gpus.count, (size_t)GPUS) * sizeof j->gpus[0][0]);
    j->at[p->task].gpus.at = j->gpus[p->task];
}

static void plan(struct world *w)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_plan p = sched_plan(w->s, w->now, 1000, mem);
    for (size_t i = 0; w->ok && i < p.count;) {
        struct truth_job *j = &w->jobs[p.placements[i].job - 1];
        size_t many = is_gang(j) ? (size_t)j->tasks : 1;
        if (is_gang(j))
            take_gang(w, j, &p.placements[i], p.count - i);
        else if (j->fate[p.placements[i].task] != WAITS || !has_room(w, (int)p.placements[i].node - 1, j))
            wrong(w, "a task is placed where it cannot be", j);
        for (size_t k = 0; w->ok && k < many; k++)
            keep(j, &p.placements[i + k]);
        if (w->ok && is_gang(j))
            check_close(w, j);
        i += many;
    }
    if (w->quota >= 0 && taken_in_all(w) > w->quota)
        wrong(w, "over quota", &w->jobs[0]);
}

static void look(struct world *w)
{
    plan(w);
    w->now += 2 * REFUSED_PAUSE_MS; /* who was refused may be asked again */
    plan(w);
    for (int i = 0; w->ok && i < w->job_count; i++)
        if (could_start(w, &w->jobs[i]))
            wrong(w, "it waits, though there is room and it was asked", &w->jobs[i]);
}

/* --- acts */

static void submit(struct world *w, struct truth_job *j)
{
    if (j->live || count(j, OVER) || count(j, HELD) || count(j, ASKED))
        return;
    j->live = true;
    for (int k = 0; k < j->tasks; k++)
        j->fate[k] = WAITS;
    sched_apply(w->s, &j->e);
}

/* The door takes what was asked for, or does not: of a gang all or nothing. */
static void settle(struct world *w, struct truth_job *j, bool yes)
{
    for (int k = 0; k < j->tasks; k++) {
        if (j->fate[k] != ASKED)
            continue;
        yes = yes && j->live; /* what was cancelled meanwhile is not taken */
        if (yes) {
            struct sched_event held = kit_held_event(&j->at[k], &j->e);
            sched_apply(w->s, &held);
        } else {
            tell(w, SCHED_TASK_REFUSED, j, k);
        }
        j->fate[k] = yes ? HELD : j->live ? WAITS : OVER;
    }
}
static void accept(struct world *w, struct truth_job *j) { settle(w, j, true); }
static void refuse(struct world *w, struct truth_job *j) { settle(w, j, false); }

static void end_if_over(struct world *w, struct truth_job *j)
{
    if (j->live && count(j, OVER) == j->tasks) {
        j->live = false;
        tell(w, SCHED_JOB_GONE, j, 0);
    }
}

static void finish(struct world *w, struct truth_job *j)
{
    if (is_gang(j) && count(j, WAITS)) /* it gathers, and starts again */
        return;
    for (int k = 0; k < j->tasks; k++)
        if (j->fate[k] == HELD) {
            tell(w, SCHED_TASK_FREED, j, k);
            j->fate[k] = OVER;
        }
    end_if_over(w, j);
}

/* One of them ends and waits again: a gang gathers, one by one. */
static void fail_one(struct world *w, struct truth_job *j)
{
    for (int k = 0; j->live && k < j->tasks; k++)
        if (j->fate[k] == HELD) {
            tell(w, SCHED_TASK_FREED, j, k);
            tell(w, SCHED_TASK_QUEUED, j, k);
            j->fate[k] = WAITS;
            return;
        }
}

static void cancel(struct world *w, struct truth_job *j)
{
    if (!j->live)
        return;
    for (int k = 0; k < j->tasks; k++)
        j->fate[k] = j->fate[k] == WAITS ? OVER : j->fate[k];
    j->live = false;
    tell(w, SCHED_JOB_GONE, j, 0);
}

static void come_and_go(struct world *w, int node)
{
    w->nodes[node].usable = !w->nodes[node].usable;
    sched_apply(w->s, &w->nodes[node]);
}

static void (*const of_job[])(struct world *, struct truth_job *) = { submit, accept, refuse, finish, fail_one, cancel };

/* --- a tiny fleet, and everything that can happen in it */

static void node_add(struct world *w, struct arena *mem, const char *where, int gpus)
{
    struct err err;
    int i = w->node_count++;
    w->nodes[i] = kit_node_event(&(struct kit_node){ i + 1, "H200", gpus, 1000, 64, 64000, false, false });
    w->nodes[i].where = (char *)where;
    w->ok = where_parse(where, mem, &w->where[i], &err) && w->ok;
    sched_apply(w->s, &w->nodes[i]);
}

static struct truth_job *job_add(struct world *w, int nodes, int tasks, const char *gpus, int within, int prefer)
{
    struct truth_job *j = &w->jobs[w->job_count++];
    j->e = kit_job_event(w->job_count, 7, 50, gpus, 1, 10, tasks);
    j->tasks = tasks;
    j->e.gang = nodes, j->e.within = (uint8_t)within, j->e.prefer = (uint8_t)prefer;
    return j;
}

static void tiny(struct world *w, struct arena *mem)
{
    *w = (struct world){ .s = sched_new(), .ok = true, .quota = -1 };
    node_add(w, mem, "eu/a/s1/r1", 1);
    node_add(w, mem, "eu/a/s1/r1", 1);
    node_add(w, mem, "eu/a/s1/r2", 1);
    job_add(w, 2, 2, "1", PLACE_REGION, PLACE_NVLINK);
    job_add(w, 2, 2, "1", PLACE_RACK, PLACE_NVLINK);
    job_add(w, 0, 1, "1", 0, 0);
}

/* What waits comes to its end once everything that runs does: nobody holds half of what somebody else needs. */
static void all_end(struct world *w)
{
    for (int i = 0; i < w->node_count; i++)
        if (!w->nodes[i].usable)
            come_and_go(w, i);
    for (int round = 0; w->ok && round < 4 * w->job_count; round++) {
        look(w);
        for (int i = 0; i < w->job_count; i++) {
            accept(w, &w->jobs[i]);
            while (is_gang(&w->jobs[i]) && count(&w->jobs[i], WAITS) && count(&w->jobs[i], HELD))
                fail_one(w, &w->jobs[i]);
            finish(w, &w->jobs[i]);
        }
    }
    for (int i = 0; w->ok && i < w->job_count; i++)
        if (w->jobs[i].live)
            wrong(w, "it never comes to its end", &w->jobs[i]);
    for (int i = 0; w->ok && i < w->node_count; i++)
        if (taken(w, i) || fleet_node(&w->s->fleet, i + 1)->cpu_used)
            wrong(w, "something is still held", &w->jobs[0]);
}

TEST(whatever_happens_in_a_tiny_fleet_no_gang_is_split_and_none_waits_for_ever)
{
    enum { ACTS = COUNT(of_job) * 3 + 1 };
    int length = getenv("ARCUS_SOAK") ? 5 : 4, total = 1, acts[8];
    bool ok = true;
    for (int i = 0; i < length; i++)
        total *= ACTS;
    for (int n = 0; ok && n < total; n++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct world w;
        int rest = n, useful = 1;
        for (int i = 0; i < length; i++, rest /= ACTS)
            acts[i] = rest % ACTS;
        useful = acts[0] % (int)COUNT(of_job) == 0; /* it begins with a job */
        if (!useful)
            continue;
        tiny(&w, mem);
        for (int i = 0; w.ok && i < length; i++) {
            if (acts[i] == ACTS - 1)
                come_and_go(&w, 1);
            else
                of_job[acts[i] % (int)COUNT(of_job)](&w, &w.jobs[acts[i] / (int)COUNT(of_job)]);
            look(&w);
        }
        all_end(&w);
        if (!(ok = w.ok))
            printf("# acts %d %d %d %d\n", acts[0], acts[1], acts[2], acts[3]);
        sched_free(w.s);
    }
    CHECK(ok);
}

/* --- random lives */

static const char *some_place(struct rng *r, struct arena *mem)
{
    static const char *const regions[] = { "eu", "us", "" };
    if (rng_below(r, 10) == 0)
        return "";
    if (rng_below(r, 10) == 0)
        return regions[rng_below(r, 3)];
    return arena_printf(mem, "%s/%c/s%d/r%d/%s", regions[rng_below(r, 2)], (int)('a' + rng_below(r, 2)), (int)rng_below(r, 2), (int)rng_below(r, 2),
                        rng_below(r, 2) ? "n1" : "");
}

static void random_world(struct world *w, uint64_t seed, struct arena *mem)
{
    static const char *const asks[] = { "1", "1", "2" };
    *w = (struct world){ .s = sched_new(), .ok = true, .rng = { seed } };
    w->quota = rng_below(&w->rng, 3) ? -1 : (int64_t)(2 + rng_below(&w->rng, 8));
    if (w->quota >= 0)
        sched_apply(w->s, &(struct sched_event){ .kind = SCHED_PROJECT, .project = 7, .quota = { w->quota * 1000, -1000, -1, -1 } });
    for (int i = 0; i < NODES; i++) {
        node_add(w, mem, some_place(&w->rng, mem), 1 + (int)rng_below(&w->rng, GPUS));
        w->nodes[i].house = rng_below(&w->rng, 4) ? NULL : kit_houses[rng_below(&w->rng, COUNT(kit_houses))];
        sched_apply(w->s, &w->nodes[i]);
    }
    for (int i = 0; i < JOBS; i++) {
        int tasks = 1 + (int)rng_below(&w->rng, RANKS), nodes = rng_below(&w->rng, 3) && tasks > 1 ? tasks : 0;
        struct truth_job *j = job_add(w, nodes, tasks, asks[rng_below(&w->rng, COUNT(asks))], (int)rng_below(&w->rng, PLACE_LEVELS),
                                      (int)rng_below(&w->rng, PLACE_LEVELS));
        j->e.priority = 25 + (int64_t)rng_below(&w->rng, 3) * 25; /* no spot: nobody yields here */
        j->e.house = kit_tolerations[rng_below(&w->rng, COUNT(kit_tolerations))];
        if (rng_below(&w->rng, 6) == 0)
            snprintf(j->e.region, sizeof j->e.region, "%s", rng_below(&w->rng, 2) ? "eu" : "us");
    }
}

/* As a server that starts is told: facts only. */
static bool same_from_scratch(const struct world *w)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(str_done) struct str x = { 0 }, y = { 0 };
    if (w->quota >= 0)
        sched_apply(s, &(struct sched_event){ .kind = SCHED_PROJECT, .project = 7, .quota = { w->quota * 1000, -1000, -1, -1 } });
    for (int i = w->node_count - 1; i >= 0; i--)
        sched_apply(s, &w->nodes[i]);
    for (int i = 0; i < w->job_count; i++) {
        const struct truth_job *j = &w->jobs[i];
        struct sched_event e = j->e;
        e.first_task = j->tasks;
        if (j->live)
            sched_apply(s, &e);
        for (int k = 0; k < j->tasks; k++) {
            if (j->fate[k] == HELD) {
                struct sched_event held = kit_held_event(&j->at[k], &j->e);
                sched_apply(s, &held);
            } else if (j->fate[k] == WAITS) {
                kit_task(s, SCHED_TASK_QUEUED, j->e.job, k, 0);
            }
        }
    }
    sched_print(w->s, &x);
    sched_print(s, &y);
    return text_is(x.at, y.at) || (printf("# --- one\n%s# --- other\n%s", x.at, y.at), false);
}

TEST(in_random_lives_gangs_start_whole_and_close_together_and_the_picture_equals_one_from_scratch)
{
    int seeds = getenv("ARCUS_SOAK") ? 20000 : 300, together = 0;
    bool ok = true;
    for (int seed = 1; ok && seed <= seeds; seed++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct world w;
        random_world(&w, (uint64_t)seed, mem);
        for (int step = 0; w.ok && step < 60; step++) {
            struct truth_job *j = &w.jobs[rng_below(&w.rng, JOBS)];
            if (rng_below(&w.rng, 12) == 0)
                come_and_go(&w, (int)rng_below(&w.rng, NODES));
            else
                of_job[rng_below(&w.rng, COUNT(of_job))](&w, j);
            look(&w);
            together += is_gang(j) && count(j, HELD) == j->tasks;
            for (int i = 0; i < w.job_count; i++)
                settle(&w, &w.jobs[i], rng_below(&w.rng, 4) != 0);
            w.ok = w.ok && same_from_scratch(&w);
        }
        if (!(ok = w.ok))
            printf("# seed %d\n", seed);
        sched_free(w.s);
    }
    CHECK(ok && together > seeds);
}
