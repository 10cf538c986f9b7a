/* real_actor.c - a thread with a mailbox. It takes everything that waits at once, so that a
 * writer can commit a whole batch. Light work the loop may do in its place, one of the two at a time: `busy` is
 * the right to do so. */
#include "os/real.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SOON_MOST = 4, REST_MOST_MS = 100 };

struct ractor {
    struct actor base;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, rest;
    struct link asleep;         /* on the loop's: something waits, and it is woken at the end of the turn, */
    int soon;                   /* or when so much waits that there is enough to do meanwhile */
    struct link lent;           /* on the loop's: all that waits is light */
    struct post *first, **last;
    bool due;                   /* the thread is to take what waits */
    bool stopping, busy;
    bool naps;                  /* it looks into its mailbox by itself */
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

/* Both under the lock. */
static struct post *begin(struct ractor *a)
{
    struct post *all = a->first;
    a->first = NULL;
    a->last = &a->first;
    a->due = false;
    a->busy = true;
    return all;
}

static void end(struct ractor *a)
{
    a->busy = false;
    if (a->waiting && !a->first)
        pthread_cond_broadcast(&a->rest);
}

static void put(struct ractor *a, struct post *p)
{
    p->next = NULL;
    *a->last = p;
    a->last = &p->next;
}

/* Under the lock, which it gives up meanwhile. */
static void nap(struct ractor *a)
{
    struct timespec rest = { .tv_nsec = (long)MIN(a->base.rest_ms, REST_MOST_MS) * 1000000 };
    a->base.rest_ms = 0;
    if (rest.tv_nsec <= 0 || a->stopping)
        return;
    a->naps = true;
    pthread_mutex_unlock(&a->lock);
    (void)nanosleep(&rest, NULL);
    pthread_mutex_lock(&a->lock);
    a->naps = false;
}

static void *actor_main(void *arg)
{
    struct ractor *a = arg;
    pthread_setname_np(pthread_self(), a->name);
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while ((!a->due || a->busy) && !a->stopping)
            pthread_cond_wait(&a->more, &a->lock);
        if (!a->first)
            break;
        struct post *all = begin(a);
        pthread_mutex_unlock(&a->lock);
        heap_ahead(real_of(a->base.os)->heap_step);
        a->on_posts(a->arg, all);
        pthread_mutex_lock(&a->lock);
        end(a);
        nap(a);
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
    pthread_mutex_lock(&a->lock);
    put(a, p);
    bool rouse = !a->due && !a->naps;
    a->due = true;
    pthread_mutex_unlock(&a->lock);
    if (rouse)              /* behind the lock: who is woken wants it, and would go to sleep again for it */
        pthread_cond_signal(&a->more);
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
    pthread_mutex_lock(&a->lock);
    put(a, p);
    bool sleeps = !a->due && !a->busy;
    a->due = true;
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

void real_actor_post_light(struct actor *actor, struct post *p)
{
    struct ractor *a = (struct ractor *)actor;
    pthread_mutex_lock(&a->lock);
    put(a, p);
    a->due |= a->busy;          /* its thread looks into the mailbox again by itself */
    bool due = a->due;
    pthread_mutex_unlock(&a->lock);
    if (!due)
        link_add(&real_of(actor->os)->lent, &a->lent);
}

static void help(struct ractor *a)
{
    pthread_mutex_lock(&a->lock);
    struct post **end_of_all = a->last;
    struct post *all = a->due || a->busy || !a->first ? NULL : begin(a);
    struct post *beyond = posts_beyond(all, a->base.light_most);
    if (beyond) {               /* stays in front of whatever comes meanwhile */
        a->first = beyond;
        a->last = end_of_all;
        a->due = true;
    }
    pthread_mutex_unlock(&a->lock);
    if (!all)
        return;
    a->base.on_light(a->arg, all);
    pthread_mutex_lock(&a->lock);
    end(a);
    bool rouse = a->due;
    pthread_mutex_unlock(&a->lock);
    if (rouse)
        pthread_cond_signal(&a->more);
}

void actors_help(struct real *r)
{
    while (!link_empty(&r->lent)) {
        struct ractor *a = CONTAINER(r->lent.next, struct ractor, lent);
        link_cut(&a->lent);
        help(a);
    }
}

void real_actor_settle(struct actor *actor)
{
    struct ractor *a = (struct ractor *)actor;
    pthread_mutex_lock(&a->lock);
    if (a->first) {
        a->due = true;
        pthread_cond_signal(&a->more);  /* the turn that would do it may never end */
    }
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
    link_cut(&a->lent);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->more);
    pthread_cond_destroy(&a->rest);
    free(a);
}
