/* reconcile.h - desired minus running is the work to do.
 *
 * Pure: what is known of each attempt goes in, actions come out. Doing them and asking again gives none, whatever was lost in
 * between. The law: an attempt is started at most once in its life, so memory of it ends only when the server has
 * settled it. */
#pragma once
#include "base/arena.h"
#include "model/order.h"

struct task_now {
    int64_t attempt;
    /* what the server wants */
    bool wanted;                /* it is in the desired set */
    bool gone;                  /* the server said that it is settled */
    bool stop;
    int stop_as;                /* enum outcome */
    int64_t grace_s;
    const struct order *order;  /* NULL: not at hand; it comes again with the next full set */
    /* what is here */
    bool alive;                 /* it was started and has not ended */
    bool ended;
    bool stopping;              /* it was told to end, within stopping_grace_s */
    int64_t stopping_grace_s;
    /* what was reported */
    bool told_started, told_ended;
    bool doubtful;              /* it was ordered before the machine was switched on, so it may have begun and left no trace */
    bool settled;               /* the report of its end is durable on the server */
};

enum action_kind { ACTION_START, ACTION_STOP, ACTION_REFUSE, ACTION_FORGET };
struct action {
    enum action_kind kind;
    int64_t attempt;
    int as;                     /* of stop and refuse: enum outcome. Refuse: report its end, it never ran (again) */
    int64_t grace_s;            /* of stop */
    const struct order *order;  /* of start */
};

/* complete: the views hold the whole desired set, so what is not wanted there is not wanted at all. */
size_t reconcile(const struct task_now *views, size_t count, bool complete, struct arena *mem, struct action **out);
