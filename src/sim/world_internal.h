/* world_internal.h - what the files of a run share. */
#pragma once
#include "base/map.h"
#include "base/rand.h"
#include "sched/sched.h"
#include "sim/world.h"
#include <stdlib.h>

static inline void free_uint32_auto(uint32_t **p) { free(*p); }

/* Of one node. owner: whose shares are on a GPU; others may not come to it. */
struct book { int64_t id, cpu_free, mem_free; bool up; int16_t free_milli[TRACE_GPUS_MAX]; int32_t owner[TRACE_GPUS_MAX]; };
struct stay { uint32_t node; bool placed; uint8_t gpus, gpu[TRACE_GPUS_MAX]; };                   /* of one task */
struct world {
    const struct sim_ask *ask;
    struct sim_result *out;
    struct sched *sched;
    struct map *projects;           /* name -> number */
    struct rng rng;
    uint32_t *order;                /* arrival -> task of the trace */
    size_t count;
    struct book *books;             /* by node of the trace */
    uint32_t *by_id;                /* number in the scheduler -> node of the trace */
    struct stay *stays;             /* by arrival, and of a gang by rank: */
    size_t *first_stay;             /* NULL: there are no gangs */
    int64_t noted;
    void (*on_start)(struct world *w, size_t arrival, int64_t now_ms);
    void *live;
};
static inline const struct trace_task *world_task(const struct world *w, size_t arrival)
{
    return &w->ask->trace->tasks[w->order[arrival]];
}
static inline struct stay *world_stay(const struct world *w, size_t arrival, int64_t rank)
{
    return &w->stays[(w->first_stay ? w->first_stay[arrival] : arrival) + (size_t)rank];
}
/* How long it runs, which the scheduler is told as the most it may; 0: it stays. */
static inline int64_t world_length_ms(const struct world *w, const struct trace_task *t)
{
    return w->ask->leave ? MAX(t->deleted_s - (t->scheduled_s >= 0 ? t->scheduled_s : t->created_s), 1) * 1000 : 0;
}
int64_t world_project(struct world *w, const struct trace_task *t);
void world_arrive(struct world *w, size_t arrival, int64_t now_ms);
bool world_plan(struct world *w, int64_t now_ms);
void world_freed(struct world *w, size_t arrival);
void world_tell(struct world *w, enum sched_kind kind, size_t arrival);
bool book_somewhere(struct world *w, const struct trace_task *t);
/* --- fair.c: Jain's index over projects, of what each got of what it asked for; ten-thousandths */
struct fair { double *got, *asked; size_t projects; };
struct fair fair_open(const struct world *w);
void fair_add(struct fair *f, int64_t project, double asked, double got);
int64_t fair_close(struct fair *f);
/* --- live.c: tasks that come and go */
bool world_live(struct world *w, struct err *err);
void world_node(struct world *w, size_t node, bool up);
