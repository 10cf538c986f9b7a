/* reconcile.c - one attempt at a time: what is wanted, what is here and what was told decide the one thing to do, if any. No
 * attempt depends on another, so the order of the list does not matter. */
#include "agent/reconcile.h"

static bool wanted_action(const struct task_now *v, struct action *a)
{
    bool here = v->alive || v->ended;
    if (v->stop && v->alive) {
        if (v->stopping && v->stopping_grace_s <= v->grace_s)
            return false;
        *a = (struct action){ .kind = ACTION_STOP, .as = v->stop_as, .grace_s = v->grace_s };
        return true;
    }
    if (here || v->told_ended)
        return false;      /* it runs, or its end is on its way up */
    if (v->told_started || (v->doubtful && !v->stop)) { /* it ran here, or may have, and nothing is left of it: never start it a second time */
        *a = (struct action){ .kind = ACTION_REFUSE, .as = OUTCOME_NODE_FAULT };
        return true;
    }
    if (v->stop) { /* cancelled before it came here */
        *a = (struct action){ .kind = ACTION_REFUSE, .as = v->stop_as };
        return true;
    }
    *a = (struct action){ .kind = ACTION_START, .order = v->order };
    return v->order != NULL;
}

/* The server may have given the task to another node already, so there is no grace. */
static bool unwanted_action(const struct task_now *v, struct action *a)
{
    if (v->alive) {
        *a = (struct action){ .kind = ACTION_STOP, .as = OUTCOME_CANCELLED };
        return !(v->stopping && v->stopping_grace_s == 0);
    }
    *a = (struct action){ .kind = ACTION_FORGET };
    /* It began, nothing is here and no end was told: the power was cut, and the server has its end, or else it would want it. */
    return v->gone || v->settled || (v->told_started && !v->ended && !v->told_ended);
}

size_t reconcile(const struct task_now *views, size_t count, bool complete, struct arena *mem,
                 struct action **out)
{
    struct action *list = ARENA_ARRAY(mem, struct action, count);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const struct task_now *v = &views[i];
        if (!v->wanted && !v->gone && !complete)
            continue; /* the server has not said all yet: what runs goes on */
        if (v->wanted && !v->gone ? wanted_action(v, &list[n]) : unwanted_action(v, &list[n]))
            list[n++].attempt = v->attempt;
    }
    *out = list;
    return n;
}
