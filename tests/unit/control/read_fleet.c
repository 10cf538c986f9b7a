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
