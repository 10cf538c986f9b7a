/* commits.c - what the writer has decided goes into the store, in order, while it decides the next.
 *
 * An actor of its own: it takes every group that waits, sends all their rows as one transaction
 * and only then lets followers, planner and replies go. So verbs decide on what is not written yet,
 * and nobody hears of it before it is. What the store refuses goes back to the writer, and with
 * it all that was decided behind it, on a memory that never came to be; nothing of that is
 * written. The writer's connection is this actor's while it works, and the writer's while it rests. */
#include "control/audit.h"
#include <stdlib.h>

enum { VERB_USUAL = 2048, NEWS_FIRST = 64 };    /* bytes of rows and events of a verb */

struct group *group_new(size_t room)
{
    struct group *g = calloc(1, sizeof *g + room * sizeof *g->all);
    if (!g)
        abort();
    g->b.mem = arena_new_for(room * VERB_USUAL);
    g->b.news_mem = arena_new();
    g->b.news_first = MIN(room, (size_t)NEWS_FIRST);
    return g;
}

void group_free(struct group *g)
{
    arena_free(g->b.mem);
    arena_free(g->b.news_mem);
    arena_free(g->news_mem);
    free(g);
}

/* News may point into the memory, which goes on: what the planner gets is its own. */
static void news_own(struct sched_event *news, size_t count, struct arena *mem)
{
    for (size_t i = 0; i < count; i++) {
        struct sched_event *e = &news[i];
        if (e->gpu_count)
            e->gpus = memcpy(ARENA_ARRAY(mem, struct sched_gpu, (size_t)e->gpu_count), e->gpus,
                             (size_t)e->gpu_count * sizeof *e->gpus);
        if (e->house)
            e->house = arena_text(mem, e->house);
        if (e->where)
            e->where = arena_text(mem, e->where);
        if (e->good_count)
            e->goods = memcpy(ARENA_ARRAY(mem, struct good, e->good_count), e->goods, e->good_count * sizeof *e->goods);
        if (e->rules.weight)
            e->rules.weight = memcpy(ARENA_ARRAY(mem, int64_t, TERM_COUNT), e->rules.weight, TERM_COUNT * sizeof *e->rules.weight);
        if (e->held_count)
            e->held = memcpy(ARENA_ARRAY(mem, struct sched_held, (size_t)e->held_count), e->held,
                             (size_t)e->held_count * sizeof *e->held);
    }
}

void commits_tell_planner(struct control *c, const struct batch *b, bool reset, bool more)
{
    if (!c->planner)
        return;
    struct arena *mem = arena_new();
    struct sched_event *copy = ARENA_ARRAY(mem, struct sched_event, b->news_count);
    if (b->news_count)
        memcpy(copy, b->news, b->news_count * sizeof *copy);
    news_own(copy, b->news_count, mem);
    planner_tell(c, copy, b->news_count, reset, more, mem);
}

void group_decided(struct control *c, struct group *g)
{
    struct state *s = c->writer.state;
    struct batch *b = &g->b;
    struct commit *k = ARENA_NEW(b->mem, struct commit);
    struct call call
        = { .control = c, .s = s, .batch = b, .mem = b->mem, .now_ms = os_wall_ms(c->os) };
    struct node_push *pushes = ARENA_ARRAY(b->mem, struct node_push, b->node_count);
    for (size_t i = 0; i < b->node_count; i++) {
        struct node *n = map_get(s->nodes, b->nodes[i]);
        if (!n || !n->linked || (!map_count(n->changed) && !n->gone_count && !n->tell))
            continue; /* gone, away (its hello gets all), or told already in this very group */
        const char *json = desired_json(&call, n, false, 0);
        pushes[k->push_count++] = (struct node_push){ n->id, SLICE(json) };
    }
    k->post = (struct post){ .fn = control_committed, .arg = c };
    k->events = b->events;
    k->event_count = b->event_count;
    k->pushes = pushes;
    k->mem = b->mem;
    g->told = k;
    if (s->audit.headed != s->audit.number) {
        s->audit.headed = g->chained = s->audit.number;
        memcpy(g->chain, s->audit.chain, sizeof g->chain);
    }
    if (b->news_count && c->planner) {
        g->news = b->news;
        g->news_mem = TAKE(b->news_mem);
        news_own(g->news, b->news_count, g->news_mem);
    }
    state_forget_ended(s);
}

/* --- into the store */

static enum fate refused(const struct err *err)
{
    return err->rc == RC_NOT_WRITER ? FENCED : REFUSED;
}

/* The answer got lost: our own numbers tell whether it landed, for nobody else has written if we still may. */
static enum fate look_back(struct control *c, int64_t last_event)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct rows r;
    struct err why;
    if (!last_event || !store_query(c->writer.conn, ST_LAST_EVENT, NULL, 0, mem, &r, &why)
        || (c->config.shared && !store_lease_check(c->writer.conn, &why)))
        return UNKNOWN;
    return row_int(&r, 0, 0) == last_event ? LANDED : REFUSED;
}

static enum fate commit(struct control *c, const struct group *first, struct err *err)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct batch more = { .mem = mem };         /* what a commit has once, however much is in it */
    struct call call = { .control = c, .batch = &more };
    const struct group *chained = NULL;
    size_t count = 0, n = 0;
    int64_t last_event = 0;
    bool asked = false, unknown = false;
    for (const struct group *g = first; g; g = g->next) {
        count += g->b.write_count;
        asked |= g->b.asked;
        chained = g->chained ? g : chained;
        last_event = g->b.event_count ? g->b.events[g->b.event_count - 1].seq : last_event;
    }
    if (!count) /* what memory answers must be as new as what the store would */
        return !c->config.shared || !asked || store_lease_check(c->writer.conn, err) ? LANDED
                                                                                     : refused(err);
    if (chained)
        audit_head_set(&call, HEAD_AUDIT, chained->chained, chained->chain);
    if (c->config.shared) /* so that others know that the memory they built is as new as ours */
        EMIT(&call, LEASE_COUNT, V_INT(1));
    struct write *all = ARENA_ARRAY(mem, struct write, count + more.write_count);
    for (const struct group *g = first; g; n += g->b.write_count, g = g->next)
        if (g->b.write_count)
            memcpy(all + n, g->b.writes, g->b.write_count * sizeof *all);
    if (more.write_count)
        memcpy(all + n, more.writes, more.write_count * sizeof *all);
    if (store_commit(c->writer.conn, all, count + more.write_count, &unknown, err))
        return LANDED;
    return unknown ? look_back(c, last_event) : refused(err);
}

/* Adds to what the loop is told: followers first, then the replies. Where it ends then. The loop frees it, the planner's news stay. */
static struct post **landed(struct control *c, struct group *g, struct post **end)
{
    struct batch *b = &g->b;
    if (b->event_count)
        c->writer.told = b->events[b->event_count - 1].seq;
    *end = &g->told->post;
    for (size_t i = 0; i < g->count; i++) {
        end = &(*end)->next;
        *end = door_answered(c, g->all[i].r, g->all[i].ok);
    }
    b->mem = NULL;
    return &(*end)->next;
}

enum fate group_commit(struct control *c, struct group *first, struct err *err)
{
    enum fate fate = commit(c, first, err);
    if (fate != LANDED)
        return fate;
    struct post *told = NULL, **end = &told;
    for (struct group *g = first; g; g = g->next)
        end = landed(c, g, end);
    os_posts(c->os, told);
    for (struct group *g = first, *next; g; g = next) {      /* who waits for a reply goes first: this wakes a thread, which may take our core */
        next = g->next;
        if (g->news)
            planner_tell(c, g->news, g->b.news_count, false, false, TAKE(g->news_mem));
        group_free(g);
    }
    return LANDED;
}

/* --- the actor */

static void give_back(struct control *c, struct group *first, enum fate fate, const struct err *err)
{
    struct writer *w = &c->writer;
    struct group **end = &w->back;
    while (*end)
        end = &(*end)->next;
    *end = first;
    for (struct group *g = first; g; g = g->next) {
        arena_free(TAKE(g->b.mem));
        g->fate = fate;
        g->err = *err;
    }
    w->broken = true;
    if (!atomic_exchange(&w->waking, true))
        actor_post(w->actor, &w->wake);
}

/* In the simulation nothing is decided in the midst of a commit. So there chance puts what came together into several, as it
 * would have been. */
static size_t most_of(struct control *c)
{
    unsigned char chance = 1;
    if (os_is_simulated(c->os))
        os_random(c->os, &chance, sizeof chance);
    return chance % 2 ? GROUP_MOST : 1;
}

/* As much as a commit may have; what is left begins at *p. */
static struct group *take(struct post **p, size_t most)
{
    struct group *first = NULL, **end = &first;
    for (size_t count = 0; *p && count < most; *p = (*p)->next) {
        struct group *g = CONTAINER(*p, struct group, post);
        *end = g;
        end = &g->next;
        count += g->count;
    }
    return first;
}

static void on_posts(void *arg, struct post *p)
{
    struct control *c = arg;
    while (p) {
        struct group *first = take(&p, most_of(c));
        struct err err = { 0 };
        enum fate fate = c->writer.broken ? BEHIND : group_commit(c, first, &err);
        if (fate != LANDED)
            give_back(c, first, fate, &err);
    }
}

void commits_open(struct control *c) { c->writer.commits = actor_new(c->os, "commits", on_posts, c); }

void commits_put(struct control *c, struct group *g) { actor_post(c->writer.commits, &g->post); }

struct group *commits_settle(struct control *c)
{
    actor_settle(c->writer.commits);
    c->writer.broken = false;
    return TAKE(c->writer.back);
}

bool call_conn(const struct call *c, struct conn **out, struct err *err)
{
    if (c->batch && c->batch->light) {
        c->batch->later = true;
        return err_set(err, RC_UNAVAILABLE, "the store is not asked here");
    }
    if (c->s && c->control->writer.commits)
        actor_settle(c->control->writer.commits);
    return *out = c->conn, true;
}
