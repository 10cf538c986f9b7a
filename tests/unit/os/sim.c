#include "sim_pair.h"

struct trace { struct sim *w; struct os *os; char text[64]; size_t n; struct timer *other; };
static void mark_a(void *arg) { struct trace *t = arg; t->text[t->n++] = 'a'; }
static void mark_b(void *arg) { struct trace *t = arg; t->text[t->n++] = 'b'; }
static void cancel_other(void *arg)
{
    struct trace *t = arg;
    t->text[t->n++] = 'c';
    timer_cancel(t->other);
}

TEST(virtual_time_jumps_from_timer_to_timer)
{
    struct trace t = { .w = sim_new(1) };
    t.os = sim_machine(t.w, "m");
    CHECK(os_is_simulated(t.os) && os_boot_ms(t.os) == sim_now_ms(t.w));
    int64_t wall = os_wall_ms(t.os), boot = os_boot_ms(t.os);
    timer_start(t.os, 3600 * 1000, mark_b, &t);
    timer_start(t.os, 10, mark_a, &t);
    t.other = timer_start(t.os, 30, mark_b, &t);
    timer_start(t.os, 20, cancel_other, &t);
    while (sim_step(t.w))
        ;
    CHECK(text_is(t.text, "acb") && os_boot_ms(t.os) == boot + 3600 * 1000);
    CHECK(os_wall_ms(t.os) == wall + 3600 * 1000);
    CHECK(!sim_step(t.w));
    sim_free(t.w);
}

static bool has_two(void *arg) { return ((struct trace *)arg)->n == 2; }

TEST(sim_until_stops_when_it_is_enough_or_the_time_is_up)
{
    struct trace t = { .w = sim_new(1) };
    t.os = sim_machine(t.w, "m");
    for (int i = 1; i <= 5; i++)
        timer_start(t.os, i * 100, mark_a, &t);
    CHECK(sim_until(t.w, 5000, has_two, &t) && sim_now_ms(t.w) == 201 && t.n == 2);
    t.n = 10;
    CHECK(!sim_until(t.w, 450, has_two, &t) && sim_now_ms(t.w) == 450 && t.n == 12);
    CHECK(sim_until(t.w, 9000, NULL, NULL) && sim_now_ms(t.w) == 9000 && t.n == 13);
    sim_free(t.w);
}

static void order_of_twenty(uint64_t seed, char out[static 64])
{
    struct trace t = { .w = sim_new(seed) };
    t.os = sim_machine(t.w, "m");
    for (int i = 0; i < 20; i++)
        timer_start(t.os, 5, i % 2 ? mark_a : mark_b, &t);
    while (sim_step(t.w))
        ;
    memcpy(out, t.text, sizeof t.text);
    sim_free(t.w);
}

TEST(chance_decides_between_things_due_at_the_same_time)
{
    char first[64], second[64], again[64];
    order_of_twenty(1, first);
    order_of_twenty(2, second);
    order_of_twenty(1, again);
    CHECK(!text_is(first, second) && text_is(first, again));
}

/* A little of everything, so that a trace depends on every kind of choice. */
static uint64_t busy_run(uint64_t seed)
{
    struct two *t = two_new(seed);
    t->server.echo = true;
    char *bytes = calloc(1, 300000);
    stream_write(t->client.s, bytes, 300000);
    struct trace marks = { .w = t->w };
    for (int i = 0; i < 20; i++)
        timer_start(t->a, 5, i % 2 ? mark_a : mark_b, &marks);
    two_run(t, 1000);
    CHECK(t->client.got.len == 300000 && marks.n == 20);
    uint64_t h = sim_trace(t->w);
    for (size_t i = 0; i < marks.n; i++)
        h = h * 31 + (uint64_t)marks.text[i];
    free(bytes);
    two_free(t);
    return h;
}

TEST(the_same_seed_gives_the_same_run_and_another_seed_another)
{
    uint64_t first = busy_run(7);
    CHECK(busy_run(7) == first && busy_run(7) == first);
    CHECK(busy_run(8) != first && busy_run(9) != busy_run(8));
}

static void count_posts(void *arg, struct post *first)
{
    (void)first;
    ++*(int *)arg;
}

TEST(nothing_of_a_dead_machine_runs_and_its_calls_are_harmless)
{
    struct two *t = two_new(5);
    struct err err = { 0 };
    struct trace marks = { .w = t->w };
    two_run(t, 100);
    struct timer *timer = timer_start(t->b, 50, mark_a, &marks);
    int batches = 0;
    struct actor *actor = actor_new(t->b, "x", count_posts, &batches);
    CHECK(dir_make(t->b, "/d", 0700, &err));
    struct disk_file *f = disk_open(t->b, "/d/f", true, &err);
    struct watch *watch = dir_watch(t->b, "/d", NULL, NULL);
    struct stream *s = t->server.s;
    struct post post = { 0 };
    actor_post(actor, &post);
    sim_crash(t->w, t->b);
    sim_crash(t->w, t->b);
    two_run(t, 1000);
    CHECK(marks.n == 0 && batches == 0 && t->server.closed == 0);
    CHECK(t->client.closed == 1 && t->client.why.rc == RC_UNAVAILABLE);

    stream_write(s, "x", 1);            /* a test frees the dropped code like any other */
    stream_pause(s, false);
    stream_end(s);
    stream_close(s);
    timer_cancel(timer);
    actor_post(actor, &post);
    actor_stop(actor);
    watch_stop(watch);
    size_t got;
    char c;
    CHECK(!disk_write(f, 0, "x", 1) && !disk_read(f, 0, &c, 1, &got) && !disk_sync(f));
    disk_close(f);
    listener_close(t->l);
    timer_start(t->b, 1, mark_a, &marks);
    CHECK(stream_dial(t->b, "alpha:1", NULL, NULL, &end_events, &t->server));
    CHECK(!file_replace(t->b, "/d/x", SLICE("x"), 0600, &err) && err.rc == RC_UNAVAILABLE);
    struct listener *l;
    CHECK(!stream_listen(t->b, "beta:1", NULL, end_accept, NULL, &l, &err));
    two_run(t, 1000);
    os_free(t->b);
    CHECK(marks.n == 0 && t->server.closed == 0);
    struct os *again = sim_machine(t->w, "beta");
    CHECK(again != t->b && sim_machine(t->w, "beta") == again);
    CHECK(disk_exists(again, "/d/f"));
    two_free(t);
}
