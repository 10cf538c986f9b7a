/* workshop.c - an actor with a way back. The workshop itself lives until its last work has come
 * home. */
#include "agent/workshop.h"
#include <stdlib.h>

struct workshop {
    struct os *os;
    struct actor *actor;
    size_t away;
    bool closed;
};

static void let_go(struct workshop *s)
{
    if (s->closed && s->away == 0)
        free(s);
}

static void come_home(void *arg, struct post *p)
{
    struct work *w = CONTAINER(p, struct work, post);
    struct workshop *s = arg;
    s->away--;
    if (!s->closed)
        w->done(w);
    else if (w->drop)
        w->drop(w);
    else
        free(w);
    let_go(s);
}

static void on_posts(void *arg, struct post *first)
{
    struct workshop *s = arg;
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        struct work *w = CONTAINER(p, struct work, post);
        w->run(w);
        p->fn = come_home;
        p->arg = s;
        os_post(s->os, p);
    }
}

struct workshop *workshop_new(struct os *os, const char *name)
{
    struct workshop *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->os = os;
    s->actor = actor_new(os, name, on_posts, s);
    return s;
}

void workshop_do(struct workshop *s, struct work *w)
{
    w->shop = s;
    s->away++;
    actor_post(s->actor, &w->post);
}

void workshop_settle(struct workshop *s)
{
    actor_settle(s->actor);
}

void workshop_close(struct workshop *s)
{
    if (!s)
        return;
    s->closed = true;
    actor_stop(s->actor);
    let_go(s);
}
