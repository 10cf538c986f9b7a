#include "door.h"
#include <string.h>

static void tell(struct door *d, const char *key, bool first, bool second, const char *why)
{
    struct gpu_info list[] = {
        { .index = 0, .uuid = "GPU-0", .model = "NVIDIA H200", .mem_mib = 143771, .healthy = first, .health = first ? NULL : why },
        { .index = 1, .uuid = "GPU-1", .model = "NVIDIA H200", .mem_mib = 143771, .healthy = second, .health = second ? NULL : why },
    };
    struct hello hello = { .kind = "hello", .next = 1, .beat = 1, .info = { .hostname = "n1", .cpu_milli = 64000, .mem_mib = 262144, .gpus = { list, 2 } } };
    CHECK(door_ask_bound(d, key, NULL, VERB_NODE_HELLO, &hello).ok);
}

static size_t events_of(struct door *d, const char *kind, const char *with)
{
    struct answer a = door_ask(d, d->admin, VERB_EVENT_LIST, "{\"limit\":1000}");
    size_t n = 0;
    const struct json *items = json_get(a.json, "items");
    for (const struct json *e = items ? items->first : NULL; e; e = e->next) {
        AUTO(str_done) struct str data = { 0 };
        json_print(&data, json_get(e, "data"));
        n += text_is(json_text(e, "name"), kind) && strstr(data.at, with);
    }
    return n;
}

TEST(a_gpu_that_breaks_and_one_that_is_well_again_are_events_with_the_reason)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    tell(d, key, true, true, NULL);
    CHECK(events_of(d, "gpu.unhealthy", "") == 0 && events_of(d, "gpu.healthy", "") == 0);
    tell(d, key, true, false, "it has \"fallen\" off the bus");
    CHECK(events_of(d, "gpu.unhealthy", "") == 1 && events_of(d, "gpu.unhealthy", "\"gpu\":1") == 1 && events_of(d, "gpu.unhealthy", "fallen") == 1);
    tell(d, key, true, false, "another reason");
    CHECK(events_of(d, "gpu.unhealthy", "") == 1);      /* it was out already */
    CHECK(door_crash(d));
    tell(d, key, true, false, "another reason");
    CHECK(events_of(d, "gpu.unhealthy", "") == 1);
    tell(d, key, true, true, NULL);
    CHECK(events_of(d, "gpu.healthy", "\"node\":\"n1\"") == 1);
    check_books(d, "health");
}

static void tell_work(struct door *d, const char *key, int64_t test_ms, int64_t scrub_ms)
{
    struct gpu_info gpu = { .uuid = "GPU-0", .model = "NVIDIA H200", .mem_mib = 143771, .healthy = true, .test = test_ms ? "passed" : NULL, .test_ms = test_ms,
                            .scrub = scrub_ms ? "all of it" : NULL, .scrub_ms = scrub_ms };
    struct hello hello = { .kind = "hello", .next = 1, .beat = 1, .info = { .hostname = "n1", .cpu_milli = 64000, .mem_mib = 262144, .gpus = { &gpu, 1 } } };
    CHECK(door_ask_bound(d, key, NULL, VERB_NODE_HELLO, &hello).ok);
}

TEST(each_test_and_each_scrub_of_a_gpu_is_one_event_with_its_result)
{
    AUTO(door_free) struct door *d = door_new(false);
    char key[SECRET_TEXT];
    door_node(d, "n1", 1, key);
    tell_work(d, key, 0, 0);
    CHECK(events_of(d, "gpu.tested", "") == 0 && events_of(d, "gpu.scrubbed", "") == 0);
    tell_work(d, key, 0, 5);
    tell_work(d, key, 0, 5);
    CHECK(events_of(d, "gpu.scrubbed", "all of it") == 1 && events_of(d, "gpu.tested", "") == 0);
    CHECK(door_crash(d));
    tell_work(d, key, 7, 5);
    tell_work(d, key, 9, 6);
    CHECK(events_of(d, "gpu.scrubbed", "\"gpu\":0") == 2 && events_of(d, "gpu.tested", "passed") == 2 && events_of(d, "gpu.unhealthy", "") == 0);
    check_books(d, "work on GPUs");
}
