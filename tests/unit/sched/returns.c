/* Suspended work goes on when its GPUs are free and nobody with a better right wants them. */
#include "play.h"
#include "tap.h"

/* Its node told that a task which runs is suspended: it keeps that much memory, and its GPUs are free. */
static void suspended_as(struct play *p, int64_t id, int64_t kept_mib, bool returns, bool wanted)
{
    struct play_job *j = play_job(p, id);
    sched_apply(p->s, &(struct sched_event){ .kind = SCHED_TASK_FREED, .job = id, .node = j->node, .project = j->e.project });
    sched_apply(p->s, &(struct sched_event){ .kind = SCHED_TASK_HELD, .node = j->node, .project = j->e.project, .job = id, .priority = j->e.priority, .bound_ms = j->e.bound_ms, .at_ms = p->now,
                                             .mem_held = kept_mib, .away = true, .returns = returns, .wanted = wanted, .own_cpu = j->e.shape.cpu_milli, .own_mem = 1000,
                                             .held_count = j->gpus, .held = j->gpu });
}

static void suspended(struct play *p, int64_t id, int64_t kept_mib) { suspended_as(p, id, kept_mib, true, false); }

static struct sched_plan look(struct play *p) { return sched_plan(p->s, p->now, 100, p->mem); }

TEST(what_was_suspended_returns_when_its_gpus_are_free_and_is_asked_for_once)
{
    PLAY;
    play_node(&p, 2, 16);
    int64_t spot = play_submit(&p, 7, 10, "2", 1, 0);
    play_plan(&p);
    CHECK(play_is(&p, spot, PLAY_RUNS, 1));
    suspended(&p, spot, 3000);
    int64_t other = play_submit(&p, 8, 50, "1", 1, 0);
    struct sched_plan plan = look(&p);
    CHECK(plan.count == 1 && plan.placements[0].job == other && plan.resume_count == 0); /* one of its two is taken */
    sched_apply(p.s, &(struct sched_event){ .kind = SCHED_TASK_FREED, .job = other, .node = 1, .project = 8 });
    sched_apply(p.s, &(struct sched_event){ .kind = SCHED_JOB_GONE, .job = other });
    plan = look(&p);
    CHECK(plan.resume_count == 1 && plan.resumes[0].job == spot && plan.resumes[0].node == 1);
    int64_t late = play_submit(&p, 7, 10, "1", 1, 0);
    plan = look(&p);
    CHECK(plan.resume_count == 0 && plan.count == 0 && late); /* it has them from then on */
    kit_task(p.s, SCHED_TASK_KEPT, spot, 0, 0);     /* the door knew better */
    plan = look(&p);
    CHECK(plan.resume_count == 0 && plan.next_ms <= p.now + EVICT_PAUSE_MS);
}

TEST(it_comes_behind_all_that_could_evict_it_and_before_its_like)
{
    for (int queued = 0; queued < 2; queued++) {
        PLAY;
        play_node(&p, 1, 16);
        int64_t spot = play_submit(&p, 7, 10, "1", 1, 0);
        play_plan(&p);
        suspended(&p, spot, 3000);
        int64_t other = play_submit(&p, 8, queued ? 50 : 10, "1", 1, 0);
        struct sched_plan plan = look(&p);
        if (queued)
            CHECK(plan.resume_count == 0 && plan.count == 1 && plan.placements[0].job == other);
        else
            CHECK(plan.resume_count == 1 && plan.count == 0);
    }
}

TEST(a_place_that_it_was_suspended_for_is_not_its_own_again)
{
    PLAY;
    play_rules(&p);
    play_node(&p, 1, 16);
    int64_t spot = play_submit(&p, 7, 10, "1", 1, 0);
    play_plan(&p);
    int64_t high = play_submit(&p, 8, 70, "1", 1, 0);
    struct sched_plan plan = look(&p);
    CHECK(plan.eviction_count == 1 && plan.evictions[0].job == spot && play_claim(&p, high));
    suspended(&p, spot, 3000);
    plan = look(&p);
    CHECK(plan.resume_count == 0 && plan.eviction_count == 0 && plan.count == 1 && plan.placements[0].job == high);
}

TEST(a_part_of_a_node_is_smaller_by_what_suspended_tasks_keep_there)
{
    struct shape one = { .gpu.milli = 1000 };
    int64_t cpu, mem;
    shape_on(&one, 64000, 80000, 3000, 8, &cpu, &mem);
    CHECK(cpu == 8000 && mem == 7000);
    shape_on(&one, 64000, 80000, 30000, 8, &cpu, &mem);
    CHECK(mem == 5000); /* not by more than half: then there is no room for it */
}

/* --- what its owner has resumed */

static int64_t runs(struct play *p, int64_t project, int64_t priority, const char *gpus, int64_t bound_ms)
{
    int64_t id = play_submit(p, project, priority, gpus, 1, bound_ms);
    play_plan(p);
    return id;
}

static void stands_still(struct play *p, int64_t id) { suspended_as(p, id, 100, false, false); }

static void resumed(struct play *p, int64_t id)
{
    struct play_job *j = play_job(p, id);
    sched_apply(p->s, &(struct sched_event){ .kind = SCHED_TASK_HELD, .node = j->node, .project = j->e.project, .job = id, .priority = j->e.priority, .bound_ms = j->e.bound_ms, .at_ms = p->now,
                                             .mem_held = 100, .away = true, .returns = true, .wanted = true, .own_cpu = j->e.shape.cpu_milli, .own_mem = 1000,
                                             .held_count = j->gpus, .held = j->gpu });
}

static void reserve(struct play *p, int64_t project, const char *gpus, int64_t from_ms)
{
    struct sched_event e = kit_job_event(0, project, 0, gpus, 0, 0, 1);
    e.kind = SCHED_RESERVE, e.reserve = 1, e.count = 1, e.from_ms = from_ms, e.until_ms = 900000;
    sched_apply(p->s, &e);
}

TEST(what_its_owner_has_resumed_comes_before_the_queue_also_to_a_node_that_takes_nothing_new)
{
    for (int cordoned = 0; cordoned < 2; cordoned++) {
        PLAY;
        play_node(&p, 1, 16);
        int64_t one = runs(&p, 7, 50, "1", 0);
        stands_still(&p, one);
        CHECK(look(&p).resume_count == 0); /* nobody wants it to go on */
        p.nodes[0].usable = !cordoned, p.nodes[0].shut = FILTER_CORDONED;
        sched_apply(p.s, &p.nodes[0]);
        int64_t high = play_submit(&p, 8, 70, "1", 1, 0);
        resumed(&p, one);
        struct sched_plan plan = look(&p);
        CHECK(plan.resume_count == 1 && plan.resumes[0].job == one && plan.count == 0 && high);
    }
}

TEST(what_is_resumed_does_not_come_to_what_others_have_reserved_unless_that_can_be_elsewhere)
{
    static const struct { int64_t project, priority, bound_ms, from_ms; int nodes; bool back; } rows[] = {
        { 8, 50, 0, 0, 1, false }, { 7, 50, 0, 0, 1, true }, { 8, 50, 0, 0, 2, true }, { 8, 10, 0, 0, 1, true }, /* lent to spot work */
        { 8, 50, 0, 500000, 1, false }, { 8, 50, 50000, 500000, 1, true }, { 8, 50, 499999, 500000, 1, false },   /* before its time */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        PLAY;
        play_node(&p, 1, 16);
        int64_t one = runs(&p, 7, rows[i].priority, "1", rows[i].bound_ms);
        if (rows[i].nodes > 1)
            play_node(&p, 1, 16);
        stands_still(&p, one);
        reserve(&p, rows[i].project, "1", rows[i].from_ms);
        look(&p);
        CHECK(p.s->claims.count == 1 && p.s->claims.at[0]->node == 1);
        resumed(&p, one);
        CHECK(look(&p).resume_count == (size_t)rows[i].back && p.s->claims.count == 1 && p.s->claims.at[0]->taken);
        CHECK(p.s->claims.at[0]->node == (rows[i].nodes > 1 ? 2 : 1));
        if (rows[i].back)
            continue;
        p.now += 60000;
        CHECK(look(&p).resume_count == 0 && look(&p).next_ms > p.now);
        sched_apply(p.s, &(struct sched_event){ .kind = SCHED_RESERVE_GONE, .reserve = 1 });
        CHECK(look(&p).resume_count == 1);
    }
}

TEST(a_place_that_others_left_for_somebody_is_not_for_what_is_resumed)
{
    PLAY;
    play_rules(&p);
    play_node(&p, 1, 16);
    int64_t one = runs(&p, 7, 50, "1", 0);
    stands_still(&p, one);
    int64_t spot = runs(&p, 8, 10, "1", 0), high = runs(&p, 9, 70, "1", 0);
    CHECK(play_is(&p, spot, PLAY_YIELDS, 1) && play_claim(&p, high));
    resumed(&p, one);
    look(&p);
    suspended(&p, spot, 100);
    struct sched_plan plan = look(&p);
    CHECK(plan.resume_count == 0 && plan.count == 1 && plan.placements[0].job == high);
}

TEST(a_start_that_is_held_for_the_first_of_the_queue_moves_for_what_is_resumed)
{
    PLAY;
    play_node(&p, 2, 16);
    int64_t brief = runs(&p, 8, 50, "1", 50000), one = runs(&p, 7, 50, "1", 90000), head = 0;
    stands_still(&p, one);
    head = runs(&p, 8, 50, "2", 1000);
    CHECK(play_is(&p, brief, PLAY_RUNS, 1) && play_claim(&p, head) && play_claim(&p, head)->start_ms == 51000);
    resumed(&p, one);
    CHECK(look(&p).resume_count == 1);
    look(&p);
    CHECK(play_claim(&p, head) && play_claim(&p, head)->start_ms == 91000);
}
