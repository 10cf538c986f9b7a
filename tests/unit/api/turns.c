#include "api/turns.h"
#include "os/sim.h"
#include "tap.h"
#include <stdio.h>
#include <stdlib.h>

enum { MANY = 5000 };
struct world { struct sim *sim; struct os *os; struct turns *turns; struct turn all[MANY]; int gone[MANY], count; };
static struct world *here;      /* a turn knows only itself */

static void go(struct turn *me) { here->gone[here->count++] = (int)(me - here->all); }

static struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);
    w->sim = sim_new(1);
    w->os = sim_machine(w->sim, "a");
    w->turns = turns_new(w->os);
    return here = w;
}

static void world_free(struct world *w)
{
    for (int i = 0; i < MANY; i++)
        turn_done(&w->all[i]);
    turns_free(w->turns);
    sim_free(w->sim);
    free(w);
}

static bool take(struct world *w, int i, enum gate gate, enum rank rank, uint64_t id, size_t bytes)
{
    struct err err = { 0 };
    w->all[i].go = go;
    return turn_take(w->turns, gate, &(struct standing){ rank, id }, bytes, false, &w->all[i], &err);
}

static int inside(const struct world *w, int from, int to)
{
    int n = 0;
    for (int i = from; i < to; i++)
        n += w->all[i].inside;
    return n;
}

TEST(a_tenant_alone_has_nearly_all_of_the_door)
{
    struct world *w = world_new();
    for (int i = 0; i < 1000; i++)
        CHECK(take(w, i, GATE_WRITER, RANK_TENANT, 7, 0));
    CHECK(inside(w, 0, 1000) >= 64 && inside(w, 0, 1000) <= 128);
    world_free(w);
}

TEST(one_that_was_here_a_moment_ago_finds_the_door_shared_and_a_day_ago_does_not_matter)
{
    struct world *w = world_new();
    CHECK(take(w, 0, GATE_WRITER, RANK_TENANT, 8, 0));
    turn_done(&w->all[0]);
    for (int i = 1; i < 1000; i++)
        CHECK(take(w, i, GATE_WRITER, RANK_TENANT, 7, 0));
    CHECK(inside(w, 0, 1000) <= 16);
    sim_until(w->sim, sim_now_ms(w->sim) + 5000, NULL, NULL);
    turn_done(&w->all[1]);
    CHECK(inside(w, 0, 1000) >= 64);
    world_free(w);
}

TEST(who_comes_beside_a_thousand_goes_in_at_once)
{
    struct world *w = world_new();
    for (int i = 0; i < 1000; i++)
        CHECK(take(w, i, GATE_WRITER, RANK_TENANT, 7, 0));
    CHECK(take(w, 1000, GATE_WRITER, RANK_TENANT, 8, 0));
    CHECK(w->all[1000].inside);
    world_free(w);
}

TEST(two_that_want_much_have_the_same_share_of_little)
{
    struct world *w = world_new();
    for (int i = 0; i < 1000; i++)
        CHECK(take(w, i, GATE_READERS, RANK_TENANT, 7, 0));
    for (int i = 1000; i < 1400; i++)
        CHECK(take(w, i, GATE_READERS, RANK_TENANT, 8, 0));
    for (int i = 0; i < 300; i++)           /* the door answers in order of arrival */
        turn_done(&w->all[w->gone[i]]);
    int mine = 0;
    for (int i = 200; i < 300; i++)
        mine += w->gone[i] >= 1000;
    CHECK(mine > 40 && mine < 60);
    CHECK(inside(w, 0, 1400) <= 8);
    world_free(w);
}

TEST(requests_of_one_tenant_go_in_order_and_all_go)
{
    struct world *w = world_new();
    for (int i = 0; i < 1500; i++)
        CHECK(take(w, i, GATE_WRITER, RANK_TENANT, 7, 0));
    for (int i = 0; i < w->count; i++)
        turn_done(&w->all[w->gone[i]]);
    CHECK(w->count == 1500);
    for (int i = 0; i < w->count; i++)
        CHECK(w->gone[i] == i);
    world_free(w);
}

TEST(a_queue_has_an_end_and_another_tenant_does_not_feel_it)
{
    struct world *w = world_new();
    int taken = 0;
    while (taken < MANY - 1 && take(w, taken, GATE_WRITER, RANK_TENANT, 7, 0))
        taken++;
    CHECK(taken > 2000 && taken < 2500);
    CHECK(take(w, taken, GATE_WRITER, RANK_TENANT, 8, 0));
    struct err err = { 0 };
    CHECK(!turn_take(w->turns, GATE_WRITER, &(struct standing){ RANK_TENANT, 7 }, 0, false, &w->all[taken + 1], &err) && err.rc == RC_TOO_MANY);
    w->all[taken + 1].go = go;
    CHECK(turn_take(w->turns, GATE_WRITER, &(struct standing){ RANK_TENANT, 7 }, 0, true, &w->all[taken + 1], &err));
    world_free(w);
}

TEST(one_that_leaves_the_queue_never_goes_in)
{
    struct world *w = world_new();
    for (int i = 0; i < 400; i++)
        CHECK(take(w, i, GATE_WRITER, RANK_TENANT, 7, 0));
    for (int i = 200; i < 300; i++) {
        CHECK(turn_waits(&w->all[i]));
        turn_done(&w->all[i]);
    }
    for (int i = 0; i < w->count; i++)
        turn_done(&w->all[w->gone[i]]);
    CHECK(w->count == 300);
    for (int i = 0; i < w->count; i++)
        CHECK(w->gone[i] < 200 || w->gone[i] >= 300);
    world_free(w);
}

TEST(large_requests_take_the_place_of_many)
{
    struct world *w = world_new();
    for (int i = 0; i < 50; i++)
        CHECK(take(w, i, GATE_WRITER, RANK_TENANT, 7, 1 << 20));
    CHECK(inside(w, 0, 50) >= 1 && inside(w, 0, 50) <= 4);
    for (int i = 0; i < w->count; i++)
        turn_done(&w->all[w->gone[i]]);
    CHECK(w->count == 50);
    world_free(w);
}

/* Otherwise somebody with many addresses would be many tenants. */
TEST(strangers_of_ten_thousand_addresses_are_few_at_the_door)
{
    struct world *w = world_new();
    for (int i = 0; i < 4000; i++)
        CHECK(take(w, i, GATE_READERS, RANK_STRANGER, (uint64_t)i * 77, 0));
    CHECK(inside(w, 0, 4000) <= 64 + 4);
    CHECK(take(w, 4000, GATE_READERS, RANK_TENANT, 5, 0) && w->all[4000].inside);
    CHECK(take(w, 4001, GATE_READERS, RANK_PLATFORM, 5, 0) && w->all[4001].inside);
    world_free(w);
}
