#include "agent/reconcile.h"
#include "base/rand.h"
#include "tap.h"

static const struct order an_order = { .attempt = 7 };
#define NONE (-1)

/* One row for each thing that can be true of an attempt, and the one action it asks for. */
static const struct { const char *what; struct task_now now; bool incomplete; int action; int as; int64_t grace_s; } rows[] = {
    { "new order", { .wanted = true, .order = &an_order }, false, ACTION_START },
    { "new order, set not complete", { .wanted = true, .order = &an_order }, true, ACTION_START },
    { "wanted, order not at hand", { .wanted = true }, false, NONE },
    { "wanted and runs", { .wanted = true, .order = &an_order, .alive = true }, false, NONE },
    { "wanted, runs, told", { .wanted = true, .order = &an_order, .alive = true, .told_started = true }, false, NONE },
    { "wanted, ended, report under way", { .wanted = true, .order = &an_order, .ended = true, .told_ended = true }, false, NONE },
    { "wanted, ended, not yet spooled", { .wanted = true, .order = &an_order, .ended = true }, false, NONE },
    { "wanted, folder gone, end told", { .wanted = true, .order = &an_order, .told_started = true, .told_ended = true }, false, NONE },
    { "wanted, folder gone, start told", { .wanted = true, .order = &an_order, .told_started = true }, false, ACTION_REFUSE, OUTCOME_NODE_FAULT },
    { "wanted, from before the boot", { .wanted = true, .order = &an_order, .doubtful = true }, false, ACTION_REFUSE, OUTCOME_NODE_FAULT },
    { "wanted, from before the boot, runs", { .wanted = true, .order = &an_order, .doubtful = true, .alive = true }, false, NONE },
    { "stop what may have begun before the boot", { .wanted = true, .stop = true, .stop_as = OUTCOME_CANCELLED, .doubtful = true }, false, ACTION_REFUSE, OUTCOME_CANCELLED },
    { "stop it", { .wanted = true, .stop = true, .stop_as = OUTCOME_CANCELLED, .grace_s = 30, .alive = true }, false, ACTION_STOP, OUTCOME_CANCELLED, 30 },
    { "stop it as preempted", { .wanted = true, .stop = true, .stop_as = OUTCOME_PREEMPTED, .grace_s = 5, .alive = true }, false, ACTION_STOP, OUTCOME_PREEMPTED, 5 },
    { "stops already", { .wanted = true, .stop = true, .grace_s = 30, .alive = true, .stopping = true, .stopping_grace_s = 30 }, false, NONE },
    { "stops already, sooner now", { .wanted = true, .stop = true, .stop_as = OUTCOME_CANCELLED, .alive = true, .stopping = true, .stopping_grace_s = 30 }, false, ACTION_STOP, OUTCOME_CANCELLED, 0 },
    { "stop what never came", { .wanted = true, .stop = true, .stop_as = OUTCOME_CANCELLED, .order = &an_order }, false, ACTION_REFUSE, OUTCOME_CANCELLED },
    { "stop what has ended", { .wanted = true, .stop = true, .ended = true, .told_ended = true }, false, NONE },
    { "not wanted, set not complete", { .alive = true }, true, NONE },
    { "not wanted, runs", { .alive = true }, false, ACTION_STOP, OUTCOME_CANCELLED, 0 },
    { "not wanted, had a grace", { .alive = true, .stopping = true, .stopping_grace_s = 30 }, false, ACTION_STOP, OUTCOME_CANCELLED, 0 },
    { "not wanted, being killed", { .alive = true, .stopping = true }, false, NONE },
    { "not wanted, ended, end not kept", { .ended = true, .told_ended = true }, false, NONE },
    { "not wanted, ended, end kept", { .ended = true, .told_ended = true, .settled = true }, false, ACTION_FORGET },
    { "not wanted, start told, nothing left", { .told_started = true }, false, ACTION_FORGET },
    { "not wanted, start told, nothing left, set not complete", { .told_started = true }, true, NONE },
    { "not wanted, ended, not yet spooled", { .ended = true, .told_started = true }, false, NONE },
    { "gone, runs", { .gone = true, .alive = true }, true, ACTION_STOP, OUTCOME_CANCELLED, 0 },
    { "gone, ended", { .gone = true, .ended = true, .told_ended = true }, true, ACTION_FORGET },
    { "gone wins over wanted", { .gone = true, .wanted = true, .order = &an_order }, true, ACTION_FORGET },
    { "gone, nothing left", { .gone = true, .told_started = true }, true, ACTION_FORGET },
};

TEST(each_situation_asks_for_exactly_one_action)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct action *actions;
        struct task_now now = rows[i].now;
        now.attempt = 7;
        size_t n = reconcile(&now, 1, !rows[i].incomplete, mem, &actions);
        bool ok = n == (rows[i].action != NONE);
        if (ok && n)
            ok = (int)actions->kind == rows[i].action && actions->attempt == 7 && actions->as == rows[i].as
              && actions->grace_s == rows[i].grace_s
              && (actions->kind != ACTION_START || actions->order == &an_order);
        if (!ok)
            printf("# %s\n", rows[i].what);
        CHECK(ok);
    }
}

TEST(nothing_known_is_nothing_to_do)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct action *actions;
    CHECK(reconcile(NULL, 0, true, mem, &actions) == 0);
}

/* A server, a node and what is between them, all by chance: orders come and go, tasks end, the agent forgets everything
 * that is not on its disk. */
enum { MANY = 24, STEPS = 400 };
struct world {
    struct rng rng;
    struct task_now now[MANY];
    struct order orders[MANY];
    int starts[MANY], refusals[MANY];
    bool folder[MANY], settled_by_server[MANY];
};

static bool chance(struct world *w, uint64_t one_in) { return rng_below(&w->rng, one_in) == 0; }

static size_t apply(struct world *w, bool complete)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct action *actions;
    size_t n = reconcile(w->now, MANY, complete, mem, &actions);
    for (size_t i = 0; i < n; i++) {
        const struct action *a = &actions[i];
        struct task_now *t = &w->now[a->attempt];
        switch (a->kind) {
        case ACTION_START:
            CHECK(!w->folder[a->attempt] && !t->told_ended && !t->told_started && !t->stop && !t->gone);
            w->starts[a->attempt]++;
            w->folder[a->attempt] = t->alive = true;
            break;
        case ACTION_STOP:
            CHECK(t->alive);
            t->stopping = true;
            t->stopping_grace_s = a->grace_s;
            break;
        case ACTION_REFUSE:
            CHECK(!t->alive);
            w->refusals[a->attempt]++;
            t->ended = t->told_ended = true;
            break;
        case ACTION_FORGET:
            CHECK(!t->alive);
            w->folder[a->attempt] = false;
            *t = (struct task_now){ .attempt = a->attempt };
            break;
        }
    }
    return n;
}

static void step(struct world *w, int i)
{
    struct task_now *t = &w->now[i];
    if (chance(w, 8) && !w->settled_by_server[i])       /* the desired set holds it until it is settled */
        t->wanted = true, t->order = &w->orders[i];
    if (chance(w, 16) && t->wanted)
        t->stop = true, t->stop_as = OUTCOME_CANCELLED, t->grace_s = (int64_t)rng_below(&w->rng, 3);
    if (chance(w, 8) && t->alive)
        t->told_started = true;
    if (chance(w, 12) && t->alive)
        t->alive = false, t->ended = true, t->told_ended = true;
    if (chance(w, 4) && t->told_ended)
        t->settled = true;
    if (chance(w, 6) && t->settled)
        w->settled_by_server[i] = true, t->wanted = false, t->gone = chance(w, 2);
    if (chance(w, 20)) {                                /* the agent is killed: only folder and spool remain */
        bool wanted = t->wanted && !w->settled_by_server[i];
        *t = (struct task_now){ .attempt = i, .alive = w->folder[i] && !t->ended, .ended = w->folder[i] && t->ended,
                                .told_started = t->told_started, .told_ended = t->told_ended, .settled = t->settled,
                                .wanted = wanted, .order = wanted ? &w->orders[i] : NULL, .stop = wanted && t->stop,
                                .stop_as = OUTCOME_CANCELLED };
    }
}

TEST(whatever_happens_nothing_starts_twice_and_the_work_comes_to_an_end)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world w = { .rng = { seed } };
        for (int i = 0; i < MANY; i++)
            w.now[i].attempt = w.orders[i].attempt = i;
        for (int n = 0; n < STEPS; n++) {
            step(&w, (int)rng_below(&w.rng, MANY));
            if (chance(&w, 3))
                apply(&w, chance(&w, 2));
        }
        for (int i = 0; i < MANY; i++) {                /* the dust settles: all tasks end, all ends are kept */
            struct task_now *t = &w.now[i];
            t->wanted = t->stop = false;
            if (t->alive)
                t->alive = false, t->ended = t->told_ended = true;
            t->settled |= t->told_ended;
            if (t->told_started && !t->told_ended)
                t->gone = true;
        }
        apply(&w, true);
        CHECK(apply(&w, true) == 0);                    /* and doing it again does nothing */
        for (int i = 0; i < MANY; i++)
            CHECK(w.starts[i] + w.refusals[i] <= 1 + (w.starts[i] && w.refusals[i]) && w.starts[i] <= 1 && !w.folder[i]);
    }
}
