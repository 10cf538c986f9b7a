#include "door.h"
#include <stdlib.h>

TEST(the_fleet_shows_what_is_there_what_is_free_and_that_it_is_simulated)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 2, key);
    const char *job = door_submit(
        d, d->admin, "{\"command\":[\"true\"],\"gpus\":\"1\",\"cpus\":4,\"memory\":\"8GB\"}");
    CHECK(door_place(d, job, 0, "n1", 1));
    struct answer nodes = door_ask(d, d->admin, VERB_NODE_LIST, NULL),
                  gpus = door_ask(d, d->admin, VERB_GPU_LIST, NULL),
                  flavors = door_ask(d, d->admin, VERB_FLAVOR_LIST, NULL);
    struct answer one = door_ask(d, d->admin, VERB_NODE_GET, "{\"node\":\"n1\"}"),
                  none = door_ask(d, d->admin, VERB_NODE_GET, "{\"node\":\"nosuch\"}");
    CHECK(item_count(&nodes) == 1 && text_is(item(d, &nodes, 0, "tasks"), "1")
          && json_get(one.json, "simulated")->flag && !none.ok && none.err.rc == RC_NOT_FOUND);
    CHECK(item_count(&gpus) == 2 && text_is(item(d, &gpus, 0, "state"), "free")
          && text_is(item(d, &gpus, 1, "state"), "in use"));
    CHECK(strstr(gpus.text, "\"simulated\":true") && !strstr(gpus.text, "\"simulated\":false"));
    CHECK(item_count(&flavors) >= 4 && strstr(flavors.text, "h200.1x")
          && strstr(flavors.text, "h200.2x") && !strstr(flavors.text, "h200.4x"));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"state\":\"cordoned\"}").ok);
    gpus = door_ask(d, d->admin, VERB_GPU_LIST, NULL);
    CHECK(text_is(item(d, &gpus, 0, "state"), "cordoned"));
}

TEST(gpus_in_mig_mode_show_what_they_can_be_cut_into_and_are_no_whole_ones)
{
    AUTO(door_free) struct door *d = door_new(true);
    char key[SECRET_TEXT];
    door_node(d, "n1", 0, key);
    struct gpu_info gpus[] = { { .index = 0, .uuid = "GPU-0", .model = "NVIDIA H200", .mem_mib = 143771, .simulated = true, .healthy = true, .mig = "on" },
                               { .index = 1, .uuid = "GPU-1", .model = "NVIDIA H200", .mem_mib = 143771, .simulated = true, .healthy = true, .mig = "1g.18gb@0,3g.71gb@4" },
                               { .index = 2, .uuid = "GPU-2", .model = "NVIDIA H200", .mem_mib = 143771, .simulated = true, .healthy = true } };
    struct hello h = { .kind = "hello", .next = 1, .info = { .hostname = "n1", .cpu_milli = 64000, .mem_mib = 262144, .host_image = true, .gpus = { gpus, 3 } } };
    CHECK(door_ask_bound(d, key, NULL, VERB_NODE_HELLO, &h).ok);
    struct answer list = door_ask(d, d->admin, VERB_GPU_LIST, NULL), flavors = door_ask(d, d->admin, VERB_FLAVOR_LIST, NULL);
    CHECK(text_is(item(d, &list, 0, "mig_free"), "full") && text_is(item(d, &list, 1, "mig_free"), "1g.18gb x1, 3g.71gb x1") && !text_given(item(d, &list, 2, "mig_free")));
    CHECK(strstr(flavors.text, "h200.mig-1g.18gb") && strstr(flavors.text, "h200.mig-3g.71gb") && !strstr(flavors.text, "mig-2g") && strstr(flavors.text, "h200.1x")
          && !strstr(flavors.text, "h200.2x"));
    CHECK(door_ask(d, d->admin, VERB_NODE_UPDATE, "{\"node\":\"n1\",\"mig\":\"dynamic\"}").ok);
    list = door_ask(d, d->admin, VERB_GPU_LIST, NULL);
    CHECK(strstr(item(d, &list, 0, "mig_free"), "1g.18gb x7") && strstr(item(d, &list, 0, "mig_free"), "7g.141gb x1"));
    CHECK(text_given(door_submit(d, d->admin, "{\"image\":\"host\",\"command\":[\"true\"],\"mig\":\"4g.71gb\"}")));
    door_run(d, 1000);
    list = door_ask(d, d->admin, VERB_GPU_LIST, NULL);
    flavors = door_ask(d, d->admin, VERB_FLAVOR_LIST, NULL);
    const char *one = item(d, &list, 0, "mig_free"), *two = item(d, &list, 1, "mig_free"), *cut = strstr(one, "7g.") ? two : one;
    CHECK(!strstr(cut, "4g.71gb") && strstr(cut, "3g.71gb x1") && strstr(cut, "1g.18gb x3"));
}
