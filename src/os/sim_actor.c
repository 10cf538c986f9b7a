/* sim_actor.c - mailboxes without threads: an actor's posts are handed over at a step of their
 * own, a little later. */
#include "os/sim_internal.h"
#include <stdlib.h>

struct sactor {
    struct actor base;
    struct post *first, **last;
    bool heavy;                 /* something that waits is not light */
    struct event *event;
    void (*on_posts)(void *arg, struct post *first);
    void *arg;
};

static struct post *take_all(struct sactor *a)
{
    struct post *all = a->first;
    a->first = NULL;
    a->last = &a->first;
    return all;
}

static void actor_run(void *arg)
{
    struct sactor *a = arg;
    struct machine *m = machine_of(a->base.os);
    bool light = !a->heavy;
    struct post **end = a->last, *all = take_all(a), *beyond = light ? posts_beyond(all, a->base.light_most) : NULL;
    a->heavy = beyond;
    a->event = beyond ? sim_later(m->w, m, sim_between(m->w, 0, 1), actor_run, a) : NULL;
    if (beyond) {
        a->first = beyond;
        a->last = end;
    }
    (light ? a->base.on_light : a->on_posts)(a->arg, all);
}

struct actor *sim_actor_new(struct os *os, const char *name,
                            void (*on_posts)(void *arg, struct post *first), void *arg)
{
    (void)name;
    struct sactor *a = sim_take(machine_of(os), sizeof *a);
    *a = (struct sactor){ .base.os = os, .on_posts = on_posts, .arg = arg };
    a->last = &a->first;
    return &a->base;
}

void sim_actor_post(struct actor *actor, struct post *p)
{
    ((struct sactor *)actor)->heavy = true;
    sim_actor_post_light(actor, p);
}

void sim_actor_post_light(struct actor *actor, struct post *p)
{
    struct sactor *a = (struct sactor *)actor;
    struct machine *m = machine_of(actor->os);
    p->next = NULL;
    if (m->dead)
        return;
    *a->last = p;
    a->last = &p->next;
    if (!a->event)
        a->event = sim_later(m->w, m, sim_between(m->w, 0, 1), actor_run, a);
}

void sim_actor_settle(struct actor *actor)
{
    struct sactor *a = (struct sactor *)actor;
    struct machine *m = machine_of(actor->os);
    while (a->first && !m->dead) {
        event_cancel(m->w, TAKE(a->event));
        a->heavy = false;
        a->on_posts(a->arg, take_all(a));
    }
}

void sim_actor_stop(struct actor *actor)
{
    struct machine *m = machine_of(actor->os);
    if (m->dead)
        return;
    sim_actor_settle(actor);
    sim_give(actor);
}

static void post_run(void *arg)
{
    struct machine *m = arg;
    struct post *p = m->posts;
    m->posts = p->next;
    if (!m->posts)
        m->posts_end = &m->posts;
    m->post_event = m->posts ? sim_later(m->w, m, 0, post_run, m) : NULL;
    p->fn(p->arg, p);
}

void sim_posts(struct os *os, struct post *first)
{
    struct machine *m = machine_of(os);
    if (m->dead)
        return;
    for (*m->posts_end = first; *m->posts_end;)
        m->posts_end = &(*m->posts_end)->next;
    if (!m->post_event)
        m->post_event = sim_later(m->w, m, 0, post_run, m);
}

struct post *sim_unpost(struct os *os, void (*fn)(void *arg, struct post *p), void *arg)
{
    struct machine *m = machine_of(os);
    if (m->dead)
        return NULL;
    struct post *taken = posts_take(&m->posts, &m->posts_end, fn, arg);
    if (!m->posts)
        event_cancel(m->w, TAKE(m->post_event));
    return taken;
}
