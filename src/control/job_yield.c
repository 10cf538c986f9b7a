/* job_yield.c - a task is told to end for a reason of ours: its node is emptied, or somebody with a better right needs the place. It
 * gets SIGTERM at once and SIGKILL after its grace period, and waits again when its node says that it has ended.
 *
 * The planner chooses who yields; here each choice is checked again on the memory that counts, by the rules and the brake. In the store
 * an attempt that yields keeps its state and only says as what it will have ended: so a program that does not know this yet requeues
 * it too, and does not take it for cancelled. Whose job it was for is the operators' business; its owner is told the class. */
#include "control/call.h"
#include "model/hold.h"
#include "model/priority.h"

void attempt_end_soon(struct call *c, struct attempt *a, enum outcome as, const char *why)
{
    a->stop = true;
    a->stop_as = as;
    a->stop_ms = c->now_ms;
    if (hold_is_away((enum hold_step)a->hold)) /* as in task_stop */
        a->grace_s = 0;
    attempt_why(a, why);
    order_shorten(c, a);
    EMIT(c, ATTEMPT_YIELD, V_INT(a->id), V_INT(as), V_INT(a->grace_s), V_TEXT(a->stop_why), V_INT(a->stop_ms));
    sched_of_held(a, emit_news(c, SCHED_TASK_HELD));
    node_changed(c, a->node, a);
}

void attempt_yield(struct call *c, struct attempt *a, enum outcome as, const char *why, const char *word)
{
    struct job *j = a->task->job;
    attempt_end_soon(c, a, as, why);
    emit_event(c, j->project->id, "task.evicted", id_of(c, PREFIX_ATTEMPT, a->id),
               arena_printf(c->mem, "{\"job\":\"%s\",\"task\":%lld,\"node\":\"%s\",\"why\":\"%s\",\"detail\":\"%s\",\"grace_s\":%lld}",
                            id_of(c, PREFIX_JOB, j->id), (long long)a->task->index, a->node->name, word, why, (long long)a->grace_s));
}

/* --- the brake */

/* How much may be evicted in a window: the part that the rules name, and what one node has at least, or a small fleet could evict nothing. */
static int64_t brake_milli(const struct state *s)
{
    int64_t all = 0, largest = 0;
    struct node *n;
    for (size_t i = 0; (n = map_next(s->nodes, &i));) {
        int64_t milli = (int64_t)n->info.gpus.count * 1000;
        all += milli; /* of silent ones too, as the planner counts: what may be evicted must not hang on who of us noticed first */
        largest = MAX(largest, milli);
    }
    int64_t part = s->rules.at[RULE_BRAKE_PERMILLE];
    return part ? MAX(all * part / 1000, largest) : 0;
}

/* Those of the window; what lies in the future was written by a clock that was wrong. */
static int64_t evicted_milli(const struct call *c)
{
    const struct state *s = c->s;
    int64_t window_ms = s->rules.at[RULE_BRAKE_WINDOW_S] * 1000, milli = 0;
    for (size_t i = 0; i < s->evicted_count; i++)
        if (s->evicted[i].at_ms > c->now_ms - window_ms && s->evicted[i].at_ms <= c->now_ms)
            milli += s->evicted[i].gpu_milli;
    return milli;
}

static bool brake_allows(const struct call *c, int64_t milli)
{
    return brake_lifted(&c->s->rules, c->now_ms) || evicted_milli(c) + milli <= brake_milli(c->s);
}

/* If one of a gang goes, all do. */
static int64_t milli_with(const struct attempt *a)
{
    const struct job *j = a->task->job;
    return a->gpu_milli * (job_gang(j) ? j->count : 1);
}

static void count_eviction(struct call *c, const struct attempt *a)
{
    struct state *s = c->s;
    int64_t since = c->now_ms - s->rules.at[RULE_BRAKE_WINDOW_S] * 1000;
    size_t kept = 0;
    for (size_t i = 0; i < s->evicted_count; i++)
        if (s->evicted[i].at_ms > since)
            s->evicted[kept++] = s->evicted[i];
    if (kept < s->evicted_count)
        EMIT(c, EVICTED_DROP, V_INT(since));
    s->evicted_count = kept;
    state_evicted_add(s, a->id, c->now_ms, milli_with(a));
    EMIT(c, EVICTED_ADD, V_INT(a->id), V_INT(c->now_ms), V_INT(milli_with(a)));
    struct sched_event *e = emit_news(c, SCHED_EVICTED);
    e->job = a->task->job->id, e->task = a->task->index, e->at_ms = c->now_ms, e->count = milli_with(a);
}

/* --- evictions */

static bool may_evict(const struct state *s, const struct job *who, const struct job *whom, int why)
{
    enum priority_class class = priority_of(whom->priority);
    if (why == EVICT_RESERVATION)
        return class == CLASS_SPOT; /* it was lent to nobody else */
    return s->rules.at[RULE_PREEMPT + priority_of(who->priority)] >> class & 1;
}

static struct attempt *acceptable(struct call *c, const struct eviction *e, struct job **who)
{
    struct job *whom = map_get(c->s->jobs, e->job);
    struct task *t = whom ? job_task(whom, e->task) : NULL;
    struct attempt *a = t ? t->attempt : NULL;
    *who = map_get(c->s->jobs, e->for_job);
    if (!a || a->stop || (a->returns && a->hold == STEP_SUSPENDING) || a->node->id != e->node || !*who || *who == whom || !job_waits(*who) || (*who)->state == JOB_STOPPING)
        return NULL;
    if (c->s->rules.at[RULE_SILENT_SINCE_MS] || a->node->state != NODE_READY) /* nobody is evicted by a cloud that cannot see itself */
        return NULL;
    return may_evict(c->s, *who, whom, e->why) ? a : NULL;
}

/* The operator may promise spot work a notice of its own; where hours are limited it must not be longer than what was counted. */
static int64_t notice_s(const struct call *c, const struct attempt *a)
{
    const struct job *j = a->task->job;
    int64_t notice = c->s->rules.at[RULE_SPOT_NOTICE_S];
    if (priority_of(j->priority) != CLASS_SPOT || notice < 0)
        return a->grace_s;
    return books_have_hours(&j->project->limits) ? MIN(notice, a->grace_s) : notice;
}

void attempt_evict_anyway(struct call *c, struct attempt *a, const char *why)
{
    a->grace_s = notice_s(c, a);
    attempt_yield(c, a, OUTCOME_PREEMPTED, why, "spot");
}

static void evict(struct call *c, struct attempt *a, const struct job *who, int why)
{
    static const char *const words[] = { [EVICT_SPOT] = "spot", [EVICT_CLASS] = "class", [EVICT_RESERVATION] = "reservation" };
    const struct job *whom = a->task->job;
    const char *class = priorities[priority_of(who->priority)].name;
    a->grace_s = notice_s(c, a);
    if (why != EVICT_RESERVATION) /* whoever made the reservation said so */
        count_eviction(c, a);
    if (!hold_instead(c, a))
        attempt_yield(c, a, OUTCOME_PREEMPTED,
                      why == EVICT_RESERVATION ? "its place was lent from a reservation, and its owner needs it"
                                               : arena_printf(c->mem, "evicted for a job of class %s", class),
                      words[why]);
    emit_event(c, 0, "fleet.evicted", id_of(c, PREFIX_ATTEMPT, a->id),
               arena_printf(c->mem, "{\"job\":\"%s\",\"task\":%lld,\"project\":\"%s\",\"node\":\"%s\",\"why\":\"%s\",\"for\":\"%s\",\"for_project\":\"%s\"}",
                            id_of(c, PREFIX_JOB, whom->id), (long long)a->task->index, whom->project->name, a->node->name, words[why],
                            id_of(c, PREFIX_JOB, who->id), who->project->name));
}

/* Those that together make one place: half of them would yield in vain. */
static size_t group_at(const struct eviction *list, size_t count)
{
    size_t n = 1;
    while (n < count && list[n].for_job == list->for_job && list[n].node == list->node)
        n++;
    return n;
}

static bool group_yields(struct call *c, const struct eviction *list, size_t count)
{
    int64_t milli = 0;
    struct job *who;
    for (size_t i = 0; i < count; i++) {
        const struct attempt *a = list[i].why >= 0 && list[i].why < EVICT_WHY_COUNT ? acceptable(c, &list[i], &who) : NULL;
        if (!a)
            return false;
        milli += list[i].why == EVICT_RESERVATION ? 0 : milli_with(a);
    }
    return !milli || brake_allows(c, milli);
}

void job_evictions(struct call *c, const struct objects *list)
{
    const struct eviction *at = list->at;
    for (size_t i = 0, n; i < list->count; i += n) {
        n = group_at(at + i, list->count - i);
        bool yields = group_yields(c, at + i, n);
        for (size_t k = i; k < i + n; k++) {
            struct job *who;
            struct attempt *a = yields ? acceptable(c, &at[k], &who) : NULL;
            if (a) {
                evict(c, a, who, at[k].why);
                continue;
            }
            struct sched_event *e = emit_news(c, SCHED_TASK_KEPT);
            e->job = at[k].job, e->task = at[k].task, e->node = at[k].node;
        }
    }
}
