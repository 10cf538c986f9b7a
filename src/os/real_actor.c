/* real_actor.c - a thread with a mailbox. It takes everything that waits at once, so that a
 * writer can commit a whole batch. */
#include "os/real.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { SOON_MOST = 4 };

struct ractor {
    struct actor base;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, rest;
    struct link asleep;         /* on the loop's: something waits, and it is woken at the end of the turn, */
    int soon;                   /* or when so much waits that there is enough to do meanwhile */
    struct post *first, **last;
    bool stopping, busy;
    int waiting;                /* for it to be at rest */
    void (*on_posts)(void *arg, struct post *first);
    void *arg;
    char name[16];
};

/* The C library lets the heap of a thread grow by a page at a time, with a system call for each. What is given back here stays at its end. */
static void heap_ahead(size_t step)
{
    void *volatile ahead = step ? malloc(step) : NULL;
    free(ahead);
}

static void *actor_main(void *arg)
{
    struct ractor *a = arg;
    pthread_setname_np(pthread_self(), a->name);
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (!a->first && !a->stopping)
            pthread_cond_wait(&a->more, &a->lock);
        struct post *all = a->first;
        if (!all)
            break;
        a->first = NULL;
        a->last = &a->first;
        a->busy = true;
        pthread_mutex_unlock(&a->lock);
        heap_ahead(real_of(a->base.os)->heap_step);
        a->on_posts(a->arg, all);
        pthread_mutex_lock(&a->lock);
        a->busy = false;
        if (a->waiting && !a->first)
            pthread_cond_broadcast(&a->rest);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

struct actor *real_actor_new(struct os *os, const char *name,
                             void (*on_posts)(void *arg, struct post *first), void *arg)
{
    struct ractor *a = os_alloc(sizeof *a);
    *a = (struct ractor){ .base.os = os, .on_posts = on_posts, .arg = arg };
    a->last = &a->first;
    snprintf(a->name, sizeof a->name, "%s", name);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
    pthread_cond_init(&a->rest, NULL);
    sigset_t all, before;       /* signals belong to the loop's thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&a->thread, NULL, actor_main, a) != 0)
        abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return &a->base;
}

void real_actor_post(struct actor *actor, struct post *p)
{
    struct ractor *a = (struct ractor *)actor;
    p->next = NULL;
    pthread_mutex_lock(&a->lock);
    bool first = !a->first;
    *a->last = p;
    a->last = &p->next;
    if (first)
        pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
}

static void wake(struct ractor *a)
{
    link_cut(&a->asleep);
    a->soon = 0;
    pthread_cond_signal(&a->more);
}

/* One that is awake looks into its mailbox again by itself. */
void real_actor_post_soon(struct actor *actor, struct post *p)
{
    struct ractor *a = (struct ractor *)actor;
    p->next = NULL;
    pthread_mutex_lock(&a->lock);
    bool sleeps = !a->first && !a->busy;
    *a->last = p;
    a->last = &p->next;
    pthread_mutex_unlock(&a->lock);
    if (sleeps)
        link_add(&real_of(actor->os)->asleep, &a->asleep);
    if (a->asleep.next && ++a->soon >= SOON_MOST)
        wake(a);
}

void actors_wake(struct real *r)
{
    while (!link_empty(&r->asleep))
        wake(CONTAINER(r->asleep.next, struct ractor, asleep));
}

void real_actor_settle(struct actor *actor)
{
    struct ractor *a = (struct ractor *)actor;
    pthread_mutex_lock(&a->lock);
    if (a->first)
        pthread_cond_signal(&a->more);  /* the turn that would do it may never end */
    a->waiting++;
    while (a->first || a->busy)
        pthread_cond_wait(&a->rest, &a->lock);
    a->waiting--;
    pthread_mutex_unlock(&a->lock);
}

void real_actor_stop(struct actor *actor)
{
    struct ractor *a = (struct ractor *)actor;
    pthread_mutex_lock(&a->lock);
    a->stopping = true;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    link_cut(&a->asleep);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->more);
    pthread_cond_destroy(&a->rest);
    free(a);
}
