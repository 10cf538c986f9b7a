/* Suspended work of class spot goes on when its GPUs are free and nobody with a better right wants them. */
#include "play.h"
#include "tap.h"

/* Its node told that a task which runs is suspended: it keeps that much memory, and its GPUs are free. */
static void suspended(struct play *p, int64_t id, int64_t kept_mib)
{
    struct play_job *j = play_job(p, id);
    sched_apply(p->s, &(struct sched_event){ .kind = SCHED_TASK_FREED, .job = id, .node = j->node, .project = j->e.project });
    sched_apply(p->s, &(struct sched_event){ .kind = SCHED_TASK_HELD, .node = j->node, .project = j->e.project, .job = id, .priority = j->e.priority, .at_ms = p->now,
                                             .mem_held = kept_mib, .away = true, .returns = true, .own_cpu = j->e.shape.cpu_milli, .own_mem = 1000,
                                             .held_count = j->gpus, .held = j->gpu });
}

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
