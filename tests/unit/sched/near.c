/* Bytes that are there already, and tasks that are to be apart: a choice among nodes that could all have the task. */
#include "base/rand.h"
#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"
#include <stdlib.h>

static struct sched *fleet_of(int nodes, int gpus, const char *const *where)
{
    struct sched *s = sched_new();
    for (int i = 0; i < nodes; i++) {
        struct sched_event e = kit_node_event(&(struct kit_node){ i + 1, "H200", gpus, 1000, 64, 64000, false, true });
        e.where = where ? (char *)where[i] : NULL;
        sched_apply(s, &e);
    }
    return s;
}

static void has(struct sched *s, int64_t node, int64_t key, int64_t mib)
{
    struct good g = { key, mib };
    sched_apply(s, &(struct sched_event){ .kind = SCHED_NODE_HAS, .node = node, .goods = &g, .good_count = mib ? 1 : 0 });
}

static struct sched_event job_of(int64_t id, const char *gpus, int64_t tasks, int64_t key, enum spread spread)
{
    struct sched_event e = kit_job_event(id, 1, 50, gpus, 1, 100, tasks);
    e.needs[0] = key;
    e.spread = spread;
    return e;
}

/* Submits it and tells where its tasks went, "1 2 2". */
static const char *places(struct sched *s, struct sched_event e, struct arena *mem)
{
    AUTO(str_done) struct str out = { 0 };
    sched_apply(s, &e);
    struct sched_plan p = sched_plan(s, 1, 1000, mem);
    for (size_t i = 0; i < p.count; i++) {
        str_printf(&out, "%s%lld", i ? " " : "", (long long)p.placements[i].node);
        struct sched_event held = kit_held_event(&p.placements[i], &e);
        sched_apply(s, &held);
    }
    return arena_text(mem, out.at ? out.at : "");
}

TEST(of_equal_nodes_the_one_that_has_the_image_is_taken)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(sched_free) struct sched *s = fleet_of(4, 2, NULL);
    has(s, 3, 77, 2000);
    has(s, 4, 77, 1000);
    CHECK(text_is(places(s, job_of(1, "1", 1, 0, SPREAD_NONE), mem), "1"));
    CHECK(text_is(places(s, job_of(2, "2", 1, 77, SPREAD_NONE), mem), "3"));
    CHECK(text_is(places(s, job_of(3, "2", 1, 77, SPREAD_NONE), mem), "4"));
    CHECK(text_is(places(s, job_of(4, "2", 1, 77, SPREAD_NONE), mem), "2"));
    CHECK(text_is(places(s, job_of(5, "2", 1, 77, SPREAD_NONE), mem), ""));
}

TEST(a_node_that_is_gone_or_has_it_no_more_is_one_like_others)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(sched_free) struct sched *s = fleet_of(4, 8, NULL);
    has(s, 3, 77, 2000);
    has(s, 3, 78, 2000);        /* all that it has now */
    CHECK(text_is(places(s, job_of(1, "1", 1, 77, SPREAD_NONE), mem), "1"));
    has(s, 4, 77, 5000);
    sched_apply(s, &(struct sched_event){ .kind = SCHED_NODE_GONE, .node = 4 });
    CHECK(text_is(places(s, job_of(2, "1", 1, 77, SPREAD_NONE), mem), "1"));
    has(s, 3, 78, 0);
    CHECK(!map_count(s->near.goods) && !map_count(s->near.of));
}

TEST(bytes_count_against_a_worse_fit_as_their_weight_says)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    int64_t weight[TERM_COUNT];
    for (int heavy = 0; heavy < 2; heavy++) {
        AUTO(sched_free) struct sched *s = fleet_of(2, 8, NULL);
        memcpy(weight, weights_usual, sizeof weight);
        weight[TERM_FIT] = 1000;
        weight[TERM_FETCH] = heavy ? 10000 : 1;
        struct sched_rules rules = SCHED_RULES_USUAL;
        rules.weight = weight;
        sched_apply(s, &(struct sched_event){ .kind = SCHED_RULES, .rules = rules });
        CHECK(!s->rules.weight && s->index.policy.weight[TERM_FIT] == 1000);
        CHECK(text_is(places(s, job_of(1, "4", 1, 0, SPREAD_NONE), mem), "1"));
        has(s, 2, 77, 1024);
        CHECK(text_is(places(s, job_of(2, "1", 1, 77, SPREAD_NONE), mem), heavy ? "2" : "1"));
    }
}

TEST(tasks_of_an_array_that_asks_for_it_are_on_different_nodes_as_long_as_there_are_some)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(sched_free) struct sched *s = fleet_of(3, 8, NULL);
    CHECK(text_is(places(s, job_of(1, "1", 3, 0, SPREAD_NONE), mem), "1 1 1"));
    CHECK(text_is(places(s, job_of(2, "1", 5, 0, SPREAD_NODE), mem), "1 2 3 1 2"));
    sched_apply(s, &(struct sched_event){ .kind = SCHED_TASK_FREED, .job = 2, .task = 0 });
    sched_apply(s, &(struct sched_event){ .kind = SCHED_TASK_FREED, .job = 2, .task = 3 });
    kit_task(s, SCHED_TASK_QUEUED, 2, 0, 0);
    struct sched_plan p = sched_plan(s, 2, 1000, mem);
    CHECK(p.count == 1 && p.placements[0].node == 1);
    sched_apply(s, &(struct sched_event){ .kind = SCHED_JOB_GONE, .job = 2 });
    CHECK(!map_count(s->near.spreads));
}

TEST(zones_come_before_nodes_where_zones_are_asked_for)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    static const char *const where[] = { "eu/a", "eu/a", "eu/a", "eu/b", "eu/c", "eu/c" };
    AUTO(sched_free) struct sched *s = fleet_of(6, 8, where);
    CHECK(text_is(places(s, job_of(1, "1", 3, 0, SPREAD_ZONE), mem), "1 4 5"));
    CHECK(text_is(places(s, job_of(2, "1", 7, 0, SPREAD_ZONE), mem), "1 4 5 2 6 4 3"));
    struct sched_event moved = kit_node_event(&(struct kit_node){ 2, "H200", 8, 1000, 64, 64000, false, true });
    moved.where = "eu/d";
    sched_apply(s, &moved);
    const char *at = places(s, job_of(3, "1", 4, 0, SPREAD_ZONE), mem);
    CHECK(strchr(at, '2') && strchr(at, '4') && (strchr(at, '1') || strchr(at, '3')) && (strchr(at, '5') || strchr(at, '6')));
}

TEST(a_spread_over_a_large_and_ragged_fleet_finds_nodes_that_the_ranking_left_out)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(sched_free) struct sched *s = sched_new();
    enum { NODES = 600 };
    for (int i = 0; i < NODES; i++) { /* every node in another state, and only the last in another zone */
        struct sched_event e = kit_node_event(&(struct kit_node){ i + 1, "H200", 8, 1000, 64, 64000 + i, false, true });
        e.where = i == NODES - 1 ? "eu/b" : "eu/a";
        sched_apply(s, &e);
    }
    const char *at = places(s, job_of(1, "1", 3, 0, SPREAD_ZONE), mem);
    CHECK(strstr(at, " 600") || text_starts(at, "600 "));
}

/* Every choice of place_near against the plainest way: all nodes, one by one. */
TEST(what_is_chosen_is_the_best_of_all_nodes)
{
    struct rng rng = { 7 };
    for (int round = 0; round < 200; round++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        static const char *const where[] = { "eu/a", "eu/b", "eu/c", "eu" };
        AUTO(sched_free) struct sched *s = sched_new();
        for (int64_t i = 1; i <= 8; i++) {
            struct sched_event e = kit_node_event(&(struct kit_node){ i, "H200", 1 + (int)rng_below(&rng, 4), 1000, 4 + (int64_t)rng_below(&rng, 8), 64000, false, true });
            e.where = (char *)where[rng_below(&rng, COUNT(where))];
            sched_apply(s, &e);
            if (rng_below(&rng, 2))
                has(s, i, 5 + (int64_t)rng_below(&rng, 2), 5000);
        }
        struct sched_event e = job_of(1, rng_below(&rng, 2) ? "1" : "0.5", 6, (int64_t)rng_below(&rng, 3) ? 5 : 0, (enum spread)rng_below(&rng, 3));
        sched_apply(s, &e);
        for (int task = 0; task < 6; task++) {
            struct job *j = map_get(s->jobs, 1);
            const struct policy *p = &s->index.policy;
            struct node *best = NULL;
            int64_t most = 0, most_gain = 0;
            for (size_t i = 0; i < s->fleet.count; i++) {
                struct node *n = s->fleet.nodes[i];
                struct pick pick;
                int64_t tasks = 0, zone = 0, mib = 0;
                for (int k = 0; k < 6; k++) {
                    const struct hold *h = hold_find(s, 1, k);
                    const struct node *on = h ? fleet_node(&s->fleet, h->node) : NULL;
                    tasks += on == n;
                    zone += on && place_site(on->place) == place_site(n->place);
                }
                AUTO(str_done) struct str text = { 0 };
                near_print_node(s, n->id, &text);
                if (e.needs[0] && text.at && strstr(text.at, "has 5 "))
                    mib = strtoll(strstr(text.at, "has 5 of ") + 9, NULL, 10);
                if (!index_on(&s->index, j->class->wanted, n, &pick))
                    continue;
                int64_t apart = e.spread == SPREAD_ZONE ? tasks + 2 * zone : e.spread == SPREAD_NODE ? tasks : 0;
                int64_t gain = p->weight[TERM_FETCH] * mib * MICRO / 1024 - p->weight[TERM_SPREAD] * apart * MICRO;
                int64_t score = pick.score + gain / p->grain * 2;
                if (!best || score > most || (score == most && gain > most_gain))
                    best = n, most = score, most_gain = gain;
            }
            struct sched_plan plan = sched_plan(s, task, 1, mem);
            CHECK(plan.count == (best != NULL));
            if (!plan.count)
                break;
            CHECK(plan.placements[0].node == best->id);
            struct sched_event held = kit_held_event(&plan.placements[0], &e);
            sched_apply(s, &held);
        }
    }
}
