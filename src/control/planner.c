/* planner.c - the follower that decides who runs where: it keeps the scheduler's picture from
 * the news of each commit and asks for job.place through the same door as everybody. One wish is
 * under way at a time, which gathers what comes meanwhile; only if it could not hold all, more follow at once, so that one is planned
 * while others are decided and written. What they place counts as taken. After all was told anew nothing is planned before every wish
 * of before is answered: its refusals would be taken for those of the same tasks in a new one. */
#include "control/control_internal.h"
#include <stdlib.h>

enum { PLACE_MOST = 1000, WISHES_MOST = 3, REST_MS = 500, CALM_NEWS = 8, CALM_MS = 3 };

struct planner {
    struct control *control;
    struct actor *actor;
    struct sched *sched;
    int asking;    /* wishes under way */
    bool full;     /* the last of them could not hold all */
    bool outdated; /* they are of a picture that was thrown away */
    bool partial; /* in the middle of being told everything: no time to plan */
    int64_t next_ms, looked_ms;
    int64_t rest_until; /* boot clock: a store that does not answer is not asked without a pause */
    bool owed;          /* there was something to look at meanwhile */
    struct wish *wishes; /* under way; the planner's own until they are answered */
};
struct news {
    struct post post;
    struct sched_event *events;
    size_t count;
    bool reset, more;     /* of the writer's: it begins anew; it is not all */
    bool aside;           /* of the loop's: time has passed, */
    struct wish *answered; /* or this was answered */
    bool away;            /* the store did not take it */
    struct request *ask;  /* of somebody who wants to know something */
    struct arena *mem;
};

static void post_news(struct planner *p, const struct news *like)
{
    struct news *n = ARENA_NEW(like->mem, struct news);
    *n = *like;
    actor_post(p->actor, &n->post);
}

struct wish {
    struct request r;
    struct post hop;
    struct planner *planner;
    struct wish *next;
};
static void wish_free(struct planner *p, struct wish *w)
{
    struct wish **at = &p->wishes;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    p->asking--;
    p->outdated = p->outdated && p->asking;
    arena_free(w->r.mem);
    str_done(&w->r.reply);
    free(w);
}
static void wish_done(void *arg, struct request *r) /* on the loop */
{
    struct wish *w = arg;
    struct planner *p = w->planner;
    struct arena *mem = arena_new();
    const struct place_ask *ask = r->body;
    const struct placement *list = ask->placements.at;
    const struct eviction *evicted = ask->evictions.at;
    const struct resume *resumed = ask->resumes.at;
    struct sched_event *refused
        = ARENA_ARRAY(mem, struct sched_event, r->ok ? 0 : ask->placements.count + ask->evictions.count + ask->resumes.count);
    size_t n = 0;
    for (size_t i = 0; !r->ok && i < ask->placements.count;
         i++) /* the whole wish fell through: all of it waits again */
        refused[n++] = (struct sched_event){ .kind = SCHED_TASK_REFUSED,
                                             .job = list[i].job,
                                             .task = list[i].task,
                                             .node = list[i].node };
    for (size_t i = 0; !r->ok && i < ask->evictions.count; i++)
        refused[n++] = (struct sched_event){ .kind = SCHED_TASK_KEPT,
                                             .job = evicted[i].job,
                                             .task = evicted[i].task,
                                             .node = evicted[i].node };
    for (size_t i = 0; !r->ok && i < ask->resumes.count; i++)
        refused[n++] = (struct sched_event){ .kind = SCHED_TASK_KEPT, .job = resumed[i].job, .task = resumed[i].task, .node = resumed[i].node };
    post_news(p, &(struct news){ .events = refused,
                                 .count = n,
                                 .aside = true,
                                 .answered = w,
                                 .away = !r->ok && r->err.rc == RC_UNAVAILABLE,
                                 .mem = mem });
}

/* By way of the loop: so the writer can be stopped before the planner, whom it tells everything. */
static void wish_ask(void *arg, struct post *hop)
{
    struct wish *w = CONTAINER(hop, struct wish, hop);
    control_ask(((struct planner *)arg)->control, &w->r);
}

/* False: there was nothing to wish for. */
static bool plan(struct planner *p)
{
    struct control *c = p->control;
    AUTO(arena_free) struct arena *mem = arena_new();
    struct sched_plan plan = sched_plan(p->sched, os_wall_ms(c->os), PLACE_MOST, mem);
    p->next_ms = plan.next_ms;
    p->looked_ms = os_wall_ms(c->os);
    p->full = plan.count && plan.next_ms <= p->looked_ms;
    if (!plan.count && !plan.wait_count && !plan.eviction_count && !plan.resume_count)
        return false;
    struct wish *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    struct place_ask *ask = ARENA_NEW(mem, struct place_ask);
    ask->placements = (struct objects){ plan.placements, plan.count };
    ask->waits = (struct objects){ plan.waits, plan.wait_count };
    ask->evictions = (struct objects){ plan.evictions, plan.eviction_count };
    ask->resumes = (struct objects){ plan.resumes, plan.resume_count };
    w->planner = p;
    w->r = (struct request){ .verb = VERB_JOB_PLACE,
                             .who = system_caller,
                             .body = ask,
                             .mem = TAKE(mem),
                             .on_reply = wish_done,
                             .arg = w };
    w->hop = (struct post){ .fn = wish_ask, .arg = p };
    p->asking++;
    w->next = p->wishes;
    p->wishes = w;
    os_post(c->os, &w->hop);
    return true;
}

/* --- questions */

static void ask_back(void *arg, struct post *p) /* on the loop, which knows whether there still is a writer */
{
    struct control *c = arg;
    actor_post(c->writer.actor, p);
}

static void answer(struct planner *p, struct request *r)
{
    struct question *q = r->question;
    int64_t now_ms = os_wall_ms(p->control->os);
    if (!p->partial)
        (q->waits ? sched_why : sched_try)(p->sched, q->job, now_ms, &q->why);
    q->answered = true;
    r->post = (struct post){ .fn = ask_back, .arg = p->control };
    os_post(p->control->os, &r->post);
}

void planner_ask(struct control *c, struct request *r)
{
    post_news(c->planner, &(struct news){ .aside = true, .ask = r, .mem = arena_new() });
}

static void on_posts(void *arg, struct post *first)
{
    struct planner *p = arg;
    bool look = false, idle = false;
    size_t told = 0;
    for (struct post *at = first, *next; at; at = next) {
        next = at->next;
        struct news *n = CONTAINER(at, struct news, post);
        if (n->reset) {
            sched_free(p->sched);
            p->sched = sched_new();
            p->outdated = p->asking;
        }
        if (n->answered)
            wish_free(p, n->answered);
        if (n->away)
            p->rest_until = os_boot_ms(p->control->os) + REST_MS;
        if (!n->aside)
            p->partial = n->more;
        for (size_t i = 0; i < n->count; i++)
            sched_apply(p->sched, &n->events[i]);
        told += n->count;
        if (n->ask)
            answer(p, n->ask);
        int64_t now = os_wall_ms(p->control->os);
        look = look || n->count || n->answered || now >= p->next_ms
               || now < p->looked_ms; /* behind: the clock went back */
        arena_free(n->mem);
    }
    p->owed |= look;
    while (p->owed && p->asking < (p->full ? WISHES_MOST : 1) && !p->outdated && !p->partial
           && os_boot_ms(p->control->os) >= p->rest_until) {
        idle = !plan(p);
        p->owed = p->full;
    }
    if (idle && !p->asking && told >= CALM_NEWS)      /* many come, and none finds a place: looking for each dozen anew takes the time of those who write them down */
        actor_rest(p->actor, CALM_MS);
}

void planner_tell(struct control *c, struct sched_event *news, size_t count, bool reset, bool more,
                  struct arena *mem)
{
    post_news(
        c->planner,
        &(struct news){ .events = news, .count = count, .reset = reset, .more = more, .mem = mem });
}

void planner_poke(struct control *c)
{
    if (c->planner)
        post_news(c->planner, &(struct news){ .aside = true, .mem = arena_new() });
}

const struct sched *planner_picture(const struct control *c)
{
    return c->planner && !c->planner->asking ? c->planner->sched : NULL;
}

void planner_open(struct control *c)
{
    struct planner *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    p->control = c;
    p->sched = sched_new();
    p->next_ms = INT64_MAX;
    p->actor = actor_new(c->os, "planner", on_posts, p);
    c->planner = p;
}

void planner_close(struct control *c)
{
    if (!c->planner)
        return;
    actor_stop(c->planner->actor);
    os_unpost(c->os, wish_ask, c->planner); /* nobody will hear it */
    struct post *next;
    for (struct post *p = os_unpost(c->os, ask_back, c); p; p = next) {
        struct request *r = CONTAINER(p, struct request, post);
        next = p->next;
        r->ok = err_set(&r->err, RC_UNAVAILABLE, "the server is stopping");
        r->on_reply(r->arg, r);
    }
    while (c->planner->wishes)
        wish_free(c->planner, c->planner->wishes);
    sched_free(c->planner->sched);
    free(TAKE(c->planner));
}
