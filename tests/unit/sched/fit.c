#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

struct small { struct sched *s; struct class class; struct project project; struct node *n; };

/* One node with two GPUs, numbers 4 and 9. */
static struct small small_new(struct shape shape)
{
    struct small x = { sched_new(), { .shape = shape }, { .id = 7, .quota = QUOTA_NONE }, NULL };
    struct sched_event e = kit_node_event(&(struct kit_node){ 1, "H200", 2, 1000, 4, 8000, false, false });
    e.gpus[0].index = 4, e.gpus[1].index = 9;
    sched_apply(x.s, &e);
    x.n = fleet_node(&x.s->fleet, 1);
    return x;
}
static void small_free_auto(struct small *x)
{
    wanted_leave(&x->s->index, x->class.wanted);
    sched_free(x->s);
}
#define SMALL(...) AUTO(small_free) struct small x = small_new((struct shape){ __VA_ARGS__ }); x.class.project = &x.project; \
    x.class.wanted = wanted_of(&x.s->index, &(struct want){ .shape = x.class.shape, .project = 7 })

static int found(struct small *x, struct held_gpu *gpus)       /* how many GPUs; -1: it does not fit */
{
    struct pick p;
    struct node *n = place_find(x->s, &x->class, &p);
    return n ? pick_gpus(&x->class.wanted->is, &p, n, &x->s->fleet, gpus) : -1;
}

static void hold(struct small *x, int64_t project, int64_t cpu, int64_t mem, int64_t gpu, int64_t milli)
{
    fleet_take(&x->s->fleet, x->n, project, cpu, mem, &(struct held_gpu){ gpu, milli, milli }, milli > 0);
}

TEST(a_task_fits_to_the_last_thousandth_and_not_one_more)
{
    SMALL(.cpu_milli = 4000, .mem_mib = 8000, .gpu.milli = 2000);
    struct held_gpu g[SCHED_GPUS];
    CHECK(found(&x, g) == 2 && g[0].index == 4 && g[1].index == 9 && g[1].milli == 1000 && g[1].mem_mib == 1000);
    hold(&x, 7, 1, 0, 0, 0);
    CHECK(found(&x, g) == -1 && node_could(&x.s->fleet, x.n, &x.class));
    fleet_give(&x.s->fleet, x.n, 7, 1, 0, NULL, 0);
    CHECK(found(&x, g) == 2);
    hold(&x, 7, 0, 1, 0, 0);
    CHECK(found(&x, g) == -1);
    x.class.shape.cpu_milli = 4001;
    CHECK(!node_could(&x.s->fleet, x.n, &x.class));
    x.class.shape = (struct shape){ .gpu.milli = 3000 };
    CHECK(!node_could(&x.s->fleet, x.n, &x.class));
}

TEST(a_share_goes_where_its_project_already_is)
{
    SMALL(.gpu.milli = 400);
    struct held_gpu g[SCHED_GPUS];
    hold(&x, 7, 0, 0, 9, 600);
    CHECK(found(&x, g) == 1 && g[0].index == 9 && g[0].mem_mib == 400);
    hold(&x, 7, 0, 0, 9, 1);
    CHECK(found(&x, g) == 1 && g[0].index == 4);
    hold(&x, 8, 0, 0, 4, 100);
    CHECK(found(&x, g) == -1);
}
