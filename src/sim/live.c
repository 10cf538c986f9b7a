/* live.c - tasks that come at their times, wait where nothing is free, run for as long as they ran, and go; nodes that fail and
 * come back. Virtual time: it jumps from one happening to the next. */
#include "sim/world_internal.h"
#include "base/must.h"
#include <math.h>

enum what { TASK_ENDS, NODE_FAILS, NODE_BACK, TASK_COMES };
struct happening {
    int64_t at_ms;
    uint64_t number;
    enum what what;
    uint32_t which, start;
};

struct live {
    struct happening *heap;
    size_t count, room;
    uint64_t numbers;
    int64_t *wait_ms; /* by arrival; -1: it never started */
    int64_t *came_ms;
    uint32_t
        *starts; /* how often it started: an end that was planned for an earlier start is none */
    struct guests {             /* of each node: who came there; some may have left. Only where nodes fail */
        uint32_t *at;
        size_t count, room;
    } *guests;
    int64_t first_ms, last_ms, seen_ms;
    double used; /* thousandths of GPUs times milliseconds */
};

static bool sooner(const struct happening *a, const struct happening *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms
           : a->what != b->what ? a->what < b->what
                                : a->number < b->number;
}

static void happen(struct live *l, int64_t at_ms, enum what what, uint32_t which, uint32_t start)
{
    if (l->count == l->room) {
        l->room = l->room ? l->room * 2 : 1024;
        l->heap = must(reallocarray(l->heap, l->room, sizeof *l->heap));
    }
    struct happening h = { at_ms, l->numbers++, what, which, start };
    size_t at = l->count++;
    for (; at && sooner(&h, &l->heap[(at - 1) / 2]); at = (at - 1) / 2)
        l->heap[at] = l->heap[(at - 1) / 2];
    l->heap[at] = h;
}

static struct happening next_one(struct live *l)
{
    struct happening first = l->heap[0], last = l->heap[--l->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < l->count; at = child) {
        if (child + 1 < l->count && sooner(&l->heap[child + 1], &l->heap[child]))
            child++;
        if (!sooner(&l->heap[child], &last))
            break;
        l->heap[at] = l->heap[child];
    }
    l->heap[at] = last;
    return first;
}

static bool is_on(struct world *w, size_t arrival, uint32_t node)
{
    bool there = false;
    for (int64_t i = 0; i < world_task(w, arrival)->nodes; i++) {
        const struct stay *s = world_stay(w, arrival, i);
        there |= s->placed && s->node == node;
    }
    return there;
}

static void guest_add(struct world *w, struct guests *g, uint32_t node, size_t arrival)
{
    size_t live = 0;
    for (size_t i = 0; g->count == g->room && i < g->count; i++)
        if (is_on(w, g->at[i], node) && g->at[i] != arrival)
            g->at[live++] = g->at[i];
    g->count = g->count == g->room ? live : g->count;
    if (2 * g->count >= g->room) {
        g->room = g->room ? g->room * 2 : 8;
        g->at = must(reallocarray(g->at, g->room, sizeof *g->at));
    }
    g->at[g->count++] = (uint32_t)arrival;
}

/* Once for all tasks of it. */
static void started(struct world *w, size_t arrival, int64_t now_ms)
{
    struct live *l = w->live;
    for (int64_t i = 0; l->guests && i < world_task(w, arrival)->nodes; i++) {
        uint32_t node = world_stay(w, arrival, i)->node;
        guest_add(w, &l->guests[node], node, arrival);
    }
    if (l->wait_ms[arrival] < 0)
        l->wait_ms[arrival] = now_ms - l->came_ms[arrival];
    happen(l, now_ms + world_length_ms(w, world_task(w, arrival)), TASK_ENDS, (uint32_t)arrival,
           ++l->starts[arrival]);
}

static int64_t some_time_ms(struct world *w,
                            int64_t mean_s) /* between two things that happen by chance */
{
    double u = (double)((rng_next(&w->rng) >> 11) + 1) / 9007199254740993.0;
    return (int64_t)(-log(u) * (double)mean_s * 1000) + 1;
}

static void node_fails(struct world *w, uint32_t node, int64_t now_ms)
{
    struct live *l = w->live;
    world_node(w, node, false);
    w->out->failures++;
    struct guests *g = &l->guests[node];
    for (size_t i = 0; i < g->count; i++) {
        uint32_t a = g->at[i];
        if (!is_on(w, a, node))
            continue;
        world_freed(w, a); /* of a gang all start again */
        world_tell(w, SCHED_TASK_QUEUED, a);
        l->starts[a]++;
        w->out->placed--;
    }
    g->count = 0;
    happen(l, now_ms + w->ask->repair_s * 1000, NODE_BACK, node, 0);
}

static void take_place(struct world *w, const struct happening *h)
{
    struct live *l = w->live;
    switch (h->what) {
    case TASK_COMES:
        world_arrive(w, h->which, h->at_ms);
        w->out->asked_milli += trace_asks(world_task(w, h->which));
        w->out->decisions++;
        break;
    case TASK_ENDS:
        if (l->starts[h->which] == h->start) {
            world_freed(w, h->which);
            world_tell(w, SCHED_JOB_GONE, h->which);
        }
        break;
    case NODE_FAILS:
        if (h->at_ms < l->last_ms)
            node_fails(w, h->which, h->at_ms);
        break;
    case NODE_BACK:
        world_node(w, h->which, true);
        happen(l, h->at_ms + some_time_ms(w, w->ask->fail_every_s), NODE_FAILS, h->which, 0);
        break;
    }
}

static bool begin(struct world *w, struct live *l, struct err *err)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct trace_task *t = world_task(w, i);
        if (t->created_s < 0 || t->deleted_s < 0)
            return err_set(err, RC_BAD_INPUT, "with --leave every task needs creation_time and deletion_time; task %u has no %s", w->order[i] + 1,
                           t->created_s < 0 ? "creation_time" : "deletion_time");
        if (t->deleted_s < t->created_s)
            return err_set(err, RC_BAD_INPUT,
                           "with --leave every task needs creation_time and a later deletion_time; "
                           "task %u has %lld and %lld",
                           w->order[i] + 1, (long long)t->created_s, (long long)t->deleted_s);
        l->came_ms[i] = t->created_s * 1000;
        l->wait_ms[i] = -1;
        l->first_ms = i ? MIN(l->first_ms, l->came_ms[i]) : l->came_ms[i];
        l->last_ms = MAX(l->last_ms, l->came_ms[i]);
        happen(l, l->came_ms[i], TASK_COMES, (uint32_t)i, 0);
    }
    for (size_t i = 0; w->ask->fail_every_s && i < w->ask->trace->node_count; i++)
        happen(l, l->first_ms + some_time_ms(w, w->ask->fail_every_s), NODE_FAILS, (uint32_t)i, 0);
    return true;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void waits(struct world *w, struct live *l)
{
    struct sim_result *o = w->out;
    size_t n = 0;
    double sum = 0, several = 0, several_count = 0;
    for (size_t i = 0; i < w->count; i++)
        if (l->wait_ms[i] >= 0) {
            sum += (double)l->wait_ms[i];
            if (world_task(w, i)->gpus * world_task(w, i)->nodes > 1) {
                several += (double)l->wait_ms[i];
                several_count++;
            }
            l->wait_ms[n++] = l->wait_ms[i];
        }
    o->placed = n;
    o->waiting = w->count - n;
    if (!n)
        return;
    qsort(l->wait_ms, n, sizeof *l->wait_ms, by_number);
    o->wait_mean_s = (int64_t)(sum / (double)n / 1000);
    o->wait_several_s = several_count > 0 ? (int64_t)(several / several_count / 1000) : 0;
    o->wait_median_s = l->wait_ms[n / 2] / 1000;
    o->wait_95_s = l->wait_ms[n * 95 / 100] / 1000;
    o->wait_max_s = l->wait_ms[n - 1] / 1000;
}

/* How much of its time from arrival to end a project's tasks were running, weighted by GPU. */
static void fairness(struct world *w, struct live *l)
{
    struct fair f = fair_open(w);
    for (size_t i = 0; i < w->count; i++) {
        const struct trace_task *t = world_task(w, i);
        double length = (double)world_length_ms(w, t), weight = (double)MAX(trace_asks(t), 1);
        int64_t wait = l->wait_ms[i] < 0 ? l->seen_ms - l->came_ms[i] : l->wait_ms[i];
        fair_add(&f, world_project(w, t), weight * (length + (double)wait), l->wait_ms[i] < 0 ? 0 : weight * length);
    }
    w->out->fairness = fair_close(&f);
}

static void run(struct world *w, struct live *l)
{
    size_t comings = 0;
    l->seen_ms = l->first_ms;
    while (l->count) {
        int64_t now = l->heap[0].at_ms;
        int64_t until = MIN(now, l->last_ms), span = until - MIN(l->seen_ms, l->last_ms);
        l->used += (double)w->out->held_milli * (double)span;
        l->seen_ms = now;
        while (l->count && l->heap[0].at_ms == now) {
            struct happening h = next_one(l);
            take_place(w, &h);
            if (h.what == TASK_COMES && ++comings % 1024 == 0 && w->ask->on_progress)
                w->ask->on_progress(w->ask->arg, comings, w->count);
        }
        world_plan(w, now);
    }
    double whole = (double)w->out->capacity_milli * (double)(l->last_ms - l->first_ms);
    w->out->used_mean = whole > 0 ? (int64_t)(l->used / whole * 10000 + 0.5) : 0;
}

bool world_live(struct world *w, struct err *err)
{
    struct live l = { .wait_ms = must(calloc(w->count, sizeof *l.wait_ms)),
                      .came_ms = must(calloc(w->count, sizeof *l.came_ms)),
                      .starts = must(calloc(w->count, sizeof *l.starts)) };
    size_t nodes = w->ask->trace->node_count;
    if (w->ask->fail_every_s)
        l.guests = must(calloc(nodes, sizeof *l.guests));
    w->live = &l;
    if (w->ask->no_backfill)
        sched_apply(w->sched, &(struct sched_event){ .kind = SCHED_RULES });
    w->on_start = started;
    bool ok = begin(w, &l, err);
    if (ok) {
        run(w, &l);
        fairness(w, &l);
        waits(w, &l);
    }
    for (size_t i = 0; l.guests && i < nodes; i++)
        free(l.guests[i].at);
    free(l.guests);
    free(l.heap);
    free(l.wait_ms);
    free(l.came_ms);
    free(l.starts);
    return ok;
}
