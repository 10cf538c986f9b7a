/* gpu_live.c - what GPUs do now: the figures that agents send with their reports, kept in the writer's memory alone, and who may see which.
 *
 * Operators and auditors see every GPU with all that hold it; a tenant those that tasks of its project hold, and of one that it does not have to
 * itself only what its own tasks take: the rest would tell about its neighbours. While somebody looks, agents are asked for figures every
 * second (less often in a large fleet), else every 15 s. */
#include "control/gpu_live.h"
#include <stdio.h>
#include <stdlib.h>

enum { LOOK_MS = 10000, STALE_MS = 60000, NODES_A_SECOND = 200 };

/* --- figures come */

void node_take_live(struct call *c, struct node *n, const struct objects *live)
{
    if (!live->count)
        return;
    struct arena *mem = arena_new();
    struct report copy = { 0 }, from = { .live = *live };
    bind_copy(&report_fields, &from, mem, &copy);
    arena_free(n->live_mem);
    n->live_mem = mem;
    n->live = copy.live;
    n->live_ms = c->now_ms;
}

static bool has_figures(const struct node *n)
{
    const struct gpu_info *gpus = n->info.gpus.at;
    for (size_t i = 0; i < n->info.gpus.count; i++)
        if (!gpus[i].simulated)
            return true;
    return false;
}

int64_t live_look_ms(const struct call *c, const struct node *n)
{
    bool looks = c->boot_ms < c->s->look_boot_ms && has_figures(n);
    return looks ? LIVE_LOOK_MS * (1 + (int64_t)map_count(c->s->nodes) / NODES_A_SECOND) : 0;
}

void live_tick(struct call *c)
{
    bool looks = c->boot_ms < c->s->look_boot_ms;
    struct node *n;
    for (size_t i = 0; looks && !c->s->looked && (n = map_next(c->s->nodes, &i));)
        if (n->linked && has_figures(n))
            node_tell(c, n);
    c->s->looked = looks;
}

/* --- who holds a GPU */

static const char *wall_of(const struct order_gpu *g)
{
    return text_given(g->mig) ? "mig" : g->milli < 1000 ? "process" : "device";
}

static const struct live_task *figures_of(const struct gpu_live *l, int64_t attempt)
{
    const struct live_task *tasks = l ? l->tasks.at : NULL;
    for (size_t i = 0; l && i < l->tasks.count; i++)
        if (tasks[i].attempt == attempt)
            return &tasks[i];
    return NULL;
}

static bool sees_all(const struct call *c)
{
    return c->who->roles & PLATFORM_ROLES;
}

static const struct order_gpu *held_by(const struct attempt *a, int64_t index)
{
    for (int g = 0; g < a->gpu_count; g++)
        if (a->gpus[g].index == index)
            return &a->gpus[g];
    return NULL;
}

static bool sees(const struct call *c, const struct attempt *a)
{
    return sees_all(c) || a->task->job->project->id == c->who->project;
}

/* The caller's tasks on it; *held: thousandths that anybody holds, *own: that the caller sees. */
static struct objects tasks_on(struct call *c, const struct node *n, int64_t index,
                               const struct gpu_live *l, int64_t *held, int64_t *own)
{
    size_t room = 1, count = 0;
    struct attempt *a;
    const struct order_gpu *g;
    *held = *own = 0;
    for (size_t i = 0; (a = map_next(n->attempts, &i));)
        room += held_by(a, index) && sees(c, a);
    struct live_task_view *list = ARENA_ARRAY(c->mem, struct live_task_view, room);
    for (size_t i = 0; (a = map_next(n->attempts, &i));) {
        const struct job *j = a->task->job;
        if (!(g = held_by(a, index)))
            continue;
        *held += g->milli;
        if (!sees(c, a))
            continue;
        *own += g->milli;
        const struct live_task *t = figures_of(l, a->id);
        list[count++] = (struct live_task_view){ .job = j->id,
                                                 .attempt = a->id,
                                                 .task = a->task->index,
                                                 .name = j->name,
                                                 .project = j->project->name,
                                                 .wall = wall_of(g),
                                                 .gpu_milli = g->milli,
                                                 .mem_mib = g->mem_mib,
                                                 .mem_used_mib = t   ? t->mem_mib
                                                                 : l ? 0
                                                                     : -1,
                                                 .processes = t ? t->processes : 0 };
    }
    const struct live_task *other = sees_all(c) ? figures_of(l, 0) : NULL;
    if (other)
        list[count++] = (struct live_task_view){ .name = "(not the cloud's)",
                                                 .project = "",
                                                 .wall = "",
                                                 .mem_used_mib = other->mem_mib,
                                                 .processes = other->processes };
    return (struct objects){ list, count };
}

/* --- one GPU, for one who asks */

const struct gpu_live *live_of(const struct call *c, const struct node *n, const struct gpu_info *g)
{
    const struct gpu_live *all = n->live.at;
    bool fresh = n->live_ms && n->state != NODE_DOWN && c->now_ms - n->live_ms < STALE_MS;
    for (size_t i = 0; fresh && i < n->live.count; i++)
        if (text_is(all[i].uuid, g->uuid))
            return &all[i];
    return NULL;
}

/* What is left of a GPU for one who has only a part of it. */
static struct gpu_live own_part(const struct live_view *v)
{
    struct gpu_live l = gpu_live_unknown(v->live.uuid);
    const struct live_task_view *tasks = v->tasks.at;
    for (size_t i = 0; i < v->tasks.count; i++)
        if (tasks[i].mem_used_mib >= 0)
            l.mem_used_mib = MAX(l.mem_used_mib, 0) + tasks[i].mem_used_mib;
    l.throttle = "";
    return l;
}

/* False: the caller has nothing to do with it. */
static bool view_of(struct call *c, const struct node *n, const struct gpu_info *g,
                    struct live_view *v)
{
    int64_t held, own;
    const struct gpu_live *l = live_of(c, n, g);
    *v = (struct live_view){ .id = g->uuid,
                             .name = arena_printf(c->mem, "%s/%lld", n->name, (long long)g->index),
                             .node = n->name,
                             .model = g->model,
                             .health = g->health ? g->health : "",
                             .index = g->index,
                             .mem_mib = g->mem_mib,
                             .power_cap_mw = g->power_cap_mw,
                             .at_ms = l ? n->live_ms : 0,
                             .simulated = g->simulated,
                             .live = l ? *l : gpu_live_unknown(g->uuid) };
    v->tasks = tasks_on(c, n, g->index, l, &held, &own);
    v->live.throttle = v->live.throttle ? v->live.throttle : "";
    v->state = !g->healthy              ? "unhealthy"
               : n->state != NODE_READY ? node_state_word(n->state, n->drain)
               : held                   ? "in use"
                                        : "free";
    if (sees_all(c))
        return true;
    if (own < 1000)
        v->live = own_part(v);
    return own > 0;
}

static int by_id(const void *a, const void *b)
{
    int64_t x = (*(struct node *const *)a)->id, y = (*(struct node *const *)b)->id;
    return (x > y) - (x < y);
}

/* A tenant costs what it has itself: its nodes are those of its attempts, however large the fleet is. */
static struct map *nodes_of(const struct call *c)
{
    const struct project *p = map_get(c->s->projects, c->who->project);
    struct map *found = map_new();
    struct attempt *a;
    for (size_t i = 0; p && p->holders && (a = map_next(p->holders, &i));)
        map_put(found, a->node->id, a->node);
    return found;
}

struct live_rows live_rows(struct call *c, const struct gpu_live_ask *ask, int64_t after,
                           size_t most)
{
    struct live_rows out = { 0 };
    AUTO(map_free) struct map *own = sees_all(c) ? NULL : nodes_of(c);
    const struct map *all = own ? own : c->s->nodes;
    struct node **nodes = ARENA_ARRAY(c->mem, struct node *, map_count(all)), *n;
    size_t count = 0, room = 0;
    for (size_t i = 0; (n = map_next(all, &i));)
        if (n->id > after && n->info.gpus.count
            && (!text_given(ask->node) || n == state_node(c->s, ask->node))) {
            nodes[count++] = n;
            room += n->info.gpus.count;
        }
    qsort(nodes, count, sizeof *nodes, by_id);
    out.at = ARENA_ARRAY(c->mem, struct live_row, MIN(room, most + SCHED_GPUS));
    for (size_t i = 0; i < count; i++) {
        const struct gpu_info *gpus = nodes[i]->info.gpus.at;
        if (out.count >= most) { /* whole nodes only */
            out.next = nodes[i - 1]->id;
            break;
        }
        for (size_t g = 0; g < nodes[i]->info.gpus.count; g++) {
            struct live_row *row = &out.at[out.count];
            if (view_of(c, nodes[i], &gpus[g], &row->view)) {
                row->node = nodes[i], row->gpu = &gpus[g];
                out.count++;
            }
        }
    }
    return out;
}

bool live_node_check(struct call *c, const struct gpu_live_ask *ask, struct err *err)
{
    return !text_given(ask->node) || !sees_all(c) || state_node(c->s, ask->node)
           || err_set(err, RC_NOT_FOUND, "there is no node '%s'", ask->node);
}

bool gpu_live(struct call *c, const void *body, struct err *err)
{
    const struct gpu_live_ask *ask = body;
    int64_t after = 0;
    if (text_given(ask->page) && !id_parse(ask->page, PREFIX_NODE, &after))
        return err_field(err, "page", "this is not the `next` of a page before");
    if (!live_node_check(c, ask, err))
        return false;
    c->s->look_boot_ms = c->boot_ms + LOOK_MS;
    struct live_rows rows = live_rows(c, ask, after, (size_t)ask->limit);
    struct list l = list_open(c);
    for (size_t i = 0; i < rows.count; i++)
        list_add(&l, &live_view_fields, &rows.at[i].view);
    list_close(&l, rows.next ? id_of(c, PREFIX_NODE, rows.next) : NULL);
    return true;
}
