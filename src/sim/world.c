/* world.c - one run. See world.h. */
#include "sim/world_internal.h"
#include "base/must.h"
#include <stdlib.h>
#include <time.h>

static int64_t now_us(void) /* for decisions a second alone: nothing in the world hangs on it */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* --- who comes, and in which order */

static void shuffle(struct rng *r, uint32_t *at, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = rng_below(r, i);
        uint32_t t = at[i - 1];
        at[i - 1] = at[k];
        at[k] = t;
    }
}

static void arrivals(struct world *w)
{
    const struct trace *t = w->ask->trace;
    int64_t asked = 0, goal = w->ask->inflate_milli * (w->out->capacity_milli / 1000);
    size_t room = t->task_count;
    w->order = must(calloc(room, sizeof *w->order));
    for (size_t i = 0; i < t->task_count; i++) {
        w->order[i] = (uint32_t)i;
        asked += trace_asks(&t->tasks[i]);
    }
    w->count = t->task_count;
    if (!w->ask->in_order)
        shuffle(&w->rng, w->order, w->count);
    if (!asked)
        return;
    if (w->ask->leave) /* there a part of the trace, since what is asked for is spread over time */
        goal = asked / 1000 * w->ask->inflate_milli;
    while (asked < goal && w->count < TRACE_ROWS_MAX) {
        uint32_t clone = (uint32_t)rng_below(&w->rng, t->task_count);
        if (w->count == room) {
            room *= 2;
            w->order = must(reallocarray(w->order, room, sizeof *w->order));
        }
        w->order[w->count++] = clone;
        asked += trace_asks(&t->tasks[clone]);
    }
}

/* Where each arrival's stays are: one behind the other, and only gangs have several. */
static void stays_make(struct world *w)
{
    size_t sum = 0;
    bool gangs = false;
    for (size_t i = 0; i < w->count; i++)
        gangs |= world_task(w, i)->nodes > 1;
    if (gangs)
        w->first_stay = must(calloc(w->count, sizeof *w->first_stay));
    for (size_t i = 0; i < w->count; sum += (size_t)world_task(w, i++)->nodes)
        if (gangs)
            w->first_stay[i] = sum;
    w->stays = must(calloc(sum, sizeof *w->stays));
}

/* --- the fleet */

static void tell_node(struct world *w, size_t i, bool usable)
{
    const struct trace_node *n = &w->ask->trace->nodes[i];
    struct sched_gpu gpus[TRACE_GPUS_MAX];
    for (int64_t g = 0; g < n->gpus; g++) {
        gpus[g] = (struct sched_gpu){
            .index = g, .mem_mib = n->gpu_mib, .healthy = true, .simulated = true
        };
        text_copy(gpus[g].model, sizeof gpus[g].model, *n->model ? n->model : "GPU");
    }
    struct sched_event e = { .kind = SCHED_NODE,
                             .node = w->books[i].id,
                             .usable = usable,
                             .host_image = true,
                             .cpu_milli = n->cpu_milli,
                             .mem_mib = n->mem_mib,
                             .gpu_count = (int)n->gpus,
                             .gpus = gpus };
    sched_apply(w->sched, &e);
}

void world_node(struct world *w, size_t node, bool up)
{
    w->books[node].up = up;
    tell_node(w, node, up);
}

/* Ties go to the node with the lower number, so the numbers are drawn: no policy gains from the order of a file. */
static void fleet_make(struct world *w)
{
    const struct trace *t = w->ask->trace;
    AUTO(free_uint32) uint32_t *ids = must(calloc(t->node_count, sizeof *ids));
    w->books = must(calloc(t->node_count, sizeof *w->books));
    w->by_id = must(calloc(t->node_count + 1, sizeof *w->by_id));
    for (size_t i = 0; i < t->node_count; i++)
        ids[i] = (uint32_t)i;
    shuffle(&w->rng, ids, t->node_count);
    for (size_t k = 0; k < t->node_count; k++) {
        size_t i = ids[k];
        const struct trace_node *n = &t->nodes[i];
        w->by_id[k + 1] = (uint32_t)i;
        w->books[i] = (struct book){
            .id = (int64_t)k + 1, .up = true, .cpu_free = n->cpu_milli, .mem_free = n->mem_mib
        };
        for (int64_t g = 0; g < n->gpus; g++)
            w->books[i].free_milli[g] = 1000;
        w->out->capacity_milli += n->gpus * 1000;
        tell_node(w, i, true);
    }
}

static struct shape shape_of(const struct trace_task *t)
{
    struct shape s
        = { .cpu_milli = t->cpu_milli, .mem_mib = t->mem_mib, .gpu.milli = trace_milli(t) };
    if (s.gpu.milli)
        text_copy(s.gpu.model, sizeof s.gpu.model, t->spec);
    return s;
}

/* --- books */

static bool book_fits(struct world *w, size_t i, const struct trace_task *t, const struct shape *s)
{
    const struct book *b = &w->books[i];
    const struct trace_node *n = &w->ask->trace->nodes[i];
    int64_t fit = 0, part = t->gpus == 1 ? t->milli : 1000, project = world_project(w, t);
    if (!b->up || b->cpu_free < t->cpu_milli || b->mem_free < t->mem_mib)
        return false;
    for (int64_t g = 0; g < n->gpus && fit < t->gpus; g++)
        fit += b->free_milli[g] >= part && (b->free_milli[g] == 1000 || b->owner[g] == project);
    return fit >= t->gpus
           && (!t->gpus || gpu_ask_fits(&s->gpu, *n->model ? n->model : "GPU", n->gpu_mib));
}

bool book_somewhere(struct world *w, const struct trace_task *t)
{
    struct shape s = shape_of(t);
    int64_t nodes = 0;
    for (size_t i = 0; i < w->ask->trace->node_count; i++)
        if (book_fits(w, i, t, &s) && ++nodes == t->nodes)
            return true;
    return false;
}

/* Counts a placement in, or out. False: it was not right. */
static bool book_count(struct world *w, const struct stay *at, const struct trace_task *t, int sign)
{
    struct book *b = &w->books[at->node];
    bool right = true;
    b->cpu_free -= sign * t->cpu_milli;
    b->mem_free -= sign * t->mem_mib;
    for (int i = 0; i < at->gpus; i++) {
        int16_t *free_milli = &b->free_milli[at->gpu[i]];
        *free_milli = (int16_t)(*free_milli - sign * (t->gpus == 1 ? t->milli : 1000));
        b->owner[at->gpu[i]] = (int32_t)world_project(w, t);
        right = right && *free_milli >= 0;
    }
    w->out->held_milli += sign * trace_milli(t);
    return right && b->cpu_free >= 0 && b->mem_free >= 0;
}

static void placed(struct world *w, const struct placement *p, int64_t now_ms)
{
    size_t a = (size_t)p->job - 1;
    const struct trace_task *t = world_task(w, a);
    struct stay *s = world_stay(w, a, p->task);
    const struct order_gpu *gpus = p->gpus.at;
    struct shape shape = shape_of(t);
    struct sched_held held[TRACE_GPUS_MAX];
    *s = (struct stay){ .node = w->by_id[p->node], .gpus = (uint8_t)p->gpus.count, .placed = true };
    bool right = book_fits(w, s->node, t, &shape) && s->gpus == t->gpus && p->task < t->nodes;
    for (int64_t i = 0; i < t->nodes; i++) /* of a gang each on a node of its own */
        right = right && (i == p->task || !world_stay(w, a, i)->placed || world_stay(w, a, i)->node != s->node);
    for (int i = 0; i < s->gpus; i++) {
        s->gpu[i] = (uint8_t)gpus[i].index;
        held[i] = (struct sched_held){ gpus[i].index, gpus[i].milli, gpus[i].mem_mib };
    }
    w->out->wrong += !(book_count(w, s, t, 1) && right);
    struct sched_event e = { .kind = SCHED_TASK_HELD,
                             .node = p->node,
                             .project = world_project(w, t),
                             .job = p->job,
                             .task = p->task,
                             .at_ms = w->ask->leave ? now_ms : 0,
                             .priority = t->priority,
                             .bound_ms = world_length_ms(w, t),
                             .cpu_held = t->cpu_milli,
                             .mem_held = t->mem_mib,
                             .held_count = s->gpus,
                             .held = held };
    sched_apply(w->sched, &e);
    w->out->placed += p->task == 0;
}

void world_tell(struct world *w, enum sched_kind kind, size_t arrival)
{
    int64_t tasks = kind == SCHED_JOB_GONE ? 1 : world_task(w, arrival)->nodes;
    for (int64_t i = 0; i < tasks; i++)
        sched_apply(w->sched, &(struct sched_event){ .kind = kind, .job = (int64_t)arrival + 1, .task = i });
}

void world_freed(struct world *w, size_t arrival)
{
    const struct trace_task *t = world_task(w, arrival);
    for (int64_t i = 0; i < t->nodes; i++) {
        book_count(w, world_stay(w, arrival, i), t, -1);
        world_stay(w, arrival, i)->placed = false;
    }
    world_tell(w, SCHED_TASK_FREED, arrival);
}

int64_t world_project(struct world *w, const struct trace_task *t)
{
    intptr_t id = (intptr_t)map_get_text(w->projects, t->project);
    if (!id) {
        id = (intptr_t)map_count(w->projects) + 1;
        map_put_text(w->projects, t->project, (void *)id);
    }
    return id;
}

void world_arrive(struct world *w, size_t arrival, int64_t now_ms)
{
    const struct trace_task *t = world_task(w, arrival);
    struct sched_event e = { .kind = SCHED_JOB,
                             .job = (int64_t)arrival + 1,
                             .project = world_project(w, t),
                             .priority = t->priority,
                             .created_ms = now_ms,
                             .bound_ms = world_length_ms(w, t),
                             .last_task = t->nodes - 1,
                             .gang = t->nodes,
                             .within = PLACE_REGION,
                             .prefer = PLACE_REGION,
                             .shape = shape_of(t) };
    sched_apply(w->sched, &e);
}

/* Places whatever can start; true: something did. */
bool world_plan(struct world *w, int64_t now_ms)
{
    bool any = false;
    for (bool more = true; more;) {
        AUTO(arena_free) struct arena *mem = arena_new();
        int64_t from = now_us();
        struct sched_plan p = sched_plan(w->sched, now_ms, 1000, mem);
        w->out->busy_us += now_us() - from;
        for (size_t i = 0; i < p.count; i++) {
            placed(w, &p.placements[i], now_ms);
            if (w->on_start && p.placements[i].task == 0)
                w->on_start(w, (size_t)p.placements[i].job - 1, now_ms);
        }
        any = any || p.count;
        more = p.next_ms <= now_ms;
    }
    return any;
}

/* --- tasks that stay */

static void curve_note(struct world *w)
{
    struct sim_result *o = w->out;
    if (!o->capacity_milli)
        return;
    int64_t reached = o->asked_milli * 100 / o->capacity_milli;
    for (; w->noted <= reached && w->noted < SIM_CURVE; w->noted++)
        o->curve[w->noted] = (int32_t)(o->held_milli * 10000 / o->capacity_milli);
}

static void all_stay(struct world *w)
{
    struct sim_result *o = w->out;
    for (size_t i = 0; i < w->count; i++) {
        const struct trace_task *t = world_task(w, i);
        world_arrive(w, i, (int64_t)i);
        o->decisions++;
        if (!world_plan(w, (int64_t)i)) {
            o->refused++;
            o->refused_feasible += book_somewhere(w, t);
        }
        world_tell(w, SCHED_JOB_GONE, i); /* it stays where it is, and nobody asks for it again */
        o->asked_milli += trace_asks(t);
        curve_note(w);
        if (w->ask->on_progress && i % 1024 == 0)
            w->ask->on_progress(w->ask->arg, i, w->count);
    }
    struct fair f = fair_open(w);
    for (size_t i = 0; i < w->count; i++) {
        const struct trace_task *t = world_task(w, i);
        double asks = (double)MAX(trace_asks(t), 1);
        fair_add(&f, world_project(w, t), asks, world_stay(w, i, 0)->placed ? asks : 0);
    }
    o->fairness = fair_close(&f);
}

/* --- a run */

static bool settings(struct world *w, struct err *err)
{
    const struct sim_ask *ask = w->ask;
    if (!sched_policy(w->sched, ask->policy))
        return err_set(err, RC_BAD_INPUT,
                       "there is no policy '%s'; there are arcus, fgd, bestfit, packing and random",
                       ask->policy);
    for (size_t i = 0; i < ask->weight_count; i++)
        if (!sched_weight(w->sched, ask->weights[i].term, ask->weights[i].thousandths))
            return err_set(err, RC_BAD_INPUT,
                           "there is no weight '%s'; doc/scheduling.md has them all",
                           ask->weights[i].term);
    return true;
}

/* As published, fgd is told beforehand what will be asked for. */
static void foretell(struct world *w)
{
    for (size_t i = 0; i < w->ask->trace->task_count; i++) {
        struct shape s = shape_of(&w->ask->trace->tasks[i]);
        sched_expect(w->sched, &s, 1);
    }
    sched_expect_no_other(w->sched);
}

bool sim_run(const struct sim_ask *ask, struct sim_result *out, struct err *err)
{
    AUTO(sched_free) struct sched *s = sched_new();
    AUTO(map_free) struct map *projects = map_new();
    struct sim_result result = { 0 };
    struct world w = { .ask = ask,
                       .out = &result,
                       .sched = s,
                       .projects = projects,
                       .rng = { ask->seed * 0x9e3779b97f4a7c15ULL + 1 } };
    for (size_t i = 0; i < SIM_CURVE; i++)
        result.curve[i] = -1;
    bool ok = settings(&w, err);
    if (ok) {
        fleet_make(&w);
        arrivals(&w);
        result.tasks = w.count;
        stays_make(&w);
        if (sched_foreknown(s))
            foretell(&w);
        if (ask->leave)
            ok = world_live(&w, err);
        else
            all_stay(&w);
        result.stuck_milli = sched_stuck(s);
        *out = ok ? result : *out;
    }
    free(w.order);
    free(w.books);
    free(w.by_id);
    free(w.stays);
    free(w.first_stay);
    return ok;
}
