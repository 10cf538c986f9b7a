#include "pair.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

struct note { struct post post; int n; };
struct box {
    struct os *os;
    struct actor *back;
    int next, batches, most, stop_at;
    bool ordered;
    pthread_t thread;
};

static void on_loop(void *arg, struct post *p)
{
    struct box *b = arg;
    struct note *n = CONTAINER(p, struct note, post);
    b->ordered &= n->n == b->next++ && pthread_equal(b->thread, pthread_self());
    if (n->n == 9999 || (b->stop_at && n->n == b->stop_at))
        os_stop(b->os);
    free(n);
}

static void on_posts(void *arg, struct post *first)
{
    struct box *b = arg;
    int count = 0;
    for (struct post *p = first, *next; p; p = next, count++) {
        next = p->next;
        p->fn = on_loop;
        p->arg = b;
        os_post(b->os, p);
    }
    b->batches++;
    b->most = count > b->most ? count : b->most;
}

TEST(posts_go_through_an_actor_and_back_in_order)
{
    struct err err = { 0 };
    struct box b = { .os = os_real_new(&err), .ordered = true, .thread = pthread_self() };
    struct actor *a = actor_new(b.os, "a name that is too long", on_posts, &b);
    for (int i = 0; i < 10000; i++) {
        struct note *n = calloc(1, sizeof *n);
        n->n = i;
        actor_post(a, &n->post);
    }
    run_for(b.os);
    CHECK(b.next == 10000 && b.ordered);
    actor_stop(a);
    CHECK(b.batches >= 1 && b.batches <= 10000);
    os_free(b.os);
}

static void slowly(void *arg, struct post *first)
{
    struct box *b = arg;
    usleep(2000);
    int count = 0;
    for (struct post *p = first, *next; p; p = next, count++) {
        next = p->next;
        struct note *n = CONTAINER(p, struct note, post);
        b->ordered &= n->n == b->next++;
        free(n);
    }
    b->most = count > b->most ? count : b->most;
}

TEST(a_busy_actor_gets_all_that_waits_at_once_and_stop_waits_for_all)
{
    struct err err = { 0 };
    struct box b = { .os = os_real_new(&err), .ordered = true };
    struct actor *a = actor_new(b.os, "slow", slowly, &b);
    for (int i = 0; i < 500; i++) {
        struct note *n = calloc(1, sizeof *n);
        n->n = i;
        actor_post(a, &n->post);
    }
    actor_stop(a);
    CHECK(b.next == 500 && b.ordered && b.most > 1);
    actor_stop(NULL);
    os_free(b.os);
}

TEST(settling_an_actor_waits_for_all_that_was_posted_and_it_goes_on_afterwards)
{
    struct err err = { 0 };
    struct box b = { .os = os_real_new(&err), .ordered = true };
    struct actor *a = actor_new(b.os, "slow", slowly, &b);
    actor_settle(a);                    /* there is nothing to wait for */
    for (int i = 0; i < 300; i++) {
        struct note *n = calloc(1, sizeof *n);
        n->n = i;
        actor_post(a, &n->post);
        if (i % 100 == 99) {
            actor_settle(a);
            CHECK(b.next == i + 1);
        }
    }
    actor_stop(a);
    CHECK(b.next == 300 && b.ordered);
    os_free(b.os);
}

static void *stop_from_afar(void *os)
{
    usleep(5000);
    os_stop(os);
    return NULL;
}

TEST(another_thread_can_stop_the_loop)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    pthread_t t;
    pthread_create(&t, NULL, stop_from_afar, os);
    run_for(os);
    pthread_join(t, NULL);
    os_free(os);
}

static void post_some(struct actor *a, int from, int to)
{
    for (int i = from; i < to; i++) {
        struct note *n = calloc(1, sizeof *n);
        n->n = i;
        actor_post_soon(a, &n->post);
    }
}

TEST(what_the_loop_posts_soon_comes_in_order_and_a_few_together_at_the_end_of_its_turn)
{
    struct err err = { 0 };
    struct box b = { .os = os_real_new(&err), .ordered = true, .thread = pthread_self() };
    struct actor *a = actor_new(b.os, "soon", on_posts, &b);
    post_some(a, 0, 1);
    actor_settle(a);                    /* it has begun, and sleeps */
    b.batches = 0;
    post_some(a, 1, 4);
    b.stop_at = 3;
    run_for(b.os);
    actor_settle(a);                    /* it counts behind its last post */
    CHECK(b.next == 4 && b.ordered && b.batches >= 1 && b.batches < 3);         /* a thread may wake without being woken */
    post_some(a, 4, 10000);             /* so many that it wakes before */
    run_for(b.os);
    CHECK(b.next == 10000 && b.ordered);
    actor_stop(a);
    os_free(b.os);
}

TEST(what_was_posted_soon_is_done_without_a_turn_when_somebody_waits_for_it)
{
    struct err err = { 0 };
    struct box b = { .os = os_real_new(&err), .ordered = true };
    struct actor *a = actor_new(b.os, "soon", slowly, &b);
    post_some(a, 0, 10);
    actor_settle(a);
    CHECK(b.next == 10);
    post_some(a, 10, 20);
    actor_stop(a);
    CHECK(b.next == 20 && b.ordered);
    struct actor *other = actor_new(b.os, "soon", on_posts, &b);        /* the loop has forgotten the first one */
    b.next = 9999;
    post_some(other, 9999, 10000);
    run_for(b.os);
    CHECK(b.next == 10000);
    actor_stop(other);
    os_free(b.os);
}

struct resting { struct os *os; struct actor *actor; int turns, next; bool ordered; int64_t ended_ms, least_ms; };

static void rest_often(void *arg, struct post *first)
{
    struct resting *r = arg;
    if (r->turns++)
        r->least_ms = MIN(r->least_ms, os_boot_ms(r->os) - r->ended_ms);
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        struct note *n = CONTAINER(p, struct note, post);
        r->ordered &= n->n == r->next++;
        free(n);
    }
    actor_rest(r->actor, 20);
    r->ended_ms = os_boot_ms(r->os);
}

TEST(an_actor_that_rests_takes_what_came_meanwhile_later_and_loses_nothing)
{
    struct err err = { 0 };
    struct resting r = { .os = os_real_new(&err), .ordered = true, .least_ms = INT64_MAX };
    r.actor = actor_new(r.os, "rests", rest_often, &r);
    for (int i = 0; i < 40; i++) {
        struct note *n = calloc(1, sizeof *n);
        n->n = i;
        (i % 2 ? actor_post : actor_post_soon)(r.actor, &n->post);
        if (i == 9 || i == 29)
            actor_settle(r.actor);
        if (i == 9)
            CHECK(r.next == 10);
    }
    actor_stop(r.actor);
    CHECK(r.next == 40 && r.ordered && r.turns >= 2);
    CHECK(r.least_ms >= 19);                /* the clock tells whole milliseconds */
    os_free(r.os);
}

struct lent { struct os *os; struct actor *actor; int light, heavy; bool here, ordered; int next; pthread_t thread; };

static int take_notes(struct lent *l, struct post *first)
{
    int count = 0;
    for (struct post *p = first, *next; p; p = next, count++) {
        next = p->next;
        struct note *n = CONTAINER(p, struct note, post);
        l->ordered &= n->n == l->next++;
        free(n);
    }
    return count;
}

static void lent_light(void *arg, struct post *first)
{
    struct lent *l = arg;
    l->here &= pthread_equal(l->thread, pthread_self());
    l->light += take_notes(l, first);
}

static void lent_heavy(void *arg, struct post *first)
{
    struct lent *l = arg;
    l->here &= !pthread_equal(l->thread, pthread_self());
    l->heavy += take_notes(l, first);
}

static void post_note(struct lent *l, int n, void (*post)(struct actor *a, struct post *p))
{
    struct note *note = calloc(1, sizeof *note);
    note->n = n;
    post(l->actor, &note->post);
}

static void stop_now(void *os) { os_stop(os); }
static void one_turn(struct os *os)
{
    timer_start(os, 0, stop_now, os);
    os_run(os);
}

TEST(light_work_is_done_by_the_loop_at_the_end_of_its_turn_while_the_actor_rests)
{
    struct err err = { 0 };
    struct lent l = { .os = os_real_new(&err), .here = true, .ordered = true, .thread = pthread_self() };
    l.actor = actor_new(l.os, "lent", lent_heavy, &l);
    actor_lend(l.actor, lent_light, 100);
    for (int i = 0; i < 100; i++)
        post_note(&l, i, actor_post_light);
    CHECK(l.light == 0);                        /* never inside the call */
    one_turn(l.os);
    CHECK(l.light == 100 && l.heavy == 0);
    post_note(&l, 100, actor_post_light);
    post_note(&l, 101, actor_post);             /* what is not light takes the rest along, in order */
    post_note(&l, 102, actor_post_light);
    actor_settle(l.actor);
    one_turn(l.os);
    CHECK(l.light + l.heavy == 103 && l.heavy >= 2);
    post_note(&l, 103, actor_post_soon);
    post_note(&l, 104, actor_post_light);
    one_turn(l.os);
    actor_settle(l.actor);
    CHECK(l.light + l.heavy == 105 && l.here && l.ordered);
    actor_stop(l.actor);
    os_free(l.os);
}

TEST(of_much_light_work_the_loop_does_the_first_part_and_the_actor_the_rest_in_order)
{
    struct err err = { 0 };
    struct lent l = { .os = os_real_new(&err), .here = true, .ordered = true, .thread = pthread_self() };
    l.actor = actor_new(l.os, "lent", lent_heavy, &l);
    actor_lend(l.actor, lent_light, 64);
    int next = 0;
    for (int n = 63; n < 67; n++) {
        int light = l.light, heavy = l.heavy;
        for (int i = 0; i < n; i++)
            post_note(&l, next++, actor_post_light);
        one_turn(l.os);
        if (n > 64)                             /* behind those that wait for the actor, or have been done by it */
            post_note(&l, next++, actor_post);
        actor_settle(l.actor);
        CHECK(l.light - light == MIN(n, 64) && l.heavy - heavy == (n > 64 ? n - 64 + 1 : 0));
    }
    CHECK(l.here && l.ordered && l.next == next);
    actor_stop(l.actor);
    os_free(l.os);
}

TEST(light_work_is_not_lost_when_somebody_waits_for_it_or_the_actor_is_stopped)
{
    struct err err = { 0 };
    struct lent l = { .os = os_real_new(&err), .here = true, .ordered = true, .thread = pthread_self() };
    l.actor = actor_new(l.os, "lent", lent_heavy, &l);
    actor_lend(l.actor, lent_light, 100);
    post_note(&l, 0, actor_post_light);
    actor_settle(l.actor);
    CHECK(l.next == 1 && l.heavy == 1);
    post_note(&l, 1, actor_post_light);
    actor_stop(l.actor);
    CHECK(l.next == 2 && l.here && l.ordered);
    one_turn(l.os);                             /* the loop has forgotten it */
    os_free(l.os);
}

/* Two threads post to it as fast as they can, and the loop lends a hand: each post is done once, by one of them at a time. */
struct crowd { struct lent lent; atomic_int inside, done; bool alone; struct note light[2000], heavy[2000]; };
static void crowd_posts(void *arg, struct post *first)
{
    struct crowd *w = arg;
    w->alone &= atomic_fetch_add(&w->inside, 1) == 0;
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        w->done++;
    }
    atomic_fetch_sub(&w->inside, 1);
}
static void *crowd_poster(void *arg)
{
    struct crowd *w = arg;
    for (size_t i = 0; i < COUNT(w->heavy); i++)
        actor_post(w->lent.actor, &w->heavy[i].post);
    return NULL;
}

TEST(the_loop_and_the_thread_of_an_actor_never_work_at_the_same_time)
{
    struct err err = { 0 };
    struct crowd *w = calloc(1, sizeof *w);
    pthread_t other;
    w->alone = true;
    w->lent.os = os_real_new(&err);
    w->lent.actor = actor_new(w->lent.os, "crowd", crowd_posts, w);
    actor_lend(w->lent.actor, crowd_posts, 3);
    pthread_create(&other, NULL, crowd_poster, w);
    for (size_t i = 0; i < COUNT(w->light); i++) {
        actor_post_light(w->lent.actor, &w->light[i].post);
        if (i % 5 == 0)
            one_turn(w->lent.os);
    }
    pthread_join(other, NULL);
    actor_stop(w->lent.actor);
    CHECK(w->alone && w->done == (int)(COUNT(w->light) + COUNT(w->heavy)));
    os_free(w->lent.os);
    free(w);
}
