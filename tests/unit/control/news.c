#include "door.h"

TEST(the_only_home_of_a_job_follows_from_its_volumes_and_the_node_it_names)
{
    AUTO(door_free) struct door *d = door_new(false);
    char one[SECRET_TEXT], two[SECRET_TEXT];
    bool by_volume;
    door_node(d, "n1", 1, one);
    door_node(d, "n2", 1, two);
    CHECK(door_ask(d, d->admin, VERB_VOLUME_CREATE, "{\"name\":\"a\"}").ok
          && door_ask(d, d->admin, VERB_VOLUME_CREATE, "{\"name\":\"b\"}").ok);
    struct state *s = memory_of(d);
    int64_t here = state_project(s, "default")->id, n1 = state_node(s, "n1")->id,
            n2 = state_node(s, "n2")->id;
    door_submit(d, d->admin, "{\"name\":\"free\",\"command\":[\"true\"]}");
    door_submit(d, d->admin, "{\"name\":\"named\",\"command\":[\"true\"],\"node\":\"n2\"}");
    door_submit(d, d->admin,
                "{\"name\":\"both\",\"command\":[\"true\"],\"volumes\":[\"a:/a\",\"b:/b\"]}");
    struct job *free_one = state_job(s, here, "free"), *named = state_job(s, here, "named"),
               *both = state_job(s, here, "both");
    CHECK(job_home(s, free_one, &by_volume) == 0 && !by_volume);
    CHECK(job_home(s, named, &by_volume) == n2 && !by_volume);
    CHECK(job_home(s, both, &by_volume) == 0 && !by_volume);
    state_volume(s, here, "b")->node = n1;
    CHECK(job_home(s, both, &by_volume) == n1 && by_volume);
    state_volume(s, here, "a")->node = n2; /* others took them to different nodes */
    CHECK(job_home(s, both, &by_volume) == -1 && by_volume);
    state_volume(s, here, "a")->node = state_volume(s, here, "b")->node = 0;
    CHECK(door_ask(d, d->admin, VERB_NODE_REMOVE, "{\"node\":\"n2\"}").ok
          && job_home(s, named, &by_volume) == -1);
}

TEST(what_the_planner_hears_of_a_node_is_what_the_node_said)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    struct sched_gpu gpus[SCHED_GPUS];
    char where[PLACE_ADDRESS];
    struct sched_event e = { .gpus = gpus, .where = where };
    door_node(d, "n1", 3, key);
    struct node *n = state_node(memory_of(d), "n1");
    sched_of_node(memory_of(d), n, &e);
    CHECK(e.kind == SCHED_NODE && e.node == n->id && e.usable && e.host_image && e.gpu_count == 3
          && e.cpu_milli == 64000 && e.gpus[2].index == 2 && text_is(e.where, ""));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"region\":\"eu\",\"rack\":\"r1\"}").ok);
    sched_of_node(memory_of(d), n, &e);
    CHECK(text_is(e.where, "eu///r1"));
    n->state = NODE_CORDONED;
    sched_of_node(memory_of(d), n, &e);
    CHECK(!e.usable);
}
