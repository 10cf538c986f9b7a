/* news.c - the planner's picture of one thing, as the writer's memory has it. Used when
 * something changes and when all is told again. */
#include "control/state.h"
#include "model/hold.h"
#include <stdio.h>

/* A node is told of all its orders in one piece when it comes back, so they are bounded: one that has many to begin gets no
 * more until some have begun. */
bool node_takes(const struct node *n)
{
    enum { ONE_MOST = 8 << 20 };
    return n->state == NODE_READY && n->order_bytes <= ORDERS_BYTES - ONE_MOST;
}

void sched_of_node(const struct state *s, const struct node *n, struct sched_event *e)
{
    const struct gpu_info *gpus = n->info.gpus.at;
    e->kind = SCHED_NODE;
    e->node = n->id;
    e->usable = node_takes(n) && !s->restored;
    e->shut = n->state == NODE_DOWN       ? FILTER_AWAY
              : n->drain                  ? FILTER_DRAINING
              : n->state == NODE_CORDONED ? FILTER_CORDONED
              : s->restored               ? FILTER_RESTORED
                                          : FILTER_ORDERS;
    e->host_image = n->info.host_image;
    e->cpu_milli = n->info.cpu_milli;
    e->mem_mib = n->info.mem_mib;
    struct topology where = node_where(n);
    where_text(&where, e->where);
    e->house = n->house;
    e->gpu_count = (int)MIN(n->info.gpus.count, (size_t)SCHED_GPUS);
    for (int i = 0; i < e->gpu_count; i++) {
        e->gpus[i] = (struct sched_gpu){ .index = gpus[i].index,
                                         .mem_mib = gpus[i].mem_mib,
                                         .healthy = gpus[i].healthy,
                                         .simulated = gpus[i].simulated };
        snprintf(e->gpus[i].model, sizeof e->gpus[i].model, "%s",
                 gpus[i].model ? gpus[i].model : "");
        house_of_gpu(n, &gpus[i], &e->gpus[i]);
    }
}

int64_t job_home(struct state *s, const struct job *j, bool *by_volume)
{
    *by_volume = j->disk != NULL;
    if (!text_given(j->spec.node) && !j->spec.volumes.count)
        return j->disk ? j->disk->node : j->lean;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct node *n = text_given(j->spec.node) ? state_node(s, j->spec.node) : NULL;
    int64_t home = n ? n->id : text_given(j->spec.node) ? -1 : 0; /* a node that is gone: nowhere */
    for (size_t i = 0; i < j->spec.volumes.count; i++) {
        struct job_mount m;
        struct err ignored;
        struct volume *v = job_mount_parse(j->spec.volumes.at[i], mem, &m, &ignored)
                               ? state_volume(s, j->project->id, m.volume)
                               : NULL;
        if (!v || !v->node)
            continue;
        *by_volume = true;
        home = home && home != v->node ? -1 : v->node; /* they came to be on different nodes */
    }
    if (j->disk)
        return home && home != j->disk->node ? -1 : j->disk->node;
    return home ? home : j->lean;
}

void sched_of_job(struct state *s, const struct job *j, struct sched_event *e)
{
    e->kind = SCHED_JOB;
    e->job = j->id;
    e->project = j->project->id;
    e->priority = j->priority;
    e->created_ms = MAX(j->created_ms, j->ready_ms);
    e->first_task = j->next_task;
    e->last_task = j->count - 1;
    e->shape = j->shape;
    e->house = j->tolerates;
    e->wants_host_image = text_is(j->spec.image, "host");
    e->gang = job_gang(j) ? j->count : 0;
    e->within = (uint8_t)job_within(&j->spec), e->prefer = (uint8_t)job_prefer(&j->spec);
    text_copy(e->region, sizeof e->region, j->spec.region ? j->spec.region : "");
    text_copy(e->zone, sizeof e->zone, j->spec.zone ? j->spec.zone : "");
    e->only_node = job_home(s, j, &e->by_volume);
    goods_of_job(s, j, e);
    e->blocked = j->blocked > 0;
    e->told = j->reason == REASON_QUOTA ? REASON_NONE : j->reason; /* which limit it is is told with the reason */
    e->owner = j->owner;
    e->bound_ms = limit_bound_ms(&j->spec);
}

void sched_of_project(const struct project *p, struct sched_event *e)
{
    e->project = p->id;
    e->quota = p->quota;
    e->weight_milli = p->weight_milli;
    e->house = p->residency;
}

void sched_of_limit(const struct project *p, const struct limit_row *r, struct sched_event *e)
{
    e->project = p->id;
    e->owner = r->owner;
    memcpy(e->model, r->model, sizeof e->model);
    e->limit = r->limit;
    memcpy(e->used_hours, r->used, sizeof e->used_hours);
}

void sched_of_reservation(const struct reservation *r, struct sched_event *e)
{
    e->kind = SCHED_RESERVE;
    e->reserve = r->id;
    e->project = r->project->id;
    e->shape = r->shape;
    e->count = r->count;
    e->from_ms = r->from_ms;
    e->until_ms = r->until_ms;
}

enum { BRAKE_LIFTED = 1000 * 1000 }; /* a thousand fleets in a window: none, as at the door */

void sched_of_rules(const struct state *s, int64_t now_ms, struct sched_event *e)
{
    const int64_t *at = s->rules.at;
    e->kind = SCHED_RULES;
    int64_t *weight = e->rules.weight;
    e->rules = SCHED_RULES_USUAL;
    if ((e->rules.weight = weight))
        memcpy(weight, &at[RULE_WEIGHT], TERM_COUNT * sizeof *weight);
    for (int i = 0; i < CLASS_COUNT; i++)
        e->rules.preempt[i] = (uint8_t)at[RULE_PREEMPT + i];
    e->rules.brake_permille = brake_lifted(&s->rules, now_ms) ? BRAKE_LIFTED : at[RULE_BRAKE_PERMILLE];
    e->rules.brake_window_ms = at[RULE_BRAKE_WINDOW_S] * 1000;
    e->rules.backfill_depth = at[RULE_BACKFILL_DEPTH];
    if (at[RULE_SPOT_NOTICE_S] >= 0)
        e->rules.notice_ms = at[RULE_SPOT_NOTICE_S] * 1000;
}

void sched_of_held(const struct attempt *a, struct sched_event *e)
{
    e->kind = SCHED_TASK_HELD;
    e->at_ms = a->hold_ms ? a->hold_ms : a->placed_ms;
    e->job = a->task->job->id;
    e->project = a->task->job->project->id;
    e->task = a->task->index;
    e->node = a->node->id;
    e->owner = a->task->job->owner;
    e->priority = a->task->job->priority;
    e->bound_ms = limit_bound_ms(&a->task->job->spec);
    bool evicted = a->hold == STEP_SUSPENDING && a->returns;
    e->yielding = a->stop || evicted;
    e->yields_ms = a->stop ? a->stop_ms + a->grace_s * 1000 : evicted; /* as soon as it can */
    e->cpu_held = a->cpu_milli;
    e->mem_held = a->mem_mib;
    e->away = a->away > 0;
    e->returns = a->hold == STEP_WAITS && !a->stop;
    e->wanted = e->returns && !a->returns;
    e->own_cpu = a->own_cpu, e->own_mem = MAX(a->own_mem, a->mem_mib);
    e->held_count = a->gpu_count + a->away;
    for (int i = 0; i < e->held_count; i++) {
        e->held[i].index = a->gpus[i].index;
        e->held[i].milli = a->gpus[i].milli;
        e->held[i].mem_mib = a->gpus[i].mem_mib;
        e->held[i].slots = house_slots(&a->gpus[i]);
    }
}
