#include "sim_pair.h"

struct note { struct post post; int n; };
struct box {
    struct os *os;
    struct actor *actor;
    int next, loop_next, batches, light;
    bool ordered, inside;
};

static void on_loop(void *arg, struct post *p)
{
    struct box *b = arg;
    b->ordered &= CONTAINER(p, struct note, post)->n == b->loop_next++ && !b->inside;
    free(p);
}
static void on_posts(void *arg, struct post *first)
{
    struct box *b = arg;
    b->batches++;
    b->inside = true;
    for (struct post *p = first, *next; p; p = next) {
        next = p->next;
        b->ordered &= CONTAINER(p, struct note, post)->n == b->next++;
        p->fn = on_loop;
        p->arg = b;
        os_post(b->os, p);
    }
    b->inside = false;
}
static void post_some(struct box *b, int from, int to)
{
    for (int i = from; i < to; i++) {
        struct note *n = calloc(1, sizeof *n);
        n->n = i;
        actor_post(b->actor, &n->post);
    }
}

TEST(simulated_actors_keep_order_run_later_and_finish_when_stopped)
{
    struct sim *w = sim_new(3);
    struct box b = { .os = sim_machine(w, "m"), .ordered = true };
    b.actor = actor_new(b.os, "writer", on_posts, &b);
    post_some(&b, 0, 50);
    CHECK(b.next == 0);                 /* never inside the call */
    while (sim_step(w))
        ;
    CHECK(b.next == 50 && b.loop_next == 50 && b.batches == 1);
    post_some(&b, 50, 55);
    actor_settle(b.actor);
    CHECK(b.next == 55 && b.loop_next == 50);
    post_some(&b, 55, 60);
    actor_stop(b.actor);
    CHECK(b.next == 60 && b.loop_next == 50);
    while (sim_step(w))
        ;
    CHECK(b.loop_next == 60 && b.ordered);
    sim_free(w);
}

static void keep_posts(void *arg, struct post *first)
{
    struct box *b = arg;
    b->batches++;
    for (struct post *p = first; p; p = p->next)
        b->ordered &= CONTAINER(p, struct note, post)->n == b->next++;
}
static void keep_light(void *arg, struct post *first)
{
    struct box *b = arg;
    b->light++;
    keep_posts(arg, first);
}

TEST(light_work_of_a_simulated_actor_comes_alone_or_with_the_rest)
{
    struct sim *w = sim_new(3);
    struct box b = { .os = sim_machine(w, "m"), .ordered = true };
    struct note notes[4] = { { .n = 0 }, { .n = 1 }, { .n = 2 }, { .n = 3 } };
    b.actor = actor_new(b.os, "writer", keep_posts, &b);
    actor_lend(b.actor, keep_light, 100);
    actor_post_light(b.actor, &notes[0].post);
    actor_post_light(b.actor, &notes[1].post);
    CHECK(b.next == 0);
    while (sim_step(w))
        ;
    CHECK(b.next == 2 && b.light == 1 && b.batches == 1);
    actor_post_light(b.actor, &notes[2].post);
    actor_post(b.actor, &notes[3].post);
    while (sim_step(w))
        ;
    CHECK(b.next == 4 && b.light == 1 && b.batches == 2 && b.ordered);
    actor_stop(b.actor);
    sim_free(w);
}

TEST(of_much_light_work_a_simulated_actor_gets_the_rest_in_order)
{
    struct sim *w = sim_new(3);
    struct box b = { .os = sim_machine(w, "m"), .ordered = true };
    struct note notes[6];
    b.actor = actor_new(b.os, "writer", keep_posts, &b);
    actor_lend(b.actor, keep_light, 3);
    for (int i = 0; i < 5; i++) {
        notes[i] = (struct note){ .n = i };
        actor_post_light(b.actor, &notes[i].post);
    }
    while (b.next == 0 && sim_step(w))
        ;
    CHECK(b.next == 3 && b.light == 1 && b.batches == 1);
    notes[5] = (struct note){ .n = 5 };
    actor_post_light(b.actor, &notes[5].post);  /* behind what is not light any more */
    while (sim_step(w))
        ;
    CHECK(b.next == 6 && b.light == 1 && b.batches == 2 && b.ordered);
    actor_stop(b.actor);
    sim_free(w);
}
