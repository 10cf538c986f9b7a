#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

static void node(struct sched *s, int64_t id, const char *where)
{
    struct sched_event e = kit_node_event(&(struct kit_node){ id, "H200", 2, 1000, 8, 8000, false, false });
    e.where = (char *)where;
    sched_apply(s, &e);
}

TEST(nodes_of_one_rack_have_one_place_and_places_that_nobody_is_in_are_gone)
{
    AUTO(sched_free) struct sched *s = sched_new();
    struct fleet *f = &s->fleet;
    node(s, 1, "eu/a/s1/r1");
    node(s, 2, "eu/a/s1/r1");
    node(s, 3, "eu/a/s2/r1");
    node(s, 4, "eu///r1");
    CHECK(f->nodes[0]->place == f->nodes[1]->place && f->nodes[0]->place != f->nodes[2]->place && f->nodes[3]->place != f->nodes[0]->place);
    CHECK(f->nodes[0]->place->level == PLACE_RACK && f->nodes[3]->place->up->level == PLACE_REGION && f->nodes[0]->place->users == 2);
    CHECK(map_count(f->places) == 1 + 1 + 1 + 2 + 2 + 1); /* all, eu, a, s1 and s2, their r1, that of eu */
    node(s, 3, "us");
    node(s, 4, NULL);
    CHECK(map_count(f->places) == 1 + 3 + 3 && f->nodes[3]->place->level == PLACE_REGION && !f->nodes[3]->place->name[0]);
    for (int i = 1; i <= 4; i++)
        sched_apply(s, &(struct sched_event){ .kind = SCHED_NODE_GONE, .node = i });
    CHECK(map_count(f->places) == 1);
}

TEST(idle_nodes_of_many_racks_are_one_lot_and_of_two_zones_two)
{
    AUTO(sched_free) struct sched *s = sched_new();
    for (int i = 0; i < 40; i++) {
        char where[PLACE_ADDRESS];
        snprintf(where, sizeof where, "eu/%c/s%d/r%d/n%d", 'a' + i % 2, i % 4, i % 8, i);
        node(s, i + 1, where);
    }
    fleet_settle(&s->fleet);
    CHECK(s->fleet.live == 2 && place_site(s->fleet.nodes[0]->place)->level == PLACE_ZONE);
}

static int64_t where_of(struct sched *s, const char *region, const char *zone, enum reason *why)
{
    static int64_t id = 100;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_event j = kit_job_event(++id, 7, 50, "1", 1, 10, 1);
    snprintf(j.region, sizeof j.region, "%s", region);
    snprintf(j.zone, sizeof j.zone, "%s", zone);
    sched_apply(s, &j);
    struct sched_plan p = sched_plan(s, id * 1000, 10, mem);
    *why = p.wait_count ? (enum reason)p.waits[0].reason : REASON_NONE;
    return p.count ? p.placements[0].node : 0;
}

TEST(a_job_goes_only_to_the_region_and_zone_that_it_names)
{
    AUTO(sched_free) struct sched *s = sched_new();
    enum reason why;
    node(s, 1, "us/a");
    node(s, 2, "eu/b/s1");
    node(s, 3, "eu/a/s1/r1");
    node(s, 4, NULL);
    CHECK(where_of(s, "eu", "", &why) == 2);
    CHECK(where_of(s, "eu", "a", &why) == 3);
    CHECK(where_of(s, "", "b", &why) == 2);
    CHECK(where_of(s, "", "a", &why) == 3);     /* the one of the two where something runs */
    CHECK(where_of(s, "", "", &why) != 0);
    CHECK(where_of(s, "eu", "c", &why) == 0 && why == REASON_NO_NODE);
    CHECK(where_of(s, "", "b", &why) == 0 && why == REASON_RESOURCES);
    CHECK(where_of(s, "asia", "", &why) == 0 && why == REASON_NO_NODE);
}
