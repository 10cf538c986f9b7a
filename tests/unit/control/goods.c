/* What nodes have and jobs need comes to the planner, is memory's alone, and survives what memory survives. */
#include "door.h"

static struct answer hello_with(struct door *d, const char *key, const char *name, struct texts has)
{
    struct hello h = { .kind = "hello",
                       .info = { .hostname = name, .cpu_milli = 8000, .mem_mib = 16000, .host_image = true },
                       .has = has,
                       .next = 1 };
    return door_ask_bound(d, key, NULL, VERB_NODE_HELLO, &h);
}

TEST(a_job_goes_to_the_node_that_has_its_image)
{
    AUTO(door_free) struct door *d = door_new(true);
    char one[SECRET_TEXT], two[SECRET_TEXT], text[GOOD_TEXT];
    door_node(d, "n1", 0, one);
    door_node(d, "n2", 0, two);
    good_text(text, &(struct good){ good_of_reference("registry.example/app:1"), 4000 });
    const char *const has[] = { text, "what a version to come says" };
    CHECK(hello_with(d, one, "n1", (struct texts){ 0 }).ok);
    CHECK(hello_with(d, two, "n2", (struct texts){ (const char **)has, 2 }).ok && state_node(memory_of(d), "n2")->good_count == 1);
    check_picture(d, "goods");
    door_submit(d, d->admin, "{\"name\":\"without\",\"image\":\"registry.example/app:2\",\"command\":[\"true\"]}");
    door_run(d, 1000);
    door_submit(d, d->admin, "{\"name\":\"with\",\"image\":\"registry.example/app:1\",\"command\":[\"true\"]}");
    door_run(d, 1000);
    struct answer a = door_ask(d, d->admin, VERB_JOB_GET, "{\"job\":\"with\"}");
    CHECK(text_is(get(&a, "node"), "n2"));
    a = door_ask(d, d->admin, VERB_JOB_GET, "{\"job\":\"without\"}");
    CHECK(text_is(get(&a, "node"), "n1"));
    check_picture(d, "placed");
    CHECK(hello_with(d, two, "n2", (struct texts){ 0 }).ok && !state_node(memory_of(d), "n2")->good_count);
    check_picture(d, "none");
    check_books(d, "goods");
}

TEST(more_than_a_node_may_tell_is_cut)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    const char *has[GOODS_MOST + 10];
    for (int i = 0; i < (int)COUNT(has); i++)
        has[i] = FMT(d, "%016x:100", i + 1);
    door_node(d, "n1", 0, key);
    CHECK(hello_with(d, key, "n1", (struct texts){ has, COUNT(has) }).ok && state_node(memory_of(d), "n1")->good_count == GOODS_MOST);
    check_picture(d, "many");
}

TEST(an_array_is_spread_over_nodes_as_it_asks)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    for (int i = 0; i < 3; i++)
        door_node(d, FMT(d, "n%d", i), 2, key);
    CHECK(text_given(door_submit(d, d->admin, "{\"name\":\"apart\",\"image\":\"host\",\"command\":[\"true\"],\"count\":3,\"gpus\":\"1\",\"cpus\":1,\"spread\":\"node\"}")));
    door_run(d, 1000);
    struct node *n;
    for (size_t i = 0; (n = map_next(memory_of(d)->nodes, &i));)
        CHECK(map_count(n->attempts) == 1);
    check_picture(d, "apart");
    struct answer a = door_ask(d, d->admin, VERB_JOB_SUBMIT, "{\"image\":\"host\",\"command\":[\"true\"],\"nodes\":2,\"gpus\":\"1\",\"spread\":\"zone\"}");
    CHECK(!a.ok && text_is(a.err.field, "spread"));
}
