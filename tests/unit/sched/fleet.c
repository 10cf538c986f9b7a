#include "kit.h"
#include "sched/sched_internal.h"
#include "tap.h"

static struct fleet *fleet_of(struct sched *s, int nodes)
{
    for (int i = 1; i <= nodes; i++) {
        struct sched_event e = kit_node_event(&(struct kit_node){ i, "H200", 2, 1000, 8, 8000, false, false });
        fleet_set(&s->fleet, &e);
    }
    fleet_settle(&s->fleet);
    return &s->fleet;
}

TEST(nodes_in_the_same_state_stand_in_one_lot_whichever_of_their_gpus_is_taken)
{
    AUTO(sched_free) struct sched *s = sched_new();
    struct fleet *f = fleet_of(s, 3);
    CHECK(f->live == 1 && f->nodes[0]->lot->count == 3);
    fleet_take(f, f->nodes[0], 7, 1000, 10, &(struct held_gpu){ 0, 1000, 1000 }, 1);
    fleet_take(f, f->nodes[2], 8, 1000, 10, &(struct held_gpu){ 1, 1000, 1000 }, 1);
    fleet_settle(f);
    CHECK(f->live == 2 && f->nodes[0]->lot == f->nodes[2]->lot && f->nodes[1]->lot->count == 1);
    CHECK(f->nodes[0]->lot->whole == 1 && f->nodes[0]->lot->free_milli == 1000 && !lot_dark(f->nodes[0]->lot) && lot_dark(f->nodes[1]->lot));
    fleet_give(f, f->nodes[0], 7, 1000, 10, &(struct held_gpu){ 0, 1000, 1000 }, 1);
    fleet_give(f, f->nodes[2], 8, 1000, 10, &(struct held_gpu){ 1, 1000, 1000 }, 1);
    fleet_settle(f);
    CHECK(f->live == 1 && f->nodes[0]->lot->nodes[0]->id == 1);
}

TEST(shares_of_two_projects_are_two_states)
{
    AUTO(sched_free) struct sched *s = sched_new();
    struct fleet *f = fleet_of(s, 2);
    fleet_take(f, f->nodes[0], 7, 0, 0, &(struct held_gpu){ 0, 500, 500 }, 1);
    fleet_take(f, f->nodes[1], 8, 0, 0, &(struct held_gpu){ 0, 500, 500 }, 1);
    fleet_settle(f);
    CHECK(f->live == 2);
}

TEST(a_node_that_is_away_or_gone_is_in_no_lot)
{
    AUTO(sched_free) struct sched *s = sched_new();
    struct fleet *f = fleet_of(s, 2);
    struct sched_event e = kit_node_event(&(struct kit_node){ 1, "H200", 2, 1000, 8, 8000, true, false });
    fleet_set(f, &e);
    CHECK(fleet_drop(f, 2) && !fleet_drop(f, 2));
    fleet_settle(f);
    CHECK(f->live == 0 && !f->nodes[0]->lot && f->count == 1 && f->makes[0].nodes == 0);
}

TEST(a_lot_that_is_gone_is_not_taken_for_another_with_its_number)
{
    AUTO(sched_free) struct sched *s = sched_new();
    struct fleet *f = fleet_of(s, 1);
    struct lot_ref old = { f->nodes[0]->lot->id, f->nodes[0]->lot->birth };
    CHECK(fleet_lot(f, old));
    for (int i = 0; i < 2; i++) {
        fleet_take(f, f->nodes[0], 7, 1000, 10, NULL, 0);
        fleet_settle(f);
    }
    CHECK(f->nodes[0]->lot->id == old.id || f->lot_count == 2);
    CHECK(!fleet_lot(f, old));
}
