#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

static struct sched *two_nodes(const char *first, const char *second)
{
    struct sched *s = sched_new();
    struct sched_event e = kit_node_event(&(struct kit_node){ 1, first, 8, 1000, 96, 8000, false, false });
    sched_apply(s, &e);
    e = kit_node_event(&(struct kit_node){ 2, second, 8, 1000, 96, 8000, false, false });
    sched_apply(s, &e);
    return s;
}

static int64_t where(struct sched *s, const char *gpus, int64_t cpus)
{
    struct sched_event e = kit_job_event(1, 7, 50, gpus, cpus, 10, 1);
    struct wanted *w = wanted_of(&s->index, &(struct want){ .shape = e.shape, .project = 7 });
    struct pick p;
    struct node *n = index_best(&s->index, w, &p);
    wanted_leave(&s->index, w);
    return n ? n->id : 0;
}

TEST(every_term_and_policy_has_a_name_and_says_what_it_is_for)
{
    for (size_t i = 0; i < TERM_COUNT; i++)
        CHECK(text_given(terms[i].name) && text_given(terms[i].what));
    for (size_t i = 0; policy_at(i); i++)
        CHECK(policy_find(policy_at(i)->name) == policy_at(i) && text_given(policy_at(i)->what) && (policy_at(i)->grain || policy_at(i)->sigmoid));
    CHECK(!policy_find("none") && text_is(policy_at(0)->name, "arcus"));
}

TEST(the_first_choice_is_taken_while_there_is_one)
{
    AUTO(sched_free) struct sched *s = two_nodes("L4", "H200");
    CHECK(where(s, "H200>L4:1", 1) == 2 && where(s, "L4>H200:1", 1) == 1 && where(s, "H200|L4:1", 1) == 1);
    fleet_take(&s->fleet, fleet_node(&s->fleet, 2), 7, 90000, 10, NULL, 0);
    CHECK(where(s, "H200>L4:1", 8) == 1 && where(s, "H200:1", 8) == 0);
}

TEST(a_task_without_gpus_does_not_starve_gpus_of_cpu)
{
    AUTO(sched_free) struct sched *s = two_nodes("H200", "H200");
    struct sched_event e = kit_node_event(&(struct kit_node){ 3, "", 0, 0, 64, 8000, false, false });
    sched_apply(s, &e);
    for (int i = 0; i < 100; i++) {
        struct sched_event j = kit_job_event(1, 7, 50, "1", 12, 10, 1);
        mix_seen(&s->mix, &j.shape, 1);
    }
    CHECK(where(s, "0", 20) == 3);
}

TEST(a_small_share_fills_a_rest_and_breaks_no_whole_gpu)
{
    AUTO(sched_free) struct sched *s = two_nodes("H200", "H200");
    for (int i = 0; i < 100; i++) {
        struct sched_event j = kit_job_event(1, 7, 50, i % 2 ? "0.8" : i % 4 ? "1" : "0.2", 4, 10, 1);
        mix_seen(&s->mix, &j.shape, 1);
    }
    fleet_take(&s->fleet, fleet_node(&s->fleet, 2), 7, 4000, 10, &(struct held_gpu){ 3, 800, 800 }, 1);
    CHECK(where(s, "0.2", 4) == 2);
}

TEST(a_lit_node_comes_before_a_dark_one)
{
    AUTO(sched_free) struct sched *s = two_nodes("H200", "H200");
    CHECK(where(s, "0", 1) == 1);
    fleet_take(&s->fleet, fleet_node(&s->fleet, 2), 7, 1000, 10, NULL, 0);
    CHECK(where(s, "0", 1) == 2 && where(s, "1", 1) == 2);
}
