#include "model/node.h"
#include "tap.h"
#include "wire/bind.h"
#include <string.h>

static bool read_as(const struct fields *fields, const char *text, struct arena *mem, void *out, struct err *err)
{
    struct json *doc;
    *err = (struct err){ 0 };
    return json_parse(SLICE(text), mem, &doc, err) && bind_read(doc, fields, mem, out, NULL, err);
}

static const char info_text[] =
    "{\"hostname\":\"n1\",\"kernel\":\"6.1\",\"cpu_milli\":2000,\"mem_mib\":4096,\"gpus\":[{\"index\":0,\"uuid\":\"GPU-1\",\"model\":\"NVIDIA H200\","
    "\"mem_mib\":143771,\"simulated\":true,\"healthy\":true}],\"labels\":{\"zone\":\"a\"},\"cannot\":[\"cgroup v1: buffered writes are not limited\"]}";

TEST(an_inventory_comes_back_as_it_went_out)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    AUTO(str_done) struct str once = { 0 }, again = { 0 };
    struct node_info info = { 0 }, copy = { 0 };
    struct err err;
    CHECK(read_as(&node_info_fields, info_text, mem, &info, &err));
    CHECK(info.gpus.count == 1 && ((struct gpu_info *)info.gpus.at)->simulated && info.cpu_milli == 2000);
    CHECK(info.labels.count == 1 && text_is(info.labels.at[0].value, "a") && info.cannot.count == 1);
    bind_write(&(struct json_out){ .to = &once }, &node_info_fields, &info);
    CHECK(read_as(&node_info_fields, once.at, mem, &copy, &err));
    bind_write(&(struct json_out){ .to = &again }, &node_info_fields, &copy);
    CHECK(text_is(once.at, again.at));
}

TEST(a_gpu_that_hides_whether_it_is_simulated_is_refused)
{
    AUTO(arena_free) struct arena *mem = arena_new();
    struct gpu_info gpu = { 0 };
    struct err err;
    CHECK(!read_as(&gpu_info_fields, "{\"index\":0,\"uuid\":\"u\",\"model\":\"m\",\"mem_mib\":1,\"healthy\":true}", mem, &gpu, &err));
    CHECK(strstr(err.text, "simulated") != NULL);
}

TEST(an_absurd_inventory_is_refused)
{
    static const char *const bad[] = {
        "{}", "[]", "{\"hostname\":\"n\",\"cpu_milli\":-1,\"mem_mib\":1}", "{\"hostname\":\"n\",\"cpu_milli\":1,\"mem_mib\":9999999999999999}",
        "{\"hostname\":\"n\",\"cpu_milli\":1,\"mem_mib\":1,\"gpus\":[{}]}", "{\"hostname\":\"n\",\"cpu_milli\":1,\"mem_mib\":1,\"gpus\":7}",
        "{\"hostname\":\"n\",\"cpu_milli\":1,\"mem_mib\":1,\"gpu\":[]}",
        "{\"hostname\":\"n\",\"cpu_milli\":1,\"mem_mib\":1,\"gpus\":[{\"index\":64,\"uuid\":\"u\",\"model\":\"m\",\"mem_mib\":1,\"simulated\":false,\"healthy\":true}]}",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        AUTO(arena_free) struct arena *mem = arena_new();
        struct node_info info = { 0 };
        struct err err;
        CHECK(!read_as(&node_info_fields, bad[i], mem, &info, &err) && err.rc == RC_BAD_INPUT && err.text[0]);
    }
}

TEST(every_state_of_a_node_has_a_name)
{
    for (size_t i = 0; i < NODE_STATE_COUNT; i++)
        CHECK(text_given(node_state_names.at[i]));
}
