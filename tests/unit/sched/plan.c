/* Small worlds, one sentence each. */
#include "base/rand.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

struct world { struct sched *s; struct arena *mem; struct sched_plan plan; };
static struct world world_new(void) { return (struct world){ sched_new(), arena_new(), { 0 } }; }
static void world_free_auto(struct world *w)
{
    sched_free(w->s);
    arena_free(w->mem);
}
#define WORLD AUTO(world_free) struct world w = world_new()

static void node(struct world *w, int64_t id, const char *model, int gpus, int64_t gpu_mib, int64_t cpus, int64_t mem_mib)
{
    struct sched_event e = kit_node_event(&(struct kit_node){ id, model, gpus, gpu_mib, cpus, mem_mib, false, false });
    sched_apply(w->s, &e);
}

static void job(struct world *w, int64_t id, int64_t project, int64_t priority, const char *gpus, int64_t cpus, int64_t mem_mib, int64_t tasks)
{
    struct sched_event e = kit_job_event(id, project, priority, gpus, cpus, mem_mib, tasks);
    sched_apply(w->s, &e);
}

/* "10.0@1[0,1] ..." and "| 11=Resources ..." */
static const char *plan(struct world *w, int64_t now)
{
    struct str out = { 0 };
    w->plan = sched_plan(w->s, now, 1000, w->mem);
    str_text(&out, "");
    for (size_t i = 0; i < w->plan.count; i++) {
        const struct placement *p = &w->plan.placements[i];
        const struct order_gpu *g = p->gpus.at;
        str_printf(&out, "%s%lld.%lld@%lld", out.len ? " " : "", (long long)p->job, (long long)p->task, (long long)p->node);
        for (size_t k = 0; k < p->gpus.count; k++)
            str_printf(&out, "%s%lld", k ? "," : "[", (long long)g[k].index);
        str_text(&out, p->gpus.count ? "]" : "");
    }
    for (size_t i = 0; i < w->plan.wait_count; i++)
        str_printf(&out, "%s%lld=%s", out.len ? " " : "", (long long)w->plan.waits[i].job, reason_name(w->plan.waits[i].reason));
    char *text = arena_text(w->mem, out.at);
    str_done(&out);
    return text;
}

static bool is(struct world *w, int64_t now, const char *want)
{
    const char *got = plan(w, now);
    if (!text_is(got, want))
        printf("# got '%s', not '%s'\n", got, want);
    return text_is(got, want);
}

TEST(the_higher_priority_goes_first_and_then_the_older)
{
    WORLD;
    node(&w, 1, "H200", 1, 1000, 8, 8000);
    job(&w, 12, 7, 50, "1", 1, 100, 1);
    job(&w, 11, 7, 50, "1", 1, 100, 1);
    job(&w, 13, 7, 90, "1", 1, 100, 1);
    CHECK(is(&w, 0, "13.0@1[0] 11=Resources 12=Priority"));
    kit_task(w.s, SCHED_TASK_FREED, 13, 0, 0);
    CHECK(is(&w, 1, "11.0@1[0] 12=Resources"));
}

TEST(what_fits_may_start_although_a_larger_job_before_it_waits)
{
    WORLD;
    node(&w, 1, "H200", 2, 1000, 8, 8000);
    job(&w, 10, 7, 50, "1", 1, 100, 1);
    job(&w, 11, 7, 50, "2", 1, 100, 1);
    job(&w, 12, 7, 50, "1", 1, 100, 1);
    CHECK(is(&w, 0, "10.0@1[0] 12.0@1[1] 11=Resources"));
}

TEST(nodes_are_filled_in_the_order_they_joined)
{
    WORLD;
    node(&w, 2, "H200", 1, 1000, 8, 8000);
    node(&w, 1, "H200", 1, 1000, 8, 8000);
    job(&w, 10, 7, 50, "1", 1, 100, 3);
    CHECK(is(&w, 0, "10.0@1[0] 10.1@2[0] 10=Resources"));
}

TEST(shares_are_packed_on_the_fullest_gpu_and_whole_gpus_stay_whole)
{
    WORLD;
    node(&w, 1, "H200", 3, 1000, 16, 8000);
    job(&w, 10, 7, 50, "0.5", 1, 100, 1);
    job(&w, 11, 7, 50, "1", 1, 100, 1);
    job(&w, 12, 7, 50, "0.25", 1, 100, 3);
    CHECK(is(&w, 0, "10.0@1[0] 11.0@1[1] 12.0@1[0] 12.1@1[0] 12.2@1[2]"));
    const struct order_gpu *g = w.plan.placements[0].gpus.at;
    CHECK(g->milli == 500 && g->mem_mib == 500 && g->index == 0);
    CHECK(((const struct order_gpu *)w.plan.placements[1].gpus.at)->mem_mib == 1000);
    job(&w, 13, 7, 50, "2", 1, 100, 1);
    CHECK(is(&w, 0, "13=Resources"));
}

TEST(two_projects_never_share_one_gpu)
{
    WORLD;
    node(&w, 1, "H200", 1, 1000, 16, 8000);
    job(&w, 10, 7, 50, "0.25", 1, 100, 1);
    job(&w, 11, 8, 50, "0.25", 1, 100, 1);
    CHECK(is(&w, 0, "10.0@1[0] 11=Resources"));
    kit_task(w.s, SCHED_TASK_FREED, 10, 0, 0);
    CHECK(is(&w, 0, "11.0@1[0]"));
}

TEST(the_memory_of_a_shared_gpu_is_not_given_twice)
{
    WORLD;
    node(&w, 1, "H200", 1, 1000, 16, 8000);
    struct sched_event e = kit_job_event(10, 7, 50, "0.1", 1, 100, 3);
    e.shape.gpu.share_mib = 400;
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, "10.0@1[0] 10.1@1[0] 10=Resources"));
    e.job = 11;
    e.shape.gpu.share_mib = 1001;
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, "11=NoSuitableNode"));
}

TEST(model_and_memory_choose_the_node)
{
    WORLD;
    node(&w, 1, "NVIDIA A100-SXM4-40GB", 1, 40960, 16, 8000);
    node(&w, 2, "NVIDIA H200", 1, 143771, 16, 8000);
    job(&w, 10, 7, 50, "h200", 1, 100, 1);
    job(&w, 11, 7, 50, "24GB..80GB", 1, 100, 1);
    job(&w, 12, 7, 50, "H100", 1, 100, 1);
    job(&w, 13, 7, 50, "A10", 1, 100, 1);
    CHECK(is(&w, 0, "10.0@2[0] 11.0@1[0] 12=NoSuitableNode 13=NoSuitableNode"));
}

TEST(a_job_that_no_node_could_run_is_told_apart_and_starts_when_one_joins)
{
    WORLD;
    job(&w, 10, 7, 50, "0", 4, 100, 1);
    CHECK(is(&w, 0, "10=NoSuitableNode"));
    node(&w, 1, "", 0, 0, 2, 8000);
    CHECK(is(&w, 0, ""));
    node(&w, 2, "", 0, 0, 4, 8000);
    CHECK(is(&w, 0, "10.0@2"));
}

TEST(a_mig_slice_has_no_node_where_no_gpu_is_in_that_mode)
{
    WORLD;
    node(&w, 1, "H200", 1, 1000, 16, 8000);
    struct sched_event e = kit_job_event(10, 7, 50, "0", 1, 100, 1);
    CHECK(mig_parse("1g.18gb", &e.shape.gpu));
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, "10=NoSuitableNode"));
}

TEST(slices_fill_a_gpu_in_mig_mode_and_whole_tasks_go_elsewhere)
{
    WORLD;
    struct sched_event n = kit_node_event(&(struct kit_node){ 1, "NVIDIA H200", 2, 143771, 16, 8000, false, false });
    kit_gpu_mode(&n.gpus[1], 5);
    sched_apply(w.s, &n);
    job(&w, 10, 7, 50, "4g.71gb", 1, 100, 1);
    CHECK(is(&w, 0, "10.0@1[1]"));
    job(&w, 11, 7, 50, "1", 1, 100, 2);
    CHECK(is(&w, 0, "11.0@1[0] 11=Resources"));
    job(&w, 12, 8, 50, "1g.18gb", 1, 100, 4);
    CHECK(is(&w, 0, "12.0@1[1] 12.1@1[1] 12.2@1[1] 12=Resources 11=Priority"));
}

TEST(a_sick_gpu_and_a_node_that_is_away_get_nothing)
{
    WORLD;
    struct sched_event e = kit_node_event(&(struct kit_node){ 1, "H200", 2, 1000, 8, 8000, false, false });
    e.gpus[0].healthy = false;
    sched_apply(w.s, &e);
    job(&w, 10, 7, 50, "1", 1, 100, 2);
    CHECK(is(&w, 0, "10.0@1[1] 10=Resources"));
    kit_task(w.s, SCHED_TASK_FREED, 10, 0, 0);
    e.usable = false;
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, ""));
    e.usable = true;
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, "10.1@1[1]"));
}

TEST(a_quota_holds_its_own_project_and_no_other)
{
    WORLD;
    node(&w, 1, "H200", 8, 1000, 64, 64000);
    struct sched_event e = { .kind = SCHED_PROJECT, .project = 7, .quota = { 300, -1000, -1, -1 } };
    sched_apply(w.s, &e);
    job(&w, 10, 7, 50, "0.1", 1, 100, 1);
    job(&w, 11, 7, 50, "0.2", 1, 100, 1);
    job(&w, 12, 7, 50, "0.1", 1, 100, 1);
    job(&w, 13, 8, 50, "4", 1, 100, 1);
    /* 0.1 + 0.2 fits a quota of 0.3. The other project's turn comes after the first's first: it has had nothing yet. */
    CHECK(is(&w, 0, "10.0@1[0] 13.0@1[1,2,3,4] 11.0@1[0] 12=Quota"));
    e.quota = (struct quota){ -1000, 3000, -1, -1 };
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, "12.0@1[0]"));
    job(&w, 14, 7, 50, "0", 1, 100, 1);
    CHECK(is(&w, 0, "14=Quota"));
    e.quota = (struct quota){ -1000, -1000, 399, -1 };
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, ""));
    e.quota.mem_mib = 400;
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, "14.0@1"));
}

/* What a task holds follows from the node where it names nothing: 8 CPUs with each GPU here. */
TEST(a_quota_that_binds_only_on_the_chosen_node_is_told_as_such)
{
    for (int named = 0; named < 2; named++) {
        WORLD;
        node(&w, 1, "H200", 8, 1000, 64, 64000);
        struct sched_event e = { .kind = SCHED_PROJECT, .project = 7, .quota = { -1000, 10000, -1, -1 } };
        sched_apply(w.s, &e);
        struct sched_event j = kit_job_event(10, 7, 50, "1", 0, 0, 2);
        j.only_node = named;
        sched_apply(w.s, &j);
        CHECK(is(&w, 0, "10.0@1[0] 10=Quota"));
        CHECK(w.plan.waits[0].limit == LIMIT_PROJECT_CPUS && w.plan.waits[0].most == 10000 && w.plan.waits[0].needs == 8000);
        e.quota = (struct quota){ -1000, -1000, 16000, -1 };
        sched_apply(w.s, &e);
        CHECK(is(&w, 0, "10.1@1[1]"));
        job(&w, 11, 7, 50, "1", 1, 100, 1);
        CHECK(is(&w, 0, "11=Quota") && w.plan.waits[0].limit == LIMIT_PROJECT_MEMORY);
    }
}

TEST(a_job_of_one_node_goes_there_or_waits)
{
    WORLD;
    node(&w, 1, "", 0, 0, 4, 8000);
    node(&w, 2, "", 0, 0, 4, 8000);
    struct sched_event e = kit_job_event(10, 7, 50, "0", 3, 100, 2);
    e.only_node = 2;
    sched_apply(w.s, &e);
    e.job = 11;
    e.only_node = 3;
    sched_apply(w.s, &e);
    e.job = 12;
    e.by_volume = true;
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, "10.0@2 10=Resources 11=NoSuitableNode 12=VolumeNode"));
}

TEST(the_hosts_image_only_where_it_is_allowed)
{
    WORLD;
    node(&w, 1, "", 0, 0, 4, 8000);
    struct sched_event e = kit_job_event(10, 7, 50, "0", 1, 100, 1);
    e.wants_host_image = true;
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, "10=NoSuitableNode"));
    struct sched_event host = kit_node_event(&(struct kit_node){ 2, "", 0, 0, 4, 8000, false, true });
    sched_apply(w.s, &host);
    CHECK(is(&w, 0, "10.0@2"));
}

TEST(a_blocked_job_waits_for_its_dependencies_and_holds_nobody_up)
{
    WORLD;
    node(&w, 1, "", 0, 0, 1, 8000);
    struct sched_event e = kit_job_event(10, 7, 50, "0", 1, 100, 1);
    e.blocked = true;
    sched_apply(w.s, &e);
    job(&w, 11, 7, 50, "0", 1, 100, 1);
    CHECK(is(&w, 0, "11.0@1 10=Dependency"));
    e.blocked = false;
    sched_apply(w.s, &e);
    CHECK(is(&w, 0, "10=Resources"));
}

TEST(a_retry_waits_out_its_pause_and_says_when_to_look_again)
{
    WORLD;
    node(&w, 1, "", 0, 0, 8, 8000);
    job(&w, 10, 7, 50, "0", 1, 100, 2);
    CHECK(is(&w, 0, "10.0@1 10.1@1") && w.plan.next_ms == INT64_MAX);
    kit_task(w.s, SCHED_TASK_FREED, 10, 0, 0);
    kit_task(w.s, SCHED_TASK_QUEUED, 10, 0, 5000);
    CHECK(is(&w, 1000, "10=RetryDelay") && w.plan.next_ms == 5000);
    CHECK(is(&w, 4999, "") && w.plan.next_ms == 5000);
    CHECK(is(&w, 5000, "10.0@1") && w.plan.next_ms == INT64_MAX);
}

TEST(a_refused_placement_waits_again_after_a_moment)
{
    WORLD;
    node(&w, 1, "H200", 1, 1000, 8, 8000);
    job(&w, 10, 7, 50, "1", 1, 100, 1);
    CHECK(is(&w, 1000, "10.0@1[0]"));
    kit_task(w.s, SCHED_TASK_REFUSED, 10, 0, 0);
    CHECK(is(&w, 1000, "") && w.plan.next_ms == 1100);
    CHECK(is(&w, 1100, "10.0@1[0]"));
    struct sched_event j = kit_job_event(10, 7, 50, "1", 1, 100, 1), held = kit_held_event(&w.plan.placements[0], &j);
    sched_apply(w.s, &held);
    kit_task(w.s, SCHED_TASK_REFUSED, 10, 0, 0);        /* too late: it was confirmed */
    CHECK(is(&w, 2000, ""));
}

TEST(a_task_that_was_cancelled_while_it_was_being_placed_does_not_come_back)
{
    WORLD;
    node(&w, 1, "", 0, 0, 8, 8000);
    job(&w, 10, 7, 50, "0", 1, 100, 2);
    job(&w, 11, 7, 50, "0", 1, 100, 1);
    CHECK(is(&w, 0, "10.0@1 10.1@1 11.0@1"));
    kit_task(w.s, SCHED_TASK_GONE, 10, 1, 0);
    kit_task(w.s, SCHED_TASK_REFUSED, 10, 1, 0);
    kit_task(w.s, SCHED_JOB_GONE, 11, 0, 0);
    kit_task(w.s, SCHED_TASK_REFUSED, 11, 0, 0);
    CHECK(is(&w, 9999, ""));
    CHECK(map_count(w.s->holds) == 1);
}

TEST(a_changed_priority_changes_the_order_and_keeps_the_tasks)
{
    WORLD;
    job(&w, 10, 7, 50, "0", 1, 100, 5);
    job(&w, 11, 7, 50, "0", 1, 100, 1);
    kit_task(w.s, SCHED_TASK_GONE, 10, 0, 0);
    job(&w, 11, 7, 80, "0", 1, 100, 1);
    node(&w, 1, "", 0, 0, 2, 8000);
    CHECK(is(&w, 0, "11.0@1 10.1@1 10=Resources"));
}

TEST(a_full_plan_goes_on_in_the_next)
{
    WORLD;
    node(&w, 1, "", 0, 0, 64, 8000);
    job(&w, 10, 7, 50, "0", 1, 10, 5);
    job(&w, 11, 7, 50, "0", 1, 10, 1);
    struct sched_plan p = sched_plan(w.s, 5, 3, w.mem);
    CHECK(p.count == 3 && p.wait_count == 0 && p.next_ms == 5);
    CHECK(is(&w, 5, "10.3@1 10.4@1 11.0@1"));
    CHECK(sched_plan(w.s, 5, 0, w.mem).count == 0);
}

TEST(a_pass_with_nothing_new_does_not_walk_the_queue)
{
    WORLD;
    node(&w, 1, "", 0, 0, 1, 8000);
    for (int i = 0; i < 1000; i++)
        job(&w, 10 + i, 7, 50, "0", 1, 10, 10);
    plan(&w, 0);
    uint64_t looks = w.s->looks;
    for (int i = 1; i < 100; i++)
        CHECK(is(&w, i, ""));
    CHECK(w.s->looks == looks);
    kit_task(w.s, SCHED_TASK_FREED, 10, 0, 0);
    CHECK(is(&w, 100, "10.1@1") && w.s->looks > looks);
}

TEST(every_waiting_job_has_a_reason_and_it_is_told_once)
{
    WORLD;
    node(&w, 1, "", 0, 0, 1, 8000);
    for (int i = 0; i < 50; i++)
        job(&w, 10 + i, 7, 50, "0", 1, 10, 1);
    plan(&w, 0);
    CHECK(w.plan.count == 1 && w.plan.wait_count == 49 && w.plan.waits[0].reason == REASON_RESOURCES && w.plan.waits[48].reason == REASON_PRIORITY);
    job(&w, 99, 7, 50, "0", 1, 10, 1);
    CHECK(is(&w, 0, "99=Priority"));
}

TEST(new_jobs_are_looked_at_alone_behind_a_long_queue)
{
    WORLD;
    node(&w, 1, "", 0, 0, 2, 8000);
    for (int i = 0; i < 1000; i++)
        job(&w, 10 + i, 7, 50, "0", 2, 10, 1);
    plan(&w, 0);
    uint64_t looks = w.s->looks;
    job(&w, 2000, 7, 50, "0", 2, 10, 1);
    CHECK(is(&w, 1, "2000=Priority") && w.s->looks == looks);     /* its kind is known not to fit */
    job(&w, 2001, 7, 90, "0", 2, 10, 1);
    CHECK(is(&w, 2, "2001=Resources 11=Priority"));
}

static void same_event(struct world *a, struct world *b, const struct sched_event *e)
{
    sched_apply(a->s, e);
    sched_apply(b->s, e);
}

TEST(a_pass_over_new_jobs_alone_plans_what_a_full_pass_would)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng r = { seed };
        AUTO(world_free) struct world a = world_new();
        AUTO(world_free) struct world b = world_new();
        for (int step = 0, id = 10; step < 60; step++) {
            struct sched_event e;
            switch (rng_below(&r, 6)) {
            case 0:
                e = kit_node_event(&(struct kit_node){ .id = 1 + (int64_t)rng_below(&r, 3), .cpus = 1 + (int64_t)rng_below(&r, 4), .mem_mib = 8000 });
                break;
            case 1:
                e = (struct sched_event){ .kind = SCHED_TASK_FREED, .job = 10 + (int64_t)rng_below(&r, 40) };
                break;
            case 2:
                e = (struct sched_event){ .kind = SCHED_JOB_GONE, .job = 10 + (int64_t)rng_below(&r, 40) };
                break;
            default:
                e = kit_job_event(id++, 7, rng_below(&r, 8) ? 50 : 60, "0", 1 + (int64_t)rng_below(&r, 3), 100, 1 + (int64_t)rng_below(&r, 3));
            }
            same_event(&a, &b, &e);
            if (rng_below(&r, 2))
                continue;
            b.s->dirty = true;
            char want[4096];
            snprintf(want, sizeof want, "%s", plan(&b, step));
            CHECK(is(&a, step, want));
        }
    }
}

TEST(a_reason_that_was_told_already_is_not_told_again_until_it_is_another)
{
    WORLD;
    struct sched_event e = kit_job_event(7, 1, 50, "1", 1, 100, 1);
    e.told = REASON_NO_NODE;
    sched_apply(w.s, &e);
    job(&w, 8, 1, 50, "1", 1, 100, 1);
    CHECK(is(&w, 1000, "8=NoSuitableNode") && is(&w, 2000, ""));
    node(&w, 1, "H200", 1, 1000, 8, 8000);
    CHECK(is(&w, 3000, "7.0@1[0] 8=Resources"));
}
