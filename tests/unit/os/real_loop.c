#include "os/os.h"
#include "tap.h"
#include <stdlib.h>
#include <sys/prctl.h>

struct seen { struct os *os; char order[16]; size_t n; struct timer *other; };

static void mark(struct seen *s, char c) { s->order[s->n++] = c; }
static void fire_a(void *arg) { mark(arg, 'a'); }
static void fire_b(void *arg) { mark(arg, 'b'); }
static void fire_c(void *arg)
{
    struct seen *s = arg;
    mark(s, 'c');
    timer_cancel(TAKE(s->other));
}
static void fire_end(void *arg)
{
    struct seen *s = arg;
    mark(s, '.');
    os_stop(s->os);
}

/* False: it took so long to start them that they are not in that order. */
static bool start_them(struct seen *s)
{
    int64_t began = os_boot_ms(s->os);
    timer_start(s->os, 20, fire_end, s);
    s->other = timer_start(s->os, 15, fire_a, s);
    timer_start(s->os, 10, fire_c, s);
    timer_start(s->os, 2, fire_a, s);
    timer_start(s->os, 2, fire_b, s);
    timer_cancel(timer_start(s->os, 1, fire_b, s));
    timer_cancel(NULL);
    return os_boot_ms(s->os) - began < 5;
}

TEST(timers_fire_in_order_of_time_then_of_start_and_not_when_cancelled)
{
    struct err err = { 0 };
    struct seen s;
    int64_t began;
    for (;;) {
        s = (struct seen){ .os = os_real_new(&err) };
        began = os_boot_ms(s.os);
        if (start_them(&s))
            break;
        os_free(s.os);
    }
    os_run(s.os);
    CHECK(text_is(s.order, "abc."));
    CHECK(os_boot_ms(s.os) - began >= 20);
    os_free(s.os);
}

struct many { struct os *os; int64_t last; int fired, left; bool ok; };
static void one_of_many(void *arg)
{
    struct many *m = arg;
    int64_t now = os_boot_ms(m->os);
    m->ok &= now >= m->last;
    m->last = now;
    if (++m->fired == m->left)
        os_stop(m->os);
}

TEST(a_thousand_timers_with_every_third_cancelled_fire_exactly_the_rest)
{
    struct err err = { 0 };
    struct many m = { .os = os_real_new(&err), .ok = true, .left = 666 };
    struct timer *t[999];
    for (int i = 0; i < 999; i++)
        t[i] = timer_start(m.os, 5 + (i * 7919) % 40, one_of_many, &m);
    for (int i = 0; i < 999; i += 3)
        timer_cancel(t[i]);
    os_run(m.os);
    CHECK(m.fired == 666 && m.ok);
    os_free(m.os);
}

TEST(what_is_left_when_the_loop_is_freed_is_freed_too)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    timer_start(os, 1000, fire_a, NULL);
    struct listener *l;
    CHECK(stream_listen(os, "127.0.0.1:0", NULL, NULL, NULL, &l, &err));
    stream_dial(os, listener_address(l), NULL, NULL, &(struct stream_events){ 0 }, NULL);
    stream_dial(os, "localhost:1", NULL, NULL, &(struct stream_events){ 0 }, NULL);
    os_free(os);
}

TEST(the_clocks_and_chance_are_there)
{
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    CHECK(os_wall_ms(os) > 1700000000000);
    CHECK(os_boot_ms(os) > 0 && !os_is_simulated(os));
    char a[600] = { 0 }, b[600] = { 0 };
    os_random(os, a, sizeof a);
    os_random(os, b, sizeof b);
    CHECK(memcmp(a, b, sizeof a) != 0);
    os_free(os);
}

TEST(memory_that_is_kept_goes_into_no_core_file)
{
    int before = prctl(PR_GET_DUMPABLE);
    os_keep_memory();
    CHECK(prctl(PR_GET_DUMPABLE) == 0);
    prctl(PR_SET_DUMPABLE, before);
}
